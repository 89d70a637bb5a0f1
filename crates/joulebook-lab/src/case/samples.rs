//! Readings of a gauge: a log of one column, read as any recording is.

use joulebook::{
    core::{
        Fault, Flags,
        estimate::{self, Curve, Edges, Estimated, Missing, Span},
        grade,
        ring::Point,
    },
    reader::{Backend, Scope, Value as Shown},
    replay::{
        Activity, CardName, Channel, Clock, Log, Options, Recording, ReplayError, Row, Shows,
        Track, cell,
    },
};
use joulebook_core::Power;
use serde_json::{Value, json};

use super::{
    Answer,
    field::{Refused, instant_ns, list, maybe, refused, span, text},
    idle, measured,
    readings::{self, Reading},
};

/// A window on a gauge.
pub(super) fn answer(input: &Value) -> Result<Answer, Refused> {
    let unit = cell::unit(text(input, "unit")?).ok_or_else(|| refused("unit"))?;
    let window = ["window", "request"].iter().find_map(|name| span(input, name));
    let until_s = window.map_or(0.0, |window| window.close_ns as f64 / 1e9);
    let readings = readings::of(input.get("readings").unwrap_or(&Value::Null), until_s)?;
    let limit = maybe(input, "power_limit_w").and_then(Power::from_watts);
    let track = played(&readings, unit, limit, maybe(input, "sensor_average_s"))?;
    let track = match track {
        Ok(track) => track,
        Err(fault) => {
            let span = window.unwrap_or(Span { open_ns: 0, close_ns: 0 });
            let context = measured::context(span, maybe(input, "idle_w"), Backend::Replay.word());
            return Ok(measured::answer(&Err(Missing::of(fault)), &context, input));
        }
    };
    let span = window.unwrap_or(track.span);
    let points = points(&track, span);
    let idle_w = idle::floor(input, &points, span);
    let (polls, rejected) = track.polls(span);
    let flags = if track.assumed { Flags::WINDOW_ASSUMED } else { Flags::NONE };
    let context = joulebook_core::grade::Context {
        polls,
        rejected,
        flags,
        ..measured::context(span, idle_w, Backend::Replay.word())
    };
    let mut answer = measured::answer(&window_of(&track, span), &context, input);
    let on_sample = track.lost.first().map(|(.., fault)| *fault);
    answer.insert("error_on_sample".into(), json!(on_sample));
    answer.insert("max_gap_s".into(), json!(longest_s(&points)));
    answer.insert("unmeasured_s".into(), json!(unmeasured_s(&points)));
    answer.insert("idle_w".into(), json!(idle_w));
    Ok(answer)
}

/// A window on several cards, each read at times of its own: every one integrated on those, then
/// added.
pub(super) fn several(input: &Value) -> Result<Answer, Refused> {
    let window = span(input, "window").ok_or_else(|| refused("window"))?;
    let unit = cell::unit("W").ok_or(Refused::Unsupported)?;
    let fields = input.as_object().ok_or_else(|| refused("input"))?;
    let mut parts = Vec::new();
    for (_, readings) in fields.iter().filter(|(name, of)| *name != "window" && of.is_array()) {
        let readings = readings::of(readings, window.close_ns as f64 / 1e9)?;
        let track = played(&readings, unit, None, None)?;
        let missing = |fault| Err(Missing::of(fault));
        parts.push(track.map_or_else(missing, |track| window_of(&track, window)));
    }
    let idle_w = maybe(input, "idle_w").map(|watts| watts * parts.len() as f64);
    let context = measured::context(window, idle_w, Backend::Replay.word());
    Ok(measured::answer(&grade::combine(&parts), &context, input))
}

/// Cells that hold no number, each by itself.
pub(super) fn cells(input: &Value) -> Result<Answer, Refused> {
    let unit = cell::unit("W").ok_or(Refused::Unsupported)?;
    let read = |value: &Value| cell::power(&readings::cell(value), unit).ok().map(Power::watts);
    let read: Vec<Option<f64>> = list(input, "cells")?.iter().map(read).collect();
    let all_absent = read.iter().all(Option::is_none);
    let mut answer = Answer::new();
    answer.insert("every_cell".into(), if all_absent { Value::Null } else { json!(read) });
    answer.insert("watts".into(), json!(read));
    Ok(answer)
}

