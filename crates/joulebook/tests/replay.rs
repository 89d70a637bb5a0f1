//! Recordings: made-up logs with the traps of real ones, real ones where they are at hand, and any
//! bytes at all.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "the whole file is tests"
)]

#[path = "replay/every_trace.rs"]
mod every_trace;
#[path = "replay/formats.rs"]
mod formats;
#[path = "replay/made_up.rs"]
mod made_up;
#[path = "replay/properties.rs"]
mod properties;
#[path = "replay/refusals.rs"]
mod refusals;
#[path = "replay/support.rs"]
mod support;
#[path = "replay/traces.rs"]
mod traces;
