//! A probe's report as a page for people.

use std::fmt::Write;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use joulebook::{
    Fault, Scope,
    probe::{Finding, Ratio, Renewal, Report},
    profile::Trust,
};

use crate::words::{FAINT, STRONG};

/// The page.
pub fn of(report: &Report, stored: &str) -> String {
    let mut page = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(
        page,
        "{STRONG}card {}: {}{STRONG:#}\n{FAINT}{} · {} · driver {}{FAINT:#}",
        report.index,
        report.name,
        report.uuid,
        report.pci.as_deref().unwrap_or("PCI address unknown"),
        report.driver.as_deref().unwrap_or("of unknown version"),
    );
    let _ = writeln!(page, "{}", readable(report));
    for (what, said) in lines(report) {
        let _ = writeln!(page, "{what:<18}{said}");
    }
    let _ = writeln!(page, "{STRONG}{:<18}{}{STRONG:#}", "verdict", verdict(report));
    for finding in &report.verdict.findings {
        let _ = writeln!(page, "{:<18}{}", "", of_finding(*finding));
    }
    let _ = writeln!(page, "{:<18}{stored}", "");
    page
}

fn readable(report: &Report) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(["what", "reads now", "a read takes", "95 % within"]);
    let micro = |value: Option<f64>| value.map_or(String::new(), |us| format!("{us:.0} µs"));
    for row in &report.readable {
        let now = match &row.now {
            Ok(now) => now.clone(),
            Err(Fault::NotSupported) => "no such reading".to_owned(),
            Err(fault) => format!("not now: {fault}"),
        };
        let cells = [name(row.what).to_owned(), now, micro(row.read_us), micro(row.read_p95_us)];
        table.add_row(cells);
    }
    let mig = match report.mig {
        Some(true) => "on: one register for all instances",
        Some(false) => "off",
        None => "no such mode",
    };
    table.add_row(["split into instances (MIG)", mig, "", ""]);
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn name(what: &'static str) -> &'static str {
    match what {
        "counter" => "energy counter",
        "instant" => "power at an instant (186)",
        "average" => "mean power (185)",
        "usage" => "power, plain call",
        "processes" => "processes",
        "memory" => "memory",
        "utilisation" => "utilisation",
        "throttle" => "what holds clocks down",
        "limit" => "power limit",
        other => other,
    }
}

fn lines(report: &Report) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    if let Some(counter) = &report.counter {
        lines.push(("counter renewed", renewed(counter)));
    }
    if let Some(gauge) = &report.gauge {
        lines.push(("power renewed", renewed(gauge)));
    }
    if let (Some(mean), Some((low, high))) = (report.mean_watts, report.range_watts) {
        let said = format!("{mean:.1} W on average, {low:.1} to {high:.1} W meanwhile");
        lines.push(("load", said));
    }
    let ratios: Vec<String> = [report.ratio_1hz, report.ratio_10hz, report.ratio_locked]
        .iter()
        .flatten()
        .map(ratio)
        .collect();
    if !ratios.is_empty() {
        lines.push(("counter ÷ power", ratios.join(" · ")));
    }
    if let Some(module) = &report.ratio_module {
        lines.push(("counter ÷ module", ratio(module)));
    }
    if report.counter.is_some() {
        let scope = match report.scope {
            Scope::Gpu => "the GPU",
            Scope::Module => "the whole module (CPU, memory, GPU)",
            Scope::Package => "the processor package",
            Scope::Machine => "the whole machine",
        };
        lines.push(("counter covers", scope.to_owned()));
        let lag = "not known: the gauge is late too; it takes a load whose own timing is known";
        lines.push(("counter's lag", lag.to_owned()));
    }
    lines
}

fn renewed(renewal: &Renewal) -> String {
    let most = if renewal.at_most { "at most " } else { "" };
    format!(
        "every {most}{:.1} ms, 19 of 20 within {:.1} ms of an even grid ({} seen)",
        renewal.period_s * 1e3,
        renewal.jitter_s * 1e3,
        renewal.publishes
    )
}

fn ratio(ratio: &Ratio) -> String {
    format!(
        "{:.3} ± {:.3} read at {:.0} Hz",
        ratio.value, ratio.uncertainty, ratio.reads_per_second
    )
}

const fn verdict(report: &Report) -> &'static str {
    match report.verdict.trust {
        Trust::Counter => "the energy counter is used",
        Trust::Gauge => "the power gauge is used, not the counter",
        Trust::Nothing => "neither energy nor power can be read: nothing can be measured",
    }
}

const fn of_finding(finding: Finding) -> &'static str {
    match finding {
        Finding::Agrees => {
            "counter and power gauge agree, as far as one of them can check the other"
        }
        Finding::Mismatch => {
            "counter and power gauge differ by more than 10 %: every figure says so"
        }
        Finding::Rejected => "they differ by more than 30 %: the counter is not to be believed",
        Finding::PollSensitive => {
            "the counter shows another slope the more often it is read (by more than 3 %): it is \
             read once a second"
        }
        Finding::Constant => "the counter stands still: it does not count",
        Finding::NoCounter => "this card or driver has no energy counter",
        Finding::CounterUnreadable => {
            "the counter could not be followed all the while; probe again"
        }
        Finding::NoGauge => "there is no power reading to check the counter by",
        Finding::GaugeUnreadable => {
            "the power could not be read now, so the counter could not be checked; probe again"
        }
        Finding::Uneven => {
            "the load was too uneven to check the counter to 10 %: probe again at rest or at a \
             steady load, or for longer (--seconds)"
        }
        Finding::Reset => "the counter restarted or was set meanwhile; probe again",
    }
}
