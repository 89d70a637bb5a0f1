//! Cards, drivers and tools that fail while the agent serves: what is said, and what never is.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf, thread, time::Duration};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{
    bench::{Bench, number},
    server::{Serving, until},
};

/// A tool in place of `nvidia-smi`, and the pids of its calls.
struct Tool {
    bench: Bench,
    path: PathBuf,
}

impl Tool {
    fn new(scenario: &str, script: &str) -> Self {
        let bench = Bench::with(scenario);
        let path = bench.path("nvidia-smi");
        let pids = bench.path("pids");
        let text =
            format!("#!/bin/sh\nprintf '%s\\n' \"$$ $*\" >>'{}'\n{script}\n", pids.display());
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Self { bench, path }
    }

    /// The lab's tool on a machine with these cards.
    fn of_the_lab(scenario: &str) -> Self {
        let beside = PathBuf::from(env!("CARGO_BIN_EXE_joulebook"));
        let tool = beside.with_file_name("nvidia-smi");
        assert!(tool.exists(), "{}: cargo build -p joulebook-lab", tool.display());
        Self::new(scenario, &format!("exec '{}' \"$@\"", tool.display()))
    }

    fn command(&self) -> std::process::Command {
        let mut command = self.bench.joulebook(["agent", "--bind", "127.0.0.1:0"]);
        command.env("JOULEBOOK_NVML", "/nonexistent/libnvidia-ml.so.1");
        command.env("JOULEBOOK_SMI", &self.path);
        command
    }

    fn pids(&self) -> Vec<u32> {
        let text = fs::read_to_string(self.bench.path("pids")).unwrap_or_default();
        text.lines().filter_map(|line| line.split(' ').next()?.parse().ok()).collect()
    }

    /// Its processes that run, and those that nobody has reaped.
    fn left(&self) -> (usize, usize) {
        let state = |pid: &u32| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            stat.rsplit(") ").next()?.chars().next()
        };
        let states: Vec<char> = self.pids().iter().filter_map(state).collect();
        let dead = states.iter().filter(|state| **state == 'Z').count();
        (states.len() - dead, dead)
    }
}

fn metrics(serving: &Serving) -> String {
    serving.get("/metrics").body
}

fn is_up(serving: &Serving) -> Option<bool> {
    let page = metrics(serving);
    let line = page.lines().find(|line| line.starts_with("joulebook_card_reader_up{"))?;
    Some(line.ends_with(" 1.0"))
}

#[test]
fn agent_exporter_02_a_dead_source_is_never_its_last_value() {
    // As smi-line-shape-10 has it, too: no line at all in place of a value.
    let bench = Bench::with("card 0\nidle 231.4\ncounter period_ms=20\nfault 2 inf all unknown\n");
    let serving = Serving::on(&bench, &[]);
    assert_eq!(serving.get("/power").status, 200);
    let power = serving
        .until("/power", |answer| answer.status == 503 && number(&answer.json(), "age_s") > 3.0);
    let health = serving.get("/healthz");
    let body = health.json();
    assert_eq!((health.status, &body["status"]), (503, &json!("degraded")));
    assert_eq!(health.body.lines().count(), 1);
    for answer in [&power.json(), &body] {
        assert_eq!(answer["watts"], Value::Null);
        assert!(
            answer["error"].as_str().unwrap().starts_with("gpu 0 cannot be read ("),
            "{answer}"
        );
    }
    let page = metrics(&serving);
    assert!(page.contains("joulebook_card_reader_up{") && is_up(&serving) == Some(false), "{page}");
    for series in ["energy_joules_total", "power_watts", "register_joules", "memory_used", "limit"]
    {
        assert!(!page.contains(&format!("joulebook_card_{series}")), "{series}:\n{page}");
    }
    assert_eq!(serving.get("/v1/cards/0/energy").status, 503);
    let dcgm = serving.get("/dcgm/metrics").body;
    for text in [&power.body, &health.body, &page, &dcgm, &serving.get("/v1/cards").body] {
        assert!(!text.contains("231."), "{text}");
    }
    assert_eq!(serving.get("/v1/cards").json()["cards"][0]["up"], false);
}

