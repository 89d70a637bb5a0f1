//! What the name of a metric tells: whether it is power or energy, and in which unit.

use joulebook_core::{Energy, Fault, Power};

use super::{Shows, table::decimals};
use crate::reader::Value;

/// A metric of power or energy, in watts or joules per unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Metric {
    counts: bool,
    per_unit: f64,
}

/// Names that do not end in their unit.
const KNOWN: &[(&str, bool, f64)] = &[
    ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", true, 1e-3),
    ("DCGM_FI_DEV_POWER_USAGE_INSTANT", false, 1.0),
    ("DCGM_FI_DEV_POWER_USAGE", false, 1.0),
];
/// Endings that tell.
const ENDINGS: &[(&str, bool, f64)] = &[
    ("microjoules", true, 1e-6),
    ("microjoule", true, 1e-6),
    ("millijoules", true, 1e-3),
    ("millijoule", true, 1e-3),
    ("joules", true, 1.0),
    ("joule", true, 1.0),
    ("milliwatts", false, 1e-3),
    ("watts", false, 1.0),
];

/// The metric of this name; `None` where it is none of power or energy.
pub(super) fn metric(name: &str) -> Option<Metric> {
    let base = name.strip_suffix("_total").unwrap_or(name).to_ascii_lowercase();
    let known = KNOWN.iter().find(|(known, ..)| *known == name);
    let ending = || ENDINGS.iter().find(|(ending, ..)| base.ends_with(&format!("_{ending}")));
    known
        .or_else(ending)
        .map(|(_, counts, per_unit)| Metric { counts: *counts, per_unit: *per_unit })
}

impl Metric {
    /// What its column shows, given the cells.
    pub(super) fn shows<'a>(self, cells: impl Iterator<Item = &'a str>) -> Shows {
        if !self.counts {
            return Shows::Draw;
        }
        let decimals = cells.filter_map(decimals).max().unwrap_or_default();
        let quantum_j = self.per_unit / 10f64.powi(i32::try_from(decimals).unwrap_or(6).min(6));
        let quantum = Energy::from_joules(quantum_j.max(1e-6)).unwrap_or_default();
        Shows::Counter { quantum }
    }

    /// A reading.
    pub(super) fn read(self, cell: &str) -> Result<Value, Fault> {
        let number: f64 = cell.trim().parse().map_err(|_| super::cell::absence(cell))?;
        if !number.is_finite() {
            return Err(Fault::Unknown);
        }
        let value = number * self.per_unit;
        if self.counts {
            let energy = Energy::from_joules(value).ok_or(Fault::Implausible)?;
            Ok(Value::Counter(energy.microjoules()))
        } else {
            Power::from_watts(value).map(Value::Power).ok_or(Fault::Implausible)
        }
    }
}

#[test]
fn a_metrics_name_tells_its_unit_or_nothing() {
    let read = |name: &str, cell: &str| metric(name).unwrap().read(cell);
    let counter = |microjoules| Ok(Value::Counter(microjoules));
    assert_eq!(read("kepler_node_package_joules_total", "100.109"), counter(100_109_000));
    assert_eq!(read("node_package_energy_millijoule", "124305373"), counter(124_305_373_000));
    assert_eq!(read("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "5"), counter(5000));
    assert_eq!(read("x_watts", "NaN"), Err(Fault::Unknown));
    assert_eq!(metric("DCGM_FI_DEV_GPU_TEMP"), None);
    assert_eq!(metric("joules"), None);
}
