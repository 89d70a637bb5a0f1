//! Recordings: made-up logs with the traps of real ones, real ones where they are at hand, and any
//! bytes at all.

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
