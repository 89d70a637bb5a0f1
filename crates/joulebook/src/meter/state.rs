//! The state of a node's card now, for whoever is about to start something on it.
//!
//! These ask the driver, or another host's agent, on the caller's thread, unlike a meter: they are for the moment before a
//! model is started, not for the path of a request.

use super::choose::Chosen;
use crate::{
    node::Node,
    nvml::{self, CardState, Driver, Fit, cards},
    remote,
};

/// The state of the node's first card; `None` when it cannot be seen, which is not "fine".
///
/// ```no_run
/// use joulebook::{Node, nvml::Fit};
///
/// let node = Node::of("0");
/// if let Fit::No { short_by_mib, held_by } = joulebook::fits(&node, 40_000) {
///     eprintln!("{short_by_mib} MiB are missing; the card is held by {}", held_by.join(", "));
/// }
/// println!("{:?}", joulebook::probe_node(&node).and_then(|card| card.memory_free_mib));
/// ```
pub fn probe_node(node: &Node) -> Option<CardState> {
    let here = node.is_local.then(|| here(node)).flatten();
    let there = || node.power_endpoint.as_ref().and_then(|_| remote::state(node).ok());
    here.or_else(there)
}

fn here(node: &Node) -> Option<CardState> {
    let driver = Driver::shared();
    let inventory = cards(&driver).ok()?;
    let chosen = Chosen::of(node, inventory.cards.iter().map(Into::into).collect()).ok()?;
    nvml::state(&driver, chosen.uuids.first()?).ok()
}

/// Whether so much memory is free on the node's first card: yes, no (short by how much, held by
/// whom), or unknown.
pub fn fits(node: &Node, need_mib: u64) -> Fit {
    probe_node(node).map_or(Fit::Unknown, |state| nvml::fits(&state, need_mib))
}
