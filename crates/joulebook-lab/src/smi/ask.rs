//! What the command line asks for.

use std::time::Duration;

use super::Ends;
use crate::{card::Model, machine::Machine};

/// A question.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ask {
    pub(super) what: What,
    /// Which cards; all where none is named.
    pub(super) ids: Vec<String>,
    /// Again and again, with this pause between.
    pub(super) every: Option<Duration>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum What {
    /// `--query-gpu`.
    Cards(Query),
    /// `--query-compute-apps`.
    Applications(Query),
    /// `pmon -c 1`, with the memory of processes where asked for (`-s m`).
    Monitor { memory: bool },
    /// `-L`.
    List,
    /// `-q -x`.
    Xml,
    /// No arguments.
    Table,
    /// `--help-query-gpu`.
    Help,
}

/// Fields, and how they are written.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Query {
    pub(super) fields: Vec<String>,
    pub(super) header: bool,
    pub(super) units: bool,
}

/// Reads the command line.
pub(super) fn parse(arguments: &[String]) -> Result<Ask, Ends> {
    let invalid = |says: String| Ends { code: 2, says };
    let mut ask = Ask { what: What::Table, ids: Vec::new(), every: None };
    let mut format = None;
    let (mut query, mut applications, mut xml) = (None, None, false);
    let mut words = arguments.iter().map(String::as_str);
    if arguments.first().is_some_and(|word| word == "pmon") {
        let memory = arguments.iter().any(|word| {
            word == "m" || word == "um" || word == "mu" || word == "-sm" || word == "-sum"
        });
        return Ok(Ask { what: What::Monitor { memory }, ..ask });
    }
    while let Some(word) = words.next() {
        let (name, given) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        let mut value = || {
            let value = given.or_else(|| words.next());
            value.ok_or_else(|| invalid(format!("Option {name} is missing its value.\n\n")))
        };
        let listed = |text: &str| text.split(',').map(|word| word.trim().to_owned()).collect();
        let pause = |text: &str, unit_ms: u64| {
            let number: u64 = text.parse().map_err(|_| {
                invalid(format!("Invalid combination of input arguments: {name} {text}\n\n"))
            })?;
            Ok(Some(Duration::from_millis(number.max(1) * unit_ms)))
        };
        match name {
            "--query-gpu" => query = Some(listed(value()?)),
            "--query-compute-apps" => applications = Some(listed(value()?)),
            "--format" => format = Some(value()?.to_owned()),
            "-i" | "--id" => ask.ids = listed(value()?),
            "-l" | "--loop" => ask.every = pause(value()?, 1000)?,
            "-lms" | "--loop-ms" => ask.every = pause(value()?, 1)?,
            "-L" | "--list-gpus" => ask.what = What::List,
            "-q" | "--query" => {}
            "-x" | "--xml-format" => xml = true,
            "--help-query-gpu" => ask.what = What::Help,
            _ => {
                return Err(invalid(format!(
                    "Invalid combination of input arguments. Please run 'nvidia-smi -h' for \
                     help.\n\n{word}\n"
                )));
            }
        }
    }
    if xml {
        ask.what = What::Xml;
    }
    let fields = query.is_some().then_some(query).or(Some(applications.clone())).flatten();
    if let Some(fields) = fields {
        let words: Vec<&str> = format.as_deref().unwrap_or_default().split(',').collect();
        if !words.contains(&"csv") {
            return Err(invalid(
                "\"--query-*=\" requires \"--format=\". Refer to nvidia-smi -h for more \
                 information.\n\n"
                    .to_owned(),
            ));
        }
        let query = Query {
            fields,
            header: !words.contains(&"noheader"),
            units: !words.contains(&"nounits"),
        };
        ask.what =
            if applications.is_some() { What::Applications(query) } else { What::Cards(query) };
    }
    Ok(ask)
}

/// The cards that are named, in the driver's order; all where none is.
pub(super) fn chosen<'a>(machine: &'a Machine, ids: &[String]) -> Result<Vec<&'a Model>, Ends> {
    let none = || Ends { code: 6, says: "No devices were found\n".to_owned() };
    let is_named = |model: &&Model| {
        ids.is_empty() || ids.iter().any(|id| names(id, model.index(), model.card()))
    };
    let chosen: Vec<&Model> = machine.models().iter().filter(is_named).collect();
    let found =
        ids.iter().all(|id| chosen.iter().any(|model| names(id, model.index(), model.card())));
    if chosen.is_empty() || !found { Err(none()) } else { Ok(chosen) }
}

fn names(id: &str, index: u32, card: &crate::scenario::Card) -> bool {
    id.parse() == Ok(index) || id == card.uuid || id.contains(':') && id.parse() == Ok(card.pci)
}
