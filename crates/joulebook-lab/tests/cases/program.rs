//! The program: JSON lines in, JSON lines out, and an exit code.

use assert_cmd::Command;

const GOOD: &str = r#"{"id":"a","input":{"kind":"cell_table","cells":["N/A"]},"expected":{"every_cell":null,"why":"-"}}"#;
const BAD: &str =
    r#"{"id":"b","input":{"kind":"cell_table","cells":["5"]},"expected":{"every_cell":null}}"#;
const UNKNOWN: &str = r#"{"id":"c","input":{"kind":"moon_phase"},"expected":{"watts":1}}"#;
const BROKEN: &str = r#"{"id":"d","input":{"kind":"smi_csv"},"expected":{"watts":1}}"#;

/// Exit code, standard output's lines, standard error.
fn run(text: &str) -> (Option<i32>, Vec<serde_json::Value>, String) {
    let output = Command::cargo_bin("joulebook-lab")
        .expect("the program")
        .args(["case", "-"])
        .write_stdin(text)
        .output()
        .expect("an answer");
    let said = String::from_utf8(output.stdout).expect("text");
    let lines = said.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    (output.status.code(), lines, String::from_utf8(output.stderr).expect("text"))
}

#[test]
fn all_passed_is_0() {
    let (code, lines, said) = run(&format!("{GOOD}\n\n"));
    let expected = serde_json::json!({"id": "a", "got": {"every_cell": null}, "pass": true});
    assert_eq!((code, lines), (Some(0), vec![expected]));
    assert_eq!(said, "1 of 1 cases passed\n");
}

#[test]
fn a_failure_is_1_and_says_where() {
    let (code, lines, said) = run(&format!("{GOOD}\n{BAD}\n"));
    assert_eq!((code, lines.len()), (Some(1), 2));
    assert!(said.contains("b: every_cell: expected null, got [5.0]"), "{said}");
}

#[test]
fn an_unknown_kind_is_not_passed_over() {
    let (code, lines, _) = run(UNKNOWN);
    assert_eq!(code, Some(1));
    assert_eq!(lines[0]["got"], serde_json::json!({"error": "not supported here"}));
    assert_eq!(lines[0]["pass"], false);
    let (code, lines, _) = run(BROKEN);
    assert_eq!(code, Some(1));
    assert!(lines[0]["got"]["error"].as_str().is_some_and(|error| error.contains("`query`")));
}

#[test]
fn what_is_no_case_is_2() {
    for text in ["not JSON\n", "{\"id\":\"a\"}\n", "[]\n"] {
        let (code, lines, said) = run(text);
        assert_eq!((code, lines.len()), (Some(2), 0), "{text}");
        assert!(said.contains("line 1 is no case"), "{said}");
    }
    let missing = Command::cargo_bin("joulebook-lab")
        .expect("the program")
        .args(["case", "/nonexistent"])
        .assert()
        .code(2);
    let said = String::from_utf8(missing.get_output().stderr.clone()).expect("text");
    assert!(said.contains("/nonexistent"), "{said}");
}
