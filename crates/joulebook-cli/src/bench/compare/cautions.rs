//! Why two records may not be comparable.

use crate::bench::{
    record::{Lengths, Record},
    ruler::Ruler,
};

/// In sentences.
pub fn of(a: &Record, b: &Record, ruler: Option<Ruler>) -> Vec<String> {
    let mut all = Vec::new();
    let mut differ = |what: &str, a: String, b: String| {
        if a != b {
            all.push(format!("{what}: {a} in A, {b} in B"));
        }
    };
    let word = |text: &Option<String>| text.clone().unwrap_or_else(|| "not known".to_owned());
    differ("model", word(&a.target.model), word(&b.target.model));
    differ("cards", cards(a), cards(b));
    differ("prompts", lengths(&a.settings.prompt), lengths(&b.settings.prompt));
    differ("answers", lengths(&a.settings.answer), lengths(&b.settings.answer));
    let way = |record: &Record| either(record.settings.streaming, "streamed", "in one piece");
    differ("answers", way(a), way(b));
    let eos = |record: &Record| {
        either(record.settings.ignore_eos, "held to their length", "ended by the model")
    };
    differ("answers", eos(a), eos(b));
    if ruler == Some(Ruler::Gauge) {
        differ("gauge", word(&a.source.gauge), word(&b.source.gauge));
        let period = |record: &Record| {
            record.sampler.map_or("not known".to_owned(), |it| format!("{} ms", it.period_ms))
        };
        differ("readings of the gauge every", period(a), period(b));
    }
    if ruler == Some(Ruler::Counter) {
        differ("counter", word(&a.source.counter), word(&b.source.counter));
    }
    let simulated =
        |record: &Record| if record.source.simulated { "simulated" } else { "real" }.to_owned();
    differ("the card is", simulated(a), simulated(b));
    if ruler.is_none() {
        all.push("energy: no reader covers all windows of both, so it is not compared".to_owned());
    }
    for (name, record) in [("A", a), ("B", b)] {
        if let Some(why) = &record.incomplete {
            all.push(format!("{name} is incomplete ({why}); its broken windows are left out"));
        }
    }
    all
}

fn either(is: Option<bool>, yes: &str, no: &str) -> String {
    is.map_or("not known", |is| if is { yes } else { no }).to_owned()
}

fn cards(record: &Record) -> String {
    match record.source.card_names.as_slice() {
        [] => "not known".to_owned(),
        names => names.join(" + "),
    }
}

fn lengths(lengths: &Option<Lengths>) -> String {
    match lengths {
        None => "not known".to_owned(),
        Some(Lengths::Fixed { tokens }) => format!("{tokens} tokens"),
        Some(Lengths::File { path, entries }) => format!("{entries} lengths of {path}"),
    }
}
