//! `run -- COMMAND`.

use std::{os::unix::fs::PermissionsExt, process::Stdio, time::Duration};

use super::bench::{Bench, QUICK, json, number, said, wait_for};

#[test]
fn a_command_keeps_its_input_its_output_and_its_code() {
    let bench = Bench::with(QUICK);
    let mut child = bench
        .joulebook(["run", "--idle", "70", "--", "sh", "-c", "cat; echo loud >&2; exit 5"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), b"\0 bytes \xff\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(5));
    assert_eq!(output.stdout, b"\0 bytes \xff\n");
    let error = String::from_utf8(output.stderr).unwrap();
    let (own, ours) = error.split_once('\n').unwrap();
    assert_eq!(own, "loud", "the result comes after the command's own words: {error}");
    assert!(ours.starts_with("joulebook: ") && ours.contains("(exit code 5)"), "{error}");
    assert!(
        ours.contains("70.0 W subtracted, as given (--idle, or idle_watts of nodes.toml)"),
        "{error}"
    );
}

#[test]
fn what_a_command_drew_is_found_within_the_bound() {
    let (bench, control) = Bench::live("counter period_ms=20\n");
    let (begun, go, done) = (bench.path("begun"), bench.path("go"), bench.path("done"));
    let script = format!(
        "touch {}; while [ ! -e {} ]; do sleep 0.01; done; touch {}",
        begun.display(),
        go.display(),
        done.display()
    );
    let command = bench
        .joulebook(["run", "--json", "--idle", "70", "--tokens", "100", "--", "sh", "-c", &script])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for(&begun);
    let from_ns = control.set_watts(0, 400.0).unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    let to_ns = control.set_watts(0, 70.0).unwrap();
    std::fs::write(&go, "").unwrap();
    let output = command.wait_with_output().unwrap();
    assert!(done.exists());
    let line = json(std::str::from_utf8(&output.stderr).unwrap());
    let truth = 330.0 * (to_ns - from_ns) as f64 / 1e9;
    let (joules, bound) = (number(&line, "joules"), number(&line, "bound_joules"));
    assert!((joules - truth).abs() <= bound, "{joules} ± {bound} is not {truth}: {line}");
    assert!((joules / truth - 1.0).abs() < 0.2, "{joules} is not {truth}: {line}");
    assert_eq!((&line["method"], &line["settled"]), (&"sampled".into(), &true.into()));
    assert!((number(&line, "joules_per_token") - joules / 100.0).abs() < 1e-3, "{line}");
    assert!((number(&line, "watt_hours") - joules / 3600.0).abs() < 1e-6, "{line}");
    let peak = number(&line, "peak_watts");
    assert!(peak > 300.0 && peak <= 401.0, "{line}");
    assert_eq!(line["exit_code"], 0);
    assert_eq!(line["command"][0], "sh");
    assert_eq!(line["idle"]["from"], "declared");
    assert!(line["cards"][0]["uuid"].as_str().unwrap().starts_with("GPU-"), "{line}");
}

#[test]
fn without_a_floor_nothing_is_charged_and_the_way_to_one_is_shown() {
    let bench = Bench::with(QUICK);
    let said = bench.say(["run", "--", "sleep", "0.2"]);
    assert_eq!(said.code, Some(0));
    for word in ["joules unknown", "no_baseline", "joulebook idle", "--idle WATTS", "J with idle"] {
        assert!(said.err.contains(word), "{word}: {}", said.err);
    }
    let line = bench.say(["run", "--json", "--", "sleep", "0.2"]).err_json();
    assert_eq!(line["joules"], serde_json::Value::Null);
    assert!(number(&line, "gross_joules") > 5.0, "{line}");
}

#[test]
fn several_cards_add_up_and_so_do_their_floors() {
    let bench = Bench::with(
        "card 0\nidle 100\ncounter period_ms=20\ncard 1\nidle 50\ncounter period_ms=20\n",
    );
    let base = ["run", "--json", "--gpu", "0", "--gpu", "1", "--idle"];
    for idle in ["60,20", "80"] {
        let mut command = bench.joulebook(base);
        let line = said(command.args([idle, "--", "sleep", "1"])).err_json();
        assert_eq!(number(&line, "idle_watts"), 80.0);
        assert_eq!(line["cards"].as_array().unwrap().len(), 2);
        // 150 W less 80 W.
        let joules = number(&line, "joules") / number(&line, "seconds");
        assert!((joules - 70.0).abs() < 15.0, "{line}");
        assert_eq!(line["peak_watts"], serde_json::Value::Null, "each card has its own");
    }
    let said = bench.say(["run", "--idle", "60", "--", "true"]);
    assert!(said.err.contains("2 cards are here, only card 0 was read"), "{}", said.err);
}

#[test]
fn the_result_goes_into_a_file_that_is_tried_before_the_command() {
    let bench = Bench::with(QUICK);
    let file = bench.path("result.json");
    let arguments = ["run", "--json", "-o", file.to_str().unwrap(), "--idle", "70", "--", "true"];
    let said = bench.say(arguments);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    assert_eq!(json(&std::fs::read_to_string(&file).unwrap())["exit_code"], 0);
    let mark = bench.path("ran");
    let nowhere = bench.path("no/such/folder");
    let arguments = ["run", "-o", nowhere.to_str().unwrap(), "--", "touch", mark.to_str().unwrap()];
    let said = bench.say(arguments);
    assert_eq!(said.code, Some(125));
    assert!(said.err.contains(nowhere.to_str().unwrap()), "{}", said.err);
    assert!(!mark.exists(), "the command did not start");
}

#[test]
fn what_cannot_be_run_has_the_codes_of_a_shell() {
    let bench = Bench::with(QUICK);
    let plain = bench.path("plain");
    std::fs::write(&plain, "echo from a shell\n").unwrap();
    let lost = bench.path("lost");
    std::fs::write(&lost, "#!/no/such/interpreter\n").unwrap();
    let folder = bench.path("");
    let mode = |mode| std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(&lost, mode(0o755)).unwrap();
    std::fs::set_permissions(&plain, mode(0o644)).unwrap();
    for (program, code, word) in [
        ("no-such-command-here", 127, "in no folder of PATH"),
        ("/no/such/file", 127, "there is no file /no/such/file"),
        (plain.to_str().unwrap(), 126, "chmod +x"),
        (lost.to_str().unwrap(), 126, "interpreter"),
        (folder.to_str().unwrap(), 126, "it is a folder"),
    ] {
        let said = bench.say(["run", "--", program]);
        assert_eq!(said.code, Some(code), "{}", said.err);
        assert!(said.err.contains(word), "{}", said.err);
        assert_eq!(said.err.lines().count(), 1, "{}", said.err);
    }
    std::fs::set_permissions(&plain, mode(0o755)).unwrap();
    let said = bench.say(["run", "--idle", "0", "--", plain.to_str().unwrap()]);
    assert_eq!((said.code, said.out.as_str()), (Some(0), "from a shell\n"));
}

#[test]
fn options_after_the_command_are_the_commands() {
    let bench = Bench::with(QUICK);
    let said = bench.say(["run", "--idle", "0", "echo", "--json", "-o", "x"]);
    assert_eq!(said.out, "--json -o x\n");
    let said = bench.say(["run", "--idle", "0", "--", "echo", "--", "-x"]);
    assert_eq!(said.out, "-- -x\n");
}

#[test]
fn a_command_that_forks_is_measured_to_its_own_end() {
    let bench = Bench::with(QUICK);
    let script = "sleep 3 >/dev/null 2>&1 & echo left; exit 0";
    let line = bench.say(["run", "--json", "--idle", "0", "--", "sh", "-c", script]).err_json();
    assert!(number(&line, "seconds") < 2.5, "what it left behind is not waited for: {line}");
}

#[test]
fn somebody_else_on_the_card_is_seen_and_voids_it_where_the_server_was_named() {
    let bench = Bench::with(&format!("{QUICK}proc 0 inf 4000000 9000 /opt/other\n"));
    let line = bench.say(["run", "--json", "--idle", "10", "--", "sleep", "0.3"]).err_json();
    assert_eq!((&line["tenancy"], &line["method"]), (&"foreign".into(), &"sampled".into()));
    let named = ["run", "--idle", "10", "--serving-match", "mine", "--", "sleep", "0.3"];
    let said = bench.say(named);
    assert!(said.err.contains("shared_device"), "{}", said.err);
    assert!(said.err.contains("/opt/other (9000 MiB)"), "{}", said.err);
}

#[test]
fn a_card_that_hangs_or_fails_costs_the_figure_and_not_the_run() {
    for (fault, word) in [("hang 20000", "timeout"), ("timeout", "timeout"), ("lost", "lost")] {
        let bench = Bench::with(&format!("card 0\nidle 70\nfault 0 inf energy {fault}\n"));
        let line =
            bench.say(["run", "--json", "--idle", "70", "--", "sh", "-c", "exit 4"]).err_json();
        assert_eq!(line["exit_code"], 4);
        assert_eq!(line["joules"], serde_json::Value::Null, "{line}");
        assert_eq!(line["error"], word, "{line}");
        assert!(line["message"].is_string(), "{line}");
    }
}
