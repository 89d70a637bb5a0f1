//! A processor's zones.

use std::io::ErrorKind;

use joulebook::{
    core::{Energy, Fault, estimate::Missing, estimate::Span},
    rapl::{self, Domain, RaplError, Zone},
};
use serde_json::{Value, json};

use super::{
    Answer,
    field::{Refused, list, maybe, number, refused, text},
    measured,
};

pub(super) fn answer(input: &Value) -> Result<Answer, Refused> {
    if input.get("variants").is_some() { unreadable(input) } else { zones(input) }
}

/// Counters that cannot be read, each in its own way.
fn unreadable(input: &Value) -> Result<Answer, Refused> {
    let path = "/sys/class/powercap/intel-rapl:0/energy_uj";
    let mut faults = Vec::new();
    let mut hints = Vec::new();
    for variant in list(input, "variants")? {
        let said = text(variant, "energy_uj")?;
        let read = match said.split_whitespace().next() {
            Some("EACCES" | "EPERM") => Err(ErrorKind::PermissionDenied),
            Some("ENOENT") => Err(ErrorKind::NotFound),
            Some("ENOTDIR") => Err(ErrorKind::NotADirectory),
            Some("EIO" | "ENODATA") => Err(ErrorKind::Other),
            _ => Ok(said),
        };
        match rapl::count_uj(path, read) {
            Ok(_) => {}
            Err(error) => {
                faults.push(error.fault());
                hints.push(error.to_string());
            }
        }
    }
    let first = faults.first().copied();
    let window = Span { open_ns: 0, close_ns: 0 };
    let context = measured::context(window, Some(0.0), "rapl");
    let missing = Err(Missing::of(first.unwrap_or(Fault::NotReady)));
    let mut answer = measured::answer(&missing, &context, input);
    let words: Vec<&str> = faults.iter().map(|fault| fault.word()).collect();
    answer.insert("error".into(), json!(words.join(" | ")));
    answer.insert("collector_ok".into(), json!(faults.is_empty()));
    answer.insert("hint".into(), json!(hints));
    Ok(answer)
}

/// Zones with what each of them counted.
fn zones(input: &Value) -> Result<Answer, Refused> {
    let zone = |zone: &Value| {
        let energy = match maybe(zone, "delta_j") {
            Some(joules) => Energy::from_joules(joules).ok_or(Fault::Implausible),
            None => {
                let word = zone.get("energy_uj").and_then(Value::as_str).unwrap_or("ENOENT");
                let denied = if word.starts_with("EACCES") {
                    ErrorKind::PermissionDenied
                } else {
                    ErrorKind::NotFound
                };
                let read = rapl::count_uj(text(zone, "path")?, Err(denied));
                Err(read.as_ref().map_err(RaplError::fault).err().unwrap_or(Fault::Absent))
            }
        };
        let (path, name) = (text(zone, "path")?.to_owned(), text(zone, "name")?.to_owned());
        Ok(Zone { path, name, energy })
    };
    let zones = list(input, "zones")?.iter().map(zone).collect::<Result<Vec<_>, Refused>>()?;
    if zones.is_empty() {
        return Err(refused("zones"));
    }
    let sums = rapl::sums(&zones);
    let has_memory = zones.iter().any(|zone| zone.domain() == Domain::Memory);
    let joules = |energy: Option<Energy>| json!(energy.map(Energy::joules));
    let both = sums.processors(has_memory);
    let mut answer = Answer::new();
    answer.insert("cpu_j".into(), joules(sums.packages));
    answer.insert("dram_j".into(), joules(sums.memory));
    answer.insert("cpu_plus_dram_j".into(), joules(both));
    answer.insert("total_j".into(), joules(both));
    answer.insert("platform_j".into(), joules(sums.platform));
    let seconds = number(input, "seconds")?;
    answer.insert("cpu_w".into(), json!(sums.packages.map(|energy| energy.joules() / seconds)));
    Ok(answer)
}
