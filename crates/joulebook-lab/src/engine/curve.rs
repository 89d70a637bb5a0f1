//! A card's power over time: constant pieces, each with the energy up to its start.
//!
//! Invariants: pieces lie in the order of time, no two neighbours have the same power, and the
//! energy of a window is exact up to the rounding of doubles. The lab's cards can follow it, as
//! knots or as the [`Live`] source of a dynamic card.

use crate::{
    load::{Change, Live},
    scenario::Knot,
};

/// The power of one card.
#[derive(Clone, Debug, Default)]
pub struct Curve(Vec<Change>);

impl Curve {
    /// Adds a change; one that changes nothing is left out.
    pub(super) fn push(&mut self, t_ns: i64, watts: f64) -> bool {
        let joules = match self.0.last() {
            Some(last) if last.watts == watts => return false,
            Some(last) => last.joules_at(t_ns),
            None => 0.0,
        };
        self.0.push(Change { t_ns, watts, joules });
        true
    }

    /// The energy from its first change on, J; 0 before.
    pub fn joules(&self, t_ns: i64) -> f64 {
        self.last_at(t_ns).map_or(0.0, |change| change.joules_at(t_ns))
    }

    /// The changes.
    pub fn changes(&self) -> &[Change] {
        &self.0
    }

    /// The same as knots of a scenario.
    pub fn knots(&self) -> Vec<Knot> {
        let knot = |change: &Change| Knot { t_ns: change.t_ns, w: change.watts, linear: false };
        self.0.iter().map(knot).collect()
    }
}

impl Live for Curve {
    fn last_at(&self, t_ns: i64) -> Option<Change> {
        let after = self.0.partition_point(|change| change.t_ns <= t_ns);
        self.0.get(after.checked_sub(1)?).copied()
    }

    fn first(&self) -> Option<Change> {
        self.0.first().copied()
    }
}
