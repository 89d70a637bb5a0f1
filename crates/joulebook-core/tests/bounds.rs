//! No bound is ever violated: random cards, read as the recorder reads them, against the exact
//! integral of their power.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "the whole file is tests")]

use std::sync::Arc;

use joulebook_core::{
    Flags, Power,
    estimate::{
        Curve, Edges, Estimate, Facts, Neighbours, Rule, Skew, Span, alone, gauge, raw, settled,
        shared,
    },
    register::{Modulus, Register, Scale},
    ring::Point,
    series::{CounterTrack, GaugeTrack, Poll, Series, series_of},
};
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const CEILING_W: f64 = 770.0;
const DEEPEST_W: f64 = 70.0;
/// Power changes this often.
const STEP_NS: u64 = 7 * MS;

/// A true power curve, one value for each step; the last one holds.
#[derive(Clone, Debug)]
struct Truth {
    watts: Vec<f64>,
    /// Energy before each step, J.
    before: Vec<f64>,
}

impl Truth {
    fn new(watts: Vec<f64>) -> Self {
        let step_s = STEP_NS as f64 / 1e9;
        let before = watts.iter().scan(0.0, |sum, watts| {
            *sum += watts * step_s;
            Some(*sum - watts * step_s)
        });
        Self { before: before.collect(), watts }
    }

    fn joules(&self, until_ns: i64) -> f64 {
        let Ok(until_ns) = u64::try_from(until_ns) else {
            return DEEPEST_W * until_ns as f64 / 1e9;
        };
        let step = ((until_ns / STEP_NS) as usize).min(self.watts.len() - 1);
        let into_ns = until_ns - step as u64 * STEP_NS;
        self.before[step] + self.watts[step] * into_ns as f64 / 1e9
    }

    fn over(&self, span: Span) -> f64 {
        self.joules(span.close_ns as i64) - self.joules(span.open_ns as i64)
    }
}

/// A register: its publish instants, and how late its values are.
#[derive(Clone, Debug)]
struct Published {
    publishes_ns: Vec<u64>,
    lag_ns: u64,
}

impl Published {
    fn new(period_ns: u64, displaced_us: &[i64], lag_ns: u64) -> Self {
        let publish = |(number, displaced): (u64, &i64)| {
            (number * period_ns + SLACK_NS).saturating_add_signed(displaced * 1000)
        };
        Self { publishes_ns: (0..).zip(displaced_us).map(publish).collect(), lag_ns }
    }

    /// What it shows, mJ; the last publish before `at_ns`.
    fn shown_mj(&self, truth: &Truth, at_ns: u64) -> u64 {
        let newest = self.publishes_ns.iter().filter(|publish| **publish <= at_ns).max();
        let as_of = newest.map_or(0, |publish| *publish as i64 - self.lag_ns as i64);
        (truth.joules(as_of) * 1e3 + 50_000.0).floor() as u64
    }
}

/// No publish comes before this.
const SLACK_NS: u64 = 20 * MS;

/// Reads the register at these gaps (ns), until its last publish.
fn recorded(truth: &Truth, register: &Published, gaps_ns: &[u64], period_ns: u64) -> Arc<Series> {
    let (mut writer, series) = series_of(1024, 1024);
    let ceiling = Power::from_watts(CEILING_W).unwrap();
    let mut track = CounterTrack::new(
        Register::new(Scale::MILLIJOULES, Modulus::None, ceiling, period_ns),
        period_ns,
    );
    let end_ns = *register.publishes_ns.last().unwrap();
    let mut now_ns = SLACK_NS;
    for gap_ns in gaps_ns.iter().cycle() {
        if now_ns > end_ns {
            break;
        }
        let shown = register.shown_mj(truth, now_ns);
        track.reading(Poll::at(now_ns), Ok(shown), Flags::NONE, &mut writer);
        now_ns += gap_ns;
    }
    series
}

fn facts(period_ns: u64, gap_ns: u64) -> Facts {
    Facts {
        ceiling_w: CEILING_W,
        deepest_w: DEEPEST_W,
        poll_gap_s: gap_ns as f64 / 1e9,
        period_s: period_ns as f64 / 1e9,
        lag_s: 0.0,
        lag_uncertainty_s: 0.0,
        quantum_j: 0.001,
        averaging_s: None,
        skew: Skew::default(),
    }
}

