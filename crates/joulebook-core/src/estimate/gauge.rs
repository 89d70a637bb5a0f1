//! Power readings over a window: the trapezoid, its edges read in line between two readings.
//!
//! A reading is the mean over the sensor's averaging window, so a window shorter than that is not
//! one: what was seen is kept beside the refusal.
//!
//! Where it is known what a reading averages over (W; T is the sensor's update period) it stands for
//! the middle of that: a reading at t shows the mean of what ends somewhere between t − T and t, so
//! an edge at x is read at x + (W + T)/2, if readings go that far ([`settles_after_s`]). In sum the
//! trapezoid weighs the true power with a kernel k whose integral is the window's length, and with
//! power anywhere in [Pmin, Pmax] it errs by at most (Pmax − Pmin)/2 · ∫|k − 1| (∫|k| outside). At
//! an edge k falls over W about the middle, which is W/4; the instant of the publish leaves T/2
//! either way, and a publish more or less than expected between the edges T: together at most
//! `(W/4 + T)·(Pmax − Pmin)`. Read where it stands, as the answer at once must, the whole of k lies
//! W/2 to W/2 + T too early: `(W/2 + T)·(Pmax − Pmin)`. Where W is only assumed to be T nothing is
//! moved, and the bound is `(W + T)·(Pmax − Pmin)`.
//!
//! Taken for granted: publishes come evenly, W is a whole number of them, and readings show each of
//! them about equally long. A load that kept step with the sensor over many periods could hide more.
//!
//! Where the readings' own stamps may be off (they came over a network), each moves its knot of the
//! trapezoid: by at most its uncertainty times half the power's step, on either side.
//!
//! What no reading saw (a sensor that averages over less than its update period, readings further
//! apart than it averages): there power may have been anywhere, so each unseen stretch counts with
//! the further of the two from the line that was drawn through it.

use super::{Curve, Estimate, Estimated, Facts, Missing, Rule, Span, joules, seconds};
use crate::{fault::Fault, flags::Flags, ring::Point};

/// How long after a window readings still sharpen it, s: half of what a reading averages over and
/// half of the sensor's update period; nothing where it is not known what it averages over.
pub fn settles_after_s(facts: &Facts, update_s: f64) -> f64 {
    facts.averaging_s.map_or(0.0, |averaging_s| (averaging_s + update_s) / 2.0)
}

/// Where the readings of a window's edges are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edges {
    /// At the edges' own instants.
    Plain,
    /// The same, and the last reading is held to the window's end where none came after it yet: the
    /// answer at once.
    Held,
    /// So much later that an edge lies in the middle of what its reading averages over; plain where
    /// that is not known or readings do not go so far.
    Centred,
}

