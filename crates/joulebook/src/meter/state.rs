//! The state of a node's card now, for whoever is about to start something on it.
//!
//! These ask the driver, or another host's agent, on the caller's thread, unlike a meter: they are for
//! the moment before a model is started, not for the path of a request. Where the driver's library
//! cannot be used, `nvidia-smi` is asked.

use std::time::Duration;

use joulebook_core::Fault;

use super::{Meter, choose::Chosen};
use crate::{
    node::Node,
    nvml::{self, Answers, CardState, Driver, Fit, Memory, cards},
    reader::Usage,
    remote,
};

/// How long the program may take to show a card: its memory is looked at about once a second.
const ROWS: Duration = Duration::from_millis(2500);

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
    match cards(&driver) {
        Ok(inventory) if !inventory.cards.is_empty() => {
            let chosen = Chosen::of(node, inventory.cards.iter().map(Into::into).collect()).ok()?;
            nvml::state(&driver, chosen.uuids.first()?).ok()
        }
        _ => by_program(node),
    }
}

/// As the rows of `nvidia-smi` show it: waits for the first ones, at most for [`ROWS`].
fn by_program(node: &Node) -> Option<CardState> {
    let first = node.gpus.first()?.clone();
    let meter = Meter::for_node(&Node { name: node.name.clone(), ..Node::of(first) }).ok()?;
    let card = meter.cards().first()?;
    card.want_usage();
    let is_shown = || card.power().is_some() && card.usage() != Usage::default();
    card.signal.wait(ROWS, is_shown);
    let (usage, device) = (card.usage(), card.device());
    CardState::of(Answers {
        gpu: Some(device.index),
        name: Some(device.name.clone()),
        watts: card
            .power()
            .map(|(power, _)| power.watts())
            .ok_or_else(|| card.trouble().unwrap_or(Fault::NotReady)),
        memory: memory(usage).ok_or(Fault::NotReady),
        utilization_pct: usage.utilization_pct.ok_or(Fault::NotReady),
        compute_apps: card.residents_now().and_then(|now| now.processes),
    })
    .ok()
}

fn memory(usage: Usage) -> Option<Memory> {
    let (used_mib, total_mib) = (usage.used_mib?, usage.total_mib?);
    Some(Memory { used_mib, total_mib, free_mib: total_mib.saturating_sub(used_mib) })
}

/// Whether so much memory is free on the node's first card: yes, no (short by how much, held by
/// whom), or unknown.
pub fn fits(node: &Node, need_mib: u64) -> Fit {
    probe_node(node).map_or(Fit::Unknown, |state| nvml::fits(&state, need_mib))
}
