//! `rocm-smi --showpower --json`: an object a card, once or again and again, with a line of time
//! before each answer where a loop has printed one.
//!
//! The key of power differs between parts (average of a graphics package, current of a socket), and
//! is the same quantity under either name; a card without it has no reading.

use joulebook_core::{Fault, Scope};
use serde_json::Value as Json;

use super::{
    Activity, CardName, Channel, Clock, Log, ReplayError, Row, Shows,
    cell::{power, unit},
    instant::{Instant, instant},
    json::{Document, documents, done, word},
};
use crate::reader::Value;

const FORMAT: &str = "rocm-smi JSON";
const POWERS: &[&str] = &[
    "Average Graphics Package Power (W)",
    "Current Socket Graphics Package Power (W)",
    "Average Socket Graphics Package Power (W)",
    "Current Graphics Package Power (W)",
];
const LIMITS: &[&str] = &["Max Graphics Package Power (W)"];

/// True for rocm-smi's objects.
pub(super) fn is(text: &str) -> bool {
    text.contains("\"card0\"") || POWERS.iter().any(|name| text.contains(name))
}

/// Reads one answer, or the answers of a loop.
pub(super) fn read(text: &str) -> Result<Log, ReplayError> {
    let name = POWERS.iter().find(|name| text.contains(*name)).unwrap_or(&"power");
    let channel = Channel { name: (*name).to_owned(), shows: Shows::Draw, scope: Scope::Gpu };
    let mut log = Log::new(FORMAT, Clock::Elapsed, vec![channel]);
    for (stamp, first_line, answer) in answers(text) {
        log.clock = stamp.map_or(log.clock, |stamp| stamp.clock);
        for Document { line, value } in documents(answer, FORMAT)? {
            let line = first_line + line - 1;
            let Some(cards) = value.as_object() else { continue };
            for (key, card) in cards.iter().filter(|(key, _)| key.starts_with("card")) {
                let at_ns = stamp.map_or(0, |stamp| stamp.at_ns);
                let row = row(&mut log, (line, at_ns), key, card);
                log.rows.push(row);
            }
        }
    }
    done(log)
}

/// The answers of a text, each with the instant that stands on a line before it.
fn answers(text: &str) -> Vec<(Option<Instant>, usize, &str)> {
    let mut answers = Vec::new();
    let (mut stamp, mut begin, mut first_line, mut at) = (None, 0, 1, 0);
    for (line, content) in (1..).zip(text.split_inclusive('\n')) {
        if let Some(next) = instant(content) {
            answers.push((stamp, first_line, text.get(begin..at).unwrap_or_default()));
            (stamp, begin, first_line) = (Some(next), at + content.len(), line + 1);
        }
        at += content.len();
    }
    answers.push((stamp, first_line, text.get(begin..).unwrap_or_default()));
    answers
}

fn row(log: &mut Log, (line, at_ns): (usize, u64), key: &str, card: &Json) -> Row {
    let field = |names: &[&str]| names.iter().find_map(|name| card.get(*name).and_then(word));
    let watts = unit("W");
    let reading = match (field(POWERS), watts) {
        (Some(cell), Some(watts)) => power(&cell, watts).map(Value::Power),
        _ => Err(Fault::NotSupported),
    };
    let limit = field(LIMITS).zip(watts).and_then(|(cell, watts)| power(&cell, watts).ok());
    let known = |name: &String| super::cell::absence(name) == Fault::MalformedRow;
    let name = CardName {
        index: key.trim_start_matches("card").parse().ok(),
        uuid: field(&["Unique ID"]).filter(known),
        pci: field(&["PCI Bus"]).filter(known),
        model: field(&["Card Series", "Card series", "Device Name"]).filter(known),
        name: None,
    };
    let card = log.place_of(name);
    let figure = |name: &str| field(&[name]).and_then(|cell| cell.parse().ok());
    Row {
        line,
        at_ns,
        card,
        readings: vec![reading],
        throttle: None,
        limit,
        activity: Activity {
            utilisation: figure("GPU use (%)"),
            temperature: figure("Temperature (Sensor junction) (C)"),
        },
    }
}
