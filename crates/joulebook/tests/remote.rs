//! Cards of other hosts: through a made-up agent that can be made to misbehave, and over a slow way.
//!
//! The card is a simulated one that this process records itself, so that a remote window stands
//! beside the local one and both beside the truth. The agent's clock is its own.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "the file is tests"
)]

#[cfg(test)]
mod remote {
    #[path = "../meter/bench.rs"]
    #[allow(dead_code, reason = "shared with the tests of local meters")]
    mod bench;

    mod addresses;
    mod agent;
    mod bounds;
    mod faults;
    #[path = "../../examples/support/relay.rs"]
    mod relay;
    mod stream;
    mod tenants;
}
