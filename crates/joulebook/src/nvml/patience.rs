//! When a thing that failed may be tried again: pure, the clock is an argument.
//!
//! Nothing here remembers a failure for ever, and nothing here waits: who asks too early is told
//! "not yet" and gets the last error.

use std::time::{Duration, Instant};

/// Back-off: the first retry soon, each later one after twice the time, up to a limit.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
    last: Option<Instant>,
}

impl Backoff {
    const FIRST: Duration = Duration::from_millis(250);
    const LIMIT: Duration = Duration::from_secs(16);

    /// True when a try is allowed now.
    pub(super) fn may_try(&self, now: Instant) -> bool {
        self.last.is_none_or(|last| now.saturating_duration_since(last) >= self.wait())
    }

    /// A try failed.
    pub(super) fn failed(&mut self, now: Instant) {
        self.failures = self.failures.saturating_add(1);
        self.last = Some(now);
    }

    fn wait(&self) -> Duration {
        let doublings = self.failures.saturating_sub(1).min(16);
        Self::FIRST.saturating_mul(1 << doublings).min(Self::LIMIT)
    }
}

/// When a card that fails again and again is looked for anew: after three failures in a row, then
/// at most once in two seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reacquire {
    failures: u32,
    last: Option<Instant>,
}

impl Reacquire {
    const AFTER: u32 = 3;
    const EVERY: Duration = Duration::from_secs(2);

    /// A reading came.
    pub(super) fn succeeded(&mut self) {
        *self = Self::default();
    }

    /// A reading failed; true when the card is to be looked for anew.
    pub(super) fn failed(&mut self, now: Instant) -> bool {
        self.failures = self.failures.saturating_add(1);
        let due = self.failures >= Self::AFTER
            && self.last.is_none_or(|last| now.saturating_duration_since(last) >= Self::EVERY);
        if due {
            self.last = Some(now);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backs_off_and_never_for_ever() {
        let start = Instant::now();
        let mut backoff = Backoff::default();
        assert!(backoff.may_try(start));
        let mut now = start;
        let mut tries = 0;
        // Asked each 100 ms for two minutes.
        while now < start + Duration::from_secs(120) {
            if backoff.may_try(now) {
                tries += 1;
                backoff.failed(now);
            }
            now += Duration::from_millis(100);
        }
        // 0, 0.3, 0.8, 1.8, 3.8, 7.8, 15.8, then each 16 s.
        assert_eq!(tries, 13);
        assert!(!backoff.may_try(now - Duration::from_millis(100)) || tries == 13);
        assert!(backoff.may_try(now + Backoff::LIMIT));
    }

    #[test]
    fn a_card_is_looked_for_after_three_failures_and_then_seldom() {
        let start = Instant::now();
        let mut reacquire = Reacquire::default();
        assert!(!reacquire.failed(start));
        assert!(!reacquire.failed(start));
        assert!(reacquire.failed(start));
        assert!(!reacquire.failed(start + Duration::from_secs(1)));
        assert!(reacquire.failed(start + Duration::from_secs(2)));
        reacquire.succeeded();
        assert!(!reacquire.failed(start + Duration::from_secs(9)));
    }
}
