//! `bench` against the lab's server, whose true joules are known.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Read},
    process::{Child, Command, Stdio},
    time::{SystemTime, UNIX_EPOCH},
};

use joulebook::books::Line;
use joulebook_lab::{
    clock::system_ns,
    driver,
    engine::Hardware,
    scenario::ClockKind,
    serve::{Home, RequestTruth, Server, Settings},
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::bench::{Bench, Said, json, number, said};

/// A server, and a machine whose card it drives.
struct Lab {
    bench: Bench,
    server: Server,
}

impl Lab {
    fn serving(settings: Settings, about: &str) -> Self {
        let bench = Bench::with("");
        let folder = bench.path("scenario");
        let home = Home::make(folder.parent().unwrap(), &Hardware::default(), about).unwrap();
        Self { bench, server: Server::start(settings, &home).unwrap() }
    }

    fn new() -> Self {
        Self::serving(Settings::default(), "")
    }

    /// A short run, which leaves its record in the folder `record`.
    fn bench(&self, more: &[&str]) -> Command {
        let mut command = self.bare(more);
        command.args(["--warm-up", "300ms", "--cool-down", "200ms"]);
        command
    }

    /// The same without a warm-up and a cool-down of its own.
    fn bare(&self, more: &[&str]) -> Command {
        let mut command = self.bench.joulebook(["bench", "--url", &self.server.url()]);
        command.arg("--output").arg(self.bench.path("record")).args(["--baseline", "1s"]);
        command.args(more);
        command
    }

    fn record(&self) -> Value {
        json(&std::fs::read_to_string(self.bench.path("record/record.json")).unwrap())
    }

    fn requests(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.bench.path("record/requests.jsonl")).unwrap();
        text.lines().map(json).collect()
    }

    /// What each request truly cost, by its name.
    fn truths(&self) -> HashMap<String, RequestTruth> {
        let truths = self.server.truth().requests.into_iter();
        truths.filter_map(|truth| Some((truth.name.clone()?, truth))).collect()
    }

    /// What the card truly drew in a repeat's window, J.
    fn drawn(&self, record: &Value, repeat: &Value) -> f64 {
        let unix_ns = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as i64;
        let ahead_ns = unix_ns - system_ns(ClockKind::Monotonic);
        let began_ns = (number(record, "started_unix_s") * 1e9) as i64 - ahead_ns;
        let open_ns = began_ns + repeat["opened_ns"].as_i64().unwrap();
        let close_ns = open_ns + repeat["window_ns"].as_i64().unwrap();
        self.server.card(open_ns, close_ns).joules
    }
}

/// The window is the whole of the load.
const WHOLE: [&str; 4] = ["--warm-up", "0", "--cool-down", "0"];

/// The most requests of a rung that were in flight at one time.
fn most_at_once(requests: &[Value], rung: &str) -> i64 {
    let mut steps: Vec<(u64, i64)> = Vec::new();
    for request in requests.iter().filter(|request| request["rung"] == rung) {
        let sent_ns = request["sent_ns"].as_u64().unwrap();
        steps.push((sent_ns, 1));
        steps.push((sent_ns + request["ended_ns"].as_u64().unwrap(), -1));
    }
    steps.sort_unstable();
    let mut now = 0;
    let in_flight = steps.iter().map(|(_, step)| {
        now += step;
        now
    });
    in_flight.max().unwrap_or(0)
}

fn repeat(record: &Value, rung: usize) -> &Value {
    &record["rungs"][rung]["repeats"][0]
}

