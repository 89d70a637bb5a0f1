//! Numbers that look random and are the same on every machine.

use super::{Cell, Drive, Polls, Register};

/// A stream of numbers (SplitMix64).
pub(super) struct Draw(u64);

impl Draw {
    /// The stream of a cell: its own, whichever other cells are run.
    pub fn new(seed: u64, cell: &Cell) -> Self {
        let drive = match cell.drive {
            Drive::Step => 1,
            Drive::Burst => 2,
        };
        let polls = match cell.polls {
            Polls::Unprobed => 1,
            Polls::Probed => 2,
        };
        let (period_ns, lag_ns) = match cell.register {
            Register::Counter { period_ns, lag_ns } => (period_ns, lag_ns),
            Register::Gauge => (0, 0),
        };
        let mut draw = Self(seed);
        for word in [drive, polls, period_ns, lag_ns, cell.length_ns] {
            draw.0 ^= word;
            draw.0 = draw.next();
        }
        draw
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let value = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    /// A number from 0 to one less than `end`, each as likely.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }
}
