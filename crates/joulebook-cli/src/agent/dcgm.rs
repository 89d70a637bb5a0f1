//! The cards as NVIDIA's dcgm-exporter shows them, so that tools that read it read this: its names,
//! its units (W, mJ, MiB, per cent) and its labels.
//!
//! Energy is what the driver's register shows, as there, and so absent for a card that has none; it
//! starts anew with the driver, not with the agent. What is not fresh is absent.

use std::fmt::Write;

use super::{Agent, roster::Seat};

/// A field: its name, type and help as in dcgm-exporter's own list, and where it comes from.
struct Field {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    shows: fn(&Seat) -> Option<f64>,
}

const FIELDS: [Field; 5] = [
    Field {
        name: "DCGM_FI_DEV_POWER_USAGE",
        kind: "gauge",
        help: "Power draw (in W).",
        shows: |seat| {
            let card = &seat.state.as_ref().ok()?.card;
            Some(card.power_until(card.fresh().ok()?).watts())
        },
    },
    Field {
        name: "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
        kind: "counter",
        help: "Total energy consumption since boot (in mJ).",
        shows: |seat| {
            let card = fresh(seat)?;
            card.register().map(|energy| (energy.microjoules() / 1000) as f64)
        },
    },
    Field {
        name: "DCGM_FI_DEV_GPU_UTIL",
        kind: "gauge",
        help: "GPU utilization (in %).",
        shows: |seat| fresh(seat)?.usage().utilization_pct.map(f64::from),
    },
    Field {
        name: "DCGM_FI_DEV_FB_FREE",
        kind: "gauge",
        help: "Framebuffer memory free (in MiB).",
        shows: |seat| {
            let usage = fresh(seat)?.usage();
            Some(usage.total_mib?.saturating_sub(usage.used_mib?) as f64)
        },
    },
    Field {
        name: "DCGM_FI_DEV_FB_USED",
        kind: "gauge",
        help: "Framebuffer memory used (in MiB).",
        shows: |seat| fresh(seat)?.usage().used_mib.map(|mib| mib as f64),
    },
];

/// The page, in Prometheus text.
pub fn page(agent: &Agent) -> String {
    let listing = agent.roster.now();
    let mut page = String::new();
    for field in FIELDS {
        let shown: Vec<_> =
            listing.seats.iter().filter_map(|seat| Some((seat, (field.shows)(seat)?))).collect();
        if shown.is_empty() {
            continue;
        }
        let Field { name, kind, help, .. } = field;
        // Writing into a string does not fail.
        let _ = writeln!(page, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (seat, value) in shown {
            let _ = writeln!(page, "{name}{{{}}} {value}", labels(agent, seat));
        }
    }
    page
}

fn fresh(seat: &Seat) -> Option<&joulebook::Card> {
    let card = &seat.state.as_ref().ok()?.card;
    card.fresh().ok().map(|_| &**card)
}

fn labels(agent: &Agent, seat: &Seat) -> String {
    let described = seat.described();
    let (seen, gpu) = (&described.seen, seat.found.index);
    // There a domain has eight digits: 00000000:07:00.0.
    let pci = seen.pci.as_deref().unwrap_or_default().to_uppercase();
    let pci = match pci.split_once(':') {
        Some((domain, rest)) if rest.contains(':') => format!("{domain:0>8}:{rest}"),
        _ => pci,
    };
    let labels = [
        ("gpu", gpu.to_string()),
        ("UUID", seen.uuid.clone()),
        ("pci_bus_id", pci),
        ("device", format!("nvidia{gpu}")),
        ("modelName", seen.name.clone()),
        ("Hostname", agent.node.clone()),
        ("DCGM_FI_DRIVER_VERSION", seen.driver.clone().unwrap_or_default()),
    ];
    let each = labels.map(|(name, value)| format!("{name}=\"{}\"", escaped(&value)));
    each.join(",")
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_stays_inside_its_quotes() {
        assert_eq!(escaped("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
    }
}
