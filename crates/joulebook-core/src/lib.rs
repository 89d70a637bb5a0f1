//! The arithmetic of joulebook.
//!
//! From a register's readings to the energy of a window: quantities ([`units`]), what one more
//! reading means ([`register`]), the cumulative series (`series`), a window's estimate with its
//! bound (`estimate`), and the one place where a result gets its label (`grade`).
//!
//! Nothing here reads a clock, a file or a device, starts a thread or waits: every instant is an
//! argument (nanoseconds of one monotonic clock), so the same code runs on a live card, on a
//! recording and on a simulated card.

pub mod fault;
pub mod flags;
pub mod register;
pub mod ring;
pub mod units;

pub use fault::Fault;
pub use flags::Flags;
pub use units::{Energy, Power};
