//! What a window's energy is, and how wrong that can be.
//!
//! A window is two instants on a card's cumulative curve. Four rules turn points into a figure:
//! [`raw`] (what the publishes seen so far say, at once), [`shared`] (the curve read between
//! publishes), [`alone`] (the card was at rest on both sides, so all it did beyond its rest is this
//! window's) and [`gauge`] (power readings joined by the trapezoid). [`settled`] names the sharper
//! of shared and alone. Each estimate carries a worst-case bound made from the series itself; the
//! board's gain error is common to all readings of one card and is not in it.
//!
//! Refused: a stretch that holds a gap or is not covered. What is certainly known of it is given as
//! a lower bound, and it never becomes a figure.
//!
//! Formulas: the project's series specification, section "The window: two answers".

mod alone;
mod curve;
mod gauge;

pub use alone::{Neighbours, alone, is_pinned};
pub use curve::{Curve, Edge};
pub use gauge::{Edges, gauge, settles_after_s};
use serde::{Deserialize, Serialize};

use crate::{estimate::curve::Publish, fault::Fault, flags::Flags, ring::Point};

/// A span on the series' clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Opened, ns.
    pub open_ns: u64,
    /// Closed, ns.
    pub close_ns: u64,
}

impl Span {
    /// Length, s.
    pub fn seconds(self) -> f64 {
        seconds(self.open_ns, self.close_ns)
    }
}

/// What bounds rest on: all in SI units, for the page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Facts {
    /// The most the card can draw, W.
    pub ceiling_w: f64,
    /// The least it can draw, W: its declared or measured deep-idle floor, else 0.
    pub deepest_w: f64,
    /// Time between two polls, s.
    pub poll_gap_s: f64,
    /// The register's publish period, s; the polling gap where it is not known.
    pub period_s: f64,
    /// How long a publish lags behind the energy it shows, s: measured by a probe, else 0.
    pub lag_s: f64,
    /// How far the lag can lie from that, s.
    pub lag_uncertainty_s: f64,
    /// The register's smallest step, J.
    pub quantum_j: f64,
    /// What a gauge's reading is the mean over, s; `None` where it is not known. Unused for
    /// counters.
    pub averaging_s: Option<f64>,
    /// What is not known of the clock that the stamps come from.
    pub skew: Skew,
}

/// How far another clock, which stamps were moved from, may be from where it is taken to be. It is
/// the same for all stamps, so a window's two edges move together: what that may cost is the swing
/// of power, not twice its ceiling.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Skew {
    /// How far all stamps may be off together, either way, s; 0 for our own clock.
    pub together_s: f64,
    /// By how much the other clock may run faster or slower, as a share.
    pub drift: f64,
}

/// Which rule a figure was made by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// Newest publish at or before each edge.
    Raw,
    /// Whole ticks around the window, less the card's rest.
    Alone,
    /// The curve read between publishes.
    Shared,
    /// Power readings, joined.
    Gauge,
}

/// A window's energy before idle is subtracted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// How it was made.
    pub rule: Rule,
    /// Energy the card drew in the window, J.
    pub gross_j: f64,
    /// Worst-case error of it, J.
    pub bound_j: f64,
    /// The least and the most that the bound and physics leave, J.
    pub range_j: (f64, f64),
    /// Sensor updates it stands on.
    pub samples: u64,
    /// Joules of it that bridge a stretch without readings.
    pub bridged_j: f64,
    /// What else is to be said.
    pub flags: Flags,
}

/// Why there is no estimate, and what is known all the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Missing {
    /// The word.
    pub fault: Fault,
    /// Energy that was certainly drawn inside, J.
    pub lower_bound_j: Option<f64>,
    /// What was seen, where a figure exists that may not be called one.
    pub seen: Option<Estimate>,
    /// Sensor updates inside.
    pub samples: u64,
    /// What else is to be said.
    pub flags: Flags,
}

impl Missing {
    /// Nothing is known but the word.
    pub fn of(fault: Fault) -> Self {
        Self { fault, lower_bound_j: None, seen: None, samples: 0, flags: Flags::NONE }
    }
}

/// An estimate, or why there is none.
pub type Estimated = Result<Estimate, Missing>;

/// The answer at once: from `opening`, the newest point when the window opened, to `closing`, the
/// newest one when it closed, and the points in between.
pub fn raw(
    opening: Option<Point>,
    closing: Option<Point>,
    between: &[Point],
    span: Span,
    facts: &Facts,
) -> Estimated {
    let (Some(opening), Some(closing)) = (opening, closing) else {
        return Err(Missing::of(Fault::NotReady));
    };
    let curve = Curve::new(between, facts);
    let inside = |point: &&Point| point.at_ns > opening.at_ns && point.at_ns <= closing.at_ns;
    let samples = between.iter().filter(inside).count() as u64;
    let flags = between.iter().filter(inside).fold(Flags::NONE, |all, point| all | point.flags);
    let lag_ns = (facts.lag_s * 1e9) as u64;
    let (open_ns, close_ns) = (span.open_ns + lag_ns, span.close_ns + lag_ns);
    if let Some(missing) = curve.gap_in(open_ns, close_ns, flags, samples) {
        return Err(missing);
    }
    if closing.at_ns <= opening.at_ns {
        return Err(Missing { flags, ..Missing::of(Fault::WindowBelowResolution) });
    }
    let gross_j = joules(opening, closing);
    let bound_j = raw_bound_j(opening, closing, span, facts);
    Ok(facts.estimate(Rule::Raw, gross_j, bound_j, span, samples.max(1), flags))
}