fn starts(command: &mut Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Reads what it says until a line has this in it.
fn read_until(child: &mut Child, words: &str) -> BufReader<std::process::ChildStderr> {
    let mut reader = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains(words) {
        line.clear();
        assert!(reader.read_line(&mut line).unwrap() > 0, "it never said {words}");
    }
    reader
}

fn ends(mut child: Child, mut err: impl Read) -> Said {
    let mut said = String::new();
    err.read_to_string(&mut said).unwrap();
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    Said { code: child.wait().unwrap().code(), out, err: said }
}

#[test]
fn the_joules_of_a_window_and_of_its_requests_are_the_truth() {
    let lab = Lab::new();
    let said = said(&mut lab.bench(&["--concurrency", "1,4", "--duration", "3s"]));
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out.contains("J/token") && said.out.contains("Idle: "), "{}", said.out);
    let record = lab.record();
    assert!((number(&record, "gpu_rail_idle_power_w") - 70.0).abs() < 0.1, "{}", said.out);
    let idle = &record["baseline"]["counter"];
    let off_uj = number(idle, "energy_uj") - 70.0 * number(idle, "window_ns") / 1e3;
    assert!(off_uj.abs() <= number(idle, "bound_uj"), "{idle}");
    assert_eq!(record["source"]["place"], "local");
    assert_eq!(record["source"]["simulated"], true, "the lab is told from a real card");
    let truths = lab.truths();
    for (at, prefix) in ["c1", "c4"].into_iter().enumerate() {
        let repeat = repeat(&record, at);
        let drawn = lab.drawn(&record, repeat);
        let counter = number(&record, &format!("{prefix}_gpu_counter_energy_j"));
        let bound = number(&record, &format!("{prefix}_gpu_counter_bound_j"));
        assert!((counter - drawn).abs() <= bound, "{prefix}: {counter} ± {bound}, truly {drawn}");
        // The averaging sensor is half a second late, at both ends of a load that goes on.
        let gauge = number(&record, &format!("{prefix}_gpu_rail_energy_j"));
        assert!((gauge / drawn - 1.0).abs() < 0.1, "{prefix}: {gauge}, truly {drawn}");
        // Every microjoule once, and every token.
        assert_eq!(number(&record, &format!("{prefix}_books_residual_j")), 0.0);
        let requests: Vec<Value> =
            lab.requests().into_iter().filter(|line| line["rung"] == prefix).collect();
        let tokens: u64 = requests.iter().filter_map(|it| it["window_tokens"].as_u64()).sum();
        assert_eq!(record[format!("{prefix}_output_tokens")], tokens);
        // What requests were charged is what they cost, all together.
        let (mut charged, mut cost) = (0.0, 0.0);
        for request in requests.iter().filter(|request| request["phase"] == "measured") {
            let name = format!("{prefix}-1-{}", request["number"]);
            let truth = truths.get(&name).unwrap();
            assert_eq!(request["completion_tokens"], truth.answer_tokens);
            assert_eq!(request["prompt_tokens"], truth.prompt_tokens);
            charged += number(&request["receipt"], "joules");
            cost += truth.joules();
        }
        assert!(cost > 0.0 && (charged / cost - 1.0).abs() < 0.15, "{charged} J, truly {cost} J");
    }
    let at_once = most_at_once(&lab.requests(), "c4");
    assert_eq!(at_once, 4, "a closed loop has exactly so many in flight");
    assert!(record.get("c4_mean_ttft_ms").is_some() && record.get("c4_p99_itl_ms").is_some());
    assert!(lab.bench.path("record/record.svg").exists());
}

#[test]
fn failed_requests_have_a_line_of_their_own() {
    let lab = Lab::serving(Settings { break_every: 3, ..Settings::default() }, "");
    let arguments = ["--concurrency", "3", "--requests", "12", "--answer-tokens", "40"];
    let arguments = [&arguments[..], &WHOLE].concat();
    let said = said(&mut lab.bare(&arguments));
    assert_eq!(said.code, Some(0), "{}", said.err);
    let record = lab.record();
    // Two requests found out how the server counts.
    assert_eq!((&record["c3_completed"], &record["c3_failed"]), (&8.into(), &4.into()));
    assert!(number(&record, "c3_books_failed_j") > 0.0);
    assert_eq!(number(&record, "c3_books_residual_j"), 0.0);
    let requests = lab.requests();
    let failed: Vec<&Value> = requests.iter().filter(|it| it["outcome"] == "failed").collect();
    assert_eq!(failed.len(), 4);
    for request in failed {
        assert!(request["error"].as_str().unwrap().contains("breaks off"), "{request}");
        assert_eq!(request["token_source"], "counted");
    }
    assert!(said.err.contains("4 failed"), "{}", said.err);
}