fn holds(estimate: &Estimate, truth_j: f64) -> Result<(), TestCaseError> {
    let error_j = (estimate.gross_j - truth_j).abs();
    prop_assert!(
        error_j <= estimate.bound_j + 1e-6,
        "off by {error_j} J of {truth_j} J: {estimate:?}"
    );
    let (low, high) = estimate.range_j;
    prop_assert!(low - 1e-6 <= truth_j && truth_j <= high + 1e-6, "{truth_j} J: {estimate:?}");
    Ok(())
}

fn any_power() -> impl Strategy<Value = f64> {
    prop_oneof![Just(DEEPEST_W), Just(CEILING_W), DEEPEST_W..CEILING_W]
}

/// All points of a series.
fn all(series: &Series) -> Vec<Point> {
    series.span(0, u64::MAX, 1, 1)
}

/// Stamps of another host: all off by so much, and by more as its clock drifts. What is not known of
/// them.
fn skewed(points: &mut [Point], off_us: i64, drift_ppm: i64) -> Skew {
    let first_ns = points.first().map_or(0, |point| point.at_ns);
    for point in points {
        let drifted_ns = (point.at_ns - first_ns) as i64 / 1_000_000 * drift_ppm;
        point.at_ns = point.at_ns.saturating_add_signed(off_us * 1000 + drifted_ns);
    }
    // The clock was compared some time after the first point.
    let reach_us = off_us.abs() + 1_000;
    Skew { together_s: reach_us as f64 / 1e6, drift: drift_ppm.unsigned_abs() as f64 / 1e6 }
}

