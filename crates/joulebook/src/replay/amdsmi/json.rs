//! `amd-smi metric --json`: a list of cards, or an object that holds one, once or tick by tick.

use joulebook_core::{Energy, Fault, Scope};
use serde_json::Value as Json;

use crate::{
    reader::Value,
    replay::{
        Activity, CardName, Channel, Clock, Log, Refused, ReplayError, Row, Shows,
        cell::{power, unit},
        instant::instant,
        json::{Document, documents, word},
    },
};

const FORMAT: &str = "amd-smi JSON";
const POWERS: &[&str] = &["socket_power", "current_socket_power", "average_socket_power"];
const ENERGY: &str = "total_energy_consumption";

/// True for amd-smi's objects.
pub(in crate::replay) fn is(text: &str) -> bool {
    POWERS.iter().any(|name| text.contains(&format!("\"{name}\"")))
}

/// Reads one answer, or the answers of a loop.
pub(in crate::replay) fn read(text: &str) -> Result<Log, ReplayError> {
    let quantum = Energy::from_microjoules(1000);
    let channel = |name: &str, shows| Channel { name: name.to_owned(), shows, scope: Scope::Gpu };
    let channels =
        vec![channel("socket_power", Shows::Draw), channel(ENERGY, Shows::Counter { quantum })];
    let mut log = Log::new(FORMAT, Clock::Elapsed, channels);
    for Document { line, value } in documents(text, FORMAT)? {
        let cards = match &value {
            Json::Array(cards) => cards.clone(),
            Json::Object(map) => match map.get("gpu_data").and_then(Json::as_array) {
                Some(cards) => cards.clone(),
                None => vec![value.clone()],
            },
            _ => Vec::new(),
        };
        for card in &cards {
            match row(&mut log, line, card) {
                Ok(row) => log.rows.push(row),
                Err(why) => {
                    log.refused.push(Refused { line, fault: Fault::MalformedRow, why: why.into() });
                }
            }
        }
    }
    super::super::json::done(log)
}

fn row(log: &mut Log, line: usize, card: &Json) -> Result<Row, &'static str> {
    let index = card.get("gpu").and_then(Json::as_u64).and_then(|index| index.try_into().ok());
    let index: u32 = index.ok_or("an object that names no gpu")?;
    let stamp = card.get("timestamp").and_then(word).and_then(|stamp| instant(&stamp));
    let at_ns = stamp.map_or(0, |stamp| stamp.at_ns);
    log.clock = stamp.map_or(log.clock, |stamp| stamp.clock);
    let part = |group: &str, name: &str| card.get(group).and_then(|group| group.get(name));
    let draws = POWERS.iter().find_map(|name| part("power", name));
    let energy = part("energy", ENERGY);
    let draw = match draws.map(quantity) {
        Some((value, name)) => match unit(if name.is_empty() { "W" } else { &name }) {
            Some(unit) => power(&value, unit).map(Value::Power),
            None => Err(Fault::Implausible),
        },
        None => Err(Fault::NotSupported),
    };
    let counted = match energy.map(quantity) {
        Some((value, name)) if name.is_empty() || name == "J" => {
            let joules = value.parse().ok().and_then(Energy::from_joules);
            joules.map(|joules| Value::Counter(joules.microjoules())).ok_or(Fault::NotSupported)
        }
        Some(_) => Err(Fault::Implausible),
        None => Err(Fault::NotSupported),
    };
    let figure = |group, name| part(group, name).and_then(|part| quantity(part).0.parse().ok());
    let place = log.place_of(CardName { index: Some(index), ..CardName::default() });
    Ok(Row {
        line,
        at_ns,
        card: place,
        readings: vec![draw, counted],
        throttle: None,
        limit: None,
        activity: Activity {
            utilisation: figure("usage", "gfx_activity"),
            temperature: figure("temperature", "hotspot"),
        },
    })
}

/// A value and its unit: `{"value": 238, "unit": "W"}`, `"238 W"`, `238`, `"N/A"`.
fn quantity(part: &Json) -> (String, String) {
    let unit = part.get("unit").and_then(Json::as_str).unwrap_or_default();
    let value = part.get("value").unwrap_or(part);
    (word(value).unwrap_or_default(), unit.to_owned())
}
