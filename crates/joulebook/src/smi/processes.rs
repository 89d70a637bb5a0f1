//! The tool's three lists of processes: `--query-compute-apps`, `pmon`, and the XML form.
//!
//! A process may have any name, with commas in it: of a row its card and number are taken from the
//! left and its memory from the right, and what is left is the name. Rows of dashes are nobody.

use super::xml;
use crate::{identity, reader::Process, replay::cell};

/// A process and the card it is on, by whichever name of the card the list has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The card.
    pub on: On,
    /// The process.
    pub process: Process,
}

/// A card, as lists of processes name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum On {
    /// By its UUID.
    Uuid(String),
    /// By its PCI address, `0000:65:00.0`.
    Pci(String),
    /// By the driver's index.
    Index(u32),
}

/// Rows of `--query-compute-apps=gpu_uuid,pid,process_name,used_memory` (with or without units,
/// with or without a header; a bus id in the UUID's place will do). `None` where a line is none.
pub fn compute_apps(text: &str) -> Option<Vec<Listed>> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.filter(|line| !line.starts_with("gpu_")).map(application).collect()
}

fn application(line: &str) -> Option<Listed> {
    let (card, rest) = line.split_once(',')?;
    let (pid, rest) = rest.split_once(',')?;
    let (name, memory) = rest.rsplit_once(',')?;
    let card = card.trim();
    let on = match identity::normal_pci(card) {
        Some(pci) => On::Pci(pci),
        None => On::Uuid(card.to_owned()),
    };
    let process = Process {
        pid: pid.trim().parse().ok()?,
        used_mib: memory_mib(memory),
        name: name.trim().to_owned(),
    };
    Some(Listed { on, process })
}

/// `pmon -c 1`: columns by the names of its header; graphics processes are left out.
pub fn monitor(text: &str) -> Option<Vec<Listed>> {
    let mut columns: Option<Vec<&str>> = None;
    let mut listed = Vec::new();
    for line in text.lines() {
        if let Some(header) = line.trim_start().strip_prefix('#') {
            let names: Vec<&str> = header.split_whitespace().collect();
            // The second line of the header has the units.
            if columns.is_none() && names.contains(&"pid") {
                columns = Some(names);
            }
            continue;
        }
        if line.trim().is_empty() {
            continue;
        }
        let names = columns.as_ref()?;
        let cell = |name: &str| {
            let at = names.iter().position(|column| *column == name)?;
            line.split_whitespace().nth(at)
        };
        let (Some(index), Some(pid)) = (cell("gpu"), cell("pid")) else { return None };
        if pid == "-" || cell("type").is_some_and(|kind| !kind.contains('C')) {
            continue;
        }
        let before = names.iter().position(|column| matches!(*column, "command" | "name"));
        let name = before.map(|at| line.split_whitespace().skip(at).collect::<Vec<_>>().join(" "));
        listed.push(Listed {
            on: On::Index(index.parse().ok()?),
            process: Process {
                pid: pid.parse().ok()?,
                used_mib: cell("fb").and_then(memory_mib),
                name: name.unwrap_or_default(),
            },
        });
    }
    columns.map(|_| listed)
}

/// The XML form's compute processes.
pub fn of_xml(text: &str) -> Option<Vec<Listed>> {
    let cards = xml::cards(text)?;
    let listed = cards.into_iter().flat_map(|card| {
        let on = match (card.uuid, card.pci) {
            (Some(uuid), _) => On::Uuid(uuid),
            (None, pci) => On::Pci(pci.unwrap_or_default()),
        };
        card.processes.into_iter().map(move |process| Listed { on: on.clone(), process })
    });
    Some(listed.collect())
}

/// MiB; what is no number is a size that is not known.
pub(super) fn memory_mib(cell: &str) -> Option<u64> {
    // All ones, in bytes brought to MiB, stand for "not known".
    const ALL_ONES_MIB: f64 = 17_592_186_044_415.0;
    let (number, unit) = cell::number(cell)?;
    let good = matches!(unit, "" | "MiB") && (0.0..ALL_ONES_MIB).contains(&number);
    good.then_some(number as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smi_line_shape_02_a_name_may_hold_commas() {
        let text = "GPU-11111111-2222-3333-4444-555555555555, 4242, /opt/run, v2/serve --ids 1,2, \
                    18200\n";
        let listed = compute_apps(text).unwrap();
        let process = Process {
            pid: 4242,
            used_mib: Some(18_200),
            name: "/opt/run, v2/serve --ids 1,2".to_owned(),
        };
        let on = On::Uuid("GPU-11111111-2222-3333-4444-555555555555".to_owned());
        assert_eq!(listed, [Listed { on, process }]);
        let header = "gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n\n";
        assert_eq!(compute_apps(&format!("{header}{text}")).unwrap(), listed);
        assert_eq!(compute_apps("").unwrap(), []);
        assert_eq!(compute_apps("No devices were found\n"), None);
    }

    #[test]
    fn tenancy_03_a_size_that_is_not_known_is_kept_as_such() {
        let text = "GPU-a, 1300, C:\\\\apps\\\\other.exe, [N/A]\n00000000:18:00.0, 7, x, 12 MiB\n";
        let listed = compute_apps(text).unwrap();
        let sizes: Vec<_> =
            listed.iter().map(|one| (one.process.pid, one.process.used_mib)).collect();
        assert_eq!(sizes, [(1300, None), (7, Some(12))]);
        assert_eq!(listed[1].on, On::Pci("0000:18:00.0".to_owned()));
        assert_eq!(memory_mib("17592186044415"), None);
    }

    #[test]
    fn smi_line_shape_08_a_row_of_dashes_is_nobody() {
        let text = "# gpu  pid  type  sm  mem  command\n    1    -     -   -    -   -\n";
        assert_eq!(monitor(text).unwrap(), []);
        assert_eq!(monitor("Not supported\n"), None);
        let text = "# gpu         pid   type     fb   ccpm    command \n\
                    # Idx           #    C/G     MB     MB    name \n\
                    \x20   0       1234     C   1800      0    python3 serve \n\
                    \x20   0       1235     G     10      0    Xorg \n\
                    \x20   1       1236   C+G      -      -    - \n";
        let listed = monitor(text).unwrap();
        let brief: Vec<_> = listed
            .iter()
            .map(|one| (one.on.clone(), one.process.pid, one.process.used_mib))
            .collect();
        assert_eq!(brief, [(On::Index(0), 1234, Some(1800)), (On::Index(1), 1236, None)]);
        assert_eq!(listed[0].process.name, "python3 serve");
    }
}
