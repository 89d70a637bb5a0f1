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
