//! What one rung asks of a target.

use std::time::Duration;

use super::Sizes;
use crate::bench::record::Kind;

/// How requests follow each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// So many in flight, each followed by the next.
    Closed(u32),
    /// So many a second at random times, whatever is in flight.
    Open(f64),
}

/// When a window closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// When so many requests that were sent in it are over.
    Requests(u64),
    /// After that time.
    Time(Duration),
}

/// A rung's plan; its repeats have the same one.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What it is.
    pub kind: Kind,
    /// How long its prompts and answers are.
    pub sizes: Sizes,
    /// When its window closes.
    pub until: Until,
    /// Load before the window.
    pub warm_up: Duration,
    /// Load after it.
    pub cool_down: Duration,
}

impl Plan {
    /// How its requests follow each other.
    pub const fn load(&self) -> Load {
        match self.kind {
            Kind::ClosedLoop { concurrency }
            | Kind::PrefillPoint { concurrency }
            | Kind::DecodePoint { concurrency } => Load::Closed(concurrency),
            Kind::Rate { requests_per_s } => Load::Open(requests_per_s),
            Kind::Floor | Kind::Command => Load::Closed(1),
        }
    }
}
