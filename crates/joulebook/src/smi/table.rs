//! The tool's table: columns by name, a row of one card.
//!
//! A cell that holds no number is a fault with its word, and takes no other cell with it; a flag is
//! true, false or not known. A unit must be the header's; a row of another length is no row.

use joulebook_core::{Fault, Power};

use crate::{
    identity,
    reader::Throttle,
    replay::{
        cell::{self, Unit},
        stamp::civil_ns,
        text::cells,
    },
};

const POWER: Option<&str> = Some("W");

/// A table's columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Each column's name, and its unit where the header says one.
    columns: Vec<(String, Option<String>)>,
}

/// What a row says of a card.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// When, by the tool's clock: local time counted as if it were UTC, ns.
    pub stamp_ns: Option<u64>,
    /// The driver's index.
    pub index: Option<u32>,
    /// The card's UUID.
    pub uuid: Option<String>,
    /// PCI address.
    pub pci: Option<String>,
    /// The card's name.
    pub name: Option<String>,
    /// The driver's version.
    pub driver: Option<String>,
    /// CUDA compute capability.
    pub capability: Option<(i32, i32)>,
    /// Whether the card is split into instances.
    pub mig: Option<bool>,
    /// Memory in use, MiB.
    pub used_mib: Option<u64>,
    /// All memory, MiB.
    pub total_mib: Option<u64>,
    /// How busy the card is, per cent.
    pub utilization_pct: Option<u32>,
    /// The power limit.
    pub limit: Option<Power>,
    /// `power.draw.instant`; `None`: there is no such column.
    pub instant: Option<Result<Power, Fault>>,
    /// `power.draw.average`.
    pub average: Option<Result<Power, Fault>>,
    /// `power.draw`.
    pub draw: Option<Result<Power, Fault>>,
    /// The software power cap is at work; `None`: not known.
    pub power_capped: Option<bool>,
    /// The hardware power brake is at work; `None`: not known.
    pub power_braked: Option<bool>,
}

impl Table {
    /// The columns that a header names; `None` where the line is no header (an error's sentence, a
    /// row).
    pub fn of_header(line: &str) -> Option<Self> {
        let columns: Vec<_> = cells(line)
            .into_iter()
            .map(|cell| {
                let (name, unit) = cell::named(cell);
                (name.to_ascii_lowercase(), unit.map(str::to_owned))
            })
            .collect();
        let is_field = |name: &str| {
            name.starts_with(|letter: char| letter.is_ascii_lowercase())
                && name.bytes().all(|byte| {
                    byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._".contains(&byte)
                })
        };
        columns.iter().all(|(name, _)| is_field(name)).then_some(Self { columns })
    }

    /// True where there is a power.
    pub fn has_power(&self) -> bool {
        self.columns.iter().any(|(name, _)| name.starts_with("power.draw"))
    }

    /// The columns of a query whose answer has no header.
    pub fn of_query(query: &str) -> Self {
        let columns = query.split(',').map(|name| (name.trim().to_ascii_lowercase(), None));
        Self { columns: columns.collect() }
    }

    /// A row; `None` where it has another number of cells than the table has columns.
    pub fn row(&self, line: &str) -> Option<Row> {
        let cells = cells(line);
        if cells.len() != self.columns.len() {
            return None;
        }
        let mut row = Row::default();
        for ((name, unit), cell) in self.columns.iter().zip(cells) {
            row.fill(name, unit.as_deref(), cell);
        }
        Some(row)
    }
}

impl Row {
    fn fill(&mut self, name: &str, unit: Option<&str>, cell: &str) {
        let word = || is_word(cell).then(|| cell.to_owned());
        let flag = || match cell {
            "Active" | "Enabled" => Some(true),
            "Not Active" | "Disabled" => Some(false),
            _ => None,
        };
        match name {
            "timestamp" => self.stamp_ns = civil_ns(cell),
            "index" => self.index = cell.parse().ok(),
            "uuid" | "gpu_uuid" => self.uuid = word(),
            "pci.bus_id" | "gpu_bus_id" => {
                self.pci = word().map(|pci| identity::normal_pci(&pci).unwrap_or(pci));
            }
            "name" | "gpu_name" => self.name = word(),
            "driver_version" => self.driver = word(),
            "compute_cap" => {
                let parts = cell.split_once('.');
                self.capability =
                    parts.and_then(|(major, minor)| major.parse().ok().zip(minor.parse().ok()));
            }
            "mig.mode.current" => self.mig = flag(),
            "memory.used" => self.used_mib = mebibytes(cell, unit),
            "memory.total" => self.total_mib = mebibytes(cell, unit),
            "utilization.gpu" => self.utilization_pct = whole(cell, unit, "%"),
            "power.limit" | "enforced.power.limit" => {
                let limit = power(cell, unit).ok();
                self.limit = limit.filter(|limit| *limit > Power::ZERO).or(self.limit);
            }
            "power.draw.instant" => self.instant = Some(power(cell, unit)),
            "power.draw.average" => self.average = Some(power(cell, unit)),
            "power.draw" => self.draw = Some(power(cell, unit)),
            "clocks_event_reasons.sw_power_cap" | "clocks_throttle_reasons.sw_power_cap" => {
                self.power_capped = flag();
            }
            "clocks_event_reasons.hw_power_brake_slowdown"
            | "clocks_throttle_reasons.hw_power_brake_slowdown" => self.power_braked = flag(),
            _ => {}
        }
    }

    /// True when the row says whose it is.
    pub const fn is_bound(&self) -> bool {
        self.index.is_some() || self.uuid.is_some() || self.pci.is_some()
    }

    /// What holds the clocks down, where the row says anything of it.
    pub fn throttle(&self) -> Option<Throttle> {
        let Self { power_capped, power_braked, .. } = *self;
        (power_capped.is_some() || power_braked.is_some())
            .then_some(Throttle { power_capped, power_braked })
    }
}

/// The rows of a whole answer. `format` is the one it was asked in; lines that are blank are no
/// rows, and `None` stands for a line that is none and not blank.
pub fn rows(query: &str, format: &str, text: &str) -> Vec<Option<Row>> {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let headless = format.split(',').any(|word| word.trim() == "noheader");
    let table = if headless {
        Some(Table::of_query(query))
    } else {
        lines.next().and_then(Table::of_header)
    };
    lines.map(|line| table.as_ref().and_then(|table| table.row(line))).collect()
}

fn is_word(cell: &str) -> bool {
    // What is no word for "nothing" says something.
    cell::absence(cell) == Fault::MalformedRow
}

fn power(cell: &str, unit: Option<&str>) -> Result<Power, Fault> {
    match unit.or(POWER).and_then(cell::unit) {
        Some(unit) => in_unit(cell, unit),
        None => Err(Fault::MalformedRow),
    }
}

fn in_unit(cell: &str, unit: Unit) -> Result<Power, Fault> {
    cell::power(cell, unit)
}

fn mebibytes(cell: &str, unit: Option<&str>) -> Option<u64> {
    whole(cell, unit, "MiB").map(u64::from)
}

/// A whole number of the unit expected.
fn whole(cell: &str, header: Option<&str>, expected: &str) -> Option<u32> {
    let (number, unit) = cell::number(cell)?;
    let known = |unit: &str| unit.is_empty() || unit == expected;
    let whole = number >= 0.0 && number.fract() == 0.0 && number <= f64::from(u32::MAX);
    (whole && known(unit) && known(header.unwrap_or_default())).then_some(number as u32)
}

#[cfg(test)]
mod tests;
