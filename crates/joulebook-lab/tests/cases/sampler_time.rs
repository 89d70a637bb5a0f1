//! When a reading was taken, and how many there were.

use joulebook::smi::stamp;

use super::{passes, variant};

#[test]
fn sampler_time_01() {
    let answer = passes("sampler-time-01");
    assert_eq!(
        answer["arrival_stamped_wrong_j"].as_f64(),
        Some(250.0),
        "what late reading would say"
    );
    // Five seconds late, by a clock in another zone: still when it was taken.
    let (second, hour) = (1_000_000_000, 3_600_000_000_000_u64);
    let taken_ns =
        stamp::taken_ns(Some(20 * hour + hour), 100 * second, 20 * hour + 5 * second, None);
    assert_eq!(taken_ns, 95 * second);
}

#[test]
fn sampler_time_03() {
    let answer = passes("sampler-time-03");
    assert_eq!(answer["joules"], serde_json::Value::Null, "and not 0 W");
    assert_eq!(answer["starts"], 1, "no start back to back");
    super::tool::none_left("joulebook-case-");
}

#[test]
fn sampler_time_04() {
    let answer = passes("sampler-time-04");
    assert_eq!((&answer["samples"], &answer["polls"]), (&2.into(), &1000.into()));
}

#[test]
fn sampler_time_05() {
    let answer = passes("sampler-time-05");
    assert_eq!(answer["above_idle_j"], serde_json::Value::Null, "no 124 J as sampled");
    // Readings on both sides do not help: the sensor cannot tell the window from what was before.
    assert_eq!(variant("sampler-time-05-v1")["above_idle_j"], serde_json::Value::Null);
}

#[test]
fn sampler_time_08() {
    let answer = passes("sampler-time-08");
    // 200 W in one stage of 1 ms and 0 W beside it are no results.
    assert_eq!(answer["method"], "unknown");
    let stages = variant("sampler-time-08-v1")["stages"].clone();
    for stage in ["a", "b", "c"] {
        assert_eq!(stages[stage]["joules"], serde_json::Value::Null, "{stage}");
        assert_eq!(stages[stage]["error"], "window_below_resolution", "{stage}");
    }
}
