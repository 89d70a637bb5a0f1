//! The cumulative curve of a card, read at any instant between its points.

use super::{Facts, Missing, Span, joules, seconds};
use crate::{fault::Fault, flags::Flags, ring::Point};

/// A publish that is less certain than this share of the period is passed over where others are
/// known better; a run of ticks whose length is less certain than this cannot be shown to be quiet.
pub(super) const WORST_UNCERTAINTY: f64 = 0.1;

/// Points in time order, and what is known of the card.
#[derive(Clone, Copy, Debug)]
pub struct Curve<'a> {
    points: &'a [Point],
    facts: &'a Facts,
}

/// One edge of a window on the curve. Its limits are the sharpest that two publishes, their stamps'
/// uncertainty and the card's power range leave; with exact stamps, h the tick's length, x the
/// edge's place in it and Pm its mean power, the wider one lies
/// `max(min((Pmax − Pm)·x, (Pm − Pmin)·(h − x)), min((Pm − Pmin)·x, (Pmax − Pm)·(h − x)))` away.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Edge {
    /// The instant, on the publishes' clock (lag added), ns.
    pub at_ns: u64,
    /// Energy since the curve's first point, J.
    pub energy_j: f64,
    /// The least the true curve can have reached here, J; quantum and lag apart. Above the most
    /// where the card drew more than its ceiling.
    pub least_j: f64,
    /// The most it can have reached here, J.
    pub most_j: f64,
    /// The number of the point that ends the tick.
    pub tick: usize,
}

/// A publish as an edge sees it.
pub(super) struct Publish {
    /// Energy since the curve's first point, J.
    pub energy_j: f64,
    /// Time between it and the edge by its stamp, s; not negative.
    pub apart_s: f64,
    /// How far the stamp can be off, s.
    pub uncertainty_s: f64,
}

impl Publish {
    /// The least and the most that the card can have drawn between the publish and the edge, J.
    /// Where the stamp leaves open which of the two came first, the least is negative.
    pub fn between_j(&self, facts: &Facts) -> (f64, f64) {
        let least_s = self.apart_s - self.uncertainty_s;
        let slowest_w = if least_s < 0.0 { facts.ceiling_w } else { facts.deepest_w };
        (slowest_w * least_s, facts.ceiling_w * (self.apart_s + self.uncertainty_s))
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
        let first = *self.points.first()?;
        let after = self.points.partition_point(|point| point.at_ns < at_ns).max(1);
        if at_ns < self.points.get(after - 1)?.at_ns {
            return None;
        }
        let mut edge = self.tick(first, after - 1, after, at_ns)?;
        edge.tick = after;
        // A publish that polls could hardly place leaves more open than the one beyond it.
        for (back, on) in [(2, 0), (1, 1), (2, 1)] {
            let (Some(from), to) = (after.checked_sub(back), after + on) else { continue };
            let between = self.points.get(from + 1..=to).unwrap_or_default();
            if between.iter().any(|point| point.flags.contains(Flags::GAP)) {
                continue;
            }
            if let Some(wider) = self.tick(first, from, to, at_ns) {
                edge.least_j = edge.least_j.max(wider.least_j);
                edge.most_j = edge.most_j.min(wider.most_j);
            }
        }
        Some(edge)
    }

    /// The energy of the straight lines between two instants, J; over publishes that polls could
    /// hardly place the line goes on to the next, where it can.
    pub fn line_j(&self, open: &Edge, close: &Edge) -> f64 {
        let placed = well_placed(self.points, self.facts.period_s);
        let line = Curve::new(&placed, self.facts);
        let read = |edge: &Edge| {
            let on_line = line.at(edge.at_ns)?;
            let is_gap = placed.get(on_line.tick)?.flags.contains(Flags::GAP);
            (!is_gap).then_some(on_line.energy_j)
        };
        match (read(open), read(close)) {
            (Some(from_j), Some(to_j)) => to_j - from_j,
            _ => close.energy_j - open.energy_j,
        }
    }

    /// The line between two points at `at_ns`, and what they leave open there: power may have been
    /// anywhere between the deepest idle and the ceiling, as long as the energy comes out.
    fn tick(&self, first: Point, from: usize, to: usize, at_ns: u64) -> Option<Edge> {
        let (from, to) = (self.points.get(from)?, self.points.get(to)?);
        let length_s = seconds(from.at_ns, to.at_ns);
        let offset_s = seconds(from.at_ns, at_ns);
        let share = if length_s > 0.0 { offset_s / length_s } else { 1.0 };
        let publish = |point: &Point, apart_s: f64| Publish {
            energy_j: joules(first, *point),
            apart_s,
            uncertainty_s: f64::from(point.uncertainty_ns) / 1e9,
        };
        let from = publish(from, offset_s);
        let to = publish(to, (length_s - offset_s).max(0.0));
        let (since, until) = (from.between_j(self.facts), to.between_j(self.facts));
        Some(Edge {
            at_ns,
            energy_j: from.energy_j + (to.energy_j - from.energy_j) * share,
            least_j: (from.energy_j + since.0).max(to.energy_j - until.1),
            most_j: (from.energy_j + since.1).min(to.energy_j - until.0),
            tick: 0,
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
        let missing = Missing { flags, samples, ..Missing::of(fault) };
        Some(self.known(from_ns, to_ns, missing))
    }

    /// Adds the energy of the whole ticks that surely lie between two instants (lag added), however
    /// late the publishes are, as the lower bound.
    fn known(&self, from_ns: u64, to_ns: u64, missing: Missing) -> Missing {
        let Facts { lag_s, lag_uncertainty_s, skew, .. } = *self.facts;
        let later_ns = ((lag_uncertainty_s + skew.together_s) * 1e9) as u64;
        let sooner_ns = ((lag_uncertainty_s.min(lag_s) + skew.together_s) * 1e9) as u64;
        let mut inside = self.points.iter().filter(|point| {
            let uncertainty_ns = u64::from(point.uncertainty_ns);
            point.at_ns >= from_ns.saturating_add(later_ns + uncertainty_ns)
                && point.at_ns.saturating_add(sooner_ns + uncertainty_ns) <= to_ns
        });
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

/// The points without those that polls could hardly place; what is to be said of their ticks is
/// said of the longer ones that take their place.
pub(super) fn well_placed(points: &[Point], period_s: f64) -> Vec<Point> {
    let worst_s = WORST_UNCERTAINTY * period_s;
    let mut carried = Flags::NONE;
    let place = |point: &Point| {
        let flags = carried | point.flags;
        let is_placed = f64::from(point.uncertainty_ns) / 1e9 <= worst_s;
        carried = if is_placed { Flags::NONE } else { flags };
        is_placed.then_some(Point { flags, ..*point })
    };
    let mut placed = Vec::with_capacity(points.len());
    placed.extend(points.iter().filter_map(place));
    placed
}
