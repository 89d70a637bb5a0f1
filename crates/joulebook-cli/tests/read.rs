//! `joulebook read` as a person meets it.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "the whole file is tests")]

use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// Runs `read` in the root of the repository: exit status, standard output and error.
fn read(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::cargo_bin("joulebook")
        .unwrap()
        .current_dir(root())
        .arg("read")
        .args(arguments)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn json(arguments: &[&str]) -> Value {
    let (code, out, error) = read(&[arguments, &["--json"]].concat());
    assert_eq!((code, error.as_str()), (0, ""));
    assert_eq!(out.lines().count(), 1, "one object, one line");
    serde_json::from_str(&out).unwrap()
}

const BURSTS: &str = "testdata/recordings/bursts.csv";
const BURST_MARKS: &str = "testdata/recordings/bursts.marks.csv";
const CARDS: &str = "testdata/recordings/two-cards.csv";

#[test]
fn a_first_look_needs_no_option() {
    let (code, page, error) = read(&[BURSTS]);
    assert_eq!((code, error.as_str()), (0, ""));
    for words in [
        "231 rows, 2.990 s, 1 card",
        "column   power.draw [W] (also there, never added: power.draw.instant [W])",
        "13 ms apart",
        "a new value every 104 ms",
        "212.832 J gross ± 468.000 J; above idle: --idle W",
        "gain, ±5 %",
        "warning: no card's name",
        "warning: no power limit",
    ] {
        assert!(page.contains(words), "`{words}` is not in\n{page}");
    }
}

#[test]
fn the_page_and_the_object_say_the_same() {
    let ask = [BURSTS, "--marks", BURST_MARKS, "--tz", "+01:00", "--idle", "55", "--limit", "250"];
    let (_, page, _) = read(&ask);
    let object = json(&ask);
    let windows = object["windows"].as_array().unwrap();
    assert_eq!(windows.len(), 12);
    for window in windows {
        assert_eq!(window["error"], "window_below_resolution");
        assert_eq!(window["method"], "unknown");
        assert!(window["joules"].is_null());
        assert!(window["gross_low_joules"].as_f64().unwrap() <= 9.5);
        assert!(window["gross_high_joules"].as_f64().unwrap() >= 9.5);
        let gross = format!("{:.3}", window["gross_joules"].as_f64().unwrap());
        assert!(page.contains(&gross), "{gross} is not in\n{page}");
    }
    let sum = &object["windows_sum"];
    assert_eq!((&sum["windows"], &sum["measured"]["windows"]), (&12.into(), &0.into()));
    let seen = sum["not_measured"]["gross_joules"].as_f64().unwrap();
    assert!(page.contains(&format!("not measured in 12: {seen:.3} J seen")), "{page}");
    let whole = &object["cards"][0];
    assert_eq!((&whole["method"], &whole["backend"]), (&"sampled".into(), &"replay".into()));
    let joules = whole["joules"].as_f64().unwrap();
    assert!((joules - (212.832 - 55.0 * 2.99)).abs() < 1e-3, "{joules}");
}

#[test]
fn a_window_is_given_by_times_without_a_zone_too() {
    let by_stamp = json(&[
        BURSTS,
        "--from",
        "2024/01/15 10:00:01.000",
        "--to",
        "2024/01/15 10:00:02.200",
        "--idle",
        "55",
    ]);
    let by_seconds = json(&[BURSTS, "--from", "+1", "--to", "+2.2", "--idle", "55"]);
    let by_epoch = json(&[
        BURSTS,
        "--from",
        "1705309201",
        "--to",
        "1705309202.2",
        "--tz",
        "+1",
        "--idle",
        "55",
    ]);
    assert_eq!(by_stamp["windows"], by_seconds["windows"]);
    assert_eq!(by_stamp["windows"], by_epoch["windows"]);
    assert_eq!(by_stamp["windows"][0]["method"], "sampled");
    assert_eq!(by_stamp["windows"][0]["columns"][0], "power.draw [W]");
}

#[test]
fn several_cards_stand_apart_and_in_sum() {
    let object = json(&[CARDS, "--from", "+1", "--to", "+15", "--idle", "20,25"]);
    let window = &object["windows"][0];
    let cards = window["cards"].as_array().unwrap();
    assert_eq!(cards.len(), 2);
    assert_eq!(cards[0]["method"], "sampled");
    assert_eq!(cards[1]["error"], "counter_frozen");
    assert_eq!(window["error"], "partial_devices");
    let words: Vec<&str> = object["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|warning| warning["word"].as_str().unwrap())
        .collect();
    assert!(words.contains(&"counter_frozen") && words.contains(&"cut_last_row"), "{words:?}");
}

#[test]
fn what_cannot_be_answered_exits_2_and_says_where_and_what_would_help() {
    let folder = tempfile::tempdir().unwrap();
    let bad = folder.path().join("bad.csv");
    std::fs::write(&bad, "timestamp, power.draw [horses]\n").unwrap();
    let bad = bad.to_str().unwrap();
    let marks = folder.path().join("marks.csv");
    std::fs::write(&marks, "start,end\n1,2\nlater,never\n").unwrap();
    let marks = marks.to_str().unwrap();
    for (arguments, helps) in [
        (vec!["no-such-file.csv"], "no-such-file.csv: No such file"),
        (vec![bad], "bad.csv:1: column `power.draw [horses]` is in `horses`"),
        (vec![BURSTS, "--marks", BURST_MARKS], "lie inside with --tz +01:00"),
        (vec![BURSTS, "--marks", marks, "--tz", "Z"], "marks.csv:3: `later` is no time"),
        (vec![BURSTS, "--column", "watts"], "columns of power: power.draw [W], power.draw.instant"),
        (vec![BURSTS, "--from", "+2", "--to", "+1"], "ends before it starts"),
        (vec![BURSTS, "--tz", "Mars"], "`Mars` is no zone"),
        (vec![BURSTS, "--idle", "nan"], "`nan` is no number of watts"),
        (vec![CARDS, "--idle", "1,2,3"], "3 idle floors for 2 cards"),
    ] {
        let (code, out, error) = read(&arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {error}");
        assert!(error.contains(helps), "{arguments:?}: `{error}` does not say `{helps}`");
    }
}

#[test]
fn the_first_burst_of_the_a100_reads_3_2_j_and_may_be_the_meters_10_j() {
    let folder = root().join("../shared/traces");
    if !folder.join("index.json").exists() {
        println!("skipped: no recordings in ../shared/traces beside the repository");
        return;
    }
    let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (log, marks) = (file("smi-a100-bursts50ms.csv"), file("smi-a100-bursts50ms.marks.csv"));
    let object =
        json(&[&log, "--marks", &marks, "--tz", "+01:00", "--card", "NVIDIA A100-PCIE-40GB"]);
    let windows = object["windows"].as_array().unwrap();
    assert_eq!(windows.len(), 76);
    let figure = |name: &str| windows[0][name].as_f64().unwrap();
    assert!((figure("gross_joules") - 3.203).abs() < 0.003);
    assert!(figure("gross_low_joules") <= 9.986 && 9.986 <= figure("gross_high_joules"));
    let whole = object["cards"][0]["gross_joules"].as_f64().unwrap();
    assert!((whole - 1308.797).abs() < 0.001, "{whole}");
}

fn made_up(name: &str) -> String {
    format!("testdata/recordings/{name}")
}

#[test]
fn several_logs_stand_apart_and_are_added_only_where_their_cards_are_told_apart() {
    let (code, page, error) = read(&[&made_up("loop.csv"), &made_up("plain.csv")]);
    assert_eq!((code, error.as_str()), (0, ""));
    for words in [
        "loop.csv: logger CSV, 27 rows, 5.200 s, 3 cards",
        "all cards  3120.000 J gross",
        "plain.csv: logger CSV, 200 rows, 1.990 s, 1 card",
        "no sum over the 2 logs: card 0 of testdata/recordings/loop.csv has no UUID",
    ] {
        assert!(page.contains(words), "`{words}` is not in\n{page}");
    }
    // Cards with UUIDs of their own: one is the DCGM scrape's, one the XML's.
    let logs = [made_up("scrapes.prom"), made_up("nvidia-smi.xml")];
    let object = json(&[&logs[0], &logs[1], "--idle", "50,60"]);
    assert_eq!(object["logs"].as_array().unwrap().len(), 2);
    let figure = |name: &str| object["sum"][name].as_f64().unwrap();
    assert!((figure("gross_joules") - 20_905.0).abs() < 1e-3);
    assert!((figure("joules") - (20_905.0 - 50.0 * 50.0 - 60.0 * 4.0)).abs() < 1e-3);
    let twice = json(&[&logs[0], &logs[0]]);
    assert!(twice["sum"].is_null());
    assert!(twice["no_sum_because"].as_str().unwrap().contains("in another log too"));
    let (code, _, error) = read(&[&logs[0], &logs[1], "--idle", "50"]);
    assert!(code == 2 && error.contains("1 idle floors for 2 cards in 2 logs"), "{error}");
}

#[test]
fn windows_of_the_log_itself_are_shown_until_others_are_asked_for() {
    let object = json(&[&made_up("wall.spl.txt")]);
    let names: Vec<&str> = object["windows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["ranging", "testing"]);
    let stamps = ["--from", "01-15-2024 10:00:02.776", "--to", "01-15-2024 10:00:06.776"];
    let object = json(&[&[made_up("wall.spl.txt").as_str()], stamps.as_slice()].concat());
    assert_eq!(object["windows"].as_array().unwrap().len(), 1);
    assert!((object["windows"][0]["gross_joules"].as_f64().unwrap() - 9600.0).abs() < 1.0);
}

#[test]
fn a_file_of_requests_is_marks_and_no_log() {
    let (log, requests) = (made_up("day.csv"), made_up("day.requests.csv"));
    let (code, _, error) = read(&[&requests]);
    assert!(code == 2 && error.contains("day.requests.csv:1: this is no log of power"), "{error}");
    let object = json(&[&log, "--marks", &requests, "--idle", "61"]);
    let methods: Vec<&str> = object["windows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["method"].as_str().unwrap())
        .collect();
    assert_eq!(methods, ["unknown", "sampled", "sampled"]);
    let words =
        object["warnings"].as_array().unwrap().iter().map(|it| it["word"].as_str().unwrap());
    assert!(
        words.clone().any(|word| word == "window_uncertain"),
        "{:?}",
        words.collect::<Vec<_>>()
    );
    let (log, requests) = (made_up("rocm-loop.csv"), made_up("rocm-loop.requests.csv"));
    let object = json(&[&log, "--marks", &requests, "--idle", "150,151"]);
    for window in object["windows"].as_array().unwrap() {
        assert_eq!(window["method"], "unknown");
        assert!(window["joules"].is_null());
        assert_eq!(window["cards"][0]["error"], "window_below_resolution");
    }
}

#[test]
fn the_format_and_the_columns_may_be_given() {
    let log = made_up("misnamed.csv");
    let columns =
        "timestamp,index,utilization.gpu,memory.used,memory.total,power.draw,temperature.gpu";
    let object = json(&[&log, "--columns", columns]);
    let words: Vec<&str> = object["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|warning| warning["word"].as_str().unwrap())
        .collect();
    assert!(!words.contains(&"header_misnamed") && words.contains(&"cut_tick"), "{words:?}");
    let (code, _, error) = read(&[&log, "--format", "pmt"]);
    assert_eq!(code, 2, "{error}");
    let (code, _, error) = read(&[&log, "--format", "csv"]);
    assert!(code == 2 && error.contains("`csv` is no format that is read"), "{error}");
}
