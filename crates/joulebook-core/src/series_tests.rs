use super::*;
use crate::register::{DEFAULT_CEILING, Modulus, Scale};

const MS: u64 = 1_000_000;

fn counter() -> CounterTrack {
    let register = Register::new(Scale::MILLIJOULES, Modulus::None, DEFAULT_CEILING, 100 * MS);
    CounterTrack::new(register, 100 * MS)
}

fn watts(watts: f64) -> Power {
    Power::from_watts(watts).unwrap()
}

#[test]
fn a_counter_adds_a_point_per_publish_not_per_poll() {
    let (mut writer, series) = series_of(64, 64);
    let mut track = counter();
    for poll in 0..=20u64 {
        // 100 mJ each 100 ms, polled every 50 ms.
        let raw = poll / 2 * 100;
        track.reading(Poll::at(poll * 50 * MS), Ok(raw), Flags::NONE, &mut writer);
    }
    let points = series.span(0, 1000 * MS, 1, 1);
    assert_eq!(points.len(), 11);
    assert_eq!(points.last().map(|point| point.energy_uj), Some(1_000_000));
    assert!(points.iter().skip(1).all(|point| point.uncertainty_ns == 25_000_000));
}

#[test]
fn a_restart_is_a_gap_with_what_was_counted_since() {
    let (mut writer, series) = series_of(64, 64);
    let mut track = counter();
    for (second, raw) in [(0u64, 5_000_000), (1, 5_100_000), (2, 1200), (3, 101_200)] {
        track.reading(Poll::at(second * 1000 * MS), Ok(raw), Flags::NONE, &mut writer);
    }
    let points = series.span(0, 3000 * MS, 1, 1);
    let gap = points.iter().find(|point| point.flags.contains(Flags::GAP)).unwrap();
    assert_eq!(gap.energy_uj, 101_200_000);
    assert!(gap.flags.contains(Flags::COUNTER_RESET));
    assert_eq!(points.last().unwrap().energy_uj, 201_200_000);
}

#[test]
fn a_gauge_bridges_short_holes_and_leaves_long_ones_out() {
    let (mut writer, series) = series_of(64, 64);
    let mut track = GaugeTrack::new(1000 * MS);
    for (second, power) in [(0u64, 100.0), (1, 100.0), (5, 200.0), (3605, 200.0), (3606, 200.0)] {
        track.reading(second * 1000 * MS, watts(power), Flags::NONE, &mut writer).unwrap();
    }
    let points = series.span(0, u64::MAX, 1, 1);
    assert!(points[2].flags.contains(Flags::BRIDGED));
    assert!(points[3].flags.contains(Flags::GAP));
    assert_eq!(points[4].energy_uj, 100_000_000 + 600_000_000 + 200_000_000);
    let back = track.reading(3605 * 1000 * MS, watts(1.0), Flags::NONE, &mut writer);
    assert_eq!(back, Err(Fault::NonMonotonic));
}

#[test]
fn trapezoids_lose_nothing_to_rounding() {
    let (mut writer, _series) = series_of(64, 64);
    let mut track = GaugeTrack::new(MS);
    for step in 0..=1_000_000u64 {
        track.reading(step * 777, watts(1.000_001), Flags::NONE, &mut writer).unwrap();
    }
    // 1.000001 W × 0.777 s
    assert_eq!(writer.last().unwrap().energy_uj, 777_000);
}

#[test]
fn a_span_older_than_the_fine_ring_is_led_by_coarse_points() {
    let (mut writer, series) = series_of(16, 64);
    let mut track = counter();
    for poll in 0..400u64 {
        track.reading(Poll::at(poll * 100 * MS), Ok(poll * 7000), Flags::NONE, &mut writer);
    }
    let points = series.span(5_000 * MS, 39_900 * MS, 1, 1);
    assert!(points.first().unwrap().at_ns <= 5_000 * MS);
    assert!(points.windows(2).all(|pair| pair[0].at_ns < pair[1].at_ns));
    let gap = points.windows(2).map(|pair| pair[1].at_ns - pair[0].at_ns).max().unwrap();
    assert!(gap <= 1_100 * MS, "one point a second at least, got {gap}");
}

#[test]
fn a_power_of_three_limits_is_no_power() {
    assert!(plausible_power(watts(959.0), Some(watts(320.0))));
    assert!(!plausible_power(watts(3712.0), Some(watts(320.0))));
    assert!(plausible_power(watts(3712.0), None));
}