/// Readings as a column of a recording; the inner error where none of them is a number.
pub(super) fn played(
    readings: &[Reading],
    unit: cell::Unit,
    limit: Option<Power>,
    average_s: Option<f64>,
) -> Result<Result<Track, Fault>, Refused> {
    let row = |(line, (at_s, text)): (usize, &Reading)| {
        let at_ns = instant_ns(*at_s).ok_or_else(|| refused("readings"))?;
        Ok(Row {
            line,
            at_ns,
            card: 0,
            readings: vec![cell::power(text, unit).map(Shown::Power)],
            throttle: None,
            limit,
            activity: Activity::default(),
        })
    };
    let shows = if average_s.is_some() { Shows::Average } else { Shows::Draw };
    let channel = Channel { name: "power".to_owned(), shows, scope: Scope::Gpu };
    let mut log = Log::new("case", Clock::Elapsed, vec![channel]);
    log.cards.push(CardName::default());
    log.rows = (1..).zip(readings).map(row).collect::<Result<_, _>>()?;
    let recording = match Recording::of(log, &Options::default()) {
        Ok(recording) => recording,
        Err(ReplayError::NoReadings { fault, .. }) => return Ok(Err(fault)),
        Err(_) => return Err(refused("readings")),
    };
    let track = recording.cards.into_iter().flat_map(|card| card.tracks).next();
    let mut track = track.ok_or_else(|| refused("readings"))?;
    if average_s.is_some() {
        track.facts.averaging_s = average_s;
    }
    Ok(Ok(track))
}

/// A gauge that shows one power from the beginning of a span to its end, once a second.
pub(super) fn constant(watts: f64, seconds: f64) -> Result<Estimated, Refused> {
    let span =
        Span { open_ns: 0, close_ns: instant_ns(seconds).ok_or_else(|| refused("seconds"))? };
    let unit = cell::unit("W").ok_or(Refused::Unsupported)?;
    let steps = seconds.ceil().max(1.0);
    let reading = |step: u32| (seconds * f64::from(step) / steps, watts.to_string());
    let readings: Vec<Reading> = (0..=steps as u32).map(reading).collect();
    let track = played(&readings, unit, None, None)?;
    Ok(track.map_or_else(|fault| Err(Missing::of(fault)), |track| track.estimate(span)))
}

/// The window's energy: settled where a reading came after its end, else the answer at once, where
/// the last reading is still fresh.
pub(super) fn window_of(track: &Track, span: Span) -> Estimated {
    let estimated = track.estimate(span);
    let age_s = span.close_ns.saturating_sub(track.span.close_ns) as f64 / 1e9;
    match estimated {
        Err(missing)
            if missing.fault == Fault::NotReady && age_s <= track.facts.poll_gap_s * 1.001 =>
        {
            let points = points(track, span);
            estimate::gauge(
                &Curve::new(&points, &track.facts),
                span,
                track.facts.period_s,
                Edges::Held,
            )
        }
        estimated => estimated,
    }
}

fn points(track: &Track, span: Span) -> Vec<Point> {
    track.series().span(span.open_ns.min(track.span.open_ns), span.close_ns, 1, 1)
}

/// The longest time between two good readings, s.
fn longest_s(points: &[Point]) -> f64 {
    stretches(points).map(|(seconds, _)| seconds).fold(0.0, f64::max)
}

/// Time in gaps, s.
fn unmeasured_s(points: &[Point]) -> f64 {
    stretches(points)
        .filter(|(_, to)| to.flags.contains(Flags::GAP))
        .map(|(seconds, _)| seconds)
        .sum()
}

fn stretches(points: &[Point]) -> impl Iterator<Item = (f64, &Point)> {
    points.windows(2).filter_map(|pair| match pair {
        [from, to] => Some((to.at_ns.saturating_sub(from.at_ns) as f64 / 1e9, to)),
        _ => None,
    })
}
