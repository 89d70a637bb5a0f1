//! What a meter was made from: a node, the card behind a backend, or a backend of Python's.

use std::sync::Arc;

use pyo3::prelude::*;

use crate::{
    backends::Card,
    native::{Native, Wanted},
    node::{IdleFloor, Node, Said},
    python,
};

/// What is to be read of a backend: its card, where it is one of ours. Of others the node's card is
/// watched for who else is there, where the node names its own work.
pub fn wanted(
    backend: Option<&Bound<'_, PyAny>>,
    rules: Option<&Said>,
    idle: IdleFloor,
    joules_per_1k_hint: f64,
) -> PyResult<Wanted> {
    let card = backend.map(Card::behind).transpose()?.flatten();
    let Some(card) = card else {
        let watched = rules.filter(|rules| backend.is_some() && rules.watches_contention());
        let said = Said { idle, ..watched.cloned().unwrap_or_default() };
        return Ok(Wanted::node(said, joules_per_1k_hint));
    };
    let of_card = &card.get().native.wanted;
    let mut said = Said { idle, ..of_card.said.clone() };
    if let Some(rules) = rules {
        said = said.with_rules_of(rules);
    }
    Ok(Wanted { said, by_program: of_card.by_program, joules_per_1k_hint })
}

/// The native meter of a node, and whether the node names its own work. Of an object that is no node
/// there is none, and a person is told.
pub fn of_node(node: &Bound<'_, PyAny>, joules_per_1k_hint: f64) -> PyResult<(Arc<Native>, bool)> {
    if let Ok(node) = node.cast::<Node>() {
        let node = node.get();
        return Ok((node.native(joules_per_1k_hint), node.said.watches_contention()));
    }
    match Said::of(node).and_then(|said| said.idle.check().map(|()| said)) {
        Ok(said) => {
            let watches = said.watches_contention();
            Ok((Native::of(&said.wanted(joules_per_1k_hint)), watches))
        }
        Err(error) => {
            python::tell(node.py(), vec![format!("this node cannot be read: {error}")])?;
            Ok((Native::of(&Wanted::nothing(joules_per_1k_hint)), false))
        }
    }
}