/// [`raw`] for a part of a window. One that is shorter than the register's period and holds a
/// publish holds the energy of a time beyond it, and its neighbours hold none: what was seen is no
/// figure of it.
pub fn raw_part(
    opening: Option<Point>,
    closing: Option<Point>,
    between: &[Point],
    span: Span,
    facts: &Facts,
) -> Estimated {
    let seen = raw(opening, closing, between, span, facts)?;
    if span.seconds() >= facts.period_s {
        return Ok(seen);
    }
    let Estimate { samples, flags, .. } = seen;
    let missing = Missing::of(Fault::WindowBelowResolution);
    Err(Missing { seen: Some(seen), samples, flags, ..missing })
}

/// Each edge misses what was drawn since the publish that stands for it, as far as that can differ
/// between the two. With both as old as they can be this is
/// `(p + g + 2δ)·Pmax + λ·(Pmax − Pmin) + q`.
fn raw_bound_j(opening: Point, closing: Point, span: Span, facts: &Facts) -> f64 {
    let missed_j = |point: Point, edge_ns: u64| {
        let apart_s = seconds(point.at_ns, edge_ns).max(0.0);
        let uncertainty_s = f64::from(point.uncertainty_ns) / 1e9;
        Publish { energy_j: 0.0, apart_s, uncertainty_s }.between_j(facts)
    };
    let (open, close) = (missed_j(opening, span.open_ns), missed_j(closing, span.close_ns));
    (close.1 - open.0).max(open.1 - close.0)
        + (facts.lag_s + facts.lag_uncertainty_s) * facts.swing_w()
        + facts.skew_j(span)
        + facts.quantum_j
}

/// The curve read between publishes, with both edges' worst case.
pub fn shared(curve: &Curve<'_>, span: Span) -> Estimated {
    let facts = curve.facts();
    let (open, close) = curve.edges(span)?;
    let (flags, samples) = (curve.flags(&open, &close), curve.ticks(&open, &close));
    if let Some(missing) = curve.gap_in(open.at_ns, close.at_ns, flags, samples) {
        return Err(missing);
    }
    let mut gross_j = curve.line_j(&open, &close);
    let mut least_j = close.least_j - open.most_j;
    let mut most_j = close.most_j - open.least_j;
    if open.tick == close.tick {
        // Both edges in one tick: the line may say what no card can draw in the window's length.
        most_j = most_j.min(facts.ceiling_w * span.seconds());
        least_j = least_j.max(0.0);
    }
    if least_j <= most_j {
        gross_j = gross_j.clamp(least_j, most_j);
    } else {
        // A ceiling that was exceeded leaves no room at all.
        (least_j, most_j) = (gross_j, gross_j);
    }
    let bound_j = (gross_j - least_j).max(most_j - gross_j)
        + facts.lag_uncertainty_s * facts.swing_w()
        + facts.skew_j(span)
        + 2.0 * facts.quantum_j;
    Ok(facts.estimate(Rule::Shared, gross_j, bound_j, span, samples, flags))
}

/// The settled answer of a counter: the sharper of [`alone`] and [`shared`].
pub fn settled(curve: &Curve<'_>, span: Span, neighbours: &Neighbours<'_>) -> Estimated {
    let between = shared(curve, span);
    match (alone(curve, span, neighbours), between) {
        (Some(whole), Ok(between)) if whole.bound_j <= between.bound_j => Ok(whole),
        (_, between) => between,
    }
}

impl Facts {
    /// How far the card's power can move, W.
    pub fn swing_w(&self) -> f64 {
        (self.ceiling_w - self.deepest_w).max(0.0)
    }

    /// What another clock leaves open of a span, J: both of its edges moved, and apart by what that
    /// clock drifts from the publish before it to the one behind it.
    pub fn skew_j(&self, span: Span) -> f64 {
        let apart_s = self.skew.drift * (span.seconds() + 2.0 * self.period_s);
        self.skew.together_s * self.swing_w() + apart_s * self.ceiling_w
    }

    /// An estimate whose bound is no wider than what physics allows: a card draws between its
    /// deepest idle and its ceiling. A figure outside of that shows that the limits are not the
    /// card's, and then they bound nothing.
    fn estimate(
        &self,
        rule: Rule,
        gross_j: f64,
        bound_j: f64,
        span: Span,
        samples: u64,
        flags: Flags,
    ) -> Estimate {
        let (least, most) = (self.deepest_w * span.seconds(), self.ceiling_w * span.seconds());
        let is_possible = (least..=most).contains(&gross_j);
        let bound_j =
            if is_possible { bound_j.min((gross_j - least).max(most - gross_j)) } else { bound_j };
        let (low_j, high_j) = (gross_j - bound_j, gross_j + bound_j);
        let range_j =
            if is_possible { (low_j.max(least), high_j.min(most)) } else { (low_j, high_j) };
        Estimate { rule, gross_j, bound_j, range_j, samples, bridged_j: 0.0, flags }
    }
}

/// Energy between two points, J.
fn joules(from: Point, to: Point) -> f64 {
    to.energy_uj.saturating_sub(from.energy_uj) as f64 / 1e6
}

/// Time from one instant to another, s; negative when it runs back.
fn seconds(from_ns: u64, to_ns: u64) -> f64 {
    if to_ns >= from_ns {
        (to_ns - from_ns) as f64 / 1e9
    } else {
        -((from_ns - to_ns) as f64 / 1e9)
    }
}

#[cfg(test)]
#[path = "estimate_tests.rs"]
mod tests;
