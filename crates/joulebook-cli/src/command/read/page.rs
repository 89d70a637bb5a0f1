//! The report as a page for people.

use std::fmt::{self, Write};

use comfy_table::{Cell, CellAlignment, Table, presets};
use joulebook::{
    core::{estimate::Estimate, units::significant},
    replay::{Answer, Track},
};

use super::{
    Report, Window,
    tally::{AllLogs, Tally, all_logs, tally},
};

/// How far a board's own gain can be off, uncalibrated: common to all its readings, and in no bound.
pub(super) const GAIN_PERCENT: f64 = 5.0;

pub(super) fn pages(reports: &[Report]) -> String {
    let mut text = String::new();
    for (number, report) in reports.iter().enumerate() {
        if number > 0 {
            text.push('\n');
        }
        // Writing to a string does not fail.
        let _ = write(&mut text, report);
    }
    if reports.len() > 1 {
        let _ = match all_logs(reports) {
            Ok(AllLogs { gross_j, bound_j, joules }) => {
                let above = joules.map(|joules| format!("{} J above idle, ", significant(joules)));
                writeln!(
                    text,
                    "\nall {} logs  {}{} J gross ± {} J",
                    reports.len(),
                    above.unwrap_or_default(),
                    significant(gross_j),
                    significant(bound_j)
                )
            }
            Err(why) => writeln!(text, "\nno sum over the {} logs: {why}", reports.len()),
        };
    }
    text
}

fn write(to: &mut String, report: &Report) -> fmt::Result {
    let recording = &report.recording;
    writeln!(
        to,
        "{}: {}, {} rows{}, {:.3} s, {} card{}",
        report.path,
        recording.format,
        recording.rows,
        match recording.refused.len() {
            0 => String::new(),
            refused => format!(" ({refused} left out)"),
        },
        recording.span.seconds(),
        recording.cards.len(),
        if recording.cards.len() == 1 { "" } else { "s" },
    )?;
    for (answer, card) in report.cards.iter().zip(&recording.cards) {
        let model = card.name.model.as_deref().map(|model| format!(" ({model})"));
        writeln!(to, "\n{}{}", card.name.label(), model.unwrap_or_default())?;
        if let Some(track) = report.ask.track(card, f64::INFINITY) {
            let others: Vec<&str> = card
                .tracks
                .iter()
                .map(|track| track.channel.name.as_str())
                .filter(|name| *name != track.channel.name)
                .collect();
            let others = match others.is_empty() {
                true => String::new(),
                false => format!(" (also there, never added: {})", others.join(", ")),
            };
            writeln!(to, "  column   {}{others}", track.channel.name)?;
            sensor(to, track)?;
            let mean = answer
                .seen
                .filter(|_| track.has_energy())
                .map(|_| format!("mean {:.1} W, ", answer.measurement.mean_watts));
            let (least_w, most_w) = track.range_w;
            let mean = mean.unwrap_or_default();
            writeln!(to, "  power    {mean}{least_w:.1} to {most_w:.1} W")?;
        }
        writeln!(to, "  energy   {}", energy(answer, report.idle_known))?;
    }
    if let Some(sum) = &report.sum {
        writeln!(to, "\nall cards  {}", energy(sum, report.idle_known))?;
    }
    if !report.windows.is_empty() {
        windows(to, report)?;
    }
    writeln!(
        to,
        "\n± is the worst case of what the sensor cannot tell. The board's gain, ±{GAIN_PERCENT} % \
         where nobody has calibrated it,\nis common to all its readings and not in it."
    )?;
    for warning in &report.warnings {
        writeln!(to, "warning: {warning}")?;
    }
    Ok(())
}

fn sensor(to: &mut String, track: &Track) -> fmt::Result {
    let milliseconds = |seconds: f64| format!("{:.0} ms", seconds * 1e3);
    if track.readings < 2 {
        return writeln!(to, "  sensor   one reading");
    }
    let update = match track.update_s {
        Some(update_s) => format!("a new value every {}", milliseconds(update_s)),
        None => "too few changes to tell its period".to_owned(),
    };
    let kind = match track.is_counter() {
        true => "a counter of energy".to_owned(),
        false => format!(
            "a mean over {}{}",
            milliseconds(track.averaging_s()),
            if track.assumed { " (assumed)" } else { "" }
        ),
    };
    writeln!(
        to,
        "  sensor   {} readings {} apart, {} updates, {update}; {kind}",
        track.readings,
        milliseconds(track.facts.poll_gap_s),
        track.updates,
    )
}

