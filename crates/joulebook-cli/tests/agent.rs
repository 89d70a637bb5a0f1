//! The agent as its clients meet it, on the lab's driver library and its `nvidia-smi`: shapes,
//! streams, metrics, limits, faults, its beginning and its end.
//!
//! Python clients come from `./test`, as does Prometheus; without them their tests say that they are
//! skipped.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "the file is tests"
)]

#[cfg(test)]
mod agent {
    mod cards;
    mod client;
    mod faults;
    mod life;
    mod limits;
    mod metrics;
    mod peers;
    mod prometheus;
    mod server;
    mod shapes;
    mod stream;
    mod token;

    #[path = "../command/bench.rs"]
    #[allow(dead_code, reason = "made for another file of tests")]
    mod bench;
}
