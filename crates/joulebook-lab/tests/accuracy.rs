//! `joulebook-lab accuracy`, run as a program.
#![allow(clippy::expect_used, reason = "the whole file is tests")]

use std::process::Command;

fn accuracy(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_joulebook-lab"))
        .arg("accuracy")
        .args(arguments)
        .output()
        .expect("the program was built");
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "no progress in a pipe: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn the_same_seed_prints_the_same_figures() {
    let of = |seed| accuracy(&["--windows", "2", "--seed", seed, "--json"]);
    let first = of("7");
    assert_eq!(first, of("7"));
    assert_ne!(first, of("8"));
    // 7 lengths × 2 loads × 7 registers × probed or not, and the sharpness.
    assert_eq!(first.lines().count(), 7 * 2 * 7 * 2 + 1);
    for line in first.lines() {
        serde_json::from_str::<serde_json::Value>(line).expect("JSON");
    }
}

#[test]
fn people_get_tables() {
    for arguments in [&["--windows", "2"][..], &["--windows", "2", "--markdown"]] {
        let text = accuracy(arguments);
        assert!(text.contains("Step, counter 100 ms, lag 0 ms, probed"), "{text}");
        assert!(text.contains("Bounds that did not hold: 0."), "{text}");
        assert!(text.contains("keeps no window that is shorter"), "{text}");
    }
}
