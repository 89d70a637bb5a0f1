//! What a piece of work cost in joules, measured on your own cards.
//!
//! A [`Meter`] reads the cards of a [`Node`], once, however many [`Window`]s are open on them. A
//! window opens, may be marked, and closes; what it cost is asked for at once
//! ([`Pending::now`]) or when the card has published past its end ([`Pending::settle`], or
//! `.await`). Every answer is a [`Measurement`]: joules with the method they were got by, their
//! source and their bound, or a word for why they are not known.
//!
//! Nothing in the metering path raises into, blocks or slows the caller's work: a caller reads the
//! clock and a ring in memory; only a card's own recorder thread talks to the driver.

pub mod amd;
pub mod books;
mod card;
pub mod clock;
mod deadline;
pub mod fork;
pub mod identity;
pub mod idle;
mod meter;
mod node;
pub mod nodes;
pub mod nvml;
mod occupancy;
pub mod pace;
pub mod probe;
pub mod profile;
pub mod rapl;
pub mod reader;
mod recorder;
pub mod remote;
pub mod replay;
mod signal;
pub mod smi;
pub mod sources;
pub mod tenancy;
mod window;
pub mod wire;

pub use card::{Card, Cost, Tally, Told};
pub use joulebook_core as core;
pub use joulebook_core::{Energy, Fault, Measurement, Method, Power, Source, Tenancy};
pub use meter::{Meter, MeterError, fits, probe_node, profile_of, release, watch};
pub use node::{Idle, Node};
pub use reader::{
    AtWork, Backend, Device, Process, Reader, Reading, Scope, Tenants, Throttle, Usage, Value,
};
pub use recorder::{Keep, Settings, record};
pub use window::{Pending, Window};
