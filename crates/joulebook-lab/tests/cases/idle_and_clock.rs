//! Clocks that are set, stretches without readings, and floors.

use joulebook::core::{
    Power,
    idle::{NoFloor, Quiet, Tick},
};
use serde_json::Value;

use super::{passes, variant};

#[test]
fn clock_01() {
    let answer = passes("clock-01");
    assert!(answer["mean_w"].as_f64() < Some(220_000.0));
}

/// The case calls an interval of more than three polls a gap; the specification bridges up to 30 s
/// and shows the bridged joules. An hour is a gap by both; ten seconds between polls of one second
/// are bridged and flagged, as the specification has it.
#[test]
fn clock_03() {
    let answer = passes("clock-03");
    assert_eq!(
        (&answer["joules"], &answer["gross_j"]),
        (&Value::Null, &Value::Null),
        "no 217,200 J"
    );
    assert_eq!(answer["error"], "gap");
    let bridged = variant("clock-03-v1");
    assert!(bridged["flag"].as_array().is_some_and(|flags| flags.contains(&"bridged".into())));
}

#[test]
fn idle_baseline_01() {
    let answer = passes("idle-baseline-01");
    assert!(answer["joules"].as_f64() > Some(0.0), "later work is not free");
    // Where most of the unoccupied time was at the load's level, no floor is made of it.
    assert_eq!(variant("idle-baseline-01-v1")["idle_w"], Value::Null);
}

#[test]
fn idle_baseline_02() {
    let answer = passes("idle-baseline-02");
    assert_eq!(answer["joules"], Value::Null, "neither 0 J nor 700 J above idle");
    assert_eq!(answer["idle_w"], Value::Null, "the least seen is no floor");
    let mut quiet = Quiet::default();
    for second in 1..100 {
        let power = Power::from_microwatts(70_000_000);
        let to_ns = second * 1_000_000_000;
        quiet.tick(Tick { to_ns, power, occupied: true, model_loaded: true });
    }
    assert_eq!(quiet.floor(true, 0), Err(NoFloor::Unseen { ticks: 0 }));
}
