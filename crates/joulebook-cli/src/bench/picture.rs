//! The picture of a record: J/token over concurrency with error bars, tokens a second beside it.
//!
//! Rungs of closed loops, else of rates; the decode floor is a line across. A point is the rung's
//! sum, its bar the interval of the mean over repeats; where there is one repeat there is no bar,
//! and the caption says so. Nothing is left out of an axis, and nothing is drawn that the record
//! does not hold. No picture of fewer than two rungs.

use super::{
    interval::{self, Interval},
    record::{Kind, Record, Repeat, Rung},
    report::{
        above_idle_per_token,
        digits::{BOUND, digits},
    },
    ruler::Ruler,
    sums::Sums,
};

mod axis;
mod canvas;
mod panel;

use canvas::{Align, Canvas, Colour};
use panel::{Panel, Point, Series};

/// The picture's file.
pub const PICTURE: &str = "record.svg";

const WIDTH: i32 = 1120;
const HEIGHT: i32 = 540;
const INK: Colour = (0x1d, 0x23, 0x2b);
const FAINT: Colour = (0x5c, 0x66, 0x70);
const WARNING: Colour = (0xb3, 0x1b, 0x1b);
const GROSS: Colour = (0x1b, 0x5e, 0xa8);
const ABOVE_IDLE: Colour = (0x1b, 0x8a, 0x6b);
const RATE: Colour = (0xb8, 0x56, 0x0f);
const BARS: &str = "Bars: 95 % interval of the mean";

/// What lies along the axis below.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Along {
    Concurrency,
    Rate,
}

/// The picture as SVG; none where there are too few rungs.
pub fn svg(record: &Record) -> anyhow::Result<Option<String>> {
    let concurrency = rungs(record, Along::Concurrency);
    let (along, rungs) = if concurrency.len() > 1 {
        (Along::Concurrency, concurrency)
    } else {
        (Along::Rate, rungs(record, Along::Rate))
    };
    if rungs.len() < 2 {
        return Ok(None);
    }
    let mut text = String::new();
    {
        let mut canvas = Canvas::new(&mut text, WIDTH, HEIGHT)?;
        heading(&mut canvas, record)?;
        let ruler = Ruler::of(&[record]);
        let words = match along {
            Along::Concurrency => "concurrency (requests in flight)",
            Along::Rate => "requests a second",
        };
        let left = energy(record, &rungs, ruler, words);
        left.draw(&mut canvas, (30, 84), (548, 470))?;
        let right = throughput(&rungs, words);
        right.draw(&mut canvas, (580, 84), (1098, 470))?;
        caption(&mut canvas, record, &rungs, ruler)?;
        canvas.finish()?;
    }
    Ok(Some(canvas::in_pixels(&text, WIDTH, HEIGHT)))
}

/// The rungs along an axis, in its order, that have finished repeats.
fn rungs(record: &Record, along: Along) -> Vec<(f64, &Rung)> {
    let place = |rung: &Rung| match (rung.kind, along) {
        (Kind::ClosedLoop { concurrency }, Along::Concurrency) => Some(f64::from(concurrency)),
        (Kind::Rate { requests_per_s }, Along::Rate) => Some(requests_per_s),
        _ => None,
    };
    let of = |rung| Some((place(rung)?, rung));
    let mut rungs: Vec<(f64, &Rung)> = record.rungs.iter().filter_map(of).collect();
    rungs.retain(|(_, rung)| rung.finished().next().is_some());
    rungs.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    rungs
}

fn energy(
    record: &Record,
    rungs: &[(f64, &Rung)],
    ruler: Option<Ruler>,
    along: &'static str,
) -> Panel {
    let title = "Energy per output token".to_owned();
    let Some(ruler) = ruler else {
        let why = record.source.why_none.as_deref().unwrap_or("no window has a reading");
        let empty = Some(format!("No energy: {why}"));
        return Panel { title, unit: "J/token", along, empty, ..Panel::default() };
    };
    let gross = |rung: &Rung| {
        let sums = Sums::of(rung)?;
        match ruler {
            Ruler::Counter => sums.counter?.joules_per_token(),
            Ruler::Gauge => sums.gauge?.joules_per_token(),
        }
    };
    let above = |rung: &Rung| above_idle_per_token(record, rung, ruler);
    let mut series = vec![Series {
        name: "gross",
        colour: GROSS,
        is_second: false,
        points: points(rungs, &gross, &|repeat| ruler.per_token(repeat)),
    }];
    // Below 0 the baseline was too high: the record says so, and a picture of it says nothing.
    // They scatter as the gross figures do, whose bars would be hidden by theirs.
    let idle = points(rungs, &above, &|_| None);
    if !idle.is_empty() && idle.iter().all(|point| point.value > 0.0) {
        let name = "above idle";
        series.push(Series { name, colour: ABOVE_IDLE, is_second: true, points: idle });
    }
    let floor = record.rungs.iter().find(|rung| rung.kind == Kind::Floor);
    let line = floor.and_then(gross).map(|value| (value, "one stream, long answer"));
    Panel { title, unit: "J/token", along, series, line, empty: None }
}

