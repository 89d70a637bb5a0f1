//! Which of several sources is believed, and what a processor's zones add up to.

use joulebook::{
    Fault, Power,
    core::{Scope, register::Scale},
    nvml::{Answers, CardState},
    profile::Trust,
    sources::{Ruler, compared, counter_scope, ruler},
};
use serde_json::Value;

use super::{passes, variant};

#[test]
fn counter_support_01() {
    let answer = passes("counter-support-01");
    assert_eq!(answer["counter_asked"], 1, "a refusal is remembered");
    assert!(answer["gross_j"].as_f64() > Some(0.0));
}

#[test]
fn counter_support_03() {
    let answer = passes("counter-support-03");
    let hint = answer["hint"].as_str().expect("a hint");
    assert!(hint.contains("INA sensors") && hint.contains("Orin"), "{hint}");
    assert_eq!(answer["joules"], Value::Null);
}

#[test]
fn counter_support_04() {
    let answer = passes("counter-support-04");
    let joules = answer["gross_j"].as_f64().expect("joules");
    assert!(joules > 0.0, "not the dead register");
    // Two live counters are neither added nor compared for the larger.
    let both = variant("counter-support-04-v3");
    assert_eq!(both["gross_j"].as_f64(), Some(1800.0));
}

#[test]
fn counter_support_06() {
    passes("counter-support-06");
    // The rule: accepted within about 0.7 to 1.3 over at least two seconds.
    for (ratio, trust) in
        [(0.69, Trust::Gauge), (0.71, Trust::Counter), (1.29, Trust::Counter), (1.31, Trust::Gauge)]
    {
        assert_eq!(compared(Ok(100.0 * ratio), Ok(100.0), 2.0).1.trust, trust, "{ratio}");
    }
    assert_eq!(compared(Ok(1.0), Ok(100.0), 1.9).1.trust, Trust::Counter, "too short to tell");
}

#[test]
fn counter_support_08() {
    let answer = passes("counter-support-08");
    // Idle of another scope is no idle: not 5450 J "above idle".
    assert_eq!((&answer["method"], &answer["error"]), (&"unknown".into(), &"no_baseline".into()));
    assert_eq!(answer["gross_j"].as_f64(), Some(6200.0));
    assert_eq!(counter_scope("NVIDIA GH200 480GB"), Scope::Module);
}

/// The case counts 15.3 µJ a tick, as AMD's library prints it. The chip's step is 2⁻¹⁶ J (15.2588
/// µJ, as the specification has it), and that is what is counted: 997.3 J, within the case's 0.5 %.
#[test]
fn counter_support_09() {
    let answer = passes("counter-support-09");
    assert_eq!(answer["counter"], "accepted", "about what the gauge says");
    assert_eq!(
        joulebook::amd::accumulator("15.3"),
        Some(Scale { numerator: 15_625, denominator: 1024 })
    );
    let ticks_as_uj = compared(Ok(65.36), Ok(1000.0), 10.0).1.trust;
    let ticks_as_mj = compared(Ok(65_359.5), Ok(1000.0), 10.0).1.trust;
    assert_eq!((ticks_as_uj, ticks_as_mj), (Trust::Gauge, Trust::Gauge), "a wrong unit shows");
}

#[test]
fn counter_support_10() {
    passes("counter-support-10");
    let answers = Answers {
        gpu: Some(0),
        name: None,
        watts: Err(Fault::Unknown),
        memory: Err(Fault::Unknown),
        utilization_pct: Ok(71),
        compute_apps: None,
    };
    assert_eq!(CardState::of(answers).expect("a state").utilization_pct, Some(71));
}

#[test]
fn cpu_rapl_01() {
    let answer = passes("cpu-rapl-01");
    assert_eq!(answer["joules"], Value::Null, "not 0 W");
    let hints = answer["hint"].as_array().expect("hints");
    assert!(hints[0].as_str().is_some_and(|hint| hint.contains("chmod a+r")), "{hints:?}");
    assert!(hints[1].as_str().is_some_and(|hint| hint.contains("powercap")), "{hints:?}");
}

#[test]
fn cpu_rapl_02() {
    let answer = passes("cpu-rapl-02");
    let sums = ["cpu_j", "dram_j", "cpu_plus_dram_j", "platform_j", "total_j"];
    for sum in sums.map(|name| answer[name].as_f64()) {
        assert!(sum != Some(370.0) && sum != Some(290.0) && sum != Some(280.0));
    }
}

#[test]
fn cpu_rapl_04() {
    let answer = passes("cpu-rapl-04");
    assert_ne!(answer["total_j"].as_f64(), Some(207.3), "each package has a dram of its own");
}

#[test]
fn cpu_rapl_06() {
    passes("cpu-rapl-06");
    let watts = |watts: f64| Power::from_watts(watts).expect("a power");
    let settled = joulebook::sources::settled(watts(0.0), watts(41.5), Some(true));
    assert_eq!(settled.power, Ok(watts(41.5)), "the first source 'worked'");
}

#[test]
fn nothing_at_all_is_nothing() {
    assert_eq!(ruler(&[], Err(Fault::NotSupported), 10.0).0, Ruler::Nothing);
    assert_eq!(ruler(&[], Ok(10.0), 10.0).0, Ruler::Gauge);
}
