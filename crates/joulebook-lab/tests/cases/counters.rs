//! Cumulative counters: what one more reading means, and windows that come out at nothing.

use joulebook::core::{
    Fault, Flags,
    register::{DEFAULT_CEILING, Modulus, Register, Scale, Step},
    series::{CounterTrack, Poll, series_of},
};
use serde_json::Value;

use super::{passes, variant};

const SECOND: u64 = 1_000_000_000;

/// A register read at these seconds; what each reading meant, and the energy at each point, J.
fn followed(
    scale: Scale,
    modulus: Modulus,
    readings: &[(u64, Result<u64, Fault>)],
) -> (Vec<Step>, Vec<f64>) {
    let register = Register::new(scale, modulus, DEFAULT_CEILING, SECOND);
    let mut track = CounterTrack::new(register, SECOND);
    let (mut writer, series) = series_of(64, 2);
    let mut read = |(second, reading): &(u64, Result<u64, Fault>)| {
        track.reading(Poll::at(second * SECOND), *reading, Flags::NONE, &mut writer)
    };
    let steps = readings.iter().map(&mut read).collect();
    let points = series.span(0, u64::MAX, 1, 1);
    (steps, points.iter().map(|point| point.energy_uj as f64 / 1e6).collect())
}

fn never_falls(energies: &[f64]) {
    assert!(energies.windows(2).all(|pair| pair[0] <= pair[1]), "{energies:?}");
}

#[test]
fn counter_sequence_01() {
    let answer = passes("counter-sequence-01");
    for stage in ["a", "b"] {
        assert_eq!(answer["stages"][stage]["joules"], Value::Null, "no sampled 0 for {stage}");
    }
}

#[test]
fn counter_sequence_02() {
    let answer = passes("counter-sequence-02");
    assert_eq!(answer["joules"], Value::Null, "neither -4898.8 J nor 101.2 J as sampled");
    let readings = [(0, Ok(5_000_000)), (1, Ok(5_100_000)), (2, Ok(1200)), (3, Ok(101_200))];
    let (steps, energies) = followed(Scale::MILLIJOULES, Modulus::None, &readings);
    assert!(matches!(steps[2], Step::Provisional) && matches!(steps[3], Step::Restarted { .. }));
    never_falls(&energies);
}

#[test]
fn counter_sequence_03() {
    let answer = passes("counter-sequence-03");
    assert!(
        answer["gross_j"].as_f64() < Some(31_200_593.0),
        "the lifetime total is not new energy"
    );
    // A drop is provisional until the next reading, wherever it comes back.
    let joules = Scale { numerator: 1_000_000, denominator: 1 };
    let readings = [(0, Ok(31_200_000)), (5, Ok(31_200_260)), (10, Ok(187)), (15, Ok(31_200_780))];
    let (steps, energies) = followed(joules, Modulus::None, &readings);
    assert_eq!(steps[2], Step::Provisional);
    assert!(matches!(steps[3], Step::Advanced(advance) if advance.glitches == 1));
    never_falls(&energies);
}

#[test]
fn counter_sequence_05() {
    passes("counter-sequence-05");
    // At the very ends of the range, and of the integer.
    for (modulus, from, to, expected_uj) in
        [(1000, 999, 0, 1), (1000, 1, 999, 998), (u64::MAX, u64::MAX - 1, 3, 4)]
    {
        let readings = [(0, Ok(from)), (1, Ok(to))];
        let (steps, _) = followed(Scale::MICROJOULES, Modulus::At(modulus), &readings);
        let Step::Advanced(advance) = steps[1] else { panic!("{:?}", steps[1]) };
        assert_eq!(advance.delta.microjoules(), expected_uj);
    }
}

#[test]
fn counter_sequence_06() {
    passes("counter-sequence-06");
    let readings = [(0, Ok(4_000_000_000)), (10, Ok(10_000)), (20, Ok(500_010_000))];
    let (_, energies) = followed(Scale::MICROJOULES, Modulus::Unknown, &readings);
    never_falls(&energies);
    let last = energies.last().copied().expect("a point");
    assert!((last - 500.0).abs() < 1e-6, "no guess of 2^32: {last}");
}

#[test]
fn false_zero_01() {
    let answer = passes("false-zero-01");
    assert_eq!(answer["above_idle_j"], Value::Null, "neither sampled 0 nor -0.19 J");
    assert_eq!(answer["without_hint"]["method"], "unknown");
}

#[test]
fn false_zero_03() {
    let answer = passes("false-zero-03");
    assert_eq!(answer["joules"], Value::Null, "no sampled 0.0");
    // Exactly the floor is no free request either.
    assert_eq!(variant("false-zero-03-v1")["joules"], Value::Null);
}

#[test]
fn false_zero_04() {
    let answer = passes("false-zero-04");
    assert_eq!(answer["watts"], Value::Null, "not 0.0 W");
    assert_eq!(answer["joules"], Value::Null);
    let reason = answer["reason"].as_str().expect("a reason");
    assert!(reason.contains("is no NVML library"), "{reason}");
}
