//! NVIDIA cards, through the driver's own library.
//!
//! Decides which call of the library a quantity is read by, and what its errors mean; says which
//! call it was. Does not decide whether a value is plausible (the core does) or whether a counter
//! can be trusted (the probe does).
//!
//! Invariants: what a card does not support is remembered per card and call, every other failure is
//! returned and tried again at the next reading; no lock is held across a call into the library.
//! Refused: a number in place of a failed reading.

mod cards;
mod counter;
mod driver;
mod fault;
mod gauge;
mod names;
mod patience;
mod raw;
mod session;
mod slow;
mod state;
mod support;
mod tenants;

pub(crate) use cards::averaging_ns;
pub use cards::{CardInfo, Inventory, cards};
pub use counter::NvmlCounter;
pub(crate) use driver::DRIVERS;
pub use driver::{Driver, LIBRARY_VARIABLE};
pub use fault::{LoadError, explain};
pub use gauge::{NvmlGauge, PowerField};
pub(crate) use names::{process_name, program_of};
pub use state::{Answers, CardState, Fit, Memory, fits, state};
pub use tenants::{NvmlTenants, PidNamespace, Seen, known_mib};