/// The estimate of a window from a gauge's points. `update_s`: the sensor's own update period, by
/// the spacing of distinct values.
pub fn gauge(curve: &Curve<'_>, span: Span, update_s: f64, edges: Edges) -> Estimated {
    let facts = curve.facts();
    let points = curve.points();
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return Err(Missing::of(Fault::NotReady));
    };
    let later_ns = |later_s: f64| ((facts.lag_s + later_s) * 1e9) as u64;
    let middle_ns = later_ns(settles_after_s(facts, update_s));
    let centred = edges == Edges::Centred
        && facts.averaging_s.is_some()
        && last.at_ns >= span.close_ns + middle_ns;
    let lag_ns = if centred { middle_ns } else { later_ns(0.0) };
    let (open_ns, close_ns) = (span.open_ns + lag_ns, span.close_ns + lag_ns);
    if first.at_ns > open_ns || (last.at_ns < close_ns && edges != Edges::Held) {
        let missing = curve.edges(span).err().unwrap_or(Missing::of(Fault::NotReady));
        // What the sensor cannot tell apart no further reading would tell.
        let blurred = facts.averaging_s.is_some_and(|averaging_s| span.seconds() < averaging_s);
        let fault = if blurred { Fault::WindowBelowResolution } else { missing.fault };
        return Err(Missing { fault, ..missing });
    }
    let mut gross_j = 0.0;
    let mut bridged_j = 0.0;
    let mut unseen_j = 0.0;
    let mut flags = Flags::NONE;
    let averaging_s = facts.averaging_s.unwrap_or(update_s);
    let unseen = Unseen { facts, averaging_s, update_s };
    let touching = points.windows(2).filter_map(|pair| match pair {
        [from, to] if to.at_ns > open_ns && from.at_ns < close_ns => Some((from, to)),
        _ => None,
    });
    for (from, to) in touching {
        flags |= to.flags.without(Flags::REPEATED);
        let part_j = part(from, to, open_ns, close_ns);
        gross_j += part_j;
        if to.flags.contains(Flags::BRIDGED) {
            bridged_j += part_j;
        }
        unseen_j += unseen.worst_j(watts(from).midpoint(watts(to)), seconds(from.at_ns, to.at_ns));
    }
    if last.at_ns < close_ns {
        let held_s = seconds(last.at_ns.max(open_ns), close_ns);
        gross_j += watts(last) * held_s;
        unseen_j += unseen.range_j(watts(last), held_s);
    }
    let samples = updates(points, open_ns, close_ns, update_s);
    if facts.averaging_s.is_none() {
        flags |= Flags::WINDOW_ASSUMED;
    }
    if let Some(missing) = curve.gap_in(open_ns, close_ns, flags, samples) {
        // The trapezoid leaves the gap out, so what it has is what was certainly drawn.
        return Err(Missing { lower_bound_j: Some(gross_j), ..missing });
    }
    let smeared_s = match facts.averaging_s {
        Some(averaging_s) if centred => averaging_s / 4.0,
        Some(averaging_s) => averaging_s / 2.0,
        None => averaging_s,
    };
    let edges_s = smeared_s + update_s + facts.lag_uncertainty_s;
    let bound_j = edges_s * facts.swing_w()
        + unseen_j
        + misplaced_j(points, open_ns, close_ns)
        + facts.skew_j(span);
    let estimate = Estimate {
        bridged_j,
        ..facts.estimate(Rule::Gauge, gross_j, bound_j, span, samples, flags)
    };
    if span.seconds() < averaging_s {
        let fault = Fault::WindowBelowResolution;
        return Err(Missing { seen: Some(estimate), samples, flags, ..Missing::of(fault) });
    }
    if samples == 0 {
        let fault = Fault::WindowBelowResolution;
        return Err(Missing { seen: Some(estimate), flags, ..Missing::of(fault) });
    }
    Ok(estimate)
}

/// What readings cannot have seen.
struct Unseen<'a> {
    facts: &'a Facts,
    averaging_s: f64,
    update_s: f64,
}

impl Unseen<'_> {
    /// The worst error of a line at `line_w` between two readings `apart_s` apart, J.
    fn worst_j(&self, line_w: f64, apart_s: f64) -> f64 {
        let between_updates = if self.update_s > self.averaging_s {
            apart_s * (1.0 - self.averaging_s / self.update_s)
        } else {
            0.0
        };
        self.range_j(line_w, (apart_s - self.averaging_s).max(between_updates))
    }

    /// The same where nothing at all was seen for `length_s`, J.
    fn range_j(&self, line_w: f64, length_s: f64) -> f64 {
        (self.facts.ceiling_w - line_w).max(line_w - self.facts.deepest_w).max(0.0) * length_s
    }
}

/// What the readings' stamps leave open, J: of every line that may reach into the window.
fn misplaced_j(points: &[Point], open_ns: u64, close_ns: u64) -> f64 {
    let reaches = |from: &Point, to: &Point| {
        to.at_ns.saturating_add(to.uncertainty_ns.into()) > open_ns
            && from.at_ns.saturating_sub(from.uncertainty_ns.into()) < close_ns
    };
    let open_j = |pair: &[Point]| match pair {
        [from, to] if reaches(from, to) => {
            (uncertainty_s(from) + uncertainty_s(to)) / 2.0 * (watts(to) - watts(from)).abs()
        }
        _ => 0.0,
    };
    points.windows(2).map(open_j).sum()
}

fn uncertainty_s(point: &Point) -> f64 {
    f64::from(point.uncertainty_ns) / 1e9
}

