//! The header of an `nvidia-smi` log: which column is what.

use joulebook_core::{Fault, Power, Scope};

use super::{
    super::{
        Activity, Channel, Shows,
        cell::{self, Unit},
    },
    CardName, ReplayError, cells, civil_ns, named, number, shortened,
};
use crate::reader::{Throttle, Value};

/// Columns of power, by name, in the order they are preferred for long windows.
const POWERS: &[(&str, Shows, Scope)] = &[
    ("power.draw", Shows::Draw, Scope::Gpu),
    ("power.draw.average", Shows::Average, Scope::Gpu),
    ("power.draw.instant", Shows::Instant, Scope::Gpu),
    ("module.power.draw.average", Shows::Average, Scope::Module),
    ("module.power.draw.instant", Shows::Instant, Scope::Module),
];
/// Columns that tell cards apart, the surest first.
const IDENTITIES: &[&str] =
    &["uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id", "serial", "gpu_serial", "index"];
const LIMITS: &[&str] = &["power.limit", "enforced.power.limit", "power.default_limit"];
/// Columns that a message names.
const SHOWN: usize = 12;
const SW_POWER_CAP: u64 = 0x4;
const HW_POWER_BRAKE: u64 = 0x80;

pub(super) struct Header {
    /// Where it stands.
    pub line: usize,
    /// Its cells.
    pub names: Vec<String>,
    pub timestamp: usize,
    /// What tells cards apart.
    pub identity: Option<usize>,
    pub powers: Vec<PowerColumn>,
    index: Option<usize>,
    uuid: Option<usize>,
    pci: Option<usize>,
    model: Option<usize>,
    limit: Option<(usize, Unit)>,
    utilisation: Option<usize>,
    temperature: Option<usize>,
    reasons: Option<usize>,
    capped: Option<usize>,
    braked: Option<usize>,
}

/// A column of power.
pub(super) struct PowerColumn {
    pub at: usize,
    pub channel: Channel,
    unit: Option<Unit>,
    header_line: usize,
}

impl Header {
    pub(super) fn read(line: usize, content: &str) -> Result<Self, ReplayError> {
        let names: Vec<String> = cells(content).into_iter().map(str::to_owned).collect();
        let is_data = |name: &String| civil_ns(name).is_some() || number(name).is_some();
        if names.iter().any(is_data) || names.len() < 2 {
            return Err(ReplayError::NoHeader { line, begins: shortened(content) });
        }
        let at = |wanted: &[&str]| {
            wanted.iter().find_map(|wanted| {
                names.iter().position(|name| named(name).0.eq_ignore_ascii_case(wanted))
            })
        };
        let missing = |wanted| {
            let (some, more) = (names.iter().take(SHOWN), names.len().saturating_sub(SHOWN));
            let mut has = some.map(|name| shortened(name)).collect::<Vec<_>>().join(", ");
            if more > 0 {
                has.push_str(&format!(", and {more} more"));
            }
            ReplayError::NoColumn { line, wanted, has }
        };
        let mut powers = Vec::new();
        for (name, shows, scope) in POWERS {
            let Some(at) = at(&[name]) else { continue };
            let name = names.get(at).cloned().unwrap_or_default();
            let unit = match named(&name).1 {
                Some(unit) => Some(known(line, &name, unit)?),
                None => None,
            };
            let channel = Channel { name, shows: *shows, scope: *scope };
            powers.push(PowerColumn { at, channel, unit, header_line: line });
        }
        let limit = LIMITS.iter().find_map(|limit| at(&[limit]));
        let limit = limit.and_then(|at| {
            let unit = named(names.get(at)?).1.unwrap_or("W");
            Some((at, cell::unit(unit)?))
        });
        let reason = |reason: &str| {
            let of = |family: &str| at(&[&format!("{family}.{reason}")]);
            of("clocks_event_reasons").or_else(|| of("clocks_throttle_reasons"))
        };
        let header = Self {
            line,
            timestamp: at(&["timestamp"]).ok_or_else(|| missing("timestamp"))?,
            identity: at(IDENTITIES),
            index: at(&["index"]),
            uuid: at(&["uuid", "gpu_uuid"]),
            pci: at(&["pci.bus_id", "gpu_bus_id"]),
            model: at(&["name", "gpu_name"]),
            limit,
            utilisation: at(&["utilization.gpu"]),
            temperature: at(&["temperature.gpu"]),
            reasons: reason("active"),
            capped: reason("sw_power_cap"),
            braked: reason("hw_power_brake_slowdown"),
            powers,
            names: Vec::new(),
        };
        if header.powers.is_empty() {
            return Err(missing("power.draw"));
        }
        Ok(Self { names, ..header })
    }

