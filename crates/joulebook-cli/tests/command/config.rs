//! Where things are, and what is known.

use super::bench::{Bench, QUICK};

#[test]
fn what_holds_and_where_it_came_from() {
    let bench = Bench::with(QUICK);
    let said = bench.say(["config"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    for word in ["/state", "(environment)", "JOULEBOOK_STATE_DIR", "none known yet"] {
        assert!(said.out.contains(word), "{word}: {}", said.out);
    }
    let other = bench.path("other");
    let line = bench.say(["config", "--json", "--state-dir", other.to_str().unwrap()]).out_json();
    assert_eq!(line["state_dir"], other.to_str().unwrap());
    assert_eq!(line["driver_library"]["from"], "environment");
    assert_eq!(line["cards"], serde_json::json!([]));
}

#[test]
fn what_is_kept_of_a_card_is_shown_and_a_broken_file_named() {
    let bench = Bench::with(QUICK);
    assert_eq!(bench.say(["idle", "--seconds", "1"]).code, Some(0));
    std::fs::write(bench.path("state/cards/GPU-broken.json"), "{").unwrap();
    let said = bench.say(["config"]);
    // Read at 10 Hz for a second, 70 W come out to a watt or so.
    let floor = ["floor 68", "floor 69", "floor 70", "floor 71"];
    assert!(floor.iter().any(|floor| said.out.contains(floor)), "{}", said.out);
    assert!(said.out.contains("not probed"), "{}", said.out);
    assert!(said.err.contains("GPU-broken.json") && said.err.contains("remove"), "{}", said.err);
}

#[test]
fn without_a_driver_it_is_said() {
    let line = Bench::without_cards().say(["config", "--json"]).out_json();
    assert_eq!(line["driver_library"]["from"], "default");
    assert!(line["driver_library"]["error"].as_str().unwrap().contains("libnvidia-ml.so.1"));
}
