//! The cumulative curve of a card, read at any instant between its points.

use super::{Facts, Missing, Span, joules, seconds};
use crate::{fault::Fault, flags::Flags, ring::Point};

/// Points in time order, and what is known of the card.
#[derive(Clone, Copy, Debug)]
pub struct Curve<'a> {
    points: &'a [Point],
    facts: &'a Facts,
}

/// One edge of a window on the curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Edge {
    /// The instant, on the publishes' clock (lag added), ns.
    pub at_ns: u64,
    /// Energy since the curve's first point, J.
    pub energy_j: f64,
    /// Mean power of the tick around it, W.
    pub mean_w: f64,
    /// How far into the tick, s.
    pub offset_s: f64,
    /// The tick's length, s.
    pub length_s: f64,
    /// The worse of its two publishes' uncertainties, s.
    pub uncertainty_s: f64,
    /// The number of the point that ends the tick.
    pub tick: usize,
}

impl Edge {
    /// The worst error of the curve at this edge, J: power may have been anywhere between the
    /// deepest idle and the ceiling inside the tick, as long as the tick's energy comes out.
    pub fn bound_j(&self, facts: &Facts) -> f64 {
        let mean_w = self.mean_w.clamp(facts.deepest_w, facts.ceiling_w.max(facts.deepest_w));
        let (up_w, down_w) = (facts.ceiling_w - mean_w, mean_w - facts.deepest_w);
        let rest_s = (self.length_s - self.offset_s).max(0.0);
        let above = (up_w * self.offset_s).min(down_w * rest_s);
        let below = (down_w * self.offset_s).min(up_w * rest_s);
        above.max(below).max(0.0) + self.uncertainty_s * facts.ceiling_w + facts.quantum_j
    }
}

impl<'a> Curve<'a> {
    /// A curve through `points`, which are in time order.
    pub fn new(points: &'a [Point], facts: &'a Facts) -> Self {
        Self { points, facts }
    }

    /// What is known of the card.
    pub fn facts(&self) -> &'a Facts {
        self.facts
    }

    /// Its points.
    pub fn points(&self) -> &'a [Point] {
        self.points
    }

    /// The curve at `at_ns`; `None` outside its points.
    pub fn at(&self, at_ns: u64) -> Option<Edge> {
        let first = self.points.first()?;
        let after = self.points.partition_point(|point| point.at_ns < at_ns).max(1);
        let (from, to) = (self.points.get(after - 1)?, self.points.get(after)?);
        if at_ns < from.at_ns {
            return None;
        }
        let length_s = seconds(from.at_ns, to.at_ns);
        let offset_s = seconds(from.at_ns, at_ns);
        let tick_j = joules(*from, *to);
        let share = if length_s > 0.0 { offset_s / length_s } else { 1.0 };
        Some(Edge {
            at_ns,
            energy_j: joules(*first, *from) + tick_j * share,
            mean_w: if length_s > 0.0 { tick_j / length_s } else { 0.0 },
            offset_s,
            length_s,
            uncertainty_s: f64::from(from.uncertainty_ns.max(to.uncertainty_ns)) / 1e9,
            tick: after,
        })
    }

    /// Both edges of a window, read later by the card's lag. Refused where the curve does not
    /// reach: the energy of whole ticks inside is still known.
    pub fn edges(&self, span: Span) -> Result<(Edge, Edge), Missing> {
        let lag_ns = (self.facts.lag_s * 1e9) as u64;
        let open_ns = span.open_ns.saturating_add(lag_ns);
        let close_ns = span.close_ns.saturating_add(lag_ns);
        if let (Some(open), Some(close)) = (self.at(open_ns), self.at(close_ns)) {
            return Ok((open, close));
        }
        let flags = Flags::PARTIAL;
        // Closed before the newest publish came, or opened before the oldest one that is there.
        Err(self.known(open_ns, close_ns, Missing { flags, ..Missing::of(Fault::NotReady) }))
    }

    /// The gap between two instants, if there is one, with what is certainly known.
    pub fn gap_in(&self, from_ns: u64, to_ns: u64, flags: Flags, samples: u64) -> Option<Missing> {
        let fault = if flags.contains(Flags::AMBIGUOUS_WRAP) {
            Fault::AmbiguousWrap
        } else if flags.contains(Flags::COUNTER_RESET) {
            Fault::CounterReset
        } else if flags.contains(Flags::COUNTER_SET) {
            Fault::Implausible
        } else if flags.contains(Flags::GAP) {
            Fault::Gap
        } else {
            return None;
        };
        let missing = Missing { fault, flags, samples, ..Missing::of(fault) };
        Some(self.known(from_ns, to_ns, missing))
    }

    /// Adds the energy of the whole ticks between two instants as the lower bound.
    fn known(&self, from_ns: u64, to_ns: u64, missing: Missing) -> Missing {
        let mut inside =
            self.points.iter().filter(|point| point.at_ns >= from_ns && point.at_ns <= to_ns);
        let first = inside.next();
        let last = inside.next_back();
        let lower_bound_j = first.zip(last).map(|(first, last)| joules(*first, *last));
        Missing { lower_bound_j, ..missing }
    }

    /// What is to be said of the ticks from one edge to another.
    pub fn flags(&self, open: &Edge, close: &Edge) -> Flags {
        self.points
            .get(open.tick..=close.tick)
            .unwrap_or_default()
            .iter()
            .fold(Flags::NONE, |all, point| all | point.flags)
            .without(Flags::REPEATED)
    }

    /// How many ticks lie between two edges, both edges' own included.
    pub fn ticks(&self, open: &Edge, close: &Edge) -> u64 {
        (close.tick.saturating_sub(open.tick) + 1) as u64
    }
}