#[test]
fn a_target_that_dies_leaves_the_finished_rungs() {
    let lab = Lab::new();
    let mut child = starts(&mut lab.bench(&["--concurrency", "2,3", "--duration", "2s"]));
    let err = read_until(&mut child, "c2 #1");
    let Lab { bench, server } = lab;
    drop(server);
    let said = ends(child, err);
    assert_eq!(said.code, Some(1), "{}", said.err);
    let record = json(&std::fs::read_to_string(bench.path("record/record.json")).unwrap());
    let why = record["incomplete"].as_str().unwrap();
    assert!(why.contains("the target no longer answers"), "{why}");
    assert!(number(&record, "c2_output_tokens") > 0.0);
    assert!(record.get("c3_output_tokens").is_none(), "what broke is in no sum");
    assert_eq!(repeat(&record, 1)["incomplete"], why);
    assert!(said.out.contains("incomplete"), "{}", said.out);
}

#[test]
fn an_interrupted_run_is_kept_and_said_to_be_incomplete() {
    let lab = Lab::new();
    let mut child =
        starts(&mut lab.bench(&["--concurrency", "1,2", "--duration", "2s", "--repeats", "9"]));
    let err = read_until(&mut child, "c1 #1");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let said = ends(child, err);
    assert_eq!(said.code, Some(1), "{}", said.err);
    let record = lab.record();
    assert_eq!(record["incomplete"], "interrupted");
    assert_eq!(record["c1_repeats"], 1);
    assert!(record.get("c2_repeats").is_none());
    let begun = record["rungs"].as_array().unwrap().len() > 1;
    assert!(!begun || repeat(&record, 1)["incomplete"] == "interrupted", "{record}");
}

#[test]
fn a_rail_that_cannot_be_read_costs_the_energy_and_not_the_run() {
    let lab = Lab::new();
    let arguments = ["--concurrency", "2", "--requests", "4", "--answer-tokens", "20"];
    let mut command = lab.bare(&[&arguments[..], &WHOLE].concat());
    command.args(["--no-stream", "--completions"]);
    command.env("JOULEBOOK_NVML", "/nonexistent/library").env("JOULEBOOK_SMI", "/nonexistent/tool");
    let said = said(&mut command);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let record = lab.record();
    assert_eq!((&record["source"]["place"], &record["c2_completed"]), (&"none".into(), &4.into()));
    assert_eq!(record["c2_output_tokens"], 80, "answers in one piece have their tokens too");
    assert!(record.get("c2_mean_itl_ms").is_none() && record.get("c2_mean_e2el_ms").is_some());
    assert!(record["source"]["why_none"].as_str().unwrap().contains("/nonexistent"), "{record}");
    let keys = record.as_object().unwrap().keys();
    assert!(
        keys.into_iter().all(|key| !key.contains("gpu_") && !key.contains("books")),
        "{record}"
    );
    assert!(said.out.contains("No energy: "), "{}", said.out);
}

#[test]
fn one_child_serves_a_whole_run_and_a_cell_without_a_number_is_no_zero() {
    // Its cells show nothing for a part of the run.
    let about = "fault 2.5 3.1 smi.power.draw.average text [N/A]\n\
                 fault 2.5 3.1 smi.power.draw.instant text [N/A]\n\
                 fault 2.5 3.1 smi.power.draw text [N/A]\n";
    let lab = Lab::serving(Settings::default(), about);
    let (calls, tool) = (lab.bench.path("calls"), lab.bench.path("nvidia-smi"));
    let script = format!(
        "#!/bin/sh\necho \"$*\" >> '{}'\nexec '{}' \"$@\"\n",
        calls.display(),
        driver::tool().unwrap().display()
    );
    std::fs::write(&tool, script).unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&tool, executable).unwrap();
    let mut command = lab.bench(&["--concurrency", "4", "--duration", "3s"]);
    let said =
        said(command.env("JOULEBOOK_NVML", "/nonexistent/library").env("JOULEBOOK_SMI", &tool));
    assert_eq!(said.code, Some(0), "{}", said.err);
    let record = lab.record();
    assert_eq!(record["source"]["gauge"], "nvidia-smi power.draw.average");
    assert_eq!(record["gpu_rail_sample_period_ms"], 250);
    assert!(number(&record, "gpu_rail_sampler_cpu_s") > 0.0);
    assert!(number(&record, "gpu_rail_sampler_rejected_lines") > 0.0, "{record}");
    assert!(record.get("c4_gpu_counter_energy_j").is_none());
    assert_eq!(number(&record, "c4_gpu_rail_sw_power_cap_frac"), 0.0);
    let gauge = number(&record, "c4_gpu_rail_energy_j");
    let drawn = lab.drawn(&record, repeat(&record, 0));
    assert!((gauge / drawn - 1.0).abs() < 0.15, "{gauge} J, truly {drawn} J");
    let calls = std::fs::read_to_string(calls).unwrap();
    let loops = calls.lines().filter(|call| call.contains("-lms 250")).count();
    assert_eq!(loops, calls.lines().count(), "never one for a reading: {calls}");
}

