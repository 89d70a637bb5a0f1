//! `joulebook-lab score`, run as a program.
#![allow(clippy::expect_used, reason = "the whole file is tests")]

use std::process::{Command, Output};

fn score(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_joulebook-lab"))
        .arg("score")
        .args(arguments)
        .output()
        .expect("the program was built")
}

fn text(arguments: &[&str]) -> String {
    let output = score(arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn the_same_load_prints_the_same_figures() {
    let arguments = ["--load", "mixed", "--rate", "3", "--seeds", "1", "--json"];
    let first = text(&arguments);
    assert_eq!(first, text(&arguments));
    // Nine rules, each told admissions or arrivals only.
    assert_eq!(first.lines().count(), 9 * 2);
    for line in first.lines() {
        let value: serde_json::Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(value["rate_per_second"], 3.0);
        assert!(value["all_seeds"]["median_error_share"].is_number(), "{value}");
        let ours = ["calibrated", "rho8", "time", "token"];
        let books = ours.contains(&value["rule"].as_str().expect("a name"));
        assert_eq!(value["residual_uj"] == 0, books, "{value}");
    }
}

#[test]
fn people_get_tables_and_a_plot() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("errors.svg");
    let file = file.to_str().expect("text");
    let load = ["--load", "bursty-chat", "--seeds", "1", "--rule", "rho8", "--rule", "equal"];
    for more in [&["--svg", file][..], &["--markdown"]] {
        let text = text(&[&load[..], more].concat());
        for words in ["Median |error|, admission known", "equal split", "bursty-chat 4/s", "met"] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(!text.contains("snapshot"), "{text}");
    }
    assert!(std::fs::read_to_string(file).expect("the plot").starts_with("<svg"));
}

#[test]
fn what_does_not_exist_is_said_with_what_does() {
    for arguments in [["--load", "chats"], ["--rule", "equally"], ["--rate", "0"]] {
        let output = score(&arguments);
        assert!(!output.status.success(), "{arguments:?}");
        let error = String::from_utf8(output.stderr).expect("text");
        assert!(error.contains("chat,") || error.contains("rho8") || error.contains("above 0"));
    }
}