#[test]
fn smi_line_shape_10_what_has_no_number_has_no_line() {
    let bench = Bench::with(
        "card 0\nidle 70\ncounter supported=0\nsensor supported=0\ninstant supported=0\n\
         card 1\nidle 55\ncounter period_ms=20\nfault 0 inf mem notsupported\nfault 0 inf util notsupported\n",
    );
    let mut command = bench.joulebook(["agent", "--bind", "127.0.0.1:0"]);
    let serving = Serving::begin(&bench, command.env("JOULEBOOK_SMI", bench.path("none")));
    let page = serving.until("/metrics", |answer| {
        answer.body.contains("reader_up{") && answer.body.contains("gpu=\"1\"")
    });
    let of = |name: &str, gpu: &str| {
        let label = format!("gpu=\"{gpu}\"");
        let found = page.body.lines().find(|line| line.starts_with(name) && line.contains(&label));
        found.map(|line| line.rsplit(' ').next().unwrap().to_owned())
    };
    assert_eq!(of("joulebook_card_reader_up", "0").as_deref(), Some("0.0"));
    assert_eq!(of("joulebook_card_power_watts", "0"), None);
    assert_eq!(of("joulebook_card_reader_up", "1").as_deref(), Some("1.0"));
    assert!(of("joulebook_card_power_watts", "1").is_some());
    assert_eq!(of("joulebook_card_memory_used_bytes", "1"), None);
    for line in page.body.lines().filter(|line| !line.starts_with('#')) {
        let value = line.rsplit(' ').next().unwrap();
        assert!(value.parse::<f64>().unwrap().is_finite(), "{line}");
    }
    let power = serving.get("/power?gpu=1").json();
    assert_eq!(
        (&power["memory_used_mib"], &power["utilization_pct"]),
        (&Value::Null, &Value::Null)
    );
    let power = serving.get("/power?gpu=0");
    assert_eq!(power.status, 503);
    assert!(power.body.contains("not_supported"), "{}", power.body);
    assert_eq!(serving.get("/power?gpu=2").status, 404);
}

#[test]
fn agent_exporter_07_access_that_is_taken_away_is_said_once_and_comes_back() {
    let bench = Bench::with("card 0\nidle 100\ncounter period_ms=20\nfault 1.5 5 all unknown\n");
    let mut command = bench.joulebook(["agent", "--bind", "127.0.0.1:0"]);
    let serving = Serving::begin(&bench, &mut command);
    let health = serving.until("/healthz", |answer| answer.status == 503);
    assert!(health.body.contains("access_lost"), "{}", health.body);
    let count = |words: &str| serving.errors().matches(words).count();
    assert_eq!(count("cannot be read: access_lost"), 1, "{}", serving.errors());
    let back = serving.until("/healthz", |answer| answer.status == 200);
    assert!((number(&back.json(), "watts") - 100.0).abs() < 60.0, "{}", back.body);
    assert_eq!(count("cannot be read"), 1, "once for each change of state: {}", serving.errors());
    assert_eq!(count("can be read again"), 1, "{}", serving.errors());
}

#[test]
fn agent_exporter_07_a_window_over_it_is_unknown_with_what_is_certain() {
    let bench = Bench::with("card 0\nidle 100\ncounter period_ms=20\nfault 1.2 inf all unknown\n");
    let said = bench.say(["run", "--json", "--idle", "0", "--for", "2"]);
    let result = said.err_json();
    assert_eq!(
        (&result["method"], &result["joules"]),
        (&json!("unknown"), &Value::Null),
        "{result}"
    );
    assert_eq!(result["error"], "access_lost", "{result}");
    let least = number(&result, "lower_bound_joules");
    assert!(least > 0.0 && least <= 200.0, "{result}");
}

#[test]
fn a_driver_that_hangs_holds_up_no_answer_and_no_other_card() {
    let bench = Bench::with(
        "card 0\nidle 70\ncounter period_ms=20\nfault 1.5 inf all hang 600000\ncard 1\nidle 55\ncounter period_ms=20\n",
    );
    let mut serving = Serving::on(&bench, &[]);
    let stuck = serving.until("/power", |answer| answer.status == 503);
    assert!(stuck.body.contains("timeout"), "{}", stuck.body);
    let threads = serving.threads();
    for _ in 0..200 {
        assert_eq!(serving.get("/power").status, 503);
        assert_eq!(serving.get("/power?gpu=1").status, 200);
    }
    assert_eq!(serving.threads(), threads);
    assert_eq!(serving.stop(), Some(0), "it ends though the call does not");
}

