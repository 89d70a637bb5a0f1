//! `nvidia-smi --query-gpu=… --format=csv`, and shell loops around it that put their own stamps in
//! front.
//!
//! Columns are found by the field's name; its unit stands in the header, in the cells, or is the
//! one that nvidia-smi gives that field in. Rows without a header are read where their cells leave
//! one reading of them, or by the names that a person gives.

mod inferred;

use joulebook_core::Scope;

use super::{
    Log, ReplayError, Shows, Warning, cell,
    table::{
        self,
        columns::{Columns, PowerColumn, Roles, at, missing},
    },
    text::{cells, shortened},
};

/// The format's name.
pub(super) const FORMAT: &str = "nvidia-smi CSV";
/// Columns of power, by name, in the order they are preferred for long windows.
const POWERS: &[(&str, Shows, Scope)] = &[
    ("power.draw", Shows::Draw, Scope::Gpu),
    ("power.draw.average", Shows::Average, Scope::Gpu),
    ("power.draw.instant", Shows::Instant, Scope::Gpu),
    ("module.power.draw.average", Shows::Average, Scope::Module),
    ("module.power.draw.instant", Shows::Instant, Scope::Module),
];
/// Columns that tell cards apart, the surest first; the last is a person's own word.
const IDENTITIES: &[&str] = &[
    "uuid",
    "gpu_uuid",
    "pci.bus_id",
    "gpu_bus_id",
    "serial",
    "gpu_serial",
    "index",
    "gpu",
    "gpu_index",
    "gpu_id",
];
const LIMITS: &[&str] = &["power.limit", "enforced.power.limit", "power.default_limit"];
const TIMES: &[&str] = &["timestamp", "time", "date", "datetime"];

/// True for a header of nvidia-smi's fields.
pub(super) fn is_header(names: &[String]) -> bool {
    POWERS.iter().any(|(name, ..)| at(names, &[name]).is_some())
}

/// Reads a log. Without a header its columns are told by their cells.
pub fn read(text: &str) -> Result<Log, ReplayError> {
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let (line, first) = lines.next().ok_or(ReplayError::Empty)?;
    let names: Vec<String> = cells(first).into_iter().map(str::to_owned).collect();
    if table::is_data(&names) {
        let names = inferred::names(text)
            .ok_or_else(|| ReplayError::NoHeader { line, begins: shortened(first) })?;
        let warning = Warning::Inferred { columns: names.join(", ") };
        let mut log = table::read(text, columns(0, names)?)?;
        log.warnings.push(warning);
        return Ok(log);
    }
    if names.len() < 2 {
        return Err(ReplayError::NoHeader { line, begins: shortened(first) });
    }
    table::read(text, columns(line, names)?)
}

/// The columns under these names.
pub(super) fn columns(line: usize, names: Vec<String>) -> Result<Columns, ReplayError> {
    let at = |wanted: &[&str]| at(&names, wanted);
    let time = at(TIMES).ok_or_else(|| missing(line.max(1), &names, "timestamp"))?;
    let mut powers = Vec::new();
    for (name, shows, scope) in POWERS {
        let Some(at) = at(&[name]) else { continue };
        let name = names.get(at).map_or("", String::as_str);
        powers.push(PowerColumn::new(line, (at, name), (*shows, *scope), Some("W"))?);
    }
    if powers.is_empty() {
        return Err(missing(line.max(1), &names, "power.draw"));
    }
    let limit = LIMITS.iter().find_map(|limit| at(&[limit]));
    let limit = limit.and_then(|at| {
        let unit = cell::named(names.get(at)?).1.unwrap_or("W");
        Some((at, cell::unit(unit)?))
    });
    let reason = |reason: &str| {
        let of = |family: &str| at(&[&format!("{family}.{reason}")]);
        of("clocks_event_reasons").or_else(|| of("clocks_throttle_reasons"))
    };
    let roles = Roles {
        index: at(&["index", "gpu_index"]),
        uuid: at(&["uuid", "gpu_uuid"]),
        pci: at(&["pci.bus_id", "gpu_bus_id"]),
        model: at(&["name", "gpu_name"]),
        limit,
        utilisation: at(&["utilization.gpu"]),
        temperature: at(&["temperature.gpu"]),
        reasons: reason("active"),
        capped: reason("sw_power_cap"),
        braked: reason("hw_power_brake_slowdown"),
    };
    let identities = IDENTITIES.iter().filter_map(|name| at(&[name])).collect();
    Ok(Columns {
        format: FORMAT,
        line,
        time,
        elapsed: false,
        tool_stamps: false,
        identities,
        powers,
        roles,
        names,
    })
}
