//! A person's own logger: a CSV whose header names a column of time and one of power, in any of the
//! words people use (`time,watts`; `elapsed_s,power_w,…`; `timestamp,device,power_watts,…`;
//! `Timestamp (s),Power (mW)`).
//!
//! A unit stands in the name (`power_mw`) or behind it (`Power (mW)`), or the column is refused.
//! What the readings are a mean over nobody tells. Where both wall stamps and elapsed seconds are
//! there and the stamps are cut to seconds, the elapsed seconds are the clock.

use joulebook_core::Scope;

use super::{
    Log, ReplayError, Shows, Warning,
    cell::{self, named},
    instant::instant,
    table::{
        self,
        columns::{Columns, PowerColumn, Roles, at, missing},
    },
    text::{cells, shortened},
};

const FORMAT: &str = "logger CSV";
const STAMPS: &[&str] =
    &["timestamp", "epoch_s", "epoch", "time", "datetime", "date", "ts", "time_ms", "unix_time"];
const ELAPSED: &[&str] = &["elapsed_s", "elapsed", "seconds", "t", "t_s", "time_s"];
const IDENTITIES: &[&str] = &[
    "uuid",
    "gpu_uuid",
    "pci",
    "bus_id",
    "device",
    "gpu_index",
    "index",
    "gpu",
    "gpu_id",
    "card",
    "device_id",
    "id",
];
/// Words that end a name and tell its unit.
const UNITS: &[(&str, &str)] = &[
    ("w", "W"),
    ("watt", "W"),
    ("watts", "W"),
    ("mw", "mW"),
    ("milliwatt", "mW"),
    ("milliwatts", "mW"),
    ("kw", "kW"),
    ("kilowatts", "kW"),
];
/// Words of a name that is about power and is no reading of it.
const OTHERS: &[&str] =
    &["limit", "cap", "max", "min", "source", "available", "state", "mode", "factor"];

/// A name as words.
fn words(name: &str) -> Vec<String> {
    let name = named(name).0.to_ascii_lowercase();
    name.split(|letter: char| !letter.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

fn unit_in(words: &[String]) -> Option<&'static str> {
    let last = words.last()?;
    UNITS.iter().find(|(word, _)| word == last).map(|(_, unit)| *unit)
}

fn is_about_power(words: &[String]) -> bool {
    words.iter().any(|word| word == "power" || word == "watts" || word == "watt")
}

/// True for a column of readings of power.
fn is_power(name: &str) -> bool {
    let words = words(name);
    is_about_power(&words) && !words.iter().any(|word| OTHERS.contains(&word.as_str()))
}

/// True for a header that names a time and a power.
pub(super) fn is_header(names: &[String]) -> bool {
    let timed = at(names, STAMPS).is_some() || at(names, ELAPSED).is_some();
    timed && names.iter().any(|name| is_power(name))
}

/// Reads a log.
pub(super) fn read(text: &str) -> Result<Log, ReplayError> {
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let (line, first) = lines.next().ok_or(ReplayError::Empty)?;
    let names: Vec<String> = cells(first).into_iter().map(str::to_owned).collect();
    if table::is_data(&names) {
        return Err(ReplayError::NoHeader { line, begins: shortened(first) });
    }
    let row = lines.next().map(|(_, row)| cells(row));
    let mut columns = columns(line, names)?;
    let mut elapsed = false;
    // Two clocks: the wall's, unless it is cut to seconds and the other is not.
    if let Some(other) = at(&columns.names, ELAPSED).filter(|other| *other != columns.time) {
        let stamp = row.as_ref().and_then(|row| instant(row.get(columns.time)?));
        if stamp.is_none_or(|stamp| !stamp.fine) {
            (columns.time, columns.elapsed, elapsed) = (other, true, true);
        }
    }
    let mut log = table::read(text, columns)?;
    if elapsed {
        log.warnings.push(Warning::StampsTruncated { doubled: 0, elapsed });
    }
    Ok(log)
}

/// The columns under these names.
pub(super) fn columns(line: usize, names: Vec<String>) -> Result<Columns, ReplayError> {
    let stamp = at(&names, STAMPS);
    let time = stamp.or_else(|| at(&names, ELAPSED));
    let time = time.ok_or_else(|| missing(line.max(1), &names, "timestamp"))?;
    let mut powers = Vec::new();
    for (place, name) in names.iter().enumerate().filter(|(_, name)| is_power(name)) {
        let power = PowerColumn::new(line, (place, name), (Shows::Draw, scope(name)), None)?;
        powers.push(match unit_in(&words(name)) {
            Some(unit) => power.in_unit(unit),
            None => power,
        });
    }
    if powers.is_empty() {
        return Err(missing(line.max(1), &names, "power"));
    }
    let find = |is: &dyn Fn(&[String]) -> bool| names.iter().position(|name| is(&words(name)));
    let limit = find(&|words| {
        is_about_power(words) && words.iter().any(|word| word == "limit" || word == "cap")
    });
    let limit = limit.and_then(|at| {
        let name = names.get(at)?;
        let unit = named(name).1.or_else(|| unit_in(&words(name)))?;
        Some((at, cell::unit(unit)?))
    });
    let begins = |words: &[String], begin: &str| words.iter().any(|word| word.starts_with(begin));
    let roles = Roles {
        index: at(&names, &["index", "gpu_index"]),
        uuid: at(&names, &["uuid", "gpu_uuid"]),
        pci: at(&names, &["pci", "bus_id"]),
        model: at(&names, &["name", "gpu_name", "model"]),
        limit,
        utilisation: find(&|words| begins(words, "util") && !begins(words, "mem")),
        temperature: find(&|words| begins(words, "temp")),
        ..Roles::default()
    };
    let identities = IDENTITIES.iter().filter_map(|name| at(&names, &[name])).collect();
    Ok(Columns {
        format: FORMAT,
        line,
        time,
        elapsed: stamp.is_none(),
        tool_stamps: false,
        identities,
        powers,
        roles,
        names,
    })
}

/// A name that says so covers a whole machine, or a package.
fn scope(name: &str) -> Scope {
    let words = words(name);
    let any = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    if any(&["wall", "plug", "node", "system", "psu"]) {
        Scope::Machine
    } else if any(&["package", "cpu"]) {
        Scope::Package
    } else {
        Scope::Gpu
    }
}
