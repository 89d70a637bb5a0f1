//! A record as people read it: a line per window, and a page with a row per rung at the end.
//!
//! The figures are those of `record.json`; what is not known is a dash, and why stands below.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use super::{
    interval,
    record::{Kind, Record, Repeat, Rung},
    ruler::Ruler,
    sums::{Sums, latencies},
};

pub mod digits;

use digits::{BOUND, RATIO, amount, digits};

const UNKNOWN: &str = "–";

/// One window, as soon as it is over.
pub fn window_line(record: &Record, kind: Kind, repeat: &Repeat) -> String {
    let name = format!("{kind} #{}", repeat.number);
    if let Some(why) = &repeat.incomplete {
        return format!("{name}: incomplete, in no figure: {why}");
    }
    let mut parts = Vec::new();
    if let Some(window) = repeat.gauge {
        let mean = window.mean_watts().map_or(UNKNOWN.to_owned(), |watts| format!("{watts:.1}"));
        parts.push(format!(
            "{} J in {:.3} s, mean {mean} W, max {:.1} W, {} readings",
            amount(window.joules()),
            window.seconds(),
            window.max_watts(),
            window.samples
        ));
        let idle = record.baseline.as_ref().and_then(|it| it.gauge_watts());
        parts.push(match idle {
            Some(idle) => {
                // What is left of equal sums is no figure.
                let least = window.joules() * 1e-6;
                let above = window.above_idle_joules(idle);
                format!("{} J above idle", amount(if above.abs() < least { 0.0 } else { above }))
            }
            None => "above idle unknown".to_owned(),
        });
        parts.push(match window.capped.fraction() {
            Some(fraction) => format!("power cap {:.0} %", fraction * 100.0),
            None => "power cap unreported".to_owned(),
        });
        if let Some(fraction) = window.braked.fraction().filter(|fraction| *fraction > 0.0) {
            parts.push(format!("power brake {:.0} %", fraction * 100.0));
        }
    }
    if let Some(counter) = repeat.counter {
        let bound = counter.bound_uj.map(|uj| format!(" ± {}", digits(uj as f64 / 1e6, BOUND)));
        let bound = bound.unwrap_or_default();
        let seconds = match repeat.gauge {
            Some(_) => String::new(),
            None => format!(" in {:.3} s", counter.seconds()),
        };
        parts.push(format!("counter {}{bound} J{seconds}", amount(counter.joules())));
    }
    if parts.is_empty() {
        parts.push(format!("{:.3} s, no energy", repeat.seconds()));
    }
    if let Some(tokens) = repeat.completion_tokens() {
        parts.push(format!("{tokens} tokens"));
    }
    if let Some(failed) = repeat.failed.filter(|failed| *failed > 0) {
        parts.push(format!("{failed} failed"));
    }
    format!("{name}: {}", parts.join(", "))
}

/// Which rail the numbers are, for once a run; none without energy.
pub fn rail_note(record: &Record) -> Option<String> {
    let source = &record.source;
    source.gauge.as_ref().or(source.counter.as_ref())?;
    let mut readers = Vec::new();
    readers.extend(source.gauge.as_ref().map(|reader| format!("gauge {reader}")));
    readers.extend(source.counter.as_ref().map(|reader| format!("counter {reader}")));
    let cards = match source.cards.len() {
        0 => String::new(),
        1 => " of one card".to_owned(),
        many => format!(" of {many} cards together"),
    };
    let rail = source.rail.as_ref().map(|rail| format!(": {rail}")).unwrap_or_default();
    Some(format!("Energy is the GPU rail's{cards} ({}){rail}.", readers.join(", ")))
}

/// The page at the end.
pub fn page(record: &Record) -> String {
    let mut page = String::new();
    let mut say = |line: &str| {
        page.push_str(line);
        page.push('\n');
    };
    if record.source.simulated {
        say("SIMULATED cards: these figures say nothing of any real one.");
    }
    let model = record.target.model.as_deref().unwrap_or("a model that is not known");
    let target = match (&record.target.url, record.target.command.first()) {
        (Some(url), _) => format!(" at {url}"),
        (None, Some(program)) => format!(", by {program}"),
        (None, None) => String::new(),
    };
    say(&format!("{model}{target}"));
    say("");
    say(&table(record));
    say("");
    for note in notes(record) {
        say(&note);
    }
    for warning in &record.warnings {
        say(&format!("warning: {warning}"));
    }
    if let Some(why) = &record.incomplete {
        say(&format!("The run is incomplete: {why}"));
    }
    page
}

/// A row per rung.
pub fn table(record: &Record) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header([
            "rung",
            "done",
            "failed",
            "tokens/s",
            "J/token",
            "±",
            "above idle",
            "mean W",
            "TTFT ms",
            "TPOT ms",
            "E2E ms",
        ]);
    let ruler = Ruler::of(&[record]);
    for rung in &record.rungs {
        table.add_row(row(record, rung, ruler));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt()
}

