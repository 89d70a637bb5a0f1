//! The rule for a card that was at rest on both sides of a window.
//!
//! A tick is quiet when nobody of ours was open in it, no foreign process was resident and its mean
//! power was the idle floor's, within 3 % or 2 W and what the publish instants leave open. With
//! quiet ticks on both sides, everything the card did beyond its rest between them is the window's,
//! wherever inside the ticks it lay: `gross = ΣD − P̄·(Σdt − T)`. In doubt it says nothing.

use super::{Curve, Estimate, Rule, Span, joules, seconds};
use crate::{flags::Flags, ring::Point};

/// Quiet ticks wanted on each side, at most.
const MOST_TICKS: usize = 5;
/// Quiet ticks needed before: one alone may be a pause of somebody else's load.
const LEAST_BEFORE: usize = 2;
/// Quiet ticks before must end within this of the opening, s.
const REACH_S: f64 = 2.0;
/// A run of ticks whose length is less certain than this cannot be shown to be quiet.
const WORST_UNCERTAINTY: f64 = 0.1;

/// What is known of a window's surroundings.
pub struct Neighbours<'a> {
    /// The idle floor, W; with none known a tick cannot be called quiet.
    pub rest_w: Option<f64>,
    /// True when a window or ticket of ours, other than the one asked for, was open between two
    /// instants (ns).
    pub occupied: &'a dyn Fn(u64, u64) -> bool,
}

/// The estimate, where the rule holds.
pub fn alone(curve: &Curve<'_>, span: Span, neighbours: &Neighbours<'_>) -> Option<Estimate> {
    let facts = curve.facts();
    let points = curve.points();
    let rest_w = neighbours.rest_w?;
    let least_lag_ns = ((facts.lag_s - facts.lag_uncertainty_s).max(0.0) * 1e9) as u64;
    let most_lag_ns = ((facts.lag_s + facts.lag_uncertainty_s) * 1e9) as u64;
    let (from_ns, to_ns) = (span.open_ns + least_lag_ns, span.close_ns + most_lag_ns);

    // The last publish that surely came before the window could show, the first that surely came
    // after all of it did.
    let first = points
        .partition_point(|point| point.at_ns + u64::from(point.uncertainty_ns) <= from_ns)
        .checked_sub(1)?;
    let last = points
        .partition_point(|point| point.at_ns.saturating_sub(point.uncertainty_ns.into()) < to_ns);
    let (begin, end) = (points.get(first)?, points.get(last)?);

    let quiet = |tick: &[Point]| is_quiet(tick, rest_w, neighbours);
    let before = points.get(first.saturating_sub(MOST_TICKS)..=first)?;
    let before_ticks = before.windows(2).rev().take_while(|tick| quiet(tick)).count();
    let before = before.get(before.len() - 1 - before_ticks..)?;
    let after = points.get(last..)?;
    let after_ticks = after.windows(2).take(MOST_TICKS).take_while(|tick| quiet(tick)).count();
    let after = after.get(..=after_ticks)?;
    if before_ticks < LEAST_BEFORE
        || after_ticks == 0
        || seconds(begin.at_ns, span.open_ns) > REACH_S
        || !is_quiet_run(before, rest_w)
        || !is_quiet_run(after, rest_w)
        || (neighbours.occupied)(begin.at_ns.saturating_sub(most_lag_ns), end.at_ns)
    {
        return None;
    }
    let ticks = points.get(first..=last)?;
    let marks = ticks.iter().skip(1).fold(Flags::NONE, |all, point| all | point.flags);
    if marks.intersects(Flags::GAP | Flags::FOREIGN | Flags::TENANCY_UNKNOWN) {
        return None;
    }

    let (before_j, before_s) = run(before)?;
    let (after_j, after_s) = run(after)?;
    let mean_w = (before_j + after_j) / (before_s + after_s);
    let spread_w = before
        .windows(2)
        .chain(after.windows(2))
        .filter_map(run)
        .map(|(tick_j, tick_s)| (tick_j / tick_s - mean_w).abs())
        .fold(0.0, f64::max);
    let around_s = seconds(begin.at_ns, end.at_ns);
    let beside_s = around_s - span.seconds();
    let gross_j = joules(*begin, *end) - mean_w * beside_s;
    let uncertainty_s = before
        .iter()
        .chain(after)
        .map(|point| f64::from(point.uncertainty_ns) / 1e9)
        .fold(0.0, f64::max);
    let bound_j = beside_s * spread_w
        + 4.0 * uncertainty_s * mean_w * (1.0 + beside_s / (before_s + after_s))
        + facts.lag_uncertainty_s * spread_w
        + 2.0 * facts.quantum_j;
    let samples = (last - first) as u64;
    Some(facts.estimate(Rule::Alone, gross_j, bound_j, span, samples, marks))
}

fn is_quiet(tick: &[Point], rest_w: f64, neighbours: &Neighbours<'_>) -> bool {
    let [from, to] = tick else { return false };
    let loud = Flags::FOREIGN | Flags::TENANCY_UNKNOWN | Flags::GAP | Flags::HOLE;
    !to.flags.intersects(loud)
        && is_at_rest(tick, rest_w)
        && !(neighbours.occupied)(from.at_ns, to.at_ns)
}

/// Mean power within 3 % or 2 W of the floor, and what the ends' uncertainty leaves open.
fn is_at_rest(points: &[Point], rest_w: f64) -> bool {
    let Some((energy_j, length_s)) = run(points) else { return false };
    let open = rest_w * length_uncertainty(points, length_s);
    (energy_j / length_s - rest_w).abs() <= (0.03 * rest_w).max(2.0) + open
}

fn is_quiet_run(points: &[Point], rest_w: f64) -> bool {
    run(points)
        .is_some_and(|(_, length_s)| length_uncertainty(points, length_s) <= WORST_UNCERTAINTY)
        && is_at_rest(points, rest_w)
}

/// How uncertain the length of a run of ticks is, as a share of it.
fn length_uncertainty(points: &[Point], length_s: f64) -> f64 {
    let ends = points.first().into_iter().chain(points.last());
    ends.map(|point| f64::from(point.uncertainty_ns) / 1e9).sum::<f64>() / length_s
}

/// Energy and length of a run of ticks; `None` for no time.
fn run(points: &[Point]) -> Option<(f64, f64)> {
    let (first, last) = (points.first()?, points.last()?);
    let length_s = seconds(first.at_ns, last.at_ns);
    (length_s > 0.0).then(|| (joules(*first, *last), length_s))
}
