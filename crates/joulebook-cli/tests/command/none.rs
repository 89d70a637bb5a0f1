//! A host without a card: it is said, and a command runs all the same.

use super::bench::Bench;

#[test]
fn a_probe_says_what_is_missing_and_what_to_do() {
    let said = Bench::without_cards().say(["probe"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    for word in ["No card can be probed", "libnvidia-ml.so.1", "install the driver"] {
        assert!(said.out.contains(word), "{word}: {}", said.out);
    }
}

#[test]
fn a_probe_says_so_to_programs_too() {
    let answer = Bench::without_cards().say(["probe", "--json"]).out_json();
    assert_eq!(answer["cards"], serde_json::json!([]));
    assert_eq!(answer["error"], "driver_absent");
}

#[test]
fn a_driver_without_cards_is_told_from_no_driver() {
    let said = Bench::with("driver 570.1\n").say(["probe"]);
    assert_eq!(said.code, Some(0));
    assert!(said.out.contains("lists no card"), "{}", said.out);
}

#[test]
fn no_floor_can_be_measured() {
    let said = Bench::without_cards().say(["idle"]);
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("no idle floor can be measured: no NVIDIA driver"), "{}", said.err);
}

#[test]
fn a_command_runs_and_its_code_is_returned() {
    let said = Bench::without_cards().say(["run", "--", "sh", "-c", "echo hello; exit 7"]);
    assert_eq!(said.code, Some(7));
    assert_eq!(said.out, "hello\n");
    assert!(said.err.starts_with("joulebook: nothing to measure with"), "{}", said.err);
    assert!(said.err.contains("driver_absent: no NVIDIA driver library"), "{}", said.err);
    assert_eq!(said.err.lines().count(), 2, "{}", said.err);
}

#[test]
fn nothing_measured_is_null_and_the_hint_says_that_it_is_one() {
    let bench = Bench::without_cards();
    let line = bench.say(["run", "--json", "--tokens", "500", "--", "true"]).err_json();
    assert_eq!((&line["joules"], &line["method"]), (&serde_json::Value::Null, &"unknown".into()));
    assert_eq!(line["error"], "driver_absent");
    assert_eq!(line["backend"], "none");
    let hinted = ["run", "--json", "--tokens", "500", "--hint", "40", "--", "true"];
    let line = bench.say(hinted).err_json();
    assert_eq!((&line["joules"], &line["method"]), (&20.0.into(), &"estimated".into()));
    assert_eq!(line["error"], "driver_absent");
    let said = bench.say(["run", "--tokens", "500", "--hint", "40", "--", "true"]);
    assert!(said.err.contains("by your own estimate; not measured"), "{}", said.err);
}

#[test]
fn to_watch_nothing_is_a_failure() {
    let said = Bench::without_cards().say(["run", "--for", "10ms"]);
    assert_eq!(said.code, Some(125));
    assert!(said.err.contains("nothing to measure with"), "{}", said.err);
}
