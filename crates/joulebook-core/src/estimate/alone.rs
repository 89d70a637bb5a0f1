//! The rule for a card that was at rest on both sides of a window.
//!
//! A tick is quiet when nobody of ours was open in it, no foreign process was resident and its mean
//! power was the idle floor's, within 3 % or 2 W and what the publish instants leave open. With
//! quiet ticks on both sides, everything the card did beyond its rest between them is the window's,
//! wherever inside the ticks it lay: `gross = ΣD − P̄·(Σdt − T)`, P̄ the quiet ticks' energy Q over
//! their time S. In doubt it says nothing; nothing waits for a quiet tick longer than three periods.
//!
//! On a card that was never probed, polls place a publish only within their own gap, which would
//! leave open any power at all: there nothing is added to the 3 % or 2 W, and all five ticks before
//! must pass.
//!
//! The bound is conditional on the card having rested. With a and b the publishes around the window
//! and 0 and n the far ends of the quiet runs, it is the exact worst case of their four stamps,
//! `ΣD − (Σdt − T ± (δa + δb))·Q / (S ∓ (δ0 + δa + δb + δn))`, and
//! `(Σdt − T + λmax)·spread + 2q`, spread being how far any quiet tick's power lay from P̄.

use super::{
    Curve, Estimate, Facts, Rule, Span,
    curve::{WORST_UNCERTAINTY, well_placed},
    joules, seconds,
};
use crate::{flags::Flags, ring::Point};

/// Quiet ticks wanted on each side, at most.
const MOST_TICKS: usize = 5;
/// Quiet ticks needed before: one alone may be a pause of somebody else's load.
const LEAST_BEFORE: usize = 2;
/// Quiet ticks before must end within this of the opening, s.
const REACH_S: f64 = 2.0;
/// Publish periods after the end within which a quiet tick must have come.
const MOST_WAIT: f64 = 3.0;

/// What is known of a window's surroundings.
pub struct Neighbours<'a> {
    /// The idle floor, W; with none known a tick cannot be called quiet.
    pub rest_w: Option<f64>,
    /// True when a window or ticket of ours, other than the one asked for, was open between two
    /// instants (ns).
    pub occupied: &'a dyn Fn(u64, u64) -> bool,
}

/// How late a publish may come, ns.
#[derive(Clone, Copy)]
struct Lags {
    least_ns: u64,
    most_ns: u64,
    /// … and by how much its stamp may be off either way.
    skew_ns: u64,
}

/// How well the publishes are placed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Placed {
    /// Well: what their stamps leave open of a tick's power is small, and is allowed for.
    Well,
    /// Anyhow: their stamps show nothing, so energies must agree tick by tick.
    Anyhow,
}

/// The estimate, where the rule holds.
pub fn alone(curve: &Curve<'_>, span: Span, neighbours: &Neighbours<'_>) -> Option<Estimate> {
    let facts = curve.facts();
    let placed = well_placed(curve.points(), facts.period_s);
    around(&placed, Placed::Well, facts, span, neighbours)
        .or_else(|| around(curve.points(), Placed::Anyhow, facts, span, neighbours))
}

