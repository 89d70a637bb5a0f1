//! What a piece of work runs on: one card or several, here or on another host, what they draw at
//! rest, and whose work is ours.

use std::{path::PathBuf, time::Duration};

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
    /// Our own serving process, by its id on the cards' host.
    pub serving_pid: Option<u32>,
    /// The TCP port of the cards' host that our own serving process listens on.
    pub serving_port: Option<u16>,
    /// A process that holds less than this is no tenant, MiB.
    pub contention_floor_mib: u64,
    /// Neither is one whose name contains one of these.
    pub contention_ignore: Vec<String>,
    /// The trees of processes that are ours where nothing above names them; empty: this process's.
    pub own_trees: Vec<u32>,
    /// The cards are this host's: they are read here where that is possible. Else the endpoint reads
    /// them, whatever this host has.
    pub is_local: bool,
    /// The agent on the cards' own host, `http://host:9402`: ours, or a giul-agent.
    pub power_endpoint: Option<String>,
    /// The file that holds the agent's token.
    pub token_file: Option<PathBuf>,
    /// How long the agent may take to answer.
    pub timeout: Duration,
    /// How often an agent without a stream is asked.
    pub interval: Duration,
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
            is_local: true,
            power_endpoint: None,
            token_file: None,
            timeout: Duration::from_secs(2),
            interval: Duration::from_millis(250),
        }
    }
}

impl Node {
    /// This host's card of that number, address or UUID.
    pub fn of(gpu: impl Into<String>) -> Self {
        Self { gpus: vec![gpu.into()], ..Self::default() }
    }

    /// That card of the host whose agent answers there (`http://host:9402`).
    pub fn at(endpoint: impl Into<String>, gpu: impl Into<String>) -> Self {
        Self { is_local: false, power_endpoint: Some(endpoint.into()), ..Self::of(gpu) }
    }

    /// The same, with the idle floor of its cards together, W.
    #[must_use]
    pub fn idle_watts(self, watts: f64) -> Self {
        Self { idle: Idle::Sum(watts), ..self }
    }

    /// The rules that the tenants of one of its cards are judged by. A card of another host has
    /// that host's processes, among which this one's tree is not.
    pub(crate) fn rules(&self, elsewhere: bool) -> Rules {
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
        let own = match own {
            Own::Trees(_) if elsewhere => Own::Elsewhere,
            own => own,
        };
        Rules {
            own,
            contention_floor_mib: self.contention_floor_mib,
            contention_ignore: self.contention_ignore.clone(),
        }
    }
}
