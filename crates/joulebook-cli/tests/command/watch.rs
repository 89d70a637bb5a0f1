//! `run --pid` and `run --for`.

use std::{
    process::{Command, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

use super::bench::{Bench, QUICK, json, number};

#[test]
fn a_span_is_watched_for_its_length() {
    let bench = Bench::with(QUICK);
    let said = bench.say(["run", "--json", "--idle", "10", "--for", "500ms"]);
    assert_eq!(said.code, Some(0));
    let line = said.err_json();
    let seconds = number(&line, "seconds");
    assert!(seconds >= 0.5, "{line}");
    assert_eq!(line["ended_by"], "span");
    assert!((number(&line, "joules") / (60.0 * seconds) - 1.0).abs() < 0.3, "{line}");
    assert!(line.get("command").is_none(), "{line}");
}

#[test]
fn a_process_is_watched_to_its_end_or_the_spans() {
    let bench = Bench::with(QUICK);
    let mut sleep = Command::new("sleep").arg("1").spawn().unwrap();
    let pid = sleep.id().to_string();
    let short = bench.say(["run", "--json", "--idle", "0", "--pid", &pid, "--for", "100ms"]);
    assert_eq!(short.err_json()["ended_by"], "span");
    // Not reaped by us before the watch: a process that has ended and waits is at its end too.
    let line = bench.say(["run", "--json", "--idle", "0", "--pid", &pid]).err_json();
    assert_eq!(line["ended_by"], "process");
    assert!(number(&line, "seconds") < 5.0, "{line}");
    sleep.wait().unwrap();
    let gone = bench.say(["run", "--pid", &pid]);
    assert_eq!(gone.code, Some(2));
    assert!(gone.err.contains(&format!("there is no process {pid}")), "{}", gone.err);
}

#[test]
fn a_signal_ends_the_watch_and_the_result_comes() {
    let bench = Bench::with(QUICK);
    for (signal, code, number) in [(Signal::INT, 0, 2), (Signal::TERM, 143, 15)] {
        let child = bench
            .joulebook(["run", "--json", "--idle", "0", "--for", "60s"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(1500));
        kill_process(Pid::from_child(&child), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code));
        let line = json(std::str::from_utf8(&output.stderr).unwrap());
        assert_eq!((&line["ended_by"], &line["exit_signal"]), (&"signal".into(), &number.into()));
        assert!(line["gross_joules"].is_number(), "{line}");
    }
}

#[test]
fn what_a_watched_process_started_is_its_own_after_both_have_ended() {
    let mut parent = Command::new("sh").args(["-c", "sleep 1.5; :"]).spawn().unwrap();
    let pid = parent.id();
    let children = format!("/proc/{pid}/task/{pid}/children");
    let child = loop {
        let listed = std::fs::read_to_string(&children).unwrap();
        match listed.split_whitespace().next() {
            Some(child) => break child.to_owned(),
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    let bench = Bench::with(&format!("{QUICK}proc 0 inf {child} 9000 /opt/work\n"));
    let watched = ["run", "--json", "--idle", "0", "--pid", &pid.to_string()];
    let line = bench.say(watched).err_json();
    assert_eq!((&line["ended_by"], &line["tenancy"]), (&"process".into(), &"alone".into()));
    parent.wait().unwrap();
    let line = bench.say(["run", "--json", "--idle", "0", "--for", "300ms"]).err_json();
    assert_eq!(line["tenancy"], "foreign", "to anybody else it is somebody else's");
}
