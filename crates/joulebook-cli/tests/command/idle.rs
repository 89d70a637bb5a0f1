//! Idle floors.

use super::bench::{Bench, number};

#[test]
fn a_floor_is_measured_with_its_provenance_and_used() {
    let bench = Bench::with(
        "card 0\nidle 70\ncounter period_ms=20\ncard 1\nidle 31\nproc 0 inf 4242 9000 /opt/server\n",
    );
    let said = bench.say(["idle", "--seconds", "3"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out.contains("W at rest") && said.out.contains("updates"), "{}", said.out);
    let [first, second] = bench.profiles().try_into().unwrap();
    for (profile, watts, loaded) in [(&first, 70.0, false), (&second, 31.0, true)] {
        let floor = &profile["floors"][0];
        let off = number(floor, "watts") / watts - 1.0;
        // Two edges, each known to within a poll, over three seconds.
        assert!(off.abs() < 0.05, "{floor}");
        assert_eq!(floor["model_loaded"], loaded);
        assert_eq!(floor["backend"], "nvml_counter");
        assert!(number(floor, "readings") >= 10.0, "{floor}");
    }
    let line = bench.say(["run", "--json", "--gpu", "1", "--", "sleep", "0.3"]).err_json();
    assert_eq!(line["idle"]["from"], "stored");
    assert_eq!(line["cards"][0]["floor"]["model_loaded"], true);
    assert!((number(&line, "idle_watts") - number(&second["floors"][0], "watts")).abs() < 0.01);
}

#[test]
fn a_card_at_work_has_no_floor() {
    for (load, word) in [
        ("util gpu=97 mem=40\n", "97 % utilisation"),
        ("square 0 inf period_ms=400 duty=0.5 w=300\n", "not steady"),
    ] {
        let bench = Bench::with(&format!("card 0\nidle 70\ncounter period_ms=20\n{load}"));
        let said = bench.say(["idle", "--seconds", "2"]);
        assert_eq!(said.code, Some(1), "{}", said.out);
        assert!(said.err.contains(word) && said.err.contains("no floor is kept"), "{}", said.err);
        assert!(bench.profiles().is_empty());
        let line = bench.say(["idle", "--seconds", "1", "--json"]).out_json();
        assert!(line["cards"][0]["refused"].as_str().unwrap().contains(word), "{line}");
        assert_eq!(line["cards"][0]["stored"], serde_json::Value::Null);
    }
}

#[test]
fn one_card_of_two_may_fail() {
    let bench = Bench::with("card 0\nidle 70\ncounter period_ms=20\ncard 1\nutil gpu=50\n");
    let said = bench.say(["idle", "--seconds", "1"]);
    assert_eq!(said.code, Some(1));
    assert!(said.out.contains("card 0") && said.err.contains("card 1"), "{}{}", said.out, said.err);
    assert_eq!(bench.profiles().len(), 1);
}

#[test]
fn a_card_without_a_counter_has_a_floor_by_its_gauge() {
    let bench = Bench::with("card 0\nidle 55\ncounter supported=0\n");
    let said = bench.say(["idle", "--seconds", "1", "--json"]);
    let floor = &said.out_json()["cards"][0]["floor"];
    assert_eq!(floor["backend"], "nvml_power", "{}", said.err);
    assert!((number(floor, "watts") - 55.0).abs() < 0.01, "{floor}");
}
