//! What a piece of work cost in joules, measured on your own cards.

pub mod clock;
pub mod identity;
pub mod nvml;
mod occupancy;
pub mod pace;
pub mod reader;
mod signal;
pub mod tenancy;

pub use joulebook_core as core;
pub use reader::{Backend, Device, Process, Reader, Reading, Scope, Tenants, Throttle, Value};
