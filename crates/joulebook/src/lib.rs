//! What a piece of work cost in joules, measured on your own cards.

pub mod clock;
mod occupancy;
pub mod pace;
pub mod reader;
mod signal;

pub use joulebook_core as core;
pub use reader::{Backend, Device, Process, Reader, Reading, Scope, Tenants, Throttle, Value};
