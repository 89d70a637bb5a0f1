//! Children never outlive what started them.

use std::{
    env, fs,
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use joulebook::Reader;

use super::bench::{Bench, calls, exists, scenario, script, until};

const CHILD: &str = "JOULEBOOK_TEST_TOOL";

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// This process's children, alive or not reaped.
pub fn children() -> String {
    let threads = fs::read_dir("/proc/self/task").unwrap().flatten();
    threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok()).collect()
}

/// This test again, in a process of its own that reads through the tool and waits.
fn another(name: &str, bench: &Bench) -> std::process::Child {
    let child = Command::new(env::current_exe().unwrap())
        .args([&format!("smi_reader::life::{name}"), "--exact", "--nocapture"])
        .env(CHILD, bench.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    child.unwrap()
}

#[test]
fn agent_exporter_08_a_hundred_starts_and_stops_leave_nothing() {
    let bench = scenario("card 0");
    // In a process of its own, so that descriptors are its own.
    if env::var_os(CHILD).is_none() {
        let mut child =
            another("agent_exporter_08_a_hundred_starts_and_stops_leave_nothing", &bench);
        assert!(child.wait().unwrap().success());
        return;
    }
    drop(bench.cards());
    let before = descriptors();
    for number in 0..100 {
        let feed = bench.feed();
        if number % 10 == 0 {
            feed.cards().unwrap();
        }
    }
    // Some were ended before they had begun to run.
    assert!(bench.calls().len() > 10);
    until(|| (children().is_empty() && bench.left() == 0).then_some(()));
    until(|| (descriptors() <= before).then_some(()));
}

#[test]
fn a_tool_that_ignores_signals_is_ended_all_the_same() {
    let bench = script(
        "trap '' TERM INT HUP\necho 'index, power.draw [W]'\nwhile :; do echo '0, 5'; sleep 0.1; done",
    );
    let (feed, cards) = bench.cards();
    assert_eq!(bench.left(), 1);
    drop((feed, cards));
    until(|| (bench.left() == 0).then_some(()));
}

#[test]
fn no_child_outlives_a_parent_that_was_killed() {
    if let Some(tool) = env::var_os(CHILD) {
        let program = joulebook::smi::Program::at(tool);
        let feed = joulebook::smi::Feed::start(&program, joulebook::smi::PERIOD).unwrap();
        feed.cards().unwrap();
        println!("ready");
        thread::sleep(Duration::from_secs(60));
        return;
    }
    // It prints no more after its first rows, so that no broken pipe ends it.
    let bench = script(
        "trap '' TERM INT HUP PIPE\necho 'index, power.draw [W]'; echo '0, 5'; echo '0, 5'\nwhile :; do sleep 1.5; echo; done",
    );
    let mut parent = another("no_child_outlives_a_parent_that_was_killed", &bench);
    let mut lines = BufReader::new(parent.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("ready")));
    assert_eq!(bench.left(), 1);
    parent.kill().unwrap();
    parent.wait().unwrap();
    until(|| (bench.left() == 0).then_some(()));
}

#[test]
fn rows_that_waited_for_a_stopped_reader_stand_at_their_own_time() {
    if let Some(tool) = env::var_os(CHILD) {
        let program = joulebook::smi::Program::at(tool);
        let feed = joulebook::smi::Feed::start(&program, joulebook::smi::PERIOD).unwrap();
        let card = feed.cards().unwrap().remove(0);
        let mut reader = joulebook::smi::SmiCard::open(&feed, &card);
        println!("ready");
        let mut taken = Vec::new();
        while taken.len() < 50 {
            // The poll that it was stopped in may find its time over.
            if reader.read().is_ok() {
                taken.push(reader.taken_ns().unwrap());
            }
        }
        let apart = taken.windows(2).map(|pair| pair[1] - pair[0]);
        println!("longest {}", apart.max().unwrap());
        return;
    }
    let bench = scenario("card 0");
    let name = "rows_that_waited_for_a_stopped_reader_stand_at_their_own_time";
    let mut reader = another(name, &bench);
    let mut lines = BufReader::new(reader.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("ready")));
    thread::sleep(Duration::from_millis(500));
    let signal = |name: &str| {
        let kill = Command::new("kill").args([name, &reader.id().to_string()]).status();
        assert!(kill.unwrap().success());
    };
    signal("-STOP");
    let stopped = Duration::from_secs(3);
    thread::sleep(stopped);
    signal("-CONT");
    let longest = lines.find_map(|line| line.strip_prefix("longest ")?.parse::<u64>().ok());
    assert!(reader.wait().unwrap().success());
    let longest = Duration::from_nanos(longest.unwrap());
    assert_eq!(bench.calls().len(), 1, "the tool was not taken for hung");
    assert!(longest < stopped / 2, "stamped on arrival, {longest:?} would lie between two rows");
}

#[test]
fn a_program_ends_when_it_wants_to_though_the_tool_hangs() {
    if let Some(tool) = env::var_os(CHILD) {
        let program = joulebook::smi::Program::at(tool);
        let feed = joulebook::smi::Feed::start(&program, joulebook::smi::PERIOD).unwrap();
        let card = feed.cards().unwrap().remove(0);
        let mut reader = joulebook::smi::SmiCard::open(&feed, &card);
        while reader.read().is_ok() {}
        println!("hangs");
        std::process::exit(17);
    }
    let bench = scenario("card 0\n fault 0.5 inf smi.hang x 600000");
    let mut parent = another("a_program_ends_when_it_wants_to_though_the_tool_hangs", &bench);
    let mut lines = BufReader::new(parent.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("hangs")));
    assert_eq!(parent.wait().unwrap().code(), Some(17));
    let file = bench.folder.path().join("calls");
    until(|| calls(&file).iter().all(|(pid, _)| !exists(*pid)).then_some(()));
}
