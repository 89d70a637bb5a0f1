//! Which power state a card was in, look by look.

use std::collections::VecDeque;

/// Changes that are kept.
const MOST_CHANGES: usize = 1024;

/// The power states of a card (P0 is 0), as far as they can be seen.
#[derive(Debug, Default)]
pub(crate) struct StateLog {
    changes: VecDeque<(u64, Option<u8>)>,
    /// The last look, ns.
    looked_ns: u64,
}

impl StateLog {
    /// Called by the recorder alone: what was seen at an instant.
    pub fn note(&mut self, at_ns: u64, state: Option<u8>) {
        self.looked_ns = at_ns;
        if self.changes.back().is_some_and(|(_, last)| *last == state) {
            return;
        }
        if self.changes.len() == MOST_CHANGES {
            self.changes.pop_front();
        }
        self.changes.push_back((at_ns, state));
    }

    /// The state that was seen last before an instant, or first of all.
    pub fn at(&self, at_ns: u64) -> Option<u8> {
        let after = self.changes.partition_point(|(from_ns, _)| *from_ns <= at_ns);
        self.changes.get(after.saturating_sub(1))?.1
    }

    /// No other state was seen from the last look before an instant on.
    pub fn is_same_since(&self, at_ns: u64) -> bool {
        self.changes.back().is_some_and(|(from_ns, _)| *from_ns <= at_ns)
    }

    /// The last look, ns; 0 before the first.
    pub fn looked_ns(&self) -> u64 {
        self.looked_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_holds_until_another_is_seen() {
        let mut log = StateLog::default();
        assert_eq!((log.at(5), log.is_same_since(5)), (None, false));
        for (at_ns, state) in [(10, Some(8)), (20, Some(8)), (30, Some(0)), (40, Some(0))] {
            log.note(at_ns, state);
        }
        let at: Vec<_> = [5, 10, 29, 30, 99].map(|at_ns| log.at(at_ns)).into();
        assert_eq!(at, [Some(8), Some(8), Some(8), Some(0), Some(0)]);
        assert_eq!(
            (log.is_same_since(29), log.is_same_since(30), log.looked_ns()),
            (false, true, 40)
        );
    }
}
