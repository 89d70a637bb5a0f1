//! Who was at work on a card, look by look: the shares by which a tick is divided among tenants.
//!
//! Each look is about the time since the one before. A stretch is known where looks cover all of it
//! and everybody who was there at a look was there, or was told of, at the next: whoever leaves in
//! between takes what is known of its work along, and not told is not the same as idle.

use std::collections::{BTreeMap, VecDeque};

use joulebook_core::Fault;

use crate::reader::AtWork;

/// Looks that are kept: about two minutes.
const MOST_LOOKS: usize = 128;

/// The looks of a card.
#[derive(Debug, Default)]
pub(crate) struct WorkLog {
    looks: VecDeque<Look>,
    /// Up to when it has been looked, ns; none before the first look, which only begins.
    until_ns: Option<u64>,
    /// Who was there then.
    present: Vec<u32>,
    /// The card has said that it cannot tell.
    never: bool,
}

#[derive(Debug)]
struct Look {
    from_ns: u64,
    to_ns: u64,
    work: Option<Vec<AtWork>>,
}

/// What is known of a stretch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Each process's share, in one unit (% × µs); whoever is left out did no work.
    Known(BTreeMap<u32, u64>),
    /// A look that is still to come may tell.
    Pending,
    /// It cannot be told.
    Unknown,
}

impl WorkLog {
    /// Called by the recorder alone: what was told at `to_ns`, and who was there.
    pub fn note(&mut self, to_ns: u64, told: Result<Vec<AtWork>, Fault>, present: Vec<u32>) {
        self.never = told == Err(Fault::NotSupported);
        let is_told = |work: &[AtWork], pid: u32| work.iter().any(|one| one.pid == pid);
        let stayed = |work: &Vec<AtWork>| {
            self.present.iter().all(|pid| present.contains(pid) || is_told(work, *pid))
        };
        let work = told.ok().filter(stayed);
        self.present = present;
        let Some(from_ns) = self.until_ns.replace(to_ns) else { return };
        if self.looks.len() == MOST_LOOKS {
            self.looks.pop_front();
        }
        self.looks.push_back(Look { from_ns, to_ns, work });
    }

    /// Who was at work between two instants.
    pub fn between(&self, from_ns: u64, to_ns: u64) -> Work {
        if self.never {
            return Work::Unknown;
        }
        if self.until_ns.is_none_or(|until_ns| until_ns < to_ns) {
            return Work::Pending;
        }
        let first = self.looks.partition_point(|look| look.to_ns <= from_ns);
        let mut known = BTreeMap::new();
        let mut reached_ns = from_ns;
        for look in self.looks.range(first..).take_while(|look| look.from_ns < to_ns) {
            let Some(work) = look.work.as_ref().filter(|_| look.from_ns <= reached_ns) else {
                return Work::Unknown;
            };
            let length_ns = look.to_ns.min(to_ns).saturating_sub(look.from_ns.max(from_ns));
            for one in work {
                *known.entry(one.pid).or_default() += u64::from(one.percent) * (length_ns / 1000);
            }
            reached_ns = look.to_ns;
        }
        if reached_ns < to_ns { Work::Unknown } else { Work::Known(known) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn told(work: &[(u32, u32)]) -> Result<Vec<AtWork>, Fault> {
        Ok(work.iter().map(|(pid, percent)| AtWork { pid: *pid, percent: *percent }).collect())
    }

    /// Two processes that stay; one of them works in the second second.
    fn log() -> WorkLog {
        let mut log = WorkLog::default();
        log.note(SECOND, told(&[(1, 9)]), vec![1, 2]);
        log.note(2 * SECOND, told(&[(1, 60)]), vec![1, 2]);
        log.note(3 * SECOND, told(&[(1, 20), (2, 50)]), vec![1, 2]);
        log
    }

    fn known<const N: usize>(shares: [(u32, u64); N]) -> Work {
        Work::Known(BTreeMap::from(shares))
    }

    #[test]
    fn a_stretch_across_looks_is_weighed_by_time() {
        let log = log();
        assert_eq!(log.between(SECOND, 2 * SECOND), known([(1, 60_000_000)]));
        let across = log.between(SECOND + SECOND / 2, 2 * SECOND + SECOND / 2);
        assert_eq!(across, known([(1, 40_000_000), (2, 25_000_000)]));
    }

    #[test]
    fn before_the_first_look_and_where_one_failed_nothing_is_known() {
        let mut log = log();
        assert_eq!(log.between(SECOND / 2, 2 * SECOND), Work::Unknown);
        assert_eq!(log.between(2 * SECOND, 3 * SECOND + 1), Work::Pending);
        log.note(4 * SECOND, Err(Fault::Timeout), vec![1, 2]);
        log.note(5 * SECOND, told(&[]), vec![1, 2]);
        assert_eq!(log.between(2 * SECOND, 3 * SECOND + 1), Work::Unknown);
        assert_eq!(log.between(4 * SECOND, 5 * SECOND), known([]));
        log.note(6 * SECOND, Err(Fault::NotSupported), vec![]);
        assert_eq!(log.between(6 * SECOND, 9 * SECOND), Work::Unknown, "nobody waits for that");
    }

    #[test]
    fn who_left_is_not_taken_for_idle() {
        let mut log = log();
        log.note(4 * SECOND, told(&[(1, 20)]), vec![1]);
        assert_eq!(log.between(3 * SECOND, 4 * SECOND), Work::Unknown);
        log.note(5 * SECOND, told(&[(1, 20)]), vec![1, 3]);
        assert_eq!(log.between(4 * SECOND, 5 * SECOND), known([(1, 20_000_000)]));
        // It is gone by now, but was told of.
        log.note(6 * SECOND, told(&[(3, 70)]), vec![1]);
        assert_eq!(log.between(5 * SECOND, 6 * SECOND), known([(3, 70_000_000)]));
    }
}
