//! What was found, as a table that can be sent.

use std::{env, fmt::Write};

use joulebook::nvml::LIBRARY_VARIABLE;

use super::{
    edges::About,
    rates::Rate,
    suite::{Found, Register},
    windows::Window,
};

/// All cards.
pub fn text(cards: &[Found]) -> String {
    let mut text = String::from("# joulebook on a card\n");
    if let Some(library) = env::var_os(LIBRARY_VARIABLE).filter(|path| !path.is_empty()) {
        let _ = writeln!(
            text,
            "\n**The driver library is {}, named by {LIBRARY_VARIABLE}: not the system's.**",
            library.display()
        );
    }
    cards.iter().for_each(|found| card(&mut text, found));
    text
}

fn card(text: &mut String, found: &Found) {
    let info = &found.info;
    let _ = writeln!(
        text,
        "\n## Card {}: {}\n\ndriver {} · {} · compute capability {} · power limit {} · MIG {}",
        info.index,
        info.name,
        info.driver.as_deref().unwrap_or("of unknown version"),
        info.architecture.as_deref().unwrap_or("unknown architecture"),
        info.compute_capability
            .map_or("—".to_owned(), |(major, minor)| format!("{major}.{minor}")),
        info.limit.map_or("—".to_owned(), |limit| format!("{:.0} W", limit.watts())),
        info.mig.map_or("—", |on| if on { "on" } else { "off" }),
    );
    let _ = match &found.work {
        Ok(work) => writeln!(text, "work: {work}"),
        Err(error) => writeln!(text, "**no work, so only the card at rest**: {error}"),
    };
    if let Some(error) = &found.work_error {
        let _ = writeln!(text, "**the work failed, and what needs it is missing**: {error}");
    }
    let _ = writeln!(
        text,
        "at rest {} W · under the work {} W · measured in {:.0} s{}",
        number(found.idle_w, 2),
        number(found.loaded_w(), 2),
        found.seconds,
        if found.is_beside_others { ", other cards at the same time" } else { "" }
    );
    registers(text, &found.registers);
    costs(text, &found.registers);
    rates(text, &found.rates);
    windows(text, found);
}

fn registers(text: &mut String, registers: &[Register]) {
    text.push_str(
        "\n| register | period ms | jitter ms (95 %) | ± ms | publishes | lag ms | mean over ms | misfit |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for register in registers {
        let grid = register.grid;
        let lag = register.lag.or(register.response.map(|response| response.lag_s));
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            name(register),
            number(grid.map(|grid| grid.period_s * 1e3), 3),
            number(grid.map(|grid| grid.jitter_s * 1e3), 3),
            number(grid.map(|grid| grid.uncertainty_s * 1e3), 3),
            grid.map_or(0, |grid| grid.count),
            about_ms(lag),
            about_ms(register.response.map(|response| response.averaging_s)),
            number(register.response.map(|response| response.rest), 3),
        );
    }
}

/// The register, and why it is not there where it is not.
fn name(register: &Register) -> String {
    match register.trace.fault.filter(|_| !register.trace.is_read()) {
        Some(fault) => format!("{} ({fault})", register.name),
        None => register.name.to_owned(),
    }
}

fn costs(text: &mut String, registers: &[Register]) {
    text.push_str(
        "\n| one read | wall p50 µs | wall p99 µs | CPU p50 µs | CPU p99 µs | reads |\n\
         | --- | --- | --- | --- | --- | --- |\n",
    );
    for register in registers {
        let cost = register.cost;
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} |",
            register.name,
            number(cost.map(|cost| cost.wall_p50_us), 1),
            number(cost.map(|cost| cost.wall_p99_us), 1),
            number(cost.map(|cost| cost.cpu_p50_us), 1),
            number(cost.map(|cost| cost.cpu_p99_us), 1),
            cost.map_or(0, |cost| cost.reads),
        );
    }
}

fn rates(text: &mut String, rates: &[Rate]) {
    text.push_str(
        "\n| read at | card | s | reads/s counter, gauge | counter W (slope) | ± W | gauge W (mean) | \
         ratio | failed | odd |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for rate in rates {
        let _ = writeln!(
            text,
            "| {} | {} | {:.1} | {:.0}, {:.0} | {} | {} | {} | {} | {} | {} |",
            rate.hertz.map_or("full speed".to_owned(), |hertz| format!("{hertz} Hz")),
            if rate.is_loaded { "work" } else { "rest" },
            rate.seconds,
            rate.counter_per_s,
            rate.gauge_per_s,
            number(rate.slope_w, 2),
            number(rate.slope_uncertainty_w, 2),
            number(rate.mean_w, 2),
            number(rate.ratio(), 4),
            rate.failed,
            rate.odd,
        );
    }
}

fn windows(text: &mut String, found: &Found) {
    if found.windows.is_empty() {
        return;
    }
    let truth_is_known = found.windows.iter().any(|window| window.truth_j.is_some());
    let _ = writeln!(
        text,
        "\nWindows around the work, above rest. *work × time*: what the work draws in long, times \
         how long it took; no truth, but it should be near{}.\n\n\
         | window | worked ms | settled J | ± J | rule | at once J | ± J | tenancy | work × time J |{}\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- |{}",
        if truth_is_known { " (the truth is known here)" } else { "" },
        if truth_is_known { " truth J |" } else { "" },
        if truth_is_known { " --- |" } else { "" },
    );
    let above_w = found.loaded_w().zip(found.idle_w).map(|(loaded, idle)| loaded - idle);
    found.windows.iter().for_each(|it| window(text, it, above_w));
}

fn window(text: &mut String, window: &Window, above_w: Option<f64>) {
    let Window { settled, at_once, .. } = window;
    let rule = settled.rule.map_or("—".to_owned(), |rule| format!("{rule:?}").to_lowercase());
    let why = settled.error.map_or(String::new(), |fault| format!(" ({fault})"));
    let _ = write!(
        text,
        "| {} ms | {:.1} | {} | {} | {rule}{why} | {} | {} | {} | {} |",
        window.wanted_ms,
        window.worked_s * 1e3,
        number(settled.joules, 3),
        number(settled.bound_joules, 3),
        number(at_once.joules, 3),
        number(at_once.bound_joules, 3),
        format!("{:?}", settled.tenancy).to_lowercase(),
        number(above_w.map(|above_w| above_w * window.worked_s), 3),
    );
    if let Some(truth_j) = window.truth_j {
        let _ = write!(text, " {truth_j:.3} |");
    }
    text.push('\n');
}

fn about_ms(about: Option<About>) -> String {
    about.map_or("—".to_owned(), |about| {
        format!("{:.1} ± {:.1}", about.value * 1e3, about.uncertainty * 1e3)
    })
}

fn number(value: Option<f64>, decimals: usize) -> String {
    value.map_or("—".to_owned(), |value| format!("{value:.decimals$}"))
}
