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
/// two seconds later, four, eight, up to each 32.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reacquire {
    failures: u32,
    looks: u32,
    last: Option<Instant>,
}

impl Reacquire {
    const AFTER: u32 = 3;
    const FIRST: Duration = Duration::from_secs(2);
    const LIMIT: Duration = Duration::from_secs(32);

    /// A reading came.
    pub(super) fn succeeded(&mut self) {
        *self = Self::default();
    }

    /// A reading failed; true when the card is to be looked for anew.
    pub(super) fn failed(&mut self, now: Instant) -> bool {
        self.failures = self.failures.saturating_add(1);
        let wait = Self::FIRST.saturating_mul(1 << self.looks.saturating_sub(1).min(8));
        let wait = wait.min(Self::LIMIT);
        let due = self.failures >= Self::AFTER
            && self.last.is_none_or(|last| now.saturating_duration_since(last) >= wait);
        if due {
            self.looks = self.looks.saturating_add(1);
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
        assert!(backoff.may_try(now + Backoff::LIMIT));
    }

    #[test]
    fn a_card_is_looked_for_after_three_failures_and_then_seldom() {
        let start = Instant::now();
        let mut reacquire = Reacquire::default();
        assert!(!reacquire.failed(start));
        assert!(!reacquire.failed(start));
        assert!(reacquire.failed(start));
        let looks: Vec<u64> = (1..=130)
            .filter(|seconds| reacquire.failed(start + Duration::from_secs(*seconds)))
            .collect();
        assert_eq!(looks, [2, 6, 14, 30, 62, 94, 126]);
        reacquire.succeeded();
        assert!(!reacquire.failed(start + Duration::from_secs(200)));
    }
}
