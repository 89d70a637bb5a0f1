//! What the tool is asked for, and what is asked instead when its driver does not know a field.
//!
//! Names changed with drivers 530 (averaged and instant power), 535 and 570; one unknown field makes
//! the whole query fail, in one sentence that names it. So each field has its older names, and those
//! that can be done without are dropped. Nothing is given up but that field.

/// A column, by the names it may be asked for, the newest first.
const COLUMNS: &[&[&str]] = &[
    &["timestamp"],
    &["index"],
    &["uuid", "gpu_uuid"],
    &["pci.bus_id", "gpu_bus_id"],
    &["name", "gpu_name"],
    &["driver_version"],
    &["compute_cap"],
    &["mig.mode.current"],
    &["memory.used"],
    &["memory.total"],
    &["utilization.gpu"],
    &["power.limit", "enforced.power.limit"],
    &["power.draw.instant"],
    &["power.draw.average"],
    // Always asked too: some cards answer this one alone.
    &["power.draw"],
    &["clocks_event_reasons.sw_power_cap", "clocks_throttle_reasons.sw_power_cap"],
    &[
        "clocks_event_reasons.hw_power_brake_slowdown",
        "clocks_throttle_reasons.hw_power_brake_slowdown",
    ],
];

/// The columns asked for now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    /// Which of its names each column is asked by; past the last: not at all.
    names: Vec<usize>,
}

impl Default for Columns {
    fn default() -> Self {
        Self { names: vec![0; COLUMNS.len()] }
    }
}

impl Columns {
    /// The fields, as `--query-gpu` takes them.
    pub fn query(&self) -> String {
        self.fields().collect::<Vec<_>>().join(",")
    }

    /// The fields.
    pub fn fields(&self) -> impl Iterator<Item = &'static str> {
        COLUMNS.iter().zip(&self.names).filter_map(|(names, name)| names.get(*name).copied())
    }

    /// The driver does not know this field: its next name takes its place, or it is dropped. False
    /// when it was not asked for, so that asking again would end the same.
    pub fn refuse(&mut self, field: &str) -> bool {
        for (names, name) in COLUMNS.iter().zip(&mut self.names) {
            if names.get(*name).is_some_and(|asked| *asked == field) {
                *name += 1;
                return true;
            }
        }
        false
    }

    /// True while a power is asked for, and something that tells cards apart.
    pub fn suffice(&self) -> bool {
        let has = |wanted: &[&str]| self.fields().any(|field| wanted.contains(&field));
        has(&["power.draw", "power.draw.instant", "power.draw.average"])
            && has(&["index", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id"])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_fields_are_replaced_or_dropped_one_by_one() {
        let mut columns = Columns::default();
        assert!(columns.query().starts_with("timestamp,index,uuid,"));
        assert!(columns.refuse("power.draw.average"));
        assert!(columns.query().contains("power.draw,") && columns.suffice());
        assert!(!columns.query().contains("power.draw.average"));
        assert!(columns.refuse("clocks_event_reasons.sw_power_cap"));
        assert!(columns.query().contains("clocks_throttle_reasons.sw_power_cap"));
        assert!(columns.refuse("clocks_throttle_reasons.sw_power_cap"));
        assert!(!columns.query().contains("sw_power_cap"));
        assert!(!columns.refuse("clocks_event_reasons.sw_power_cap"), "it is not asked any more");
        assert!(columns.refuse("power.draw.instant") && columns.suffice());
        assert!(columns.refuse("power.draw") && !columns.suffice());
    }
}
