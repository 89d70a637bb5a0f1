//! The random numbers of a cell: its own, whichever other cells are run.

use super::{Cell, Drive, Polls, Register};
use crate::draw::Draw;

/// The stream of a cell.
pub(super) fn draw_of(seed: u64, cell: &Cell) -> Draw {
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
    let mut draw = Draw::new(seed);
    for word in [drive, polls, period_ns, lag_ns, cell.length_ns] {
        draw.turn(word);
    }
    draw
}
