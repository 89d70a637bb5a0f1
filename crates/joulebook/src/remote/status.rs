//! How the connection to an agent stands, for whoever wants to show it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Offset, RemoteError};

/// The state of one connection. Shared by all cards it reads.
#[derive(Debug)]
pub struct Status {
    endpoint: String,
    now: Mutex<Now>,
}

/// As it is now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Now {
    /// The agent and its version; absent for one that does not say (giul-agent).
    pub agent: Option<String>,
    /// What the agent calls its node.
    pub node: Option<String>,
    /// Readings come as a stream, as counters where the node has them; else power is asked for.
    pub streams: bool,
    /// Our clock less the agent's.
    pub offset: Option<Offset>,
    /// The shortest of the last round trips, ns.
    pub round_trip_ns: Option<u64>,
    /// Connections made so far.
    pub connections: u64,
    /// Why it is not connected, or could not be read last.
    pub error: Option<RemoteError>,
}

impl Status {
    pub(super) fn new(endpoint: &str) -> Self {
        Self { endpoint: endpoint.to_owned(), now: Mutex::default() }
    }

    /// The agent's address.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// As it is now.
    pub fn now(&self) -> Now {
        self.lock().clone()
    }

    pub(super) fn set(&self, change: impl FnOnce(&mut Now)) {
        change(&mut self.lock());
    }

    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
