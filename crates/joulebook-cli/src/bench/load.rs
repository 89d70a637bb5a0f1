//! The load of a benchmark: requests to a server of the usual HTTP interface, in a closed loop or at
//! random times, and when each piece of each answer came.
//!
//! All instants are those of the meter's clock, so that tokens and joules of a window are cut at the
//! same places. What is random is drawn from the seed, the rung and the request's number alone, so
//! that a run can be repeated however its requests interleave.

mod address;
mod call;
mod lengths;
mod pieces;
mod plan;
mod pool;
mod prompt;
mod repeat;
mod tally;
mod target;
mod worker;

pub use address::Address;
pub use lengths::{LengthFile, LengthsError, Sizes};
pub use plan::{Load, Plan, Until};
pub use repeat::{Drive, Driven, Sight, Stage};
pub use tally::tally;
pub use target::{Refusal, Target};
pub use worker::Sent;