#[test]
fn another_hosts_cards_are_read_through_its_agent() {
    let lab = Lab::new();
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut agent = lab.bench.joulebook(["agent", "--bind", &address.to_string()]);
    let mut agent = agent.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let until = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while std::net::TcpStream::connect(address).is_err() {
        assert!(std::time::Instant::now() < until, "no agent at {address}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let node = format!("http://{address}");
    // This host has no cards: none but the agent's can be read.
    let run = |more: &[&str]| {
        let mut command = lab.bench(&["--node", &node, "--concurrency", "2", "--duration", "2s"]);
        command.args(more).env("JOULEBOOK_NVML", "/nonexistent/library");
        said(command.env("JOULEBOOK_SMI", "/nonexistent/tool"))
    };
    let refused = run(&["--gpu", "7"]);
    let said = run(&[]);
    agent.kill().unwrap();
    agent.wait().unwrap();
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let record = lab.record();
    assert_eq!(
        (&record["source"]["place"], &record["source"]["node"]),
        (&"node".into(), &node.into())
    );
    let counter = number(&record, "c2_gpu_counter_energy_j");
    let bound = number(&record, "c2_gpu_counter_bound_j");
    let drawn = lab.drawn(&record, repeat(&record, 0));
    assert!((counter - drawn).abs() <= bound, "{counter} ± {bound}, truly {drawn}");
    assert_eq!(number(&record, "c2_books_residual_j"), 0.0);
    assert!(number(&lab.requests()[3]["receipt"], "joules") > 0.0);
}

#[test]
fn somebody_elses_load_generator_is_metered_over_its_own_time() {
    let bench = Bench::with("card 0\nidle 300\ncounter period_ms=20\n");
    let folder = bench.path("record");
    let mut command = bench.joulebook(["bench", "--baseline", "1s", "--tokens", "600"]);
    let script = "sleep 2; echo theirs; exit 3";
    let said = said(command.arg("-o").arg(&folder).args(["--", "sh", "-c", script]));
    assert_eq!(said.code, Some(3), "{}", said.err);
    assert_eq!(said.out, "theirs\n", "its output is its own");
    let record = json(&std::fs::read_to_string(folder.join("record.json")).unwrap());
    assert_eq!(record["target"]["exit_code"], 3);
    // It failed, so its figures are in no sum; the window stands all the same.
    assert_eq!(record["incomplete"], "the command ended with 3");
    let window = &repeat(&record, 0)["gauge"];
    let watts = number(window, "energy_uj") * 1e3 / number(window, "window_ns");
    assert!((watts - 300.0).abs() < 1.5, "a card that draws 300 W reads {watts} W");
}

#[test]
fn a_card_that_draws_a_constant_300_w_reads_300_w() {
    let bench = Bench::with("card 0\nidle 300\n");
    let folder = bench.path("record");
    let mut command = bench.joulebook(["bench", "--baseline", "1s", "--tokens", "600"]);
    let said = said(command.arg("-o").arg(&folder).args(["--", "sleep", "2"]));
    assert_eq!(said.code, Some(0), "{}", said.err);
    let record = json(&std::fs::read_to_string(folder.join("record.json")).unwrap());
    for key in ["command_gpu_rail_mean_power_w", "command_gpu_counter_mean_power_w"] {
        let watts = number(&record, key);
        assert!((watts - 300.0).abs() <= 1.5, "{key}: {watts}");
    }
    assert!((number(&record, "command_gpu_rail_joules_per_token") - 1.0).abs() < 0.05);
    assert!(said.err.contains("whom the command drives is not known"), "{}", said.err);
}

#[test]
fn what_makes_no_sense_is_refused_in_a_line_and_leaves_nothing() {
    let lab = Lab::new();
    let url = lab.server.url();
    let folder = lab.bench.path("record");
    let folder_text = folder.to_str().unwrap();
    let refused = |arguments: &[&str]| {
        let mut command = lab.bench.joulebook(["bench"]);
        let said = said(command.args(arguments).args(["-o", folder_text]));
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{arguments:?}: {}", said.err);
        assert!(!folder.exists(), "{arguments:?} left something");
        said.err
    };
    for (arguments, words) in [
        (vec!["--url", &url], "nothing to drive"),
        (vec!["--concurrency", "1"], "--url"),
        (vec!["--url", "http://127.0.0.1:1", "--concurrency", "1"], "does not answer"),
        (
            vec!["--url", &url, "--model", "gpt", "--floor"],
            "does not list the model gpt; it lists lab-8b",
        ),
        (vec!["--url", &url, "--rate", "2,2"], "r2 is asked for twice"),
        (vec!["--url", &url, "--floor", "--lengths", "/nonexistent"], "/nonexistent"),
        (vec!["--url", &url, "--floor", "--rho", "/nonexistent"], "/nonexistent"),
    ] {
        let said = refused(&arguments);
        assert!(said.contains(words) && said.lines().count() == 1, "{arguments:?}: {said}");
    }
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("record.json"), "theirs").unwrap();
    let mut command = lab.bench.joulebook(["bench", "--url", &url, "--floor", "-o", folder_text]);
    let said = said(&mut command);
    assert!(said.code == Some(2) && said.err.contains("holds a record already"), "{}", said.err);
    assert_eq!(std::fs::read_to_string(folder.join("record.json")).unwrap(), "theirs");
}

#[test]
fn json_is_the_record_and_nothing_else_and_other_rungs_are_driven_too() {
    let lab = Lab::new();
    let lengths = lab.bench.path("lengths");
    std::fs::write(&lengths, "prompt,answer\n30,10\n60,20\n").unwrap();
    let mut command = lab.bench.joulebook(["bench", "--json", "--url", &lab.server.url()]);
    command.args(["--baseline", "1s", "--warm-up", "0", "--duration", "1s", "--rate", "8"]);
    command.args(["--floor", "--long-answer", "60", "--isolated", "2", "--long-prompt", "500"]);
    let said = said(command.arg("--lengths").arg(&lengths));
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    let record = json(&said.out);
    for rung in ["r8", "floor", "prefill_b1", "decode_b2"] {
        assert!(number(&record, &format!("{rung}_output_tokens")) > 0.0, "{rung} in {record}");
    }
    assert_eq!(record["settings"]["prompt"]["entries"], 2);
    let per_prompt = |rung: &str| {
        number(&record, &format!("{rung}_prompt_tokens"))
            / number(&record, &format!("{rung}_completed"))
    };
    assert!(per_prompt("prefill_b1") > 300.0 && per_prompt("decode_b2") < 40.0, "{record}");
}

#[cfg(unix)]
#[test]
fn a_journal_that_cannot_be_written_costs_no_figure() {
    let lab = Lab::new();
    // It is longer already than a file may get.
    let path = lab.bench.path("journal");
    let line = |card| serde_json::to_string(&Line::open(format!("GPU-{card}"), 0)).unwrap() + "\n";
    let before: String = (0..20_000).map(line).collect();
    std::fs::write(&path, &before).unwrap();
    let mut free = lab.bench(&["--concurrency", "2", "--duration", "3s"]);
    free.arg("--journal").arg(&path);
    let mut limited = Command::new("sh");
    limited.args(["-c", r#"trap "" XFSZ; ulimit -f 600; exec "$0" "$@""#]);
    limited.arg(free.get_program()).args(free.get_args());
    for (name, value) in free.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    let said = said(&mut limited);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(said.err.matches("the journal cannot be written").count(), 1, "{}", said.err);
    assert!(said.err.contains(path.to_str().unwrap()), "{}", said.err);
    let record = lab.record();
    let warnings = record["warnings"].to_string();
    assert!(warnings.contains("ends before the run does"), "{warnings}");
    let repeat = repeat(&record, 0);
    let (counted_uj, drawn_j) =
        (number(&repeat["books"], "counted_uj"), lab.drawn(&record, repeat));
    assert!((counted_uj / 1e6 - drawn_j).abs() < 0.2 * drawn_j, "{counted_uj} µJ of {drawn_j} J");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), before, "nothing behind a hole");
}