fn throughput(rungs: &[(f64, &Rung)], along: &'static str) -> Panel {
    let of = |rung: &Rung| Sums::of(rung)?.tokens_per_s();
    let each = |repeat: &Repeat| {
        let tokens = repeat.completion_tokens()? as f64;
        (repeat.window_ns > 0).then(|| tokens / repeat.seconds())
    };
    let points = points(rungs, &of, &each);
    let empty = points.is_empty().then(|| "How many tokens there were is not known".to_owned());
    Panel {
        title: "Throughput".to_owned(),
        unit: "output tokens/s",
        along,
        series: vec![Series { name: "", colour: RATE, is_second: false, points }],
        line: None,
        empty,
    }
}

fn points(
    rungs: &[(f64, &Rung)],
    of: &dyn Fn(&Rung) -> Option<f64>,
    each: &dyn Fn(&Repeat) -> Option<f64>,
) -> Vec<Point> {
    let bar = |rung: &Rung| -> Option<Interval> {
        let values: Option<Vec<f64>> = rung.finished().map(each).collect();
        interval::of_mean(&values?)
    };
    let point = |(at, rung): &(f64, &Rung)| {
        let bar = bar(rung).map(|it| (it.low, it.high));
        of(rung).map(|value| Point { at: *at, value, bar })
    };
    rungs.iter().filter_map(point).collect()
}

fn heading(canvas: &mut Canvas<'_>, record: &Record) -> anyhow::Result<()> {
    let model = record.target.model.as_deref().unwrap_or("model not known");
    canvas.text(model, (30, 20), 22, INK, Align::Start)?;
    let mut parts: Vec<String> = Vec::new();
    let names = &record.source.card_names;
    if let Some(name) = names.first() {
        let many = if names.len() > 1 { format!("{} × ", names.len()) } else { String::new() };
        let simulated = if record.source.simulated { " (simulated)" } else { "" };
        parts.push(format!("{many}{name}{simulated}"));
    }
    for (lengths, what) in
        [(&record.settings.prompt, "prompt"), (&record.settings.answer, "answer")]
    {
        match lengths {
            Some(super::record::Lengths::Fixed { tokens }) => {
                parts.push(format!("{what} of {tokens} tokens"));
            }
            Some(super::record::Lengths::File { .. }) => {
                parts.push(format!("{what} lengths from a file"));
            }
            None => {}
        }
    }
    canvas.text(&parts.join(" · "), (30, 50), 14, FAINT, Align::Start)?;
    if record.source.simulated {
        canvas.text("SIMULATED CARD", (WIDTH - 22, 20), 16, WARNING, Align::End)?;
    }
    Ok(())
}

fn caption(
    canvas: &mut Canvas<'_>,
    record: &Record,
    rungs: &[(f64, &Rung)],
    ruler: Option<Ruler>,
) -> anyhow::Result<()> {
    let repeats: Vec<usize> = rungs.iter().map(|(_, rung)| rung.finished().count()).collect();
    let least = repeats.iter().min().copied().unwrap_or(0);
    let most = repeats.iter().max().copied().unwrap_or(0);
    let spread = match (least, most) {
        (1, 1) => "One repeat a rung: how far they scatter is not known.".to_owned(),
        (least, most) if least == most => {
            format!("{BARS} over {least} repeats (Student), unseen where a dot is larger.")
        }
        (least, most) => {
            format!(
                "{BARS} over {least} to {most} repeats (Student), unseen where a dot is larger."
            )
        }
    };
    let mut parts = vec![spread];
    if let Some(ruler) = ruler {
        let bound = ruler.worst_bound(rungs.iter().map(|(_, rung)| *rung));
        let bound = bound.map_or(String::new(), |share| {
            format!(", off by {} % at most", digits(share * 100.0, BOUND))
        });
        parts.push(format!("Energy by the {}{bound}.", ruler.name()));
        if let Some(watts) = ruler.idle_watts(record) {
            parts.push(format!("Idle {watts:.1} W."));
        }
    }
    if record.incomplete.is_some() {
        parts.push("The run is incomplete; broken windows are left out.".to_owned());
    }
    canvas.text(&parts.join(" "), (30, HEIGHT - 44), 13, FAINT, Align::Start)?;
    let date = jiff::Timestamp::from_second(record.started_unix_s as i64)
        .map(|at| jiff::tz::TimeZone::UTC.to_datetime(at).date().to_string())
        .unwrap_or_default();
    let made = format!("joulebook {} · {date}", record.version);
    canvas.text(&made, (30, HEIGHT - 24), 12, FAINT, Align::Start)
}

#[cfg(test)]
mod tests;