#[test]
fn stamps_that_values_stand_for_are_exact() {
    let (mut writer, series) = series_of(64, 64);
    let mut track = counter().stamped();
    for (ms, raw) in [(0u64, 1000), (5, 1000), (100, 26_000), (200, 51_000)] {
        track.reading(Poll::at(ms * MS), Ok(raw), Flags::NONE, &mut writer);
    }
    let points = series.span(0, 200 * MS, 1, 1);
    let at: Vec<_> = points.iter().map(|point| (point.at_ns, point.uncertainty_ns)).collect();
    assert_eq!(at, [(0, 0), (100 * MS, 0), (200 * MS, 0)]);
}

#[test]
fn the_power_behind_a_hole_is_the_mean_over_it() {
    let (mut writer, series) = series_of(64, 64);
    let mut track = counter();
    for poll in 0..=60u64 {
        // 100 W; nothing can be read for 3.5 s.
        let reading =
            if (10..45).contains(&poll) { Err(Fault::Unknown) } else { Ok(poll * 10_000) };
        track.reading(Poll::at(poll * 100 * MS), reading, Flags::NONE, &mut writer);
    }
    let points = series.span(0, 6000 * MS, 1, 1);
    assert_eq!(points.len(), 26);
    let powers: Vec<u64> = points.iter().skip(2).map(|point| point.power_uw).collect();
    assert!(powers.iter().all(|power| *power == 100_000_000), "{powers:?}");
}

#[test]
fn a_power_is_told_over_as_long_as_it_takes_to_know_it() {
    let (mut writer, series) = series();
    let push = |writer: &mut SeriesWriter, at_ms: u64, mj: u64, uncertainty_ms: u32, flags| {
        let last = writer.last().unwrap_or_default();
        let (at_ns, energy_uj) = (at_ms * MS, mj * 1000);
        let ticked_ns = (at_ns - last.at_ns).max(1);
        let power_uw = (energy_uj - last.energy_uj) * SECOND_NS / ticked_ns;
        let uncertainty_ns = uncertainty_ms * 1_000_000;
        let point = Point { at_ns, energy_uj, power_uw, uncertainty_ns, flags };
        writer.push(point);
        point
    };
    let watts = |point: Point| series.power_until(point).watts();
    let alone = push(&mut writer, 1000, 0, 50, Flags::NONE);
    assert_eq!(watts(alone), 0.0, "nothing lies before it");
    // 200 W, whose publishes are placed up to 50 ms early or late.
    let mut newest = alone;
    for tick in 1..=20 {
        let late_ms = if tick % 2 == 0 { 40 } else { 0 };
        newest = push(&mut writer, 1000 + tick * 100 + late_ms, tick * 20_000, 50, Flags::NONE);
    }
    assert!((newest.power_uw as f64 / 1e6 - 200.0).abs() > 50.0, "{newest:?}");
    assert!((watts(newest) - 200.0).abs() < 10.0, "{}", watts(newest));
    // Known well, a tick is enough: 400 W from one to the next.
    let known = push(&mut writer, 3200, 420_000, 1, Flags::NONE);
    let known = push(&mut writer, known.at_ns / MS + 100, 460_000, 1, Flags::NONE);
    assert_eq!(watts(known), 400.0);
    // Over what was not seen no power is told.
    push(&mut writer, 3400, 900_000, 50, Flags::GAP);
    let behind = push(&mut writer, 3500, 920_000, 50, Flags::NONE);
    assert_eq!(watts(behind), 200.0);
}

#[test]
fn a_call_that_took_long_is_no_glitch() {
    let (mut writer, series) = series_of(64, 64);
    let ceiling = watts(400.0);
    let register = Register::new(Scale::MILLIJOULES, Modulus::None, ceiling, 100 * MS);
    let mut track = CounterTrack::new(register, 100 * MS);
    let polls = [
        (Poll::at(0), 0),
        (Poll::at(100 * MS), 35_000),
        // Not let run for a second; 350 W all the time.
        (Poll::between(200 * MS, 1200 * MS), 420_000),
        (Poll::at(1300 * MS), 455_000),
    ];
    for (poll, raw) in polls {
        let step = track.reading(poll, Ok(raw), Flags::NONE, &mut writer);
        assert!(matches!(step, Step::Anchored(_) | Step::Advanced(_)), "{poll:?}: {step:?}");
    }
    let points = series.span(0, 1300 * MS, 1, 1);
    assert_eq!(points.last().map(|point| point.energy_uj), Some(455_000_000));
    assert!(points.iter().all(|point| !point.flags.contains(Flags::COUNTER_GLITCH)), "{points:?}");
    assert!(points.get(2).is_some_and(|point| point.uncertainty_ns >= 500_000_000), "{points:?}");
}
