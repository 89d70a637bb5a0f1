//! MLPerf's log lines: `:::MLLOG {…}` with readings of the node's power, in watts, from its
//! management controller, and intervals as pairs of marks `…_start` and `…_stop`.
//!
//! An interval that does not end after it began is no window, and its line is named.

use std::collections::HashMap;

use joulebook_core::{Fault, Scope, estimate::Span};
use serde_json::Value as Json;

use super::{
    Activity, CardName, Channel, Clock, Log, Logged, Refused, ReplayError, Row, Shows, Warning,
    cell::{power, unit},
    json::word,
    text::shortened,
};
use crate::reader::Value;

const FORMAT: &str = "MLPerf log lines";
const TAG: &str = ":::MLLOG";
const POWER: &str = "power_reading";

/// True for a text with such lines.
pub(super) fn is(text: &str) -> bool {
    text.lines().any(|line| line.contains(TAG))
}

/// Reads a log; other lines between are none of its business.
pub(super) fn read(text: &str) -> Result<Log, ReplayError> {
    let channel = Channel { name: POWER.to_owned(), shows: Shows::Draw, scope: Scope::Machine };
    let mut log = Log::new(FORMAT, Clock::Epoch, vec![channel]);
    log.cards.push(CardName::called("node"));
    let mut open: HashMap<String, u64> = HashMap::new();
    for (line, content) in (1..).zip(text.lines()) {
        let Some((_, event)) = content.split_once(TAG) else { continue };
        let parsed: Option<(Json, u64)> =
            serde_json::from_str(event).ok().and_then(|event: Json| {
                let at_ns = event.get("time_ms")?.as_u64()?.checked_mul(1_000_000)?;
                Some((event, at_ns))
            });
        let Some((event, at_ns)) = parsed else {
            let why = format!("`{}` is no event", shortened(event));
            log.refused.push(Refused { line, fault: Fault::MalformedRow, why });
            continue;
        };
        let key = event.get("key").and_then(Json::as_str).unwrap_or_default();
        if key == POWER {
            let cell = event.get("value").and_then(word).unwrap_or_default();
            let reading = match unit("W") {
                Some(watts) => power(&cell, watts).map(Value::Power),
                None => Err(Fault::NotSupported),
            };
            log.rows.push(row(line, at_ns, reading));
        } else if let Some(name) = key.strip_suffix("_start") {
            open.insert(name.to_owned(), at_ns);
        } else if let Some(name) = key.strip_suffix("_stop")
            && let Some(open_ns) = open.remove(name)
        {
            window(&mut log, line, name, Span { open_ns, close_ns: at_ns });
        }
    }
    if log.rows.is_empty() {
        let (line, why) = match log.refused.first() {
            Some(refused) => (refused.line, refused.why.clone()),
            None => (1, format!("no event `{POWER}` is in it")),
        };
        return Err(ReplayError::NoRows { line, why });
    }
    let what = "the whole machine, as its management controller reads it";
    log.warnings.push(Warning::Covers { column: POWER.to_owned(), what });
    Ok(log)
}

fn window(log: &mut Log, line: usize, name: &str, span: Span) {
    let name = name.to_owned();
    if span.open_ns < span.close_ns {
        log.windows.push(Logged { line, name: Some(name), span });
    } else {
        let why = format!(
            "{name}_stop has {} time, so that the interval has no length and is no window; give the \
             right one by --from and --to",
            if span.open_ns == span.close_ns { "the start's" } else { "an earlier" }
        );
        log.warnings.push(Warning::MarkRefused { line, why });
    }
}

fn row(line: usize, at_ns: u64, reading: Result<Value, Fault>) -> Row {
    Row {
        line,
        at_ns,
        card: 0,
        readings: vec![reading],
        throttle: None,
        limit: None,
        activity: Activity::default(),
    }
}
