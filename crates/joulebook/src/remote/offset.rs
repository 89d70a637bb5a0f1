//! How far another host's clock is from ours, and how well that is known.
//!
//! Each round trip leaves an interval: the other clock was read between our two instants. Older
//! intervals widen by what two clocks may drift apart. All of the last few must overlap, and the
//! offset lies in what they have in common. Its middle is taken with a little room on either side,
//! and both are kept, unchanged, while what is known stays inside that room and is not much
//! narrower: so long, all instants that were moved by it are off together, and ticks keep their
//! lengths. Where the intervals do not overlap, a clock was moved: what was known is forgotten, and
//! that is said.
//!
//! Nothing is assumed of the network but that it does not carry answers before they are given.

use std::collections::VecDeque;

/// Round trips that are kept.
const KEPT: usize = 16;
/// How fast two clocks may drift apart: as much as time daemons steer by, and crystals on top.
pub(crate) const DRIFT: f64 = 500e-6;
/// The room on top of the half width: a share of it, and what clocks may drift in a second, ns.
const ROOM: i128 = 4;
const DRIFT_ROOM_NS: i128 = 600_000;
/// No uncertainty is told that is less than this, ns: publishes themselves are known no better.
const LEAST_NS: i128 = 1_000_000;
/// The offset is taken anew when it is known so many times better.
const BETTER: i128 = 3;

/// One reading of the other clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrip {
    /// When it was asked, on our clock, ns.
    pub asked_ns: u64,
    /// When the answer was here, on our clock, ns.
    pub heard_ns: u64,
    /// What the other clock showed in between, ns.
    pub other_ns: u64,
}

/// Ours less theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    /// To be added to the other clock's instants, ns.
    pub offset_ns: i64,
    /// How far from that it may be, ns.
    pub uncertainty_ns: u64,
}

/// What one more round trip meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// It agrees with what was known, or is the first.
    Agrees,
    /// It cannot be true together with those before: a clock was moved.
    Moved,
}

/// The estimate.
#[derive(Debug, Default)]
pub(super) struct Estimator {
    trips: VecDeque<RoundTrip>,
    /// The offset in use, and how far it may be off.
    used: Option<(i128, i128)>,
}

impl RoundTrip {
    fn limits(&self, now_ns: u64) -> (i128, i128) {
        let age_ns = now_ns.abs_diff(self.heard_ns);
        let drift_ns = (age_ns as f64 * DRIFT).ceil() as i128;
        let other = i128::from(self.other_ns);
        let (least, most) = (i128::from(self.asked_ns), i128::from(self.heard_ns));
        (least - other - drift_ns, most - other + drift_ns)
    }

    /// How long it took, ns.
    pub(super) const fn length_ns(&self) -> u64 {
        self.heard_ns.saturating_sub(self.asked_ns)
    }
}

impl Offset {
    /// An instant of the other clock on ours; `None` outside of ours.
    pub fn ours(&self, other_ns: u64) -> Option<u64> {
        u64::try_from(i128::from(other_ns) + i128::from(self.offset_ns)).ok()
    }
}

impl Estimator {
    /// One more round trip.
    pub fn add(&mut self, trip: RoundTrip) -> Heard {
        let heard = match self.common(trip.heard_ns) {
            Some((least, most)) => {
                let new = trip.limits(trip.heard_ns);
                if new.0 <= most && new.1 >= least { Heard::Agrees } else { Heard::Moved }
            }
            None => Heard::Agrees,
        };
        if heard == Heard::Moved {
            self.forget();
        }
        if self.trips.len() == KEPT {
            self.trips.pop_front();
        }
        self.trips.push_back(trip);
        heard
    }

    /// Nothing that was known holds any more.
    pub fn forget(&mut self) {
        self.trips.clear();
        self.used = None;
    }

    /// The offset at an instant of our clock.
    pub fn at(&mut self, now_ns: u64) -> Option<Offset> {
        let (least, most) = self.common(now_ns)?;
        let (middle, half) = (least.midpoint(most), (most - least + 1) / 2);
        let holds = |(offset, reach): &(i128, i128)| {
            let inside = least >= offset - reach && most <= offset + reach;
            inside && (half * BETTER >= *reach || *reach <= LEAST_NS)
        };
        let reach = (half + half / ROOM + DRIFT_ROOM_NS).max(LEAST_NS);
        let (offset, reach) = self.used.filter(holds).unwrap_or((middle, reach));
        self.used = Some((offset, reach));
        Some(Offset {
            offset_ns: i64::try_from(offset).ok()?,
            uncertainty_ns: u64::try_from(reach).ok()?,
        })
    }

