//! The one clock: monotonic nanoseconds since the process first asked, and the wall time that goes
//! with them, attached once at the edge.

use std::{
    sync::OnceLock,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

struct Anchor {
    instant: Instant,
    unix_ns: u128,
}

static ANCHOR: OnceLock<Anchor> = OnceLock::new();

/// So that a series may look a little before its own beginning without going below zero.
const HEADROOM_NS: u64 = 3_600_000_000_000;

fn anchor() -> &'static Anchor {
    ANCHOR.get_or_init(|| Anchor {
        instant: Instant::now(),
        unix_ns: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos()),
    })
}

/// Monotonic nanoseconds.
pub fn now_ns() -> u64 {
    let elapsed = anchor().instant.elapsed().as_nanos();
    u64::try_from(elapsed).unwrap_or(u64::MAX).saturating_add(HEADROOM_NS)
}

/// The wall time, in nanoseconds since 1970 (UTC), of an instant of [`now_ns`].
pub fn unix_ns(at_ns: u64) -> u128 {
    (anchor().unix_ns + u128::from(at_ns)).saturating_sub(u128::from(HEADROOM_NS))
}

/// How long the machine has been suspended since it started, ns: the clock of [`now_ns`] stands
/// still meanwhile, and what a card drew then belongs to nobody.
pub(crate) fn suspended_ns() -> u64 {
    use rustix::time::{ClockId, clock_gettime};
    let ns = |clock| {
        let now = clock_gettime(clock);
        now.tv_sec.saturating_mul(1_000_000_000).saturating_add(now.tv_nsec)
    };
    // In this order, so that the time between the calls cannot pass for a suspend.
    let monotonic = ns(ClockId::Monotonic);
    let boot = ns(ClockId::Boottime);
    u64::try_from(boot.saturating_sub(monotonic)).unwrap_or(0)
}
