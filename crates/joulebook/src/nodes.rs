//! The fleet's file: which nodes there are, where their agents answer, and what is to be known of
//! each card.
//!
//! ```toml
//! [[node]]
//! name = "iris"                       # unique; what receipts say
//! endpoint = "http://10.0.0.7:9402"   # left out: this host
//! token_file = "iris.token"           # optional; beside this file
//!
//! [[node.card]]                       # left out: all cards of the node
//! gpu = 0                             # driver index, UUID or PCI address
//! idle_watts = 38.0                   # declared; left out: the measured floor
//! serving_match = "vllm"              # or serving_port = 8000, or serving_pid
//! contention_ignore = ["Xorg", "chrome"]
//! ```
//!
//! All of it is checked before anything is asked of anybody; what is wrong is said with its line.
//! Refused: keys that are not known (the nearest one that is gets named), two nodes of one name, a
//! card twice, addresses that are none, more than one way to tell the serving process.

mod check;
mod keys;

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use crate::node::Node;

/// What the file is called in the user's configuration folder.
pub const FILE: &str = "nodes.toml";

/// A node of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeEntry {
    /// Its name.
    pub name: String,
    /// Where its agent answers; none: it is this host.
    pub endpoint: Option<String>,
    /// The file that holds its agent's token.
    pub token_file: Option<PathBuf>,
    /// Its cards, each as a node of one card; none: all that it has.
    pub cards: Vec<Node>,
}

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum NodesError {
    /// It cannot be read.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Something in it is wrong.
    #[error("{}:{line}: {what}", path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong, and what to do.
        what: String,
    },
}

impl NodeEntry {
    /// One card of it, by the driver's index, UUID or PCI address, with nothing said of the card.
    pub fn card(&self, gpu: impl Into<String>) -> Node {
        Node {
            name: self.name.clone(),
            gpus: vec![gpu.into()],
            is_local: self.endpoint.is_none(),
            power_endpoint: self.endpoint.clone(),
            token_file: self.token_file.clone(),
            ..Node::default()
        }
    }
}

/// Where the file is where nobody names one: the user's configuration folder; `None` without a home.
pub fn default_path() -> Option<PathBuf> {
    let named = |variable: &str| env::var_os(variable).filter(|value| !value.is_empty());
    let folder = named("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| named("HOME").map(|home| Path::new(&home).join(".config")))?;
    Some(folder.join("joulebook").join(FILE))
}

/// Reads a file, and checks it.
pub fn read(path: &Path) -> Result<Vec<NodeEntry>, NodesError> {
    let text = fs::read_to_string(path)
        .map_err(|source| NodesError::Unreadable { path: path.to_owned(), source })?;
    parse(&text, path)
}

/// The nodes of a text, as if it stood in that file.
pub fn parse(text: &str, path: &Path) -> Result<Vec<NodeEntry>, NodesError> {
    check::nodes(text, path).map_err(|(at, what)| {
        let line = text.get(..at).unwrap_or(text).matches('\n').count() + 1;
        NodesError::Wrong { path: path.to_owned(), line, what }
    })
}

#[cfg(test)]
mod tests;
