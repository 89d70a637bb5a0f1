//! SPEC's power daemon, as MLPerf records it: rows of names and values, `Time,…,Watts,…,Mark,…`,
//! then the same for each channel of the meter.
//!
//! The first `Watts` is the sum that the daemon has made of its channels; they are parts of it and
//! are not read. Runs of one mark are windows where the file has more than one. The official window
//! stands in the load generator's log: give it by --from and --to, or as marks.

use joulebook_core::{Fault, Scope, estimate::Span};

use super::{
    Activity, CardName, Channel, Clock, Log, Logged, Refused, ReplayError, Row, Shows, Warning,
    cell::{power, unit},
    instant::instant,
    text::{cells, shortened},
};
use crate::reader::Value;

const FORMAT: &str = "SPEC PTDaemon log";

/// True for a row of the daemon's.
pub(super) fn is_row(first: &str) -> bool {
    let cells = cells(first);
    cells.first() == Some(&"Time") && cells.iter().skip(2).step_by(2).any(|name| *name == "Watts")
}

/// Reads a log.
pub(super) fn read(text: &str) -> Result<Log, ReplayError> {
    let channel = Channel { name: "Watts".to_owned(), shows: Shows::Draw, scope: Scope::Machine };
    let mut log = Log::new(FORMAT, Clock::Local, vec![channel]);
    log.cards.push(CardName::called("server"));
    let mut marks: Vec<(String, Span, usize)> = Vec::new();
    for (line, content) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        match row(line, content) {
            Ok((row, mark)) => {
                let close_ns = row.at_ns;
                match marks.last_mut() {
                    Some((last, span, end)) if *last == mark => {
                        (span.close_ns, *end) = (close_ns, line);
                    }
                    _ => marks.push((mark, Span { open_ns: close_ns, close_ns }, line)),
                }
                log.rows.push(row);
            }
            Err(why) => log.refused.push(Refused { line, fault: Fault::MalformedRow, why }),
        }
    }
    if log.rows.is_empty() {
        let refused = log.refused.first().ok_or(ReplayError::Empty)?;
        return Err(ReplayError::NoRows { line: refused.line, why: refused.why.clone() });
    }
    if marks.len() > 1 {
        let windows = marks.into_iter().filter(|(_, span, _)| span.open_ns < span.close_ns);
        log.windows =
            windows.map(|(name, span, line)| Logged { line, name: Some(name), span }).collect();
    }
    let what = "the whole machine at its supply";
    log.warnings.push(Warning::Covers { column: "Watts".to_owned(), what });
    Ok(log)
}

fn row(line: usize, content: &str) -> Result<(Row, String), String> {
    let cells = cells(content);
    let value = |wanted: &str| {
        let mut pairs = cells.chunks_exact(2);
        pairs.find_map(|pair| match pair {
            [name, value] if *name == wanted => Some(*value),
            _ => None,
        })
    };
    let stamp = value("Time").unwrap_or_default();
    let at = instant(stamp).filter(|at| at.clock == Clock::Local);
    let at = at.ok_or_else(|| format!("`{}` is no timestamp", shortened(stamp)))?;
    let (Some(watts), Some(unit)) = (value("Watts"), unit("W")) else {
        return Err("no Watts".to_owned());
    };
    let row = Row {
        line,
        at_ns: at.at_ns,
        card: 0,
        readings: vec![power(watts, unit).map(Value::Power)],
        throttle: None,
        limit: None,
        activity: Activity::default(),
    };
    Ok((row, value("Mark").unwrap_or_default().to_owned()))
}
