//! `amd-smi metric --csv` and `--json`, also with `--watch`: ticks with blank lines between them,
//! lists in quotes with commas in them, N/A in many cells.
//!
//! The power is `socket_power`, whole watts, the mean over a time that the tool does not tell.
//! Where `total_energy_consumption` is there (joules), it is the card's counter.

mod json;

use joulebook_core::Scope;

use super::{
    Log, ReplayError, Shows,
    table::{
        self,
        columns::{Columns, PowerColumn, Roles, at, missing},
    },
    text::cells,
};

pub(super) use json::{is as is_json, read as read_json};

const FORMAT: &str = "amd-smi CSV";
const POWERS: &[&str] = &["socket_power", "current_socket_power", "average_socket_power"];

/// True for a header of amd-smi's.
pub(super) fn is_header(names: &[String]) -> bool {
    at(names, POWERS).is_some() && at(names, &["gpu"]).is_some()
}

/// Reads a log.
pub(super) fn read(text: &str) -> Result<Log, ReplayError> {
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let (line, first) = lines.next().ok_or(ReplayError::Empty)?;
    let names: Vec<String> = cells(first).into_iter().map(str::to_owned).collect();
    let time = at(&names, &["timestamp"]).ok_or_else(|| missing(line, &names, "timestamp"))?;
    let mut powers = Vec::new();
    for place in POWERS.iter().filter_map(|name| at(&names, &[name])) {
        let name = names.get(place).map_or("", String::as_str);
        let power = PowerColumn::new(line, (place, name), (Shows::Draw, Scope::Gpu), Some("W"))?;
        powers.push(power.in_unit("W"));
    }
    if powers.is_empty() {
        return Err(missing(line, &names, "socket_power"));
    }
    let roles = Roles {
        index: at(&names, &["gpu"]),
        utilisation: at(&names, &["gfx_activity"]),
        temperature: at(&names, &["hotspot", "edge"]),
        ..Roles::default()
    };
    table::read(
        text,
        Columns {
            format: FORMAT,
            line,
            time,
            elapsed: false,
            tool_stamps: true,
            identities: at(&names, &["gpu"]).into_iter().collect(),
            powers,
            roles,
            names,
        },
    )
}
