//! Probes.

use serde_json::Value;

use super::bench::{Bench, number};

fn probed(scenario: &str) -> (Bench, Value) {
    let bench = Bench::with(scenario);
    let said = bench.say(["probe", "--seconds", "6", "--json"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let answer = said.out_json();
    (bench, answer)
}

fn readable<'a>(card: &'a Value, what: &str) -> &'a Value {
    let rows = card["readable"].as_array().unwrap();
    let row = rows.iter().find(|row| row["what"] == what);
    &row.unwrap_or_else(|| panic!("{what} stands in {card}"))["now"]
}

#[test]
fn a_good_card_is_learnt_and_read_in_step_afterwards() {
    let (bench, answer) = probed("card 0\nidle 70\ncounter period_ms=100 jitter_ms=1\n");
    let card = &answer["cards"][0];
    let period_s = number(&card["counter"], "period_s");
    assert!((period_s - 0.1).abs() < 0.005, "{card}");
    assert_eq!(card["verdict"]["trust"], "counter");
    assert_eq!(card["verdict"]["findings"], serde_json::json!(["agrees"]), "{card}");
    for ratio in ["ratio_1hz", "ratio_10hz", "ratio_locked"] {
        assert!((number(&card[ratio], "value") - 1.0).abs() < 0.03, "{card}");
    }
    for what in ["counter", "instant", "average", "usage", "processes", "memory", "utilisation"] {
        assert!(readable(card, what)["reads"].is_string(), "{what}: {card}");
    }
    assert_eq!(bench.profiles()[0]["probe"]["trust"], "counter");
    // Read three times a period from now on, not once in a hundred milliseconds.
    let line = bench.say(["run", "--json", "--idle", "0", "--", "sleep", "1.5"]).err_json();
    assert!(number(&line, "polls") > 25.0, "{line}");
    let shown = bench.say(["config"]);
    assert!(
        shown.out.contains("probed 2") && shown.out.contains("energy counter"),
        "{}",
        shown.out
    );
}

#[test]
fn several_cards_are_judged_each_on_its_own_and_at_once() {
    let (bench, answer) = probed(
        "card 0\nidle 70\ncounter gain=0.85 period_ms=50\n\
         card 1\nidle 70\ncounter gain=0.5 period_ms=50\n\
         card 2\nidle 70\ncounter supported=0\n\
         card 3\nidle 70\nfault 0 inf energy stuck\n\
         card 4\nidle 70\ncounter supported=0\nsensor supported=0\ninstant supported=0\n\
         card 5\nidle 70\nsensor supported=0\ninstant supported=0\ncounter period_ms=50\n\
         card 6\nidle 70\nfault 0 inf energy timeout\n",
    );
    let found: Vec<(u64, &str, Vec<&str>)> = answer["cards"]
        .as_array()
        .unwrap()
        .iter()
        .map(|card| {
            let verdict = &card["verdict"];
            let findings = verdict["findings"].as_array().unwrap();
            let findings = findings.iter().map(|finding| finding.as_str().unwrap()).collect();
            (card["index"].as_u64().unwrap(), verdict["trust"].as_str().unwrap(), findings)
        })
        .collect();
    assert_eq!(
        found,
        [
            (0, "counter", vec!["mismatch"]),
            (1, "gauge", vec!["rejected", "mismatch"]),
            (2, "gauge", vec!["no_counter"]),
            (3, "gauge", vec!["constant"]),
            (4, "nothing", vec!["no_gauge", "no_counter"]),
            (5, "counter", vec!["no_gauge"]),
            (6, "gauge", vec!["counter_unreadable"]),
        ]
    );
    // What may pass is not kept.
    assert_eq!(bench.profiles().len(), 6);
    assert_eq!(answer["cards"][6]["stored"], Value::Null);
    let line = bench.say(["run", "--json", "--idle", "0", "--", "sleep", "0.5"]).err_json();
    assert!(line["flags"].as_array().unwrap().contains(&"mismatch".into()), "{line}");
    let line = bench.say(["run", "--json", "--gpu", "1", "--idle", "0", "--", "true"]).err_json();
    assert_eq!(line["backend"], "nvml_power", "a counter that was rejected is not read");
}

#[test]
fn a_load_too_uneven_to_judge_by_is_said_to_be() {
    let (_, answer) = probed(
        "card 0\nidle 70\nlimit w=700\ncounter period_ms=100 gain=0.8\n\
         square 0 inf period_ms=470 duty=0.3 w=600\nsquare 0 inf period_ms=1300 duty=0.6 w=300\n",
    );
    let card = &answer["cards"][0];
    assert!(number(&card["ratio_1hz"], "uncertainty") > 0.05, "{card}");
    assert_ne!(card["verdict"]["findings"], serde_json::json!(["agrees"]), "{card}");
}

#[test]
fn nothing_is_kept_on_request_and_a_page_is_for_people() {
    let bench = Bench::with("card 0\nname A Card\nidle 70\nmig 1\n");
    let said = bench.say(["probe", "--seconds", "6", "--no-store"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(bench.profiles().is_empty());
    for word in [
        "card 0: A Card",
        "the energy counter is used",
        "not kept (--no-store)",
        "counter's lag",
        "one register for all instances",
    ] {
        assert!(said.out.contains(word), "{word}: {}", said.out);
    }
}
