//! The meter of a run: this host's cards, or those of a node of the fleet's file.

use std::iter::repeat_n;

use joulebook::{Idle, Meter, MeterError, Node, nodes::NodeEntry};

use super::Arguments;
use crate::context::{Context, Usage, is_usage};

/// What a run is measured with.
pub(super) struct Found {
    pub meter: Meter,
    /// Whether the floor of each of its cards was declared; of each node's, where nothing is read.
    pub declared: Vec<bool>,
    /// In words why a card is not read.
    pub trouble: Option<String>,
}

/// The meter of a run.
pub(super) fn of(arguments: &Arguments, context: &Context) -> anyhow::Result<Found> {
    let nodes = match &arguments.node {
        Some(name) => there(arguments, name)?,
        None => vec![here(arguments)],
    };
    let (mut meters, mut declared, mut trouble) = (Vec::new(), Vec::new(), None);
    for node in &nodes {
        let found = match &context.profiles {
            Some(profiles) => Meter::for_node_with(node, profiles),
            None => Meter::for_node(node),
        };
        let meter = match found {
            Ok(meter) => meter,
            Err(error) if is_usage(&error) => return Err(Usage(error.to_string()).into()),
            Err(error) => {
                trouble.get_or_insert_with(|| error.to_string());
                Meter::none(node, MeterError::fault(&error))
            }
        };
        declared.extend(repeat_n(node.idle != Idle::Stored, meter.cards().len().max(1)));
        meters.push(meter);
    }
    let meter = match meters.as_slice() {
        [only] => only.clone(),
        meters => Meter::joined(meters),
    };
    drop(meters);
    let meter = meter.with_hint(arguments.hint.unwrap_or(0.0));
    Ok(Found { meter, declared, trouble })
}

fn here(arguments: &Arguments) -> Node {
    let blank = Node::default();
    Node {
        gpus: if arguments.gpus.is_empty() { blank.gpus } else { arguments.gpus.clone() },
        idle: idle(arguments),
        serving_match: arguments.serving_match.clone(),
        // A command's processes descend from this one.
        own_trees: arguments.pid.into_iter().collect(),
        ..Node::default()
    }
}

/// The cards of that node; all that the file names, or its first.
fn there(arguments: &Arguments, name: &str) -> anyhow::Result<Vec<Node>> {
    let nodes = arguments.file.read()?;
    let Some(entry) = nodes.iter().find(|entry| entry.name == name) else {
        let names: Vec<&str> = nodes.iter().map(|entry| entry.name.as_str()).collect();
        let what = format!("there is no node {name:?}; the file has {}", names.join(", "));
        return Err(Usage(what).into());
    };
    let mut cards: Vec<Node> = match (arguments.gpus.as_slice(), entry.cards.as_slice()) {
        ([], []) => vec![entry.card("0")],
        ([], cards) => cards.to_vec(),
        (asked, _) => asked.iter().map(|gpu| card(entry, gpu)).collect(),
    };
    if let Some(serving_match) = &arguments.serving_match {
        for card in &mut cards {
            (card.serving_port, card.serving_pid) = (None, None);
            card.serving_match = Some(serving_match.clone());
        }
    }
    if arguments.idle.is_empty() {
        return Ok(cards);
    }
    if arguments.idle.len() == cards.len() {
        for (card, watts) in cards.iter_mut().zip(&arguments.idle) {
            card.idle = Idle::Sum(*watts);
        }
        return Ok(cards);
    }
    // One floor for all of them: then they are one node, which has one set of rules.
    if !cards.windows(2).all(|pair| matches!(pair, [one, other] if is_judged_alike(one, other))) {
        let what = "the file of nodes says of each card whose work on it is ours, which one sum of \
                    --idle cannot keep apart; give one floor for each card (--idle W,W)";
        return Err(Usage(what.to_owned()).into());
    }
    let gpus = cards.iter().flat_map(|card| card.gpus.iter().cloned()).collect();
    let first = cards.into_iter().next().unwrap_or_default();
    Ok(vec![Node { gpus, idle: idle(arguments), ..first }])
}

/// The same tenants would be ours, and the same ones nobody.
fn is_judged_alike(one: &Node, other: &Node) -> bool {
    (one.serving_pid, one.serving_port) == (other.serving_pid, other.serving_port)
        && one.serving_match == other.serving_match
        && one.contention_ignore == other.contention_ignore
}

/// A card of a node as the file describes it, else with nothing said of it.
fn card(entry: &NodeEntry, gpu: &str) -> Node {
    let known = entry.cards.iter().find(|card| card.gpus.iter().any(|known| known == gpu));
    known.cloned().unwrap_or_else(|| entry.card(gpu))
}

fn idle(arguments: &Arguments) -> Idle {
    match arguments.idle.as_slice() {
        [] => Idle::Stored,
        [sum] => Idle::Sum(*sum),
        each => Idle::Each(each.to_vec()),
    }
}