fn watts(point: &Point) -> f64 {
    point.power_uw as f64 / 1e6
}

/// The trapezoid of one pair of readings, cut to the window; a gap holds no energy.
fn part(from: &Point, to: &Point, open_ns: u64, close_ns: u64) -> f64 {
    if to.flags.contains(Flags::GAP) {
        return 0.0;
    }
    if from.at_ns >= open_ns && to.at_ns <= close_ns {
        return joules(*from, *to);
    }
    let length_s = seconds(from.at_ns, to.at_ns);
    let (start_w, stop_w) = (watts(from), watts(to));
    let watts_at = |at_ns: u64| {
        start_w + (stop_w - start_w) * seconds(from.at_ns, at_ns) / length_s.max(f64::MIN_POSITIVE)
    };
    let (begin_ns, end_ns) = (from.at_ns.max(open_ns), to.at_ns.min(close_ns));
    (watts_at(begin_ns) + watts_at(end_ns)) / 2.0 * seconds(begin_ns, end_ns)
}

/// Sensor updates inside: a changed value is one; an equal one counts again only when the sensor
/// had the time to publish anew since the last update, and nobody looked meanwhile: polls that are
/// denser than the sensor see its value stand, and are no evidence that it was published again.
fn updates(points: &[Point], open_ns: u64, close_ns: u64, update_s: f64) -> u64 {
    let mut counted_ns: Option<u64> = None;
    let mut looked_ns: Option<u64> = None;
    let mut updates = 0;
    for point in points.iter().filter(|point| (open_ns..=close_ns).contains(&point.at_ns)) {
        let since = |at: Option<u64>| at.map_or(f64::INFINITY, |at| seconds(at, point.at_ns));
        let due = since(counted_ns) >= update_s * 0.999 && since(looked_ns) >= update_s * 0.5;
        if due || !point.flags.contains(Flags::REPEATED) {
            updates += 1;
            counted_ns = Some(point.at_ns);
        }
        looked_ns = Some(point.at_ns);
    }
    updates
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::Skew;

    const MS: u64 = 1_000_000;

    /// Readings each 100 ms, two high and two low in turn, stamped late by so much where they rise
    /// and early where they fall.
    fn stamped(late_ns: u64, uncertainty_ns: u32) -> Estimate {
        let mut energy_j = 0.0;
        let mut last: Option<(u64, f64)> = None;
        let point = |number: u64| {
            let watts = if (number / 2).is_multiple_of(2) { 0.0 } else { 700.0 };
            let rises = number % 4 == 1 || number % 4 == 2;
            let at_ns = number * 100 * MS;
            let at_ns = if rises { at_ns + late_ns } else { at_ns - late_ns };
            if let Some((last_ns, last_w)) = last {
                energy_j += seconds(last_ns, at_ns) * (watts + last_w) / 2.0;
            }
            last = Some((at_ns, watts));
            Point {
                at_ns,
                energy_uj: (energy_j * 1e6) as u64,
                power_uw: (watts * 1e6) as u64,
                uncertainty_ns,
                flags: Flags::NONE,
            }
        };
        let points: Vec<Point> = (10..130).map(point).collect();
        let facts = Facts {
            ceiling_w: 770.0,
            deepest_w: 70.0,
            poll_gap_s: 0.1,
            period_s: 0.1,
            lag_s: 0.0,
            lag_uncertainty_s: 0.0,
            quantum_j: 0.0,
            averaging_s: Some(0.1),
            skew: Skew::default(),
        };
        let span = Span { open_ns: 2_000 * MS, close_ns: 12_000 * MS };
        gauge(&Curve::new(&points, &facts), span, 0.1, Edges::Plain).unwrap()
    }

    #[test]
    fn what_stamps_leave_open_is_in_the_bound() {
        let exact = stamped(0, 0);
        let off = stamped(10 * MS, 10_000_000);
        let error_j = (off.gross_j - exact.gross_j).abs();
        assert!(error_j > exact.bound_j, "{error_j} J would be outside of {exact:?}");
        assert!(error_j <= off.bound_j, "{error_j} J: {off:?}");
    }
}
