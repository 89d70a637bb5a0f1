//! From the text of the file to nodes, with the place of whatever is wrong.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{NodeEntry, keys};
use crate::{
    node::{Idle, Node},
    remote,
};

/// Where in the text, and what.
pub(super) type Wrong = (usize, String);

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    node: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    name: Spanned<String>,
    endpoint: Option<Spanned<String>>,
    token_file: Option<Spanned<String>>,
    #[serde(default)]
    card: Vec<Card>,
}

#[derive(Deserialize)]
struct Card {
    gpu: Spanned<Gpu>,
    idle_watts: Option<Spanned<f64>>,
    serving_match: Option<Spanned<String>>,
    serving_port: Option<Spanned<i64>>,
    serving_pid: Option<Spanned<i64>>,
    #[serde(default)]
    contention_ignore: Vec<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Gpu {
    Index(u32),
    Name(String),
}

pub(super) fn nodes(text: &str, path: &Path) -> Result<Vec<NodeEntry>, Wrong> {
    let wrong = |error: toml::de::Error| {
        let at = error.span().map_or(0, |span| span.start);
        (at, error.message().replace('\n', " "))
    };
    // What is no TOML at all first, then keys that nobody knows, then what stands behind them.
    keys::check(DeTable::parse(text).map_err(wrong)?.get_ref())?;
    let file: File = toml::from_str(text).map_err(wrong)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut names = BTreeSet::new();
    file.node.into_iter().map(|entry| entry.checked(folder, &mut names)).collect()
}

impl Entry {
    fn checked(self, folder: &Path, names: &mut BTreeSet<String>) -> Result<NodeEntry, Wrong> {
        let at = self.name.span().start;
        let name = self.name.into_inner();
        if name.trim() != name || name.is_empty() || name.contains(['/', ',']) {
            let what = "a node's name is a word or more, without slashes and commas";
            return Err((at, format!("{what}, not {name:?}")));
        }
        if name.chars().any(char::is_control) {
            return Err((at, "a node's name holds no control characters".to_owned()));
        }
        if !names.insert(name.clone()) {
            return Err((at, format!("there are two nodes of the name {name:?}")));
        }
        if let Some(endpoint) = &self.endpoint {
            let checked = remote::check(endpoint.get_ref());
            checked.map_err(|error| (endpoint.span().start, error.to_string()))?;
        }
        if let (Some(token), None) = (&self.token_file, &self.endpoint) {
            let what = format!("node {name:?} has a token_file and no endpoint to show it to");
            return Err((token.span().start, what));
        }
        let token_file = self.token_file.map(|file| folder.join(PathBuf::from(file.into_inner())));
        let endpoint = self.endpoint.map(Spanned::into_inner);
        let mut entry = NodeEntry { name, endpoint, token_file, cards: Vec::new() };
        let mut cards = BTreeSet::new();
        for card in self.card {
            entry.cards.push(card.checked(&entry, &mut cards)?);
        }
        Ok(entry)
    }
}

impl Card {
    fn checked(self, entry: &NodeEntry, cards: &mut BTreeSet<String>) -> Result<Node, Wrong> {
        let at = self.gpu.span().start;
        let gpu = match self.gpu.into_inner() {
            Gpu::Index(index) => index.to_string(),
            Gpu::Name(name) => name.trim().to_owned(),
        };
        if gpu.is_empty() {
            return Err((at, "gpu is empty; give an index, a UUID or a PCI address".to_owned()));
        }
        if !cards.insert(gpu.to_lowercase()) {
            return Err((at, format!("card {gpu} of node {:?} stands here twice", entry.name)));
        }
        let idle = match &self.idle_watts {
            None => Idle::Stored,
            Some(watts) if watts.get_ref().is_finite() && *watts.get_ref() >= 0.0 => {
                Idle::Sum(*watts.get_ref())
            }
            Some(watts) => {
                let what = "idle_watts is no power of 0 W or more";
                return Err((watts.span().start, what.to_owned()));
            }
        };
        let ways = [
            self.serving_match.as_ref().map(Spanned::span),
            self.serving_port.as_ref().map(Spanned::span),
            self.serving_pid.as_ref().map(Spanned::span),
        ];
        if let Some(second) = ways.into_iter().flatten().nth(1) {
            let what =
                "one of serving_match, serving_port and serving_pid tells the serving process";
            return Err((second.start, what.to_owned()));
        }
        if let Some(empty) = self.serving_match.as_ref().filter(|it| it.get_ref().trim().is_empty())
        {
            let what = "serving_match is empty, and would fit every process";
            return Err((empty.span().start, what.to_owned()));
        }
        Ok(Node {
            idle,
            serving_match: self.serving_match.map(Spanned::into_inner),
            serving_port: ranged(self.serving_port, "serving_port is a port from 1 to 65535")?,
            serving_pid: ranged(self.serving_pid, "serving_pid is a process id of 1 or more")?,
            contention_ignore: self.contention_ignore,
            ..entry.card(gpu)
        })
    }
}

/// A number that its type can hold, and that is not 0.
fn ranged<T: TryFrom<i64>>(value: Option<Spanned<i64>>, what: &str) -> Result<Option<T>, Wrong> {
    let Some(value) = value else { return Ok(None) };
    let at = value.span().start;
    let number = Some(value.into_inner()).filter(|number| *number > 0);
    match number.and_then(|number| T::try_from(number).ok()) {
        Some(number) => Ok(Some(number)),
        None => Err((at, what.to_owned())),
    }
}

/// The tables that stand under a key, in one list or alone.
pub(super) fn list_of_tables<'a, 'i>(
    table: &'a DeTable<'i>,
    key: &str,
) -> impl Iterator<Item = &'a DeTable<'i>> {
    let found = table.iter().find(|(name, _)| name.get_ref().as_ref() == key);
    let tables: Vec<&DeTable<'_>> = match found.map(|(_, value)| value.get_ref()) {
        Some(DeValue::Array(list)) => list
            .iter()
            .filter_map(|value| match value.get_ref() {
                DeValue::Table(table) => Some(table),
                _ => None,
            })
            .collect(),
        Some(DeValue::Table(table)) => vec![table],
        _ => Vec::new(),
    };
    tables.into_iter()
}