/// One line: joules above idle, or gross, or why neither.
fn energy(answer: &Answer, idle_known: bool) -> String {
    let measurement = &answer.measurement;
    let mut line = String::new();
    if let (Some(joules), Some(bound), Some(idle_watts)) =
        (measurement.joules, measurement.bound_joules, measurement.idle_watts)
    {
        let _ = write!(
            line,
            "{} J above {} W idle ± {} J, ",
            significant(joules),
            idle_watts,
            significant(bound)
        );
    }
    match &answer.seen {
        Some(seen) => {
            let _ = write!(line, "{} J gross {}", significant(seen.gross_j), spread(seen, answer));
        }
        None => line.push_str("not known"),
    }
    if let Some(least) = measurement.lower_bound_joules {
        let _ = write!(line, "; at least {} J", significant(least));
    }
    match measurement.error {
        Some(joulebook::Fault::NoBaseline) if !idle_known => {
            line.push_str("; above idle: --idle W");
        }
        Some(fault) => {
            let _ = write!(line, " ({fault})");
        }
        None => {}
    }
    line
}

fn spread(seen: &Estimate, answer: &Answer) -> String {
    let (low, high) = seen.range_j;
    if answer.is_measured() {
        format!("± {} J", significant(seen.bound_j))
    } else {
        format!("seen, {} to {} J possible", significant(low), significant(high))
    }
}

fn windows(to: &mut String, report: &Report) -> fmt::Result {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["", "from", "s", "gross J", "± J", "low", "high", "J", "rows", "read from"]);
    for (number, Window { name, cards, sum }) in (1..).zip(&report.windows) {
        let named = name.as_ref().map(|name| format!("{number} {name}"));
        row(&mut table, report, &named.unwrap_or_else(|| number.to_string()), sum);
        if cards.len() > 1 {
            for (answer, card) in cards.iter().zip(&report.recording.cards) {
                row(&mut table, report, &card.name.label(), answer);
            }
        }
    }
    let names: Vec<usize> = (1..9).collect();
    for column in names {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    writeln!(to, "\nwindows ({})", report.windows.len())?;
    for line in table.to_string().lines() {
        writeln!(to, "{}", line.trim_end())?;
    }
    total(to, &tally(&report.windows))
}

fn row(table: &mut Table, report: &Report, name: &str, answer: &Answer) {
    let measurement = &answer.measurement;
    let after_s = (answer.span.open_ns as f64 - report.recording.span.open_ns as f64) / 1e9;
    let joules = |value: Option<f64>| value.map(significant).unwrap_or_else(|| "-".to_owned());
    let seen = answer.seen.as_ref();
    let mut from = answer.columns.join(", ");
    if let Some(fault) = measurement.error.filter(|fault| *fault != joulebook::Fault::NoBaseline) {
        from = format!("{from} ({fault})");
    }
    table.add_row([
        Cell::new(name),
        Cell::new(format!("{after_s:+.3}")),
        Cell::new(format!("{:.4}", answer.span.seconds())),
        Cell::new(joules(seen.map(|seen| seen.gross_j))),
        Cell::new(joules(seen.filter(|_| answer.is_measured()).map(|seen| seen.bound_j))),
        Cell::new(joules(seen.map(|seen| seen.range_j.0).or(measurement.lower_bound_joules))),
        Cell::new(joules(seen.map(|seen| seen.range_j.1))),
        Cell::new(joules(measurement.joules)),
        Cell::new(measurement.polls.to_string()),
        Cell::new(from.trim()),
    ]);
}

fn total(to: &mut String, sum: &Tally) -> fmt::Result {
    writeln!(to, "sum of {} windows, {:.4} s:", sum.windows, sum.seconds)?;
    if sum.measured.windows > 0 {
        write!(
            to,
            "  measured in {}: {} J gross ± {} J",
            sum.measured.windows,
            significant(sum.measured.gross_j),
            significant(sum.measured.bound_j)
        )?;
        if sum.measured.above_idle > 0 {
            let (joules, windows) = (significant(sum.measured.joules), sum.measured.above_idle);
            write!(to, ", {joules} J above idle in {windows}")?;
        }
        writeln!(to)?;
    }
    if sum.seen.windows > 0 {
        writeln!(
            to,
            "  not measured in {}: {} J seen, {} to {} J possible",
            sum.seen.windows,
            significant(sum.seen.gross_j),
            significant(sum.seen.low_j),
            significant(sum.seen.high_j)
        )?;
    }
    if sum.nothing > 0 {
        writeln!(to, "  nothing seen in {}", sum.nothing)?;
    }
    Ok(())
}