    /// True for a row that names columns.
    pub(super) fn is_header(&self, cells: &[&str]) -> bool {
        cells.iter().any(|cell| named(cell).0.eq_ignore_ascii_case("timestamp"))
    }

    /// True for the same header.
    pub(super) fn is(&self, cells: &[&str]) -> bool {
        cells.iter().eq(self.names.iter())
    }

    pub(super) fn card(&self, cells: &[&str]) -> CardName {
        let word = |at: Option<usize>| {
            let cell = *cells.get(at?)?;
            // What is no word for "nothing" is a name.
            (cell::absence(cell) == Fault::MalformedRow).then(|| cell.to_owned())
        };
        CardName {
            index: word(self.index).and_then(|index| index.parse().ok()),
            uuid: word(self.uuid),
            pci: word(self.pci),
            model: word(self.model),
        }
    }

    pub(super) fn limit(&self, cells: &[&str]) -> Option<Power> {
        let (at, unit) = self.limit?;
        cell::power(cells.get(at)?, unit).ok().filter(|limit| *limit > Power::ZERO)
    }

    pub(super) fn activity(&self, cells: &[&str]) -> Activity {
        let figure = |at: Option<usize>| cell::figure(cells.get(at?)?);
        Activity { utilisation: figure(self.utilisation), temperature: figure(self.temperature) }
    }

    pub(super) fn throttle(&self, cells: &[&str]) -> Option<Throttle> {
        let cell = |at: Option<usize>| cells.get(at?).copied();
        let bits = cell(self.reasons)
            .and_then(|cell| u64::from_str_radix(cell.strip_prefix("0x")?, 16).ok());
        let active = |at: Option<usize>, bit: u64| match cell(at) {
            Some("Active") => Some(true),
            Some("Not Active") => Some(false),
            _ => bits.map(|bits| bits & bit != 0),
        };
        let (capped, braked) =
            (active(self.capped, SW_POWER_CAP), active(self.braked, HW_POWER_BRAKE));
        (capped.is_some() || braked.is_some()).then(|| Throttle {
            power_capped: capped.unwrap_or_default(),
            power_braked: braked.unwrap_or_default(),
        })
    }
}

impl PowerColumn {
    /// A cell's power. A column whose header names no unit takes the one of its cells; a bare
    /// number is then no power.
    pub(super) fn read(
        &mut self,
        line: usize,
        content: &str,
    ) -> Result<Result<Value, Fault>, ReplayError> {
        if self.unit.is_none()
            && let Some((_, unit)) = number(content)
        {
            let column = self.channel.name.clone();
            if unit.is_empty() {
                return Err(ReplayError::NoUnit { line: self.header_line, column });
            }
            self.unit = Some(known(line, &column, unit)?);
        }
        Ok(match self.unit {
            Some(unit) => cell::power(content, unit).map(Value::Power),
            None => Err(cell::absence(content)),
        })
    }
}

fn known(line: usize, column: &str, unit: &str) -> Result<Unit, ReplayError> {
    cell::unit(unit).ok_or_else(|| ReplayError::UnknownUnit {
        line,
        column: column.to_owned(),
        unit: shortened(unit),
    })
}