fn around(
    points: &[Point],
    placed: Placed,
    facts: &Facts,
    span: Span,
    neighbours: &Neighbours<'_>,
) -> Option<Estimate> {
    let rest_w = neighbours.rest_w?;
    let least_lag_ns = ((facts.lag_s - facts.lag_uncertainty_s).max(0.0) * 1e9) as u64;
    let most_lag_ns = ((facts.lag_s + facts.lag_uncertainty_s) * 1e9) as u64;
    // Another clock's stamps may be early as well as late.
    let skew_ns = (facts.skew.together_s * 1e9) as u64;
    let from_ns = (span.open_ns + least_lag_ns).saturating_sub(skew_ns);
    let to_ns = span.close_ns + most_lag_ns + skew_ns;

    // The last publish that surely came before the window could show, the first that surely came
    // after all of it did.
    let first = points
        .partition_point(|point| point.at_ns + u64::from(point.uncertainty_ns) <= from_ns)
        .checked_sub(1)?;
    let last = points
        .partition_point(|point| point.at_ns.saturating_sub(point.uncertainty_ns.into()) < to_ns);
    let (begin, end) = (points.get(first)?, points.get(last)?);

    let lags = Lags { least_ns: least_lag_ns, most_ns: most_lag_ns, skew_ns };
    let quiet =
        |tick: &[Point]| is_at_rest(tick, rest_w, placed) && is_unmarked(tick, neighbours, lags);
    let before = points.get(first.saturating_sub(MOST_TICKS)..=first)?;
    let before_ticks = before.windows(2).rev().take_while(|tick| quiet(tick)).count();
    let before = before.get(before.len() - 1 - before_ticks..)?;
    let deadline_ns = to_ns.saturating_add((MOST_WAIT * facts.period_s * 1e9) as u64);
    let in_time = |tick: &[Point]| tick.last().is_some_and(|point| point.at_ns <= deadline_ns);
    let after = points.get(last..)?;
    let after_ticks =
        after.windows(2).take(MOST_TICKS).take_while(|tick| in_time(tick) && quiet(tick)).count();
    let after = after.get(..=after_ticks)?;
    let shown = match placed {
        Placed::Well => before_ticks >= LEAST_BEFORE && is_pinned(before) && is_pinned(after),
        Placed::Anyhow => before_ticks == MOST_TICKS,
    };
    if !shown
        || after_ticks == 0
        || seconds(begin.at_ns, span.open_ns) > REACH_S
        || !is_at_rest(before, rest_w, placed)
        || !is_at_rest(after, rest_w, placed)
        || is_occupied(begin, end, neighbours, lags)
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
    let beside_s = seconds(begin.at_ns, end.at_ns) - span.seconds();
    let around_j = joules(*begin, *end);
    let (quiet_j, quiet_s) = (before_j + after_j, before_s + after_s);
    let gross_j = around_j - mean_w * beside_s;
    let near_s = uncertainty_s(begin) + uncertainty_s(end);
    let far_s = uncertainty_s(before.first()?) + uncertainty_s(after.last()?);
    let least_s = quiet_s - near_s - far_s;
    if least_s <= 0.0 {
        return None;
    }
    let least_j = around_j - (beside_s + near_s) * quiet_j / least_s;
    let most_j = around_j - (beside_s - near_s) * quiet_j / (quiet_s + near_s + far_s);
    let bound_j = (gross_j - least_j).max(most_j - gross_j)
        + (beside_s + facts.lag_uncertainty_s + facts.skew.together_s) * spread_w
        + 2.0 * facts.skew.drift * seconds(begin.at_ns, end.at_ns) * mean_w
        + 2.0 * facts.quantum_j;
    let samples = (last - first) as u64;
    Some(facts.estimate(Rule::Alone, gross_j, bound_j, span, samples, marks))
}

/// Whether nothing speaks against a tick but its power.
fn is_unmarked(tick: &[Point], neighbours: &Neighbours<'_>, lags: Lags) -> bool {
    let [from, to] = tick else { return false };
    let loud = Flags::FOREIGN | Flags::TENANCY_UNKNOWN | Flags::GAP | Flags::HOLE;
    !to.flags.intersects(loud) && !is_occupied(from, to, neighbours, lags)
}

/// Whether somebody of ours was there in what two publishes show: they come a lag later.
fn is_occupied(from: &Point, to: &Point, neighbours: &Neighbours<'_>, lags: Lags) -> bool {
    let wider_ns = |point: &Point| lags.skew_ns.saturating_add(point.uncertainty_ns.into());
    let from_ns = from.at_ns.saturating_sub(lags.most_ns).saturating_sub(wider_ns(from));
    let to_ns = to.at_ns.saturating_sub(lags.least_ns).saturating_add(wider_ns(to));
    (neighbours.occupied)(from_ns, to_ns)
}

/// Mean power within 3 % or 2 W of the floor, and what well-placed ends leave open.
fn is_at_rest(points: &[Point], rest_w: f64, placed: Placed) -> bool {
    let Some((energy_j, length_s)) = run(points) else { return false };
    let open_w = match placed {
        Placed::Well => rest_w * length_uncertainty(points, length_s),
        Placed::Anyhow => 0.0,
    };
    (energy_j / length_s - rest_w).abs() <= (0.03 * rest_w).max(2.0) + open_w
}

/// Whether the length of a run of ticks is known well enough for it to be shown quiet. With short
/// ticks that takes more than one.
pub fn is_pinned(points: &[Point]) -> bool {
    run(points)
        .is_some_and(|(_, length_s)| length_uncertainty(points, length_s) <= WORST_UNCERTAINTY)
}

/// How uncertain the length of a run of ticks is, as a share of it.
fn length_uncertainty(points: &[Point], length_s: f64) -> f64 {
    let ends = points.first().into_iter().chain(points.last());
    ends.map(uncertainty_s).sum::<f64>() / length_s
}

fn uncertainty_s(point: &Point) -> f64 {
    f64::from(point.uncertainty_ns) / 1e9
}

/// Energy and length of a run of ticks; `None` for no time.
fn run(points: &[Point]) -> Option<(f64, f64)> {
    let (first, last) = (points.first()?, points.last()?);
    let length_s = seconds(first.at_ns, last.at_ns);
    (length_s > 0.0).then(|| (joules(*first, *last), length_s))
}