    /// What all round trips have in common.
    fn common(&self, now_ns: u64) -> Option<(i128, i128)> {
        let limits = self.trips.iter().map(|trip| trip.limits(now_ns));
        limits.reduce(|all, one| (all.0.max(one.0), all.1.min(one.1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const SECOND: u64 = 1000 * MS;

    /// A trip that asks at `asked_ms` and takes so long there and back; their clock is `ahead_ms`.
    fn trip(asked_ms: u64, there_ms: u64, back_ms: u64, ahead_ms: i64) -> RoundTrip {
        let asked_ns = 10 * SECOND + asked_ms * MS;
        RoundTrip {
            asked_ns,
            heard_ns: asked_ns + (there_ms + back_ms) * MS,
            other_ns: (asked_ns + there_ms * MS).saturating_add_signed(ahead_ms * MS as i64),
        }
    }

    fn holds(estimator: &mut Estimator, now_ms: u64, ahead_ms: i64) -> Offset {
        let offset = estimator.at(10 * SECOND + now_ms * MS).unwrap();
        let error_ns = offset.offset_ns.abs_diff(-ahead_ms * MS as i64);
        assert!(error_ns <= offset.uncertainty_ns, "{error_ns} ns off: {offset:?}");
        offset
    }

    #[test]
    fn the_middle_is_taken_and_holds_however_uneven_the_way() {
        for (there_ms, back_ms) in [(10, 10), (20, 0), (0, 20), (19, 1)] {
            let mut estimator = Estimator::default();
            estimator.add(trip(0, there_ms, back_ms, 3000));
            let offset = holds(&mut estimator, 20, 3000);
            assert!(offset.uncertainty_ns <= 14 * MS, "half the way and a little: {offset:?}");
        }
    }

    #[test]
    fn what_trips_have_in_common_is_sharper_than_the_best() {
        let mut estimator = Estimator::default();
        estimator.add(trip(0, 20, 1, -3000));
        estimator.add(trip(100, 1, 20, -3000));
        let offset = holds(&mut estimator, 121, -3000);
        assert!(offset.uncertainty_ns < 2 * MS, "{offset:?}");
    }

    #[test]
    fn what_is_known_widens_with_age_and_holds_for_clocks_that_drift() {
        let mut estimator = Estimator::default();
        estimator.add(trip(0, 1, 1, 500));
        let fresh = holds(&mut estimator, 2, 500);
        let old = holds(&mut estimator, 20_000, 500);
        assert!(old.uncertainty_ns > fresh.uncertainty_ns + 9 * MS);
        // Theirs runs 100 ppm fast.
        let mut estimator = Estimator::default();
        for second in 0..100 {
            let mut trip = trip(second * 1000, 2, 2, 500);
            trip.other_ns += second * 100_000;
            assert_eq!(estimator.add(trip), Heard::Agrees);
            let offset = estimator.at(trip.heard_ns).unwrap();
            let truth = -(500 * MS as i64) - (second * 100_000) as i64;
            assert!(offset.offset_ns.abs_diff(truth) <= offset.uncertainty_ns, "{offset:?}");
        }
    }

    #[test]
    fn a_clock_that_was_moved_is_noticed_and_what_was_known_forgotten() {
        for jump_ms in [-3000, 30, 3000] {
            let mut estimator = Estimator::default();
            for second in 0..5 {
                assert_eq!(estimator.add(trip(second * 1000, 5, 5, 100)), Heard::Agrees);
            }
            assert_eq!(estimator.add(trip(5000, 5, 5, 100 + jump_ms)), Heard::Moved);
            holds(&mut estimator, 5010, 100 + jump_ms);
            assert_eq!(estimator.add(trip(6000, 5, 5, 100 + jump_ms)), Heard::Agrees);
        }
    }

    #[test]
    fn the_offset_stays_as_it_is_while_it_holds_and_is_not_known_much_better() {
        for (there_ms, back_ms) in [(200, 200), (1, 1), (0, 0)] {
            let mut estimator = Estimator::default();
            estimator.add(trip(0, there_ms, back_ms, 0));
            let first = holds(&mut estimator, there_ms + back_ms, 0);
            for second in 1..10 {
                let wavers = second % 2;
                estimator.add(trip(second * 1000, there_ms + wavers, back_ms, 0));
                let later = holds(&mut estimator, second * 1000 + there_ms + back_ms + wavers, 0);
                assert_eq!(first, later, "{there_ms} ms: {second} s");
            }
        }
        let mut estimator = Estimator::default();
        estimator.add(trip(0, 20, 20, 0));
        let vague = holds(&mut estimator, 40, 0);
        estimator.add(trip(1000, 1, 1, 0));
        let sharp = holds(&mut estimator, 1002, 0);
        assert!(sharp.uncertainty_ns < vague.uncertainty_ns / 3, "{vague:?}, {sharp:?}");
    }

    #[test]
    fn a_clock_that_shows_nonsense_gives_no_offset() {
        let mut estimator = Estimator::default();
        let asked_ns = 10 * SECOND;
        estimator.add(RoundTrip { asked_ns, heard_ns: asked_ns + 1, other_ns: u64::MAX });
        assert_eq!(estimator.at(asked_ns), None);
        let offset = Offset { offset_ns: -5, uncertainty_ns: 0 };
        assert_eq!((offset.ours(4), offset.ours(9)), (None, Some(4)));
    }
}
