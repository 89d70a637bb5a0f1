//! What a meter was made from: a node, the card behind a backend, or a backend of Python's.

use std::sync::Arc;

use pyo3::prelude::*;

use crate::{
    backends::Card,
    native::{Asking, Native, Wanted},
    node::{IdleFloor, Node, Said},
    python,
};

/// What is to be read of a backend: its card, where it is one of ours. Of others the node's card is
/// watched for who else is there, where the node names its own work.
pub fn wanted(
    backend: Option<&Bound<'_, PyAny>>,
    rules: Option<&Said>,
    idle: IdleFloor,
    asking: Asking,
) -> PyResult<Wanted> {
    let card = backend.map(Card::behind).transpose()?.flatten();
    let Some(card) = card else {
        let watched = rules.filter(|rules| backend.is_some() && rules.watches_contention());
        let said = Said { idle, ..watched.cloned().unwrap_or_default() };
        return Ok(Wanted::node(said, asking));
    };
    let of_card = &card.get().native.wanted;
    let mut said = Said { idle, ..of_card.said.clone() };
    if let Some(rules) = rules {
        said = said.with_rules_of(rules);
    }
    Ok(Wanted { by_program: of_card.by_program, ..Wanted::node(said, asking) })
}

/// The native meter of a node, and whether the node names its own work. Of an object that is no node
/// there is none, and a person is told.
pub fn of_node(node: &Bound<'_, PyAny>, asking: Asking) -> PyResult<(Arc<Native>, bool)> {
    if let Ok(node) = node.cast::<Node>() {
        let node = node.get();
        return Ok((node.native(&asking), node.said.watches_contention()));
    }
    match Said::of(node).and_then(|said| said.idle.check().map(|()| said)) {
        Ok(said) => {
            let watches = said.watches_contention();
            Ok((Native::of(&Wanted::node(said, asking)), watches))
        }
        Err(error) => {
            python::tell(node.py(), vec![format!("this node cannot be read: {error}")])?;
            Ok((Native::of(&Wanted::nothing(asking.joules_per_1k_hint)), false))
        }
    }
}