/// How far another host's clock is off, µs, and its drift, ppm; nothing for every other case.
fn any_skew() -> impl Strategy<Value = (i64, i64)> {
    prop_oneof![Just((0, 0)), (-250_000i64..250_000, -500i64..500)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn counters_stay_within_their_bounds(
        watts in proptest::collection::vec(any_power(), 20..300),
        displaced_us in proptest::collection::vec(-9_000i64..9_000, 21..30),
        period_ms in prop_oneof![Just(20u64), Just(100)],
        lag_ms in 0u64..60,
        lag_error_us in -60_000i64..60_000,
        most_gap_us in prop_oneof![Just(1_500u64), Just(100_000)],
        gap_shares in proptest::collection::vec(0.1f64..1.0, 1..40),
        open_share in 0.0f64..1.0,
        length_share in 0.0f64..1.0,
        (off_us, drift_ppm) in any_skew(),
    ) {
        let truth = Truth::new(watts);
        let period_ns = period_ms * MS;
        let displaced: Vec<i64> =
            displaced_us.iter().map(|us| us * period_ms as i64 / 100).collect();
        let register = Published::new(period_ns, &displaced, lag_ms * MS);
        let gaps: Vec<u64> =
            gap_shares.iter().map(|share| (share * most_gap_us as f64 * 1e3) as u64).collect();
        let series = recorded(&truth, &register, &gaps, period_ns);
        let mut points = all(&series);
        let skew = skewed(&mut points, off_us, drift_ppm);
        // The first point's publish was not seen to come.
        let (Some(first), Some(last)) = (points.get(1), points.last()) else { return Ok(()) };
        prop_assume!(last.at_ns > first.at_ns + 2 * MS);
        let reach = (last.at_ns - first.at_ns) as f64;
        let open_ns = first.at_ns + (open_share * reach) as u64;
        let close_ns = open_ns + (length_share * (last.at_ns - open_ns) as f64) as u64;
        let span = Span { open_ns, close_ns };
        prop_assume!(close_ns > open_ns);
        let truth_j = truth.over(span);
        let lag_s = ((lag_ms as i64 * 1000 + lag_error_us).max(0)) as f64 / 1e6;
        let facts = Facts {
            lag_s,
            lag_uncertainty_s: (lag_s - lag_ms as f64 / 1e3).abs(),
            skew,
            ..facts(period_ns, *gaps.iter().max().unwrap())
        };
        let curve = Curve::new(points.get(1..).unwrap_or_default(), &facts);
        match shared(&curve, span) {
            Ok(estimate) => holds(&estimate, truth_j)?,
            Err(missing) => {
                let known_j = missing.lower_bound_j.unwrap_or(0.0);
                prop_assert!(known_j <= truth_j + 0.1 * CEILING_W, "{known_j} of {truth_j}");
            }
        }
        // At once: by the polls made until then.
        let shown = |at_ns: u64| {
            let seen = |point: &&Point| point.at_ns + u64::from(point.uncertainty_ns) <= at_ns;
            points.iter().skip(1).rfind(seen).copied()
        };
        if let Ok(estimate) = raw(shown(open_ns), shown(close_ns), &points, span, &facts) {
            holds(&estimate, truth_j)?;
        }
    }

    #[test]
    fn a_window_on_a_resting_card_is_found_within_its_bound(
        extra_w in 20.0f64..700.0,
        open_us in 700_000u64..800_000,
        length_us in 1_000u64..400_000,
        displaced_us in proptest::collection::vec(-1_000i64..=1_000, 20),
        lag_ms in 0u64..60,
        gap_us in 500u64..1_500,
        (off_us, drift_ppm) in prop_oneof![Just((0, 0)), (-60_000i64..60_000, -500i64..500)],
    ) {
        let steps = 2_000_000 / 7_000;
        let on = |step: u64| (open_us..open_us + length_us).contains(&(step * 7_000));
        let watts: Vec<f64> =
            (0..steps).map(|step| if on(step) { DEEPEST_W + extra_w } else { DEEPEST_W }).collect();
        let truth = Truth::new(watts);
        let register = Published::new(100 * MS, &displaced_us, lag_ms * MS);
        let series = recorded(&truth, &register, &[gap_us * 1000], 100 * MS);
        let mut points = all(&series);
        let skew = skewed(&mut points, off_us, drift_ppm);
        // The load is made of whole steps: the window is what they cover.
        let span = Span {
            open_ns: open_us.div_ceil(7_000) * STEP_NS,
            close_ns: (open_us + length_us).div_ceil(7_000) * STEP_NS,
        };
        prop_assume!(span.close_ns > span.open_ns);
        let facts = Facts {
            lag_s: lag_ms as f64 / 1e3,
            lag_uncertainty_s: 0.001,
            skew,
            ..facts(100 * MS, gap_us * 1000)
        };
        let curve = Curve::new(&points, &facts);
        let neighbours = Neighbours { rest_w: Some(DEEPEST_W), occupied: &|_, _| false };
        let found = alone(&curve, span, &neighbours);
        prop_assert!(found.is_some());
        holds(&found.unwrap(), truth.over(span))?;
        let named = settled(&curve, span, &neighbours).unwrap();
        prop_assert_eq!(named.rule, Rule::Alone);
    }

    #[test]
    fn gauges_stay_within_their_bounds(
        watts in proptest::collection::vec(any_power(), 200..600),
        averaging_ms in prop_oneof![Just(0u64), Just(25), Just(100), Just(1000)],
        gaps_ms in proptest::collection::vec(10u64..250, 1..40),
        // Stamps that are off by up to so much, each by its share of it.
        slack_ms in 0u64..5,
        (off_us, drift_ppm) in any_skew(),
        strays in proptest::collection::vec(-1.0f64..1.0, 7),
        open_share in 0.3f64..0.9,
        length_share in 0.0f64..1.0,
    ) {
        let truth = Truth::new(watts);
        let end_ns = truth.watts.len() as u64 * STEP_NS;
        let (mut writer, series) = series_of(1024, 64);
        let mut track = GaugeTrack::new(250 * MS);
        let mut now_ns = 10 * MS;
        let slack_ns = slack_ms * MS;
        for (gap_ms, stray) in gaps_ms.iter().cycle().zip(strays.iter().cycle()) {
            // A reading is the mean over what ends at the last tenth of a second.
            let publish_ns = (now_ns / (100 * MS) * 100 * MS) as i64;
            let averaging_ns = (averaging_ms * MS).max(1000) as i64;
            let mean_w = (truth.joules(publish_ns) - truth.joules(publish_ns - averaging_ns))
                / (averaging_ns as f64 / 1e9);
            let at_ns = now_ns.saturating_add_signed((stray * slack_ns as f64) as i64);
            let poll = Poll { at_ns, slack_ns };
            let power = Power::from_watts(mean_w.max(0.0)).unwrap();
            track.reading_within(poll, power, Flags::NONE, &mut writer).unwrap();
            if now_ns > end_ns {
                break;
            }
            now_ns += gap_ms * MS;
        }
        let mut points = all(&series);
        let skew = skewed(&mut points, off_us, drift_ppm);
        let last_ns = points.last().unwrap().at_ns;
        let open_ns = (open_share * last_ns as f64) as u64;
        let close_ns = open_ns + (length_share * (last_ns - open_ns) as f64) as u64;
        let span = Span { open_ns, close_ns };
        let averaging_s = Some(averaging_ms as f64 / 1e3);
        let facts = Facts { averaging_s, skew, ..facts(100 * MS, 250 * MS) };
        let so_far = points.partition_point(|point| point.at_ns <= close_ns);
        for (points, edges) in [
            (&points[..], Edges::Centred),
            (&points[..], Edges::Plain),
            (&points[..so_far], Edges::Held),
        ] {
            if let Ok(estimate) = gauge(&Curve::new(points, &facts), span, 0.1, edges) {
                holds(&estimate, truth.over(span))?;
            }
        }
    }

    #[test]
    fn a_load_made_to_deceive_a_gauge_stays_within_its_bound(
        averaging_periods in 1u64..=10,
        polls_a_period in prop_oneof![Just(1u64), Just(2), Just(5)],
        phase_ms in 0u64..100,
        open_ms in 1_500u64..1_700,
        length_ms in 100u64..3_000,
        outside_w in any_power(),
        // Before and after each edge, for so long.
        beside in proptest::array::uniform4((any_power(), 0u64..1_100)),
        inside in proptest::array::uniform2(any_power()),
        // Power that keeps step with the sensor, or nearly so.
        half_period_ms in prop_oneof![Just(50u64), Just(100), Just(500), Just(1_000), 20u64..1_500],
    ) {
        let period_ns = 100 * MS;
        let averaging_ns = averaging_periods * period_ns;
        let span = Span { open_ns: open_ms * MS, close_ns: (open_ms + length_ms) * MS };
        prop_assume!(span.close_ns - span.open_ns >= averaging_ns);
        let end_ns = span.close_ns + 2_500 * MS;
        let watts = (0..end_ns / STEP_NS).map(|step| {
            let at_ns = step * STEP_NS;
            let near = |edge_ns: u64, (_, reach_ms): (f64, u64), after: bool| {
                at_ns.abs_diff(edge_ns) < reach_ms * MS && (at_ns >= edge_ns) == after
            };
            let edges = [(span.open_ns, false), (span.open_ns, true), (span.close_ns, false), (span.close_ns, true)];
            let forced = edges.iter().zip(beside).find(|((edge_ns, after), side)| near(*edge_ns, *side, *after));
            match forced {
                Some((_, (watts, _))) => watts,
                None if (span.open_ns..span.close_ns).contains(&at_ns) => {
                    inside[usize::from(at_ns / (half_period_ms * MS) % 2 == 1)]
                }
                None => outside_w,
            }
        });
        let truth = Truth::new(watts.collect());
        let (mut writer, series) = series_of(2048, 64);
        let mut track = GaugeTrack::new(250 * MS);
        for poll in 0.. {
            let now_ns = poll * period_ns / polls_a_period;
            if now_ns > end_ns {
                break;
            }
            let publish_ns = (now_ns + phase_ms * MS) as i64 / period_ns as i64 * period_ns as i64
                - (phase_ms * MS) as i64;
            let mean_w = (truth.joules(publish_ns) - truth.joules(publish_ns - averaging_ns as i64))
                / (averaging_ns as f64 / 1e9);
            let power = Power::from_watts(mean_w).unwrap();
            track.reading(now_ns, power, Flags::NONE, &mut writer).unwrap();
        }
        let points = all(&series);
        let averaging_s = averaging_ns as f64 / 1e9;
        let facts = Facts { averaging_s: Some(averaging_s), ..facts(period_ns, period_ns) };
        let settled = gauge(&Curve::new(&points, &facts), span, 0.1, Edges::Centred).unwrap();
        holds(&settled, truth.over(span))?;
        let edges_j = (averaging_s / 4.0 + 0.1) * facts.swing_w();
        prop_assert!(settled.bound_j <= edges_j + 1e-9, "{settled:?}");
        let so_far = points.partition_point(|point| point.at_ns <= span.close_ns);
        let at_once = gauge(&Curve::new(&points[..so_far], &facts), span, 0.1, Edges::Held).unwrap();
        holds(&at_once, truth.over(span))?;
    }
}
