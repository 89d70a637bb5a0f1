//! The driver library's C ABI: what makes this crate's cdylib a `libnvidia-ml.so.1`.
//!
//! `FAKEGPU_SCENARIO` names the scenario file, `FAKEGPU_EPOCH_NS` and `FAKEGPU_CONTROL` go before
//! what it says. Without a scenario the library behaves like one that finds no driver, so nothing
//! is simulated unless somebody asked for it; a scenario that cannot be read is said on standard
//! error, once. What a call shows is decided by [`crate::card`]; here it is only carried over:
//! calls that the scenario can answer in [`calls`], [`fields`] and [`processes`], every other
//! symbol of the API in [`unsupported`], where it answers NOT_SUPPORTED.

mod calls;
mod fields;
mod give;
mod library;
mod processes;
mod unsupported;
mod world;
