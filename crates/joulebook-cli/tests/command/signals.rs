//! Signals: passed on where the command has not got them itself, and the result comes all the same.

use std::{
    process::{Child, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

use super::bench::{Bench, QUICK, Said, wait_for};

fn started(bench: &Bench, script: &str) -> Child {
    let mark = bench.path("begun");
    let script = format!("touch {}; {script}", mark.display());
    let child = bench
        .joulebook(["run", "--idle", "0", "--", "sh", "-c", &script])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for(&mark);
    // Past the touch, into what the script does next.
    std::thread::sleep(Duration::from_millis(100));
    child
}

fn ended(child: Child) -> Said {
    let output = child.wait_with_output().unwrap();
    Said {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn what_a_process_sends_us_is_passed_on_and_the_result_still_comes() {
    for (signal, number) in
        [(Signal::TERM, 15), (Signal::INT, 2), (Signal::HUP, 1), (Signal::QUIT, 3)]
    {
        let bench = Bench::with(QUICK);
        let child = started(&bench, "exec sleep 30");
        kill_process(Pid::from_child(&child), signal).unwrap();
        let said = ended(child);
        assert_eq!(said.code, Some(128 + number), "{}", said.err);
        assert!(said.err.contains(&format!("(ended by signal {number})")), "{}", said.err);
        assert!(said.err.contains("W on average"), "{}", said.err);
    }
}

#[test]
fn a_command_that_takes_a_signal_calmly_goes_on() {
    let bench = Bench::with(QUICK);
    let script = "trap 'echo took it; exit 9' TERM; while :; do sleep 0.05; done";
    let child = started(&bench, script);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let said = ended(child);
    assert_eq!((said.code, said.out.as_str()), (Some(9), "took it\n"), "{}", said.err);
}

#[test]
fn a_command_killed_by_a_signal_is_said_to_be() {
    let bench = Bench::with(QUICK);
    let said = bench.say(["run", "--idle", "0", "--", "sh", "-c", "kill -KILL $$"]);
    assert_eq!(said.code, Some(137));
    assert!(said.err.contains("(ended by signal 9)"), "{}", said.err);
    let line = bench.say(["run", "--json", "--", "sh", "-c", "kill -SEGV $$"]).err_json();
    assert_eq!((&line["exit_signal"], &line["exit_code"]), (&11.into(), &serde_json::Value::Null));
}

#[test]
fn what_was_ignored_stays_ignored_and_nothing_is_blocked_for_the_command() {
    let bench = Bench::with(QUICK);
    let program = env!("CARGO_BIN_EXE_joulebook");
    // Without a shell in between, some of which clear the mask themselves.
    let plain = format!("{program} run --idle 0 -- grep -E '^Sig(Blk|Ign)' /proc/self/status");
    for (script, ignored) in [(plain.clone(), false), (format!("trap '' HUP; {plain}"), true)] {
        let mut shell = std::process::Command::new("sh");
        let around = bench.joulebook([]);
        let environment = around.get_envs().filter_map(|(key, value)| Some((key, value?)));
        let output = shell.args(["-c", &script]).envs(environment).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let mask = |name: &str| {
            let line = said.lines().find(|line| line.starts_with(name)).unwrap();
            u64::from_str_radix(line.split_whitespace().last().unwrap(), 16).unwrap()
        };
        assert_eq!(mask("SigBlk"), 0, "{said}");
        assert_eq!(mask("SigIgn") & 1 == 1, ignored, "{said}");
    }
}
