//! What a loop of the tool prints, line by line.

use joulebook::{
    core::{Power, estimate::Span},
    replay::cell,
    smi::{stamp, table},
};
use serde_json::{Value, json};

use super::{BARE, COLUMNS, draw};
use crate::case::{
    Answer,
    field::{Refused, instant_ns, list, maybe, refused, span, text},
    measured,
    readings::{self, Reading},
    samples,
};

/// Some hour of some day, as the tool writes it, and the same since 1970; every case begins there.
const BEGIN: &str = "2025/01/01 00:";
const BEGIN_UNIX_NS: u64 = 1_735_689_600_000_000_000;

/// Lines without stamps.
pub(super) fn lines(input: &Value) -> Result<Answer, Refused> {
    let bytes: String = list(input, "bytes")?.iter().map(readings::cell).collect();
    // The last line is one once its end has come.
    let whole = bytes.rfind('\n').and_then(|end| bytes.get(..=end)).unwrap_or_default();
    let query = input.get("query").and_then(Value::as_str).unwrap_or(COLUMNS);
    let rows = table::rows(query, BARE, whole);
    let good: Vec<f64> =
        rows.iter().flatten().filter_map(|row| draw(row).ok()).map(Power::watts).collect();
    let mut answer = Answer::new();
    answer.insert("rejected".into(), json!(rows.len() - good.len()));
    answer.insert("samples".into(), json!(good));
    Ok(answer)
}

/// Lines with the child's own stamps, read late.
pub(super) fn timed(input: &Value) -> Result<Answer, Refused> {
    let lines: Option<Vec<(f64, f64)>> = list(input, "lines")?.iter().map(pair).collect();
    let lines = lines.ok_or_else(|| refused("lines"))?;
    let read_s = reader(text(input, "reader")?, lines.len()).ok_or_else(|| refused("reader"))?;
    let mut taken: Vec<Reading> = Vec::new();
    let mut before_ns = None;
    for ((at_s, watts), read_s) in lines.iter().zip(&read_s) {
        // The row as the tool prints it, through the table's own parser.
        let line = format!("{BEGIN}{:02}:{:06.3}, {watts}", (at_s / 60.0) as u64, at_s % 60.0);
        let row = table::rows("timestamp,power.draw", BARE, &line);
        let row = row.first().and_then(Option::as_ref).ok_or_else(|| refused("lines"))?;
        let read_ns = instant_ns(*read_s).ok_or_else(|| refused("reader"))?;
        let unix_ns = BEGIN_UNIX_NS + read_ns;
        let at_ns = stamp::taken_ns(row.stamp_ns, read_ns, unix_ns, before_ns);
        before_ns = Some(at_ns);
        let power = draw(row).map_err(|_| refused("lines"))?;
        taken.push((at_ns as f64 / 1e9, power.watts().to_string()));
    }
    let arrived: Vec<Reading> =
        lines.iter().zip(&read_s).map(|((_, watts), at_s)| (*at_s, watts.to_string())).collect();
    let window = span(input, "window").ok_or_else(|| refused("window"))?;
    let mut answer = over(&taken, window, input)?;
    let wrong = over(&arrived, window, input)?;
    answer.insert("arrival_stamped_wrong_j".into(), json!(wrong.get("gross_j")));
    Ok(answer)
}

fn over(readings: &[Reading], window: Span, input: &Value) -> Result<Answer, Refused> {
    let unit = cell::unit("W").ok_or(Refused::Unsupported)?;
    let track = samples::played(readings, unit, None, None)?.map_err(|_| refused("lines"))?;
    let idle_w = maybe(input, "idle_w").or(Some(0.0));
    let context = measured::context(window, idle_w, "smi_sampler");
    Ok(measured::answer(&samples::window_of(&track, window), &context, input))
}

/// When each line is read: `reads line 1 at t=0, stalls, reads the other 20 at t=5.0`.
fn reader(sentence: &str, lines: usize) -> Option<Vec<f64>> {
    let instants: Option<Vec<f64>> = sentence
        .split("t=")
        .skip(1)
        .map(|rest| rest.split([',', ' ']).next()?.parse().ok())
        .collect();
    let instants = instants?;
    let (first, rest) = (instants.first().copied()?, instants.last().copied()?);
    Some((0..lines).map(|line| if line == 0 { first } else { rest }).collect())
}

fn pair(pair: &Value) -> Option<(f64, f64)> {
    let [at, watts] = pair.as_array()?.as_slice() else { return None };
    Some((at.as_f64()?, watts.as_f64()?))
}
