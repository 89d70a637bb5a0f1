//! What a piece of work runs on: one card or several, what they draw at rest, and whose work is
//! ours.

use crate::tenancy::{Own, Rules};

/// The cards of a window, and how to judge it.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// What receipts and reports call it.
    pub name: String,
    /// The cards: a driver's index (not CUDA's), a UUID or the beginning of one, a PCI address, or
    /// `cuda:N`. Several for work that spans several; their energies add.
    pub gpus: Vec<String>,
    /// What the cards draw at rest, W.
    pub idle: Idle,
    /// A part of the name of our own serving process; more than one tree of such processes on a
    /// card, and none can be taken for ours.
    pub serving_match: Option<String>,
    /// Our own serving process.
    pub serving_pid: Option<u32>,
    /// The TCP port our own serving process listens on.
    pub serving_port: Option<u16>,
    /// A process that holds less than this is no tenant, MiB.
    pub contention_floor_mib: u64,
    /// Neither is one whose name contains one of these.
    pub contention_ignore: Vec<String>,
    /// The trees of processes that are ours where nothing above names them; empty: this process's.
    pub own_trees: Vec<u32>,
}

/// The idle floor of a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Idle {
    /// What is stored of each card, measured on request. Where nothing is, nothing can be charged
    /// above idle.
    #[default]
    Stored,
    /// Declared for all cards together, W.
    Sum(f64),
    /// Declared for each card, in the node's order, W.
    Each(Vec<f64>),
}

impl Default for Node {
    fn default() -> Self {
        Self {
            name: String::new(),
            gpus: vec!["0".to_owned()],
            idle: Idle::Stored,
            serving_match: None,
            serving_pid: None,
            serving_port: None,
            contention_floor_mib: 512,
            contention_ignore: Vec::new(),
            own_trees: Vec::new(),
        }
    }
}

impl Node {
    /// This host's card of that number, address or UUID.
    pub fn of(gpu: impl Into<String>) -> Self {
        Self { gpus: vec![gpu.into()], ..Self::default() }
    }

    /// The same, with the idle floor of its cards together, W.
    #[must_use]
    pub fn idle_watts(self, watts: f64) -> Self {
        Self { idle: Idle::Sum(watts), ..self }
    }

    /// The rules its tenants are judged by.
    pub(crate) fn rules(&self) -> Rules {
        let own_trees = if self.own_trees.is_empty() {
            vec![std::process::id()]
        } else {
            self.own_trees.clone()
        };
        let own = match (self.serving_pid, self.serving_port) {
            (Some(pid), _) => Own::Serving(vec![pid]),
            (None, Some(port)) => Own::Listening(port),
            (None, None) => Own::choose(self.serving_match.as_deref(), None, own_trees),
        };
        Rules {
            own,
            contention_floor_mib: self.contention_floor_mib,
            contention_ignore: self.contention_ignore.clone(),
        }
    }
}