#[test]
fn a_driver_that_hangs_from_the_start_is_served_as_what_it_is() {
    let bench = Bench::with("card 0\nidle 70\nfault 0 inf init hang 600000\n");
    let mut serving = Serving::on(&bench, &[]);
    for path in ["/power", "/healthz", "/v1/cards", "/v1/cards/0/energy"] {
        assert_eq!(serving.get(path).status, 503, "{path}");
    }
    assert_eq!(is_up(&serving), Some(false));
    assert!(serving.said[1].contains("cannot be listed now"), "{:?}", serving.said);
    assert_eq!(serving.stop(), Some(0));
}

#[test]
fn a_card_that_hangs_when_it_is_opened_holds_up_no_other() {
    let bench = Bench::with(
        "card 0\nidle 70\nfault 0 inf energy hang 600000\ncard 1\nidle 55\ncounter period_ms=20\n",
    );
    let mut serving = Serving::on(&bench, &[]);
    assert_eq!(serving.get("/power?gpu=1").status, 200);
    let stuck = serving.until("/power", |answer| answer.body.contains("timeout"));
    assert_eq!(stuck.status, 503);
    let cards = serving.get("/v1/cards").json();
    assert_eq!((&cards["cards"][0]["up"], &cards["cards"][1]["up"]), (&json!(false), &json!(true)));
    assert_eq!(serving.stop(), Some(0));
}

#[test]
fn agent_exporter_06_a_tool_that_never_ends_is_one_child() {
    // It takes no notice of signals but the last, as a call stuck in the kernel of none.
    let tool = Tool::new("", "trap '' TERM INT HUP PIPE\nwhile :; do sleep 1; done");
    let mut serving = Serving::begin(&tool.bench, &mut tool.command());
    for _ in 0..10 {
        let health = serving.get("/healthz");
        assert_eq!((health.status, &health.json()["status"]), (503, &json!("degraded")));
        assert_eq!(serving.get("/power").status, 503);
        thread::sleep(Duration::from_millis(300));
    }
    assert!(tool.left().0 <= 1, "{:?}", tool.left());
    assert_eq!(is_up(&serving), Some(false));
    assert_eq!(serving.stop(), Some(0));
    until(|| (tool.left().0 == 0).then_some(()));
}

#[test]
fn agent_exporter_06_a_tool_that_hangs_later_is_one_child_and_stale() {
    let tool = Tool::of_the_lab("card 0\nidle 64\nfault 2 inf smi.hang x 600000\n");
    let mut serving = Serving::begin(&tool.bench, &mut tool.command());
    let power = serving.until("/power", |answer| answer.status == 200).json();
    assert!((number(&power, "watts") - 64.0).abs() < 1.0, "{power}");
    assert_eq!((&power["memory_used_mib"], &power["memory_total_mib"]), (&json!(4), &json!(81559)));
    let stale = serving.until("/power", |answer| answer.status == 503);
    assert!(!stale.body.contains("64.0"), "{}", stale.body);
    for _ in 0..10 {
        assert_eq!(serving.get("/healthz").status, 503);
        thread::sleep(Duration::from_millis(200));
    }
    assert!(
        tool.left().0 <= 2,
        "one that reads, and one that listed who is there: {:?}",
        tool.left()
    );
    assert_eq!(serving.stop(), Some(0));
    until(|| (tool.left().0 == 0).then_some(()));
}

#[test]
fn agent_exporter_08_agents_that_start_and_stop_leave_no_child() {
    let tool = Tool::of_the_lab("card 0\nidle 64\n");
    for number in 0..100 {
        let mut command = tool.command();
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        let mut child = command.spawn().unwrap();
        // Some are ended before they have begun, some while they serve.
        let before = tool.pids().len();
        if number % 2 == 0 {
            until(|| (tool.pids().len() > before).then_some(()));
        }
        if number % 10 == 0 {
            thread::sleep(Duration::from_millis(300));
        }
        let pid = rustix::process::Pid::from_child(&child);
        let signal = if number % 4 < 2 { Signal::TERM } else { Signal::KILL };
        rustix::process::kill_process(pid, signal).unwrap();
        child.wait().unwrap();
    }
    assert!(tool.pids().len() >= 50);
    until(|| (tool.left().0 == 0).then_some(()));
}
