//! An agent's clock beside ours: its offset, when to ask for it again, and whether an event looks as
//! if one of the two had been moved.

use super::{
    Offset, RoundTrip,
    offset::{Estimator, Heard},
};
use crate::clock::now_ns;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;
/// The clock is asked this often, once it is known …
const EVERY_NS: u64 = SECOND;
/// … and no more often than so many times what asking takes, nor more seldom than this: a connection
/// that is idle for longer is closed, and then asking takes twice as long.
const SHARE: u64 = 20;
const SELDOM_NS: u64 = 10 * SECOND;
/// Round trips after which it is known.
const FIRST_TRIPS: usize = 4;
const FIRST_EVERY_NS: u64 = 100 * MS;
/// An event that is so much later than usual may have been sent by a clock that was moved.
const LATE_NS: u64 = 50 * MS;

/// The agent's clock.
#[derive(Debug, Default)]
pub(super) struct Clock {
    boot_id: String,
    offset: Estimator,
    trips: usize,
    next_ns: u64,
    shortest_ns: Option<u64>,
    /// How late events are, of late.
    usual_ns: u64,
}

impl Clock {
    /// A connection begins. What is known of the clock of the same life still holds.
    pub fn begin(&mut self, boot_id: &str) {
        if self.boot_id != boot_id {
            *self = Self { boot_id: boot_id.to_owned(), ..Self::default() };
        }
        (self.usual_ns, self.trips, self.next_ns) = (0, 0, 0);
    }

    /// The life of the agent that it is the clock of.
    pub fn boot_id(&self) -> &str {
        &self.boot_id
    }

    /// One more round trip.
    pub fn trip(&mut self, trip: RoundTrip) -> Heard {
        self.trips += 1;
        let length_ns = trip.length_ns();
        // Forgets slowly: routes change.
        let known_ns = self.shortest_ns.map(|known_ns| known_ns.saturating_add(known_ns / 64));
        self.shortest_ns = Some(known_ns.map_or(length_ns, |known_ns| known_ns.min(length_ns)));
        let every_ns = if self.trips < FIRST_TRIPS { FIRST_EVERY_NS } else { EVERY_NS };
        let every_ns = every_ns.max(length_ns.saturating_mul(SHARE).min(SELDOM_NS));
        self.next_ns = trip.heard_ns.saturating_add(every_ns);
        self.offset.add(trip)
    }

    /// It was asked and did not answer.
    pub fn failed(&mut self) {
        self.next_ns = now_ns().saturating_add(2 * EVERY_NS);
    }

    /// Ours stood still meanwhile.
    pub fn forget(&mut self) {
        self.offset.forget();
    }

    /// It is to be asked again.
    pub fn is_due(&self) -> bool {
        now_ns() >= self.next_ns
    }

    /// Ours less theirs, at an instant of ours.
    pub fn offset(&mut self, now_ns: u64) -> Option<Offset> {
        self.offset.at(now_ns)
    }

    /// The shortest round trip of late, ns.
    pub const fn shortest_ns(&self) -> Option<u64> {
        self.shortest_ns
    }

    /// How long an event takes until it is here, of late, ns.
    pub const fn delivery_ns(&self) -> u64 {
        self.usual_ns
    }

    /// How late an event is that was sent at an instant of the agent's clock; negative for one that
    /// is yet to come.
    fn late_ns(&mut self, t_ns: u64, arrived_ns: u64) -> Option<(i128, Offset)> {
        let offset = self.offset.at(arrived_ns)?;
        let ours_ns = i128::from(t_ns) + i128::from(offset.offset_ns);
        Some((i128::from(arrived_ns) - ours_ns, offset))
    }

    /// Whether it looks as if a clock had been moved.
    pub fn is_doubtful(&mut self, t_ns: u64, delta_ns: u64, arrived_ns: u64) -> bool {
        let Some((late_ns, offset)) = self.late_ns(t_ns, arrived_ns) else { return false };
        let open_ns = i128::from(offset.uncertainty_ns.saturating_add(delta_ns));
        late_ns < -open_ns
            || late_ns > 2 * i128::from(self.usual_ns) + i128::from(LATE_NS) + open_ns
    }

    /// An event that is as late as it is.
    pub fn usual(&mut self, t_ns: u64, arrived_ns: u64) {
        let late_ns = self.late_ns(t_ns, arrived_ns).map_or(0, |(late_ns, _)| late_ns.max(0));
        let late_ns = u64::try_from(late_ns).unwrap_or(u64::MAX);
        self.usual_ns = late_ns.max(self.usual_ns - self.usual_ns / 64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(ahead_ns: i64, trip_ns: u64) -> (Clock, u64) {
        let mut clock = Clock::default();
        clock.begin("life");
        let asked_ns = 100 * SECOND;
        let other_ns = (asked_ns + trip_ns / 2).saturating_add_signed(ahead_ns);
        clock.trip(RoundTrip { asked_ns, heard_ns: asked_ns + trip_ns, other_ns });
        (clock, asked_ns + trip_ns)
    }

    #[test]
    fn an_event_from_the_future_or_far_too_late_is_doubtful() {
        let (mut clock, now_ns) = known(3 * SECOND as i64, 4 * MS);
        let theirs = |ns: u64| ns + 3 * SECOND;
        clock.usual(theirs(now_ns - 5 * MS), now_ns);
        assert!(!clock.is_doubtful(theirs(now_ns - 30 * MS), 0, now_ns));
        assert!(clock.is_doubtful(theirs(now_ns - 80 * MS), 0, now_ns), "late");
        assert!(clock.is_doubtful(theirs(now_ns + 10 * MS), 0, now_ns), "early");
        assert!(!clock.is_doubtful(theirs(now_ns + 10 * MS), 10 * MS, now_ns), "or ill known");
        // What has become usual is not doubted any more, until it is forgotten.
        clock.usual(theirs(now_ns - 80 * MS), now_ns);
        assert!(!clock.is_doubtful(theirs(now_ns - 150 * MS), 0, now_ns));
        (0..500).for_each(|_| clock.usual(theirs(now_ns - 5 * MS), now_ns));
        assert!(clock.is_doubtful(theirs(now_ns - 150 * MS), 0, now_ns));
    }

    #[test]
    fn another_life_is_another_clock() {
        let (mut clock, now_ns) = known(0, 4 * MS);
        clock.begin("life");
        assert!(clock.offset(now_ns).is_some(), "the same life goes on");
        clock.begin("next");
        assert_eq!((clock.offset(now_ns), clock.boot_id()), (None, "next"));
    }

    #[test]
    fn a_slow_way_is_asked_less_often() {
        for (trip_ns, every_ns) in [(MS, SECOND), (400 * MS, 8 * SECOND)] {
            let (mut clock, mut now_ns) = known(0, trip_ns);
            for _ in 0..FIRST_TRIPS {
                let trip =
                    RoundTrip { asked_ns: now_ns, heard_ns: now_ns + trip_ns, other_ns: now_ns };
                now_ns += trip_ns;
                clock.trip(trip);
            }
            assert_eq!(clock.next_ns, now_ns + every_ns);
        }
    }
}
