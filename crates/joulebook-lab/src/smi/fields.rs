//! `--query-gpu`: the fields, which drivers know them, and what they show.

use super::{
    Ends,
    ask::Query,
    cells::{Cell, line, major},
};
use crate::{
    card::{Model, PowerRegister},
    machine::{Machine, Spent},
    scenario::{Refusal, SmiEffect},
};

/// A field.
struct Field {
    /// As the header names it.
    name: &'static str,
    /// Other names that queries may use.
    aliases: &'static [&'static str],
    /// The unit in the header.
    unit: &'static str,
    /// The first driver that knows it.
    since: u32,
    shows: fn(&Machine, &Model) -> Cell,
}

const fn field(name: &'static str, shows: fn(&Machine, &Model) -> Cell) -> Field {
    Field { name, aliases: &[], unit: "", since: 0, shows }
}

impl Field {
    const fn also(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    const fn unit(self, unit: &'static str) -> Self {
        Self { unit, ..self }
    }

    const fn since(self, since: u32) -> Self {
        Self { since, ..self }
    }

    fn is(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }
}

const FIELDS: &[Field] = &[
    field("timestamp", |_, _| Cell::Word(now())),
    field("driver_version", |machine, _| Cell::word(&machine.scenario().driver)),
    field("count", |machine, _| Cell::word(machine.models().len())),
    field("name", |machine, model| {
        let name = machine.ask(Spent::Nothing, |t_ns| model.name(t_ns));
        name.map_or_else(Cell::Refused, Cell::Word)
    })
    .also(&["gpu_name"]),
    field("serial", |_, _| Cell::Refused(Refusal::NotSupported)).also(&["gpu_serial"]),
    field("uuid", |_, model| Cell::word(&model.card().uuid)).also(&["gpu_uuid"]),
    field("pci.bus_id", |_, model| Cell::word(model.card().pci)).also(&["gpu_bus_id"]),
    field("index", |_, model| Cell::word(model.index())),
    field("compute_cap", |_, model| {
        let (major, minor) = model.card().compute_capability;
        Cell::Word(format!("{major}.{minor}"))
    })
    .since(510),
    field("persistence_mode", |_, _| Cell::word("Enabled")),
    field("pstate", |_, _| Cell::word("P0")),
    field("mig.mode.current", |_, model| match model.card().mig {
        Some(true) => Cell::word("Enabled"),
        Some(false) => Cell::word("Disabled"),
        None => Cell::Refused(Refusal::NotSupported),
    })
    .since(450),
    field("memory.total", |machine, model| memory(machine, model, |used| used.total_mib))
        .unit("MiB"),
    field("memory.used", |machine, model| memory(machine, model, |used| used.used_mib)).unit("MiB"),
    field("memory.free", |machine, model| {
        memory(machine, model, |used| used.total_mib - used.used_mib)
    })
    .unit("MiB"),
    field("utilization.gpu", |machine, model| {
        let used = machine.ask(Spent::Nothing, |t_ns| model.utilization(t_ns));
        Cell::of(used, |used| used.gpu.to_string(), "%")
    })
    .unit("%"),
    field("utilization.memory", |machine, model| {
        let used = machine.ask(Spent::Nothing, |t_ns| model.utilization(t_ns));
        Cell::of(used, |used| used.mem.to_string(), "%")
    })
    .unit("%"),
    field("temperature.gpu", |machine, model| {
        other(machine, model, |model| model.card().clocks.temperature_c.to_string(), "")
    }),
    field("power.draw", |machine, model| power(machine, model, PowerRegister::Average, false))
        .unit("W"),
    field("power.draw.average", |machine, model| {
        power(machine, model, PowerRegister::Average, true)
    })
    .unit("W")
    .since(530),
    field("power.draw.instant", |machine, model| {
        power(machine, model, PowerRegister::Instant, true)
    })
    .unit("W")
    .since(530),
    field("power.limit", |machine, model| limit(machine, model, |limit| limit.w)).unit("W"),
    field("enforced.power.limit", |machine, model| limit(machine, model, |limit| limit.w))
        .unit("W"),
    field("power.default_limit", |machine, model| limit(machine, model, |limit| limit.max_w))
        .unit("W"),
    field("power.min_limit", |machine, model| limit(machine, model, |limit| limit.min_w)).unit("W"),
    field("power.max_limit", |machine, model| limit(machine, model, |limit| limit.max_w)).unit("W"),
    field("clocks.current.sm", |machine, model| {
        other(machine, model, |model| model.card().clocks.sm_mhz.to_string(), "MHz")
    })
    .also(&["clocks.sm"])
    .unit("MHz"),
    field("clocks.current.memory", |machine, model| {
        other(machine, model, |model| model.card().clocks.mem_mhz.to_string(), "MHz")
    })
    .also(&["clocks.mem"])
    .unit("MHz"),
    field("clocks_event_reasons.active", active).since(535),
    field("clocks_event_reasons.sw_power_cap", capped).since(535),
    field("clocks_event_reasons.hw_power_brake_slowdown", braked).since(535),
    field("clocks_throttle_reasons.active", active),
    field("clocks_throttle_reasons.sw_power_cap", capped),
    field("clocks_throttle_reasons.hw_power_brake_slowdown", braked),
];

/// The table of one tick, with its header where it is the first and one was asked for.
pub(super) fn rows(
    machine: &Machine,
    chosen: &[&Model],
    query: &Query,
    first: bool,
) -> Result<String, Ends> {
    let driver = major(&machine.scenario().driver);
    let fields: Vec<&Field> = query
        .fields
        .iter()
        .map(|name| {
            let known = FIELDS.iter().find(|field| field.is(name) && driver >= field.since);
            known.ok_or_else(|| unknown(name))
        })
        .collect::<Result<_, _>>()?;
    let mut text = String::new();
    if first && query.header {
        let headers: Vec<String> =
            fields.iter().map(|field| header(field.name, field.unit)).collect();
        text.push_str(&line(&headers));
    }
    for model in chosen {
        if let Some(garbage) = garbage(machine, model) {
            text.push_str(&format!("{garbage}\n"));
            continue;
        }
        let cells: Vec<String> = fields
            .iter()
            .map(|field| {
                forced(machine, model, |name| field.is(name))
                    .unwrap_or_else(|| (field.shows)(machine, model).text(query.units, driver))
            })
            .collect();
        text.push_str(&line(&cells));
    }
    Ok(text)
}

pub(super) fn header(name: &str, unit: &str) -> String {
    if unit.is_empty() { name.to_owned() } else { format!("{name} [{unit}]") }
}

pub(super) fn unknown(name: &str) -> Ends {
    Ends { code: 2, says: format!("Field \"{name}\" is not a valid field to query.\n\n") }
}

/// What a fault puts into a cell.
pub(super) fn forced(
    machine: &Machine,
    model: &Model,
    is: impl Fn(&str) -> bool,
) -> Option<String> {
    let now_ns = machine.now_ns();
    model.card().smi_faults.iter().rev().find_map(|fault| match &fault.effect {
        SmiEffect::Field { field, text } if fault.span.contains(now_ns) && is(field) => {
            Some(text.clone())
        }
        _ => None,
    })
}

fn garbage(machine: &Machine, model: &Model) -> Option<String> {
    let now_ns = machine.now_ns();
    model.card().smi_faults.iter().find_map(|fault| match &fault.effect {
        SmiEffect::Garbage(text) if fault.span.contains(now_ns) => Some(text.clone()),
        _ => None,
    })
}

/// `--help-query-gpu`, in brief.
pub(super) fn help() -> String {
    let names = FIELDS.iter().map(|field| format!("\"{}\"\n", field.name));
    format!("List of valid properties to query for the switch \"--query-gpu=\":\n\n{}", {
        names.collect::<String>()
    })
}

/// The moment, as the tool writes it: local time.
pub(super) fn now() -> String {
    jiff::ZonedDateTime::now().strftime("%Y/%m/%d %H:%M:%S%.3f").to_string()
}

pub(super) fn power(
    machine: &Machine,
    model: &Model,
    register: PowerRegister,
    field: bool,
) -> Cell {
    let shown = machine.ask(Spent::Power, |t_ns| model.power_mw(register, t_ns, field));
    Cell::of(shown, |milliwatts| format!("{:.2}", f64::from(milliwatts) / 1e3), "W")
}

fn memory(
    machine: &Machine,
    model: &Model,
    which: impl FnOnce(crate::card::MemoryUse) -> u64,
) -> Cell {
    let used = machine.ask(Spent::Nothing, |t_ns| model.memory(t_ns));
    Cell::of(used, |used| which(used).to_string(), "MiB")
}

fn limit(
    machine: &Machine,
    model: &Model,
    which: impl FnOnce(&crate::scenario::Limit) -> f64,
) -> Cell {
    other(machine, model, |model| format!("{:.2}", which(&model.card().limit)), "W")
}

fn other(
    machine: &Machine,
    model: &Model,
    shows: impl FnOnce(&Model) -> String,
    unit: &'static str,
) -> Cell {
    let answer = machine.ask(Spent::Nothing, |t_ns| model.other(t_ns));
    Cell::of(answer, |()| shows(model), unit)
}

fn active(machine: &Machine, model: &Model) -> Cell {
    other(machine, model, |model| format!("0x{:016X}", model.card().clocks.reasons), "")
}

fn capped(machine: &Machine, model: &Model) -> Cell {
    other(machine, model, |model| flag(model.card().clocks.reasons & 0x4 != 0), "")
}

fn braked(machine: &Machine, model: &Model) -> Cell {
    other(machine, model, |model| flag(model.card().clocks.reasons & 0x80 != 0), "")
}

fn flag(active: bool) -> String {
    if active { "Active" } else { "Not Active" }.to_owned()
}