fn row(record: &Record, rung: &Rung, ruler: Option<Ruler>) -> Vec<String> {
    let mut cells = vec![rung.kind.to_string()];
    let Some(sums) = Sums::of(rung) else {
        cells.push("incomplete".to_owned());
        return cells;
    };
    let figure =
        |value: Option<f64>, count| value.map_or(UNKNOWN.to_owned(), |value| digits(value, count));
    let short = |value: Option<f64>| value.map_or(UNKNOWN.to_owned(), |it| format!("{it:.1}"));
    let per_token = match ruler {
        Some(Ruler::Counter) => sums.counter.and_then(|it| it.joules_per_token()),
        Some(Ruler::Gauge) => sums.gauge.and_then(|it| it.joules_per_token()),
        None => None,
    };
    let counted = |count: Option<u64>| count.map_or(UNKNOWN.to_owned(), |it| it.to_string());
    cells.push(counted(sums.completed));
    cells.push(counted(sums.failed));
    cells.push(short(sums.tokens_per_s()));
    cells.push(figure(per_token, RATIO));
    cells.push(figure(ruler.and_then(|ruler| half_width(rung, ruler)), BOUND));
    cells.push(figure(ruler.and_then(|ruler| above_idle_per_token(record, rung, ruler)), RATIO));
    cells.push(short(
        sums.gauge
            .and_then(|it| it.energy.mean_watts())
            .or_else(|| sums.counter.and_then(|it| it.energy.mean_watts())),
    ));
    let latencies = latencies(rung);
    let latencies = [&latencies.ttft_ms, &latencies.tpot_ms, &latencies.e2el_ms];
    cells.extend(latencies.map(|of| match of {
        Some(of) => {
            format!("{}/{}", brief(of.median()), brief(of.percentile(99).unwrap_or(of.max)))
        }
        None => UNKNOWN.to_owned(),
    }));
    cells
}

/// Milliseconds, with a decimal where they are few.
fn brief(ms: f64) -> String {
    if ms < 100.0 { format!("{ms:.1}") } else { format!("{ms:.0}") }
}

/// Half of the interval of J/token over a rung's repeats; none of one.
pub fn half_width(rung: &Rung, ruler: Ruler) -> Option<f64> {
    let each: Option<Vec<f64>> = rung.finished().map(|repeat| ruler.per_token(repeat)).collect();
    interval::of_mean(&each?).map(|it| (it.high - it.low) / 2.0)
}

/// J/token above idle of a rung: both sums, divided once.
pub fn above_idle_per_token(record: &Record, rung: &Rung, ruler: Ruler) -> Option<f64> {
    let mut sums = (0.0, 0u64);
    for repeat in rung.finished().filter(|repeat| ruler.joules(repeat).is_some()) {
        sums.0 += ruler.above_idle_joules(record, repeat)?;
        sums.1 += repeat.completion_tokens()?;
    }
    (sums.1 > 0).then(|| sums.0 / sums.1 as f64)
}

/// What a reader should know of the table.
fn notes(record: &Record) -> Vec<String> {
    let mut notes = Vec::new();
    for rung in &record.rungs {
        for repeat in rung.repeats.iter().filter(|repeat| repeat.incomplete.is_some()) {
            notes.push(window_line(record, rung.kind, repeat));
        }
    }
    notes.push("TTFT, TPOT, E2E: median/99th percentile of all requests.".to_owned());
    notes.extend(rail_note(record));
    match Ruler::of(&[record]) {
        Some(ruler) => {
            let repeats = record.rungs.iter().any(|rung| rung.finished().nth(1).is_some());
            let spread = if repeats {
                "; ± is half of the 95 % interval of the mean over repeats (Student)"
            } else {
                "; one repeat a rung, so how far they scatter is not known"
            };
            let bound = ruler.worst_bound(&record.rungs).map_or(String::new(), |share| {
                format!(", which can itself be off by {} % at most", digits(share * 100.0, BOUND))
            });
            let by = ruler.name();
            notes.push(format!("J/token is gross, then above idle, by the {by}{bound}{spread}."));
            notes.push(match ruler.idle_watts(record) {
                Some(watts) => format!("Idle: {watts:.1} W{}.", readings(record, ruler)),
                None => "No idle baseline: nothing can be said above idle.".to_owned(),
            });
        }
        None => {
            let why = record.source.why_none.as_deref().unwrap_or("no window has a reading");
            notes.push(format!("No energy: {why}"));
        }
    }
    let books = record.rungs.iter().filter_map(Sums::of).filter_map(|sums| sums.books);
    if let Some(books) = books.reduce(|a, b| a.then(b)) {
        let share = |uj: i64| {
            let of = if books.counted_uj > 0 { uj as f64 / books.counted_uj as f64 } else { 0.0 };
            format!("{} J ({:.1} %)", amount(uj as f64 / 1e6), of * 100.0)
        };
        notes.push(format!(
            "Books: prompts {}, answers {}, failed requests {}, idle {}, others {}, unattributed \
             {}; residual {} µJ.",
            share(books.prefill_uj),
            share(books.decode_uj),
            share(books.failed_uj),
            share(books.idle_uj),
            share(books.foreign_uj),
            share(books.unattributed_uj),
            books.residual_uj()
        ));
    }
    if let Some(sampler) = record.sampler {
        let cpu = match sampler.cpu_ns {
            Some(ns) => {
                format!("{:.3} s of CPU in {:.1} s", ns as f64 / 1e9, sampler.wall_ns as f64 / 1e9)
            }
            None => "a CPU time that could not be read".to_owned(),
        };
        let rejected = match sampler.rejected_lines {
            0 => String::new(),
            lines => format!(", {lines} of its lines were no reading"),
        };
        notes.push(format!("The reader of the gauge cost {cpu}{rejected}."));
    }
    notes
}

fn readings(record: &Record, ruler: Ruler) -> String {
    let Some(baseline) = record.baseline else { return String::new() };
    let of = match ruler {
        Ruler::Counter => baseline.counter.map(|it| (it.samples, it.seconds(), "publishes")),
        Ruler::Gauge => baseline.gauge.map(|it| (it.samples, it.seconds(), "readings")),
    };
    of.map_or_else(String::new, |(samples, seconds, what)| {
        format!(", from {samples} {what} in {seconds:.1} s with nothing in flight")
    })
}

#[cfg(test)]
mod tests;
