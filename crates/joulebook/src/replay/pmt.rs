//! Dumps of the Power Measurement Toolkit: a first row of names, then a stamp and the watts of each
//! device, parted by spaces, and lines `M SECONDS "start"` and `"end"` that mark a window in seconds
//! from the first sample.

use joulebook_core::{Fault, Scope, estimate::Span};

use super::{
    Activity, CardName, Channel, Clock, Log, Logged, Refused, ReplayError, Row, Shows, Warning,
    cell::{power, unit},
    instant::instant,
    stamp::decimal_ns,
    text::shortened,
};
use crate::reader::Value;

const FORMAT: &str = "Power Measurement Toolkit dump";

/// True for the first row of a dump.
pub(super) fn is_header(first: &str) -> bool {
    let mut words = first.split_whitespace();
    words.next() == Some("timestamp") && words.next().is_some() && !first.contains([',', ';'])
}

/// Reads a dump. Each device is a card of its own.
pub(super) fn read(text: &str) -> Result<Log, ReplayError> {
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let (_, first) = lines.next().ok_or(ReplayError::Empty)?;
    let devices: Vec<&str> = first.split_whitespace().skip(1).collect();
    let channel = Channel { name: "power".to_owned(), shows: Shows::Draw, scope: Scope::Gpu };
    let mut log = Log::new(FORMAT, Clock::Epoch, vec![channel]);
    log.cards = devices.iter().map(|name| CardName::called(name)).collect();
    let mut marks = Vec::new();
    for (line, content) in lines {
        if let Some(mark) = content.strip_prefix("M ") {
            marks.push((line, mark));
        } else if let Err(why) = row(&mut log, line, content, devices.len()) {
            log.refused.push(Refused { line, fault: Fault::MalformedRow, why });
        }
    }
    let first_ns = match (log.rows.first(), log.refused.first()) {
        (Some(row), _) => row.at_ns,
        (None, Some(refused)) => {
            return Err(ReplayError::NoRows { line: refused.line, why: refused.why.clone() });
        }
        (None, None) => {
            let why = "there is only the header".to_owned();
            return Err(ReplayError::NoRows { line: 1, why });
        }
    };
    windows(&mut log, first_ns, &marks);
    Ok(log)
}

fn row(log: &mut Log, line: usize, content: &str, devices: usize) -> Result<(), String> {
    let words: Vec<&str> = content.split_whitespace().collect();
    let Some((stamp, cells)) = words.split_first().filter(|(_, cells)| cells.len() == devices)
    else {
        return Err(format!("`{}` has {} cells", shortened(content), words.len()));
    };
    let at = instant(stamp).ok_or_else(|| format!("`{}` is no timestamp", shortened(stamp)))?;
    if log.rows.is_empty() {
        log.clock = at.clock;
    }
    let watts = unit("W").ok_or_else(String::new)?;
    for (card, cell) in cells.iter().enumerate() {
        log.rows.push(Row {
            line,
            at_ns: at.at_ns,
            card,
            readings: vec![power(cell, watts).map(Value::Power)],
            throttle: None,
            limit: None,
            activity: Activity::default(),
        });
    }
    Ok(())
}

/// Starts and ends, paired in the file's order.
fn windows(log: &mut Log, first_ns: u64, marks: &[(usize, &str)]) {
    let mut open: Option<u64> = None;
    for (line, mark) in marks {
        let mut refuse = |why: String| log.warnings.push(Warning::MarkRefused { line: *line, why });
        let (seconds, what) = mark.trim().split_once(' ').unwrap_or((mark, ""));
        let Some(after_ns) = decimal_ns(seconds) else {
            refuse(format!("`M {}` is no mark", shortened(mark)));
            continue;
        };
        let at_ns = first_ns.saturating_add(after_ns);
        match (what.trim().trim_matches('"'), open) {
            ("start", None) => open = Some(at_ns),
            ("end", Some(open_ns)) if open_ns < at_ns => {
                let span = Span { open_ns, close_ns: at_ns };
                log.windows.push(Logged { line: *line, name: None, span });
                open = None;
            }
            (what, _) => refuse(format!("a mark `{}` that ends no window", shortened(what))),
        }
    }
}
