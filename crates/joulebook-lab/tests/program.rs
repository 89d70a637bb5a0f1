//! The program `joulebook-lab`, as a person meets it.

#![allow(clippy::expect_used, clippy::panic, reason = "the whole file is tests")]

use assert_cmd::Command;

fn lab() -> Command {
    let mut lab = Command::new(env!("CARGO_BIN_EXE_joulebook-lab"));
    lab.env_remove("FAKEGPU_CONTROL").env_remove("FAKEGPU_EPOCH_NS");
    lab
}

fn scenario(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), text).expect("a scenario");
    file
}

/// What a failed run says.
fn complaint(command: &mut Command) -> String {
    let output = command.assert().failure().get_output().clone();
    assert!(output.stdout.is_empty(), "a failure says nothing on standard output");
    String::from_utf8(output.stderr).expect("text")
}

#[test]
fn truth_is_printed_for_people_and_for_programs() {
    let file = scenario("card 0\nidle 70\nstep 1 400\nstep 1.05 70\ncard 1\nidle 10\n");
    let print = |more: &[&str]| {
        let assert = lab().arg("truth").arg(file.path()).args(["0", "2"]).args(more).assert();
        String::from_utf8(assert.success().get_output().stdout.clone()).expect("text")
    };
    let people = "card 0: 156.500000 J in 2 s, 78.250 W\ncard 1: 20.000000 J in 2 s, 10.000 W\n";
    assert_eq!(print(&[]), people);
    let line: serde_json::Value =
        serde_json::from_str(&print(&["--json", "--card", "0"])).expect("one object");
    let number = |key: &str| line.get(key).and_then(serde_json::Value::as_f64).expect("a number");
    assert!((number("joules") - 156.5).abs() < 1e-9);
    assert!((number("mean_watts") - 78.25).abs() < 1e-9);
}

#[test]
fn what_is_wrong_is_said_in_one_line() {
    let file = scenario("card 0\nidel 70\n");
    let said = complaint(lab().arg("truth").arg(file.path()).args(["0", "1"]));
    assert!(said.contains("line 2: `idel`"), "{said}");
    let file = scenario("card 0\n");
    let said = complaint(lab().arg("truth").arg(file.path()).args(["2", "1"]));
    assert!(said.contains("T0 stands first"), "{said}");
    let said = complaint(lab().arg("truth").arg(file.path()).args(["0", "1", "--card", "1"]));
    assert!(said.contains("no card 1: the scenario has 1"), "{said}");
    let said = complaint(lab().arg("truth").arg(file.path()).args(["0", "soon"]));
    assert!(said.contains("finite time in seconds"), "{said}");
    let said = complaint(lab().args(["truth", "/nonexistent", "0", "1"]));
    assert!(said.contains("/nonexistent"), "{said}");
    let file = scenario("");
    let said = complaint(lab().arg("truth").arg(file.path()).args(["0", "1"]));
    assert!(said.contains("`card 0`"), "{said}");
    let file = scenario("card 0\ndynamic\n");
    let said = complaint(lab().arg("truth").arg(file.path()).args(["0", "1"]));
    assert!(said.contains("--control"), "{said}");
}

#[test]
fn the_driver_is_put_under_its_name() {
    let dir = tempfile::tempdir().expect("a directory");
    joulebook_lab::driver::library().unwrap_or_else(|error| panic!("{error}"));
    let inner = dir.path().join("new/place");
    let assert = lab().arg("driver").arg("--dir").arg(&inner).assert().success();
    let printed = String::from_utf8(assert.get_output().stdout.clone()).expect("a path");
    assert_eq!(std::path::Path::new(printed.trim()), inner.canonicalize().expect("it is there"));
    assert!(inner.join("libnvidia-ml.so.1").is_file());
    assert_eq!(std::fs::read_dir(&inner).expect("a directory").count(), 1, "nothing is left over");
}
