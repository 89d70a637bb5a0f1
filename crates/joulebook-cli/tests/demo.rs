//! The demo is a newcomer's first command: what it prints has to be true.

// Helpers of tests stand outside of them.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::process::Command;

use serde_json::Value;

fn demo(arguments: &[&str]) -> Value {
    let said = Command::new(env!("CARGO_BIN_EXE_joulebook"))
        .arg("demo")
        .args(arguments)
        .arg("--json")
        .output()
        .unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    assert!(said.stderr.is_empty(), "no progress in a pipe");
    let report: Value = serde_json::from_slice(&said.stdout).unwrap();
    assert_eq!(report["simulated"], true);
    report
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn windows_hold_the_truth_within_their_bounds() {
    let report = demo(&["--windows"]);
    let pieces = report["pieces"].as_array().unwrap();
    assert_eq!(pieces.len(), 10);
    for piece in pieces {
        let settled = &piece["settled"];
        assert_eq!(settled["method"], "sampled", "{piece}");
        assert_eq!(settled["backend"], "simulated", "{piece}");
        let off = (number(&settled["joules"]) - number(&piece["true_joules"])).abs();
        // The window opens and closes a few microseconds around the work.
        assert!(off <= number(&settled["bound_joules"]) + 0.1, "{piece}");
    }
}

#[test]
fn requests_are_charged_what_the_register_counted() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let report = demo(&["--journal", journal.to_str().unwrap()]);
    let audit = Command::new(env!("CARGO_BIN_EXE_joulebook")).arg("audit").arg(&journal).output();
    let audit = audit.unwrap();
    assert!(audit.status.success(), "{}", String::from_utf8_lossy(&audit.stderr));
    let requests = report["requests"].as_array().unwrap();
    assert_eq!(requests.len(), 24);
    for card in report["trial_balance"]["cards"].as_array().unwrap() {
        assert_eq!(card["imbalance_uj"], 0);
    }
    assert!(number(&report["journal_transactions"]) > 20.0);
    let (truth, charged) = (number(&report["true_joules"]), number(&report["charged_joules"]));
    // What the engine drew is charged to its requests, all of it and once.
    assert!((charged / truth - 1.0).abs() < 0.05, "{charged} J of {truth} J");
    assert!(number(&report["claimed_joules"]) > 3.0 * truth);
    let status = |row: &&Value| row["receipt"]["status"] == "cancelled";
    assert_eq!(requests.iter().filter(status).count(), 1, "who leaves is charged all the same");
}
