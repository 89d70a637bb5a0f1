//! `/v1/cards` and a card's energy: what is told of cards, and that energy is a counter's.

use serde_json::{Value, json};

use super::{
    bench::{Bench, number},
    server::Serving,
};

#[test]
fn cards_are_described_with_what_can_be_read_of_each() {
    let bench = Bench::with(
        "driver 555.42\ncard 0\nidle 70\ncounter period_ms=20\ncard 1\nidle 55\ncounter supported=0\n\
         fault 0 inf procs noperm\n",
    );
    let serving = Serving::on(&bench, &["--name", "iris"]);
    let cards = serving.until("/v1/cards", |answer| {
        answer.json()["cards"].as_array().is_some_and(|it| it.iter().all(|it| it["up"] == true))
    });
    let cards = cards.json();
    assert_eq!((&cards["node"], &cards["agent"]), (&json!("iris"), &json!("joulebook/0.1.0")));
    let [counter, gauge] = cards["cards"].as_array().unwrap().as_slice() else { panic!("{cards}") };
    for (card, gpu, backend, has_counter) in
        [(counter, 0, "nvml_counter", true), (gauge, 1, "nvml_power", false)]
    {
        assert_eq!((&card["gpu"], &card["backend"]), (&json!(gpu), &json!(backend)));
        assert_eq!((&card["counter"], &card["gauge"]), (&json!(has_counter), &json!(true)));
        assert_eq!((&card["driver"], &card["error"]), (&json!("555.42"), &Value::Null));
        assert_eq!(number(card, "limit_watts"), 700.0);
        assert_eq!(card["idle_watts"], Value::Null, "nobody has measured one");
    }
    assert_eq!((&counter["processes"], &gauge["processes"]), (&json!(true), &json!(false)));
    assert_eq!(number(counter, "quantum_joules"), 0.001);
    assert_eq!(gauge["quantum_joules"], Value::Null);
    for (card, key) in [(counter, "lag_ms"), (gauge, "lag_ms"), (counter, "lag_uncertainty_ms")] {
        assert_eq!(card[key], Value::Null, "nobody has probed it: {card}");
    }
}

#[test]
fn a_floor_that_was_measured_is_told_with_its_provenance() {
    let bench = Bench::with("card 0\nidle 70\ncounter period_ms=20\n");
    assert_eq!(bench.say(["idle", "--seconds", "2"]).code, Some(0));
    let serving = Serving::on(&bench, &[]);
    let card = serving.get("/v1/cards").json()["cards"][0].clone();
    assert!((number(&card, "idle_watts") - 70.0).abs() < 1.0, "{card}");
    assert!(card["idle_from"].as_str().unwrap().starts_with("measured "), "{card}");
    assert!(serving.said[1].contains("W at rest"), "{:?}", serving.said);
    assert!(serving.get("/metrics").body.contains("joulebook_card_idle_watts{"));
}

#[test]
fn energy_is_the_counters_whatever_happens_to_it() {
    // 300 W; after 2 s its register starts again from nothing.
    let bench = Bench::with(
        "card 0\nidle 300\ncounter period_ms=20 base_mj=900000000\nfault 2 inf energy reset\n",
    );
    let serving = Serving::on(&bench, &[]);
    let energy = || serving.get("/v1/cards/0/energy");
    let first = energy().json();
    assert_eq!((&first["gpu"], &first["generation"]), (&json!(0), &json!(0)));
    assert!(number(&first, "energy_uj") < 600e6, "since the agent began, not since the driver did");
    let clock = serving.get("/v1/clock").json();
    assert_eq!(clock["boot_id"], first["boot_id"]);
    assert!(number(&clock, "now_ns") >= number(&first, "t_ns"));
    let mut last = first.clone();
    while last["generation"] == json!(0) {
        let answer = energy();
        // At the restart itself two readings are needed to tell it from a glitch.
        assert_eq!(answer.status, 200, "{}", answer.body);
        let now = answer.json();
        for key in ["t_ns", "energy_uj"] {
            assert!(number(&now, key) >= number(&last, key), "{key} of {now} after {last}");
        }
        last = now;
    }
    assert_eq!(last["generation"], json!(1));
    let joules = (number(&last, "energy_uj") - number(&first, "energy_uj")) / 1e6;
    let seconds = (number(&last, "t_ns") - number(&first, "t_ns")) / 1e9;
    let slack_s = (number(&first, "delta_ns") + number(&last, "delta_ns")) / 1e9;
    // What it counted between the last reading before and the restart is lost, never made up.
    assert!(joules <= 300.0 * (seconds + slack_s) + 1.0, "{joules} J in {seconds} s");
    assert!(joules >= 300.0 * (seconds - slack_s - 0.5), "{joules} J in {seconds} s");
    assert_eq!(serving.get("/v1/cards/7/energy").status, 404);
    assert_eq!(serving.get("/v1/cards/x/energy").status, 400);
}
