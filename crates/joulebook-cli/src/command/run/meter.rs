//! The meter of a run: this host's cards, or those of a node of the fleet's file.

use joulebook::{Idle, Meter, MeterError, Node, nodes::NodeEntry};

use super::Arguments;
use crate::context::{Context, Usage, is_usage};

/// The meter, and in words why it is none.
pub(super) fn of(
    arguments: &Arguments,
    context: &Context,
) -> anyhow::Result<(Meter, Option<String>)> {
    let nodes = match &arguments.node {
        Some(name) => there(arguments, name)?,
        None => vec![here(arguments)],
    };
    let (mut meters, mut trouble) = (Vec::new(), None);
    for node in &nodes {
        let found = match &context.profiles {
            Some(profiles) => Meter::for_node_with(node, profiles),
            None => Meter::for_node(node),
        };
        match found {
            Ok(meter) => meters.push(meter),
            Err(error) if is_usage(&error) => return Err(Usage(error.to_string()).into()),
            Err(error) => {
                trouble.get_or_insert_with(|| error.to_string());
                meters.push(Meter::none(node, MeterError::fault(&error)));
            }
        }
    }
    let meter = match meters.as_slice() {
        [only] => only.clone(),
        meters => Meter::joined(meters),
    };
    drop(meters);
    Ok((meter.with_hint(arguments.hint.unwrap_or(0.0)), trouble))
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
    // One floor for all of them, or one each: then they are one node.
    let gpus = cards.iter().flat_map(|card| card.gpus.iter().cloned()).collect();
    let first = cards.into_iter().next().unwrap_or_default();
    Ok(vec![Node { gpus, idle: idle(arguments), ..first }])
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
