//! A scrape in Prometheus' text format, as dcgm-exporter and its like answer it: a line a sample,
//! `NAME{labels} VALUE`, with a time in ms at its end where the exporter writes one.
//!
//! A sample of a MIG instance is no card's: the card's power is that of all its instances.

use joulebook_core::{Fault, Scope};

use super::{
    Activity, CardName, Channel, Clock, Log, Refused, ReplayError, Row, Warning,
    json::done,
    metric::{Metric, metric},
    text::shortened,
};
use crate::reader::Value;

const FORMAT: &str = "Prometheus scrape";
/// Labels that name a card or a part of a machine, in the order of a name.
const PARTS: &[&str] =
    &["Hostname", "node", "instance", "gpu", "device", "package", "zone", "mode"];

/// True for a text whose first lines are samples or comments of the format.
pub(super) fn is(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.next().is_some_and(|line| {
        line.starts_with("# HELP ") || line.starts_with("# TYPE ") || sample(line).is_some()
    })
}

/// A sample's name, labels, value and time, ms.
type Sample<'a> = (&'a str, Vec<(&'a str, &'a str)>, &'a str, Option<u64>);

fn sample(line: &str) -> Option<Sample<'_>> {
    let (name, rest) = line.split_once('{')?;
    let (labels, rest) = rest.rsplit_once('}')?;
    let of_a_name = |letter: char| letter.is_ascii_alphanumeric() || "_:".contains(letter);
    if name.is_empty() || !name.chars().all(of_a_name) {
        return None;
    }
    let mut values = rest.split_whitespace();
    let value = values.next()?;
    let time = values.next().and_then(|time| time.parse().ok());
    let mut pairs = Vec::new();
    let mut rest = labels;
    while let Some((key, after)) = rest.split_once("=\"") {
        let (value, after) = after.split_once('"')?;
        pairs.push((key.trim_start_matches(',').trim(), value));
        rest = after;
    }
    Some((name, pairs, value, time))
}

/// Reads a scrape, or several with times.
pub(super) fn read(text: &str) -> Result<Log, ReplayError> {
    let mut log = Log::new(FORMAT, Clock::Elapsed, Vec::new());
    let mut metrics: Vec<(&str, Metric)> = Vec::new();
    let mut instances: Vec<(Option<String>, &str)> = Vec::new();
    for (line, content) in (1..).zip(text.lines()) {
        let content = content.trim();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        let Some((name, labels, value, time)) = sample(content) else {
            // Samples without labels are of no card.
            if !content.contains(char::is_whitespace) {
                let why = format!("`{}` is no sample", shortened(content));
                log.refused.push(Refused { line, fault: Fault::MalformedRow, why });
            }
            continue;
        };
        let label = |name: &str| labels.iter().find(|(key, _)| *key == name).map(|(_, it)| *it);
        if let Some(instance) = label("GPU_I_ID") {
            let of = (label("gpu").map(str::to_owned), instance);
            if !instances.contains(&of) {
                instances.push(of);
            }
            continue;
        }
        let Some(of) = metric(name) else { continue };
        let column = match metrics.iter().position(|(known, _)| *known == name) {
            Some(column) => column,
            None => {
                metrics.push((name, of));
                let shows = of.shows(std::iter::once(value));
                let scope = match label("gpu") {
                    Some(_) => Scope::Gpu,
                    None if name.contains("package") => Scope::Package,
                    None => Scope::Machine,
                };
                log.channels.push(Channel { name: name.to_owned(), shows, scope });
                metrics.len() - 1
            }
        };
        let (reading, at_ns) = (of.read(value), time.unwrap_or(0).saturating_mul(1_000_000));
        if time.is_some() {
            log.clock = Clock::Epoch;
        }
        let card = log.place_of(card(&labels));
        put(&mut log, (line, at_ns, card), column, reading);
    }
    if log.channels.is_empty() {
        let why = "no sample of power or energy is in it".to_owned();
        return Err(ReplayError::NoRows { line: 1, why });
    }
    let columns = log.channels.len();
    for row in &mut log.rows {
        row.readings.resize(columns, Err(Fault::Absent));
    }
    for place in 0..log.cards.len() {
        let Some(card) = log.cards.get(place) else { continue };
        let of = |(gpu, _): &&(Option<String>, &str)| {
            gpu.as_ref().and_then(|gpu| gpu.parse().ok()) == card.index
        };
        let count = instances.iter().filter(of).count();
        if count > 0 {
            let card = card.label();
            log.warnings.push(Warning::Instances { card, instances: count });
        }
    }
    done(log)
}

/// A sample joins the others of its card and time.
fn put(
    log: &mut Log,
    (line, at_ns, card): (usize, u64, usize),
    column: usize,
    reading: Result<Value, Fault>,
) {
    let is_free = |row: &Row| row.readings.get(column).is_none_or(|it| *it == Err(Fault::Absent));
    let known = log
        .rows
        .iter_mut()
        .rev()
        .find(|row| row.card == card && row.at_ns == at_ns && is_free(row));
    let row = match known {
        Some(row) => row,
        None => {
            let (throttle, limit, activity) = (None, None, Activity::default());
            let readings = Vec::new();
            log.rows.push(Row { line, at_ns, card, readings, throttle, limit, activity });
            let Some(row) = log.rows.last_mut() else { return };
            row
        }
    };
    if row.readings.len() <= column {
        row.readings.resize(column + 1, Err(Fault::Absent));
    }
    if let Some(place) = row.readings.get_mut(column) {
        *place = reading;
    }
}

fn card(labels: &[(&str, &str)]) -> CardName {
    let label = |name: &str| {
        let found = labels.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let index = label("gpu").and_then(|gpu| gpu.parse().ok());
    let uuid = label("UUID").or_else(|| label("uuid"));
    let part = |name: &&str| Some(format!("{name} {}", label(name)?));
    let name = match (index, &uuid) {
        (None, None) => {
            let parts: Vec<String> = PARTS.iter().filter_map(part).collect();
            (!parts.is_empty()).then(|| parts.join(", "))
        }
        _ => None,
    };
    CardName { index, uuid, pci: label("pci_bus_id"), model: label("modelName"), name }
}
