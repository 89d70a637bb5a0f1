//! The time of a simulated machine: ns from its epoch, on a clock that is set by hand or on one of
//! the system's.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use crate::scenario::ClockKind;

/// A clock. Clones show the same time.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    Virtual(Arc<AtomicI64>),
    System { kind: ClockKind, epoch_ns: i64 },
}

impl Clock {
    /// A clock that stands at 0 until it is set or advanced.
    pub fn simulated() -> Self {
        Self(Source::Virtual(Arc::default()))
    }

    /// The system's monotonic clock; its epoch is now.
    pub fn monotonic() -> Self {
        Self::system(ClockKind::Monotonic, system_ns(ClockKind::Monotonic))
    }

    /// One of the system's clocks, with a given epoch on it.
    pub const fn system(kind: ClockKind, epoch_ns: i64) -> Self {
        Self(Source::System { kind, epoch_ns })
    }

    /// Now, ns from the epoch.
    pub fn now_ns(&self) -> i64 {
        match &self.0 {
            Source::Virtual(now) => now.load(Ordering::Acquire),
            Source::System { kind, epoch_ns } => system_ns(*kind).saturating_sub(*epoch_ns),
        }
    }

    /// The epoch on the system's clock, ns; 0 for a clock that is set by hand.
    pub const fn epoch_ns(&self) -> i64 {
        match &self.0 {
            Source::Virtual(_) => 0,
            Source::System { epoch_ns, .. } => *epoch_ns,
        }
    }

    /// Sets a simulated clock; a system clock does not obey.
    pub fn set_ns(&self, t_ns: i64) {
        if let Source::Virtual(now) = &self.0 {
            now.store(t_ns, Ordering::Release);
        }
    }

    /// Lets time pass: a simulated clock is advanced, on a system clock the caller sleeps.
    pub fn advance_ns(&self, by_ns: i64) {
        match &self.0 {
            Source::Virtual(now) => {
                now.fetch_add(by_ns, Ordering::AcqRel);
            }
            Source::System { .. } => {
                std::thread::sleep(Duration::from_nanos(u64::try_from(by_ns).unwrap_or(0)));
            }
        }
    }
}

/// A system clock's reading, ns.
#[allow(unsafe_code)]
pub fn system_ns(kind: ClockKind) -> i64 {
    let id = match kind {
        ClockKind::Monotonic => libc::CLOCK_MONOTONIC,
        ClockKind::Realtime => libc::CLOCK_REALTIME,
    };
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec of ours that lives past the call; the clock ids exist
    // everywhere, so the call cannot fail.
    unsafe { libc::clock_gettime(id, &mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}
