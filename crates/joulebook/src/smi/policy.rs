//! How the tool is asked next, after a call of it has ended: pure, and never back to back.
//!
//! A loop that dies, hangs or shows nothing any more is started again after a wait that doubles up
//! to 16 s; one that began well and then went bad has shown that its kind goes bad (a good first
//! row, then `[Unknown Error]` for ever, is real), and single calls take its place until those
//! fail, or for five minutes.

use std::time::Duration;

use joulebook_core::Fault;

/// How the tool is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Once, and it prints for ever.
    Loop,
    /// Once for each reading.
    Single,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Why it was no good; `None` of a single call that showed what it should.
    pub fault: Option<Fault>,
    /// How often it showed every card.
    pub ticks: u64,
    /// How long it ran.
    pub ran: Duration,
}

/// What has happened so far.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    mode: Mode,
    failures: u32,
    /// Loops that began well and went bad, one after the other.
    spoiled: u32,
    singles: u32,
}

const FIRST_WAIT: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(16);
/// Ticks after which a loop has held.
const HELD: u64 = 100;
/// Single calls between two of which there is at least this …
const SINGLE_EVERY: Duration = Duration::from_secs(1);
/// … and so many times what a call takes.
const SINGLE_SHARE: u32 = 4;
/// Good single calls after which the loop is tried again.
const SINGLES: u32 = 300;

impl Default for Policy {
    fn default() -> Self {
        Self { mode: Mode::Loop, failures: 0, spoiled: 0, singles: 0 }
    }
}

impl Policy {
    /// How it is asked now.
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// How long a first row may take: longer where it has been too slow already, so that a host
    /// whose every call takes long is read in the end.
    pub const fn first_row(&self) -> Duration {
        match self.failures {
            0 => Duration::from_secs(3),
            1 => Duration::from_secs(10),
            _ => Duration::from_secs(30),
        }
    }

    /// A call has ended: how long to wait before the next.
    pub fn ended(&mut self, ended: Ended) -> Duration {
        match self.mode {
            Mode::Loop => {
                if ended.ticks >= HELD {
                    (self.failures, self.spoiled) = (0, 0);
                }
                self.spoiled = if ended.ticks > 0 { self.spoiled + 1 } else { 0 };
                let bad_cells = ended.ticks > 0 && ended.fault == Some(Fault::Unknown);
                if bad_cells || self.spoiled >= 2 {
                    (self.mode, self.singles) = (Mode::Single, 0);
                }
                self.failed()
            }
            Mode::Single => {
                self.singles = self.singles.saturating_add(1);
                if ended.fault.is_none() {
                    self.failures = 0;
                    if self.singles >= SINGLES {
                        (self.mode, self.spoiled) = (Mode::Loop, 0);
                    }
                    return SINGLE_EVERY.max(ended.ran * SINGLE_SHARE);
                }
                let wait = self.failed();
                if self.failures.is_multiple_of(4) {
                    (self.mode, self.spoiled) = (Mode::Loop, 0);
                }
                wait
            }
        }
    }

    fn failed(&mut self) -> Duration {
        let wait = FIRST_WAIT.saturating_mul(1 << self.failures.min(8)).min(LONGEST_WAIT);
        self.failures = self.failures.saturating_add(1);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(fault: Option<Fault>, ticks: u64) -> Ended {
        Ended { fault, ticks, ran: Duration::from_millis(30) }
    }

    #[test]
    fn a_loop_whose_cells_go_bad_gives_way_to_single_calls() {
        let mut policy = Policy::default();
        policy.ended(ended(Some(Fault::Unknown), 500));
        assert_eq!(policy.mode(), Mode::Single);
        for _ in 1..SINGLES {
            assert!(policy.ended(ended(None, 1)) >= SINGLE_EVERY);
            assert_eq!(policy.mode(), Mode::Single);
        }
        policy.ended(ended(None, 1));
        assert_eq!(policy.mode(), Mode::Loop, "tried again after five minutes");
    }

    #[test]
    fn a_loop_that_dies_is_started_again_and_given_up_when_it_keeps_dying() {
        let mut policy = Policy::default();
        policy.ended(ended(Some(Fault::Timeout), 3));
        assert_eq!(policy.mode(), Mode::Loop);
        policy.ended(ended(Some(Fault::Timeout), 3));
        assert_eq!(policy.mode(), Mode::Single);
        let mut steady = Policy::default();
        for _ in 0..10 {
            steady.ended(ended(Some(Fault::Timeout), HELD));
            assert_eq!(steady.mode(), Mode::Loop, "it held for long each time");
        }
    }

    #[test]
    fn sampler_time_03_waits_double_and_are_never_nothing() {
        let mut policy = Policy::default();
        let waits: Vec<u64> = (0..9)
            .map(|_| policy.ended(ended(Some(Fault::Timeout), 0)).as_millis() as u64)
            .collect();
        assert_eq!(waits, [250, 500, 1000, 2000, 4000, 8000, 16_000, 16_000, 16_000]);
        assert_eq!(policy.mode(), Mode::Loop, "nothing was seen, so nothing speaks for singles");
        assert_eq!(policy.first_row(), Duration::from_secs(30));
        let slow = Ended { fault: None, ticks: 1, ran: Duration::from_secs(6) };
        let mut single = Policy { mode: Mode::Single, ..Policy::default() };
        assert_eq!(single.ended(slow), Duration::from_secs(24));
    }
}
