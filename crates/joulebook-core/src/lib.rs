//! The arithmetic of joulebook.
//!
//! From a register's readings to the energy of a window: quantities ([`units`]), what one more
//! reading means ([`register`]), the cumulative series ([`series`]) in its ring ([`ring`]), a
//! window's estimate with its bound ([`estimate`]), the one place where a result gets
//! its label ([`grade`](grade::grade)), and what it is written as ([`measurement`]).
//!
//! Nothing here reads a clock, a file or a device, starts a thread or waits: every instant is an
//! argument (nanoseconds of one monotonic clock), so the same code runs on a live card, on a
//! recording and on a simulated card.

pub mod answer;
pub mod apportion;
pub mod estimate;
pub mod fault;
pub mod flags;
pub mod grade;
pub mod idle;
pub mod keeper;
pub mod ledger;
pub mod measurement;
pub mod receipt;
pub mod register;
pub mod ring;
pub mod series;
pub mod units;

pub use fault::Fault;
pub use flags::Flags;
pub use measurement::{Measurement, Method, Scope, Source, Tenancy};
pub use units::{Energy, Power};
