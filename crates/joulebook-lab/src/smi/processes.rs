//! Compute processes: `--query-compute-apps` and `pmon`.

use super::{
    Ends,
    ask::Query,
    cells::{Cell, line, major},
    fields::{forced, header, now, unknown},
};
use crate::{
    card::Model,
    machine::{Machine, Spent},
    scenario::{Refusal, Resident},
};

/// The names of a field: first the header's.
const FIELDS: &[&[&str]] = &[
    &["timestamp"],
    &["gpu_name"],
    &["gpu_bus_id"],
    &["gpu_serial"],
    &["gpu_uuid"],
    &["pid"],
    &["process_name", "name"],
    &["used_gpu_memory", "used_memory"],
];

/// The table of one tick. Where a card's processes cannot be listed the program fails.
pub(super) fn rows(
    machine: &Machine,
    chosen: &[&Model],
    query: &Query,
    first: bool,
) -> Result<String, Ends> {
    let driver = major(&machine.scenario().driver);
    let fields: Vec<&'static str> = query
        .fields
        .iter()
        .map(|asked| {
            let known = FIELDS.iter().find(|names| names.contains(&asked.as_str()));
            known.and_then(|names| names.first().copied()).ok_or_else(|| unknown(asked))
        })
        .collect::<Result<_, _>>()?;
    let mut text = String::new();
    if first && query.header {
        let unit = |name: &str| if name == "used_gpu_memory" { "MiB" } else { "" };
        let headers: Vec<String> = fields.iter().map(|name| header(name, unit(name))).collect();
        text.push_str(&line(&headers));
    }
    for model in chosen {
        let residents = machine.ask(Spent::Nothing, |t_ns| model.residents(t_ns));
        let residents = residents.map_err(|_| Ends { code: 1, says: String::new() })?;
        for resident in residents {
            let cell = |name: &&str| {
                forced(machine, model, |field| field == *name)
                    .unwrap_or_else(|| cell(model, resident, name).text(query.units, driver))
            };
            text.push_str(&line(&fields.iter().map(cell).collect::<Vec<_>>()));
        }
    }
    Ok(text)
}

fn cell(model: &Model, resident: &Resident, name: &str) -> Cell {
    match name {
        "timestamp" => Cell::Word(now()),
        "gpu_name" => Cell::word(&model.card().name),
        "gpu_bus_id" => Cell::word(model.card().pci),
        "gpu_uuid" => Cell::word(&model.card().uuid),
        "pid" => Cell::word(resident.pid),
        "process_name" => Cell::word(&resident.name),
        "used_gpu_memory" => {
            let used = resident.used_mib.ok_or(Refusal::NotSupported);
            Cell::of(used, |used| used.to_string(), "MiB")
        }
        _ => Cell::Refused(Refusal::NotSupported),
    }
}

/// `pmon -c 1`: by utilisation, or by memory (`-s m`).
pub(super) fn monitor(machine: &Machine, chosen: &[&Model], memory: bool) -> String {
    let mut text = if memory {
        "# gpu         pid   type     fb   ccpm    command \n\
         # Idx           #    C/G     MB     MB    name \n"
            .to_owned()
    } else {
        "# gpu         pid   type     sm    mem    enc    dec    command \n\
         # Idx           #    C/G      %      %      %      %    name \n"
            .to_owned()
    };
    let dash = || "-".to_owned();
    for model in chosen {
        let residents = machine.ask(Spent::Nothing, |t_ns| model.residents(t_ns));
        let index = model.index();
        let residents = residents.unwrap_or_default();
        if residents.is_empty() {
            let rest = if memory { "      -      -" } else { "      -      -      -      -" };
            text.push_str(&format!("{index:5} {:>11}     - {rest}    -              \n", "-"));
        }
        for resident in residents {
            let command = resident.name.rsplit('/').next().unwrap_or_default();
            let columns = if memory {
                format!(
                    "{:>6} {:>6}",
                    resident.used_mib.map_or_else(dash, |mib| mib.to_string()),
                    0
                )
            } else {
                let sm = resident.sm_percent.map_or_else(dash, |percent| percent.to_string());
                format!("{sm:>6} {:>6} {:>6} {:>6}", "-", "-", "-")
            };
            let pid = resident.pid;
            text.push_str(&format!("{index:5} {pid:>11}     C {columns}    {command:<14} \n"));
        }
    }
    text
}
