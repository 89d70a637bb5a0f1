//! Any bytes as a log, in whichever format: read and measured over the whole of it and over a part,
//! or refused; never a measured nothing, and never more than was seen to be possible.
#![no_main]

use joulebook::{
    core::estimate::Span,
    replay::{self, Answer, Form, Format, Options, Recording},
};
use libfuzzer_sys::fuzz_target;

fn check(answer: &Answer) {
    let measured = &answer.measurement;
    if let Some(joules) = measured.joules {
        assert!(joules.is_finite() && joules > 0.0, "{measured:?}");
    }
    if let Some(seen) = &answer.seen {
        assert!(seen.gross_j.is_finite() && seen.bound_j.is_finite(), "{seen:?}");
        assert!(seen.range_j.0 <= seen.range_j.1, "{seen:?}");
    }
}

fn ask_everything(log: replay::Log) {
    let Ok(log) = Recording::of(log, &Options::default()) else { return };
    let Ok(ask) = log.ask(None, &[10.0]) else { return };
    let whole = log.whole(&ask);
    let middle = log.span.open_ns.midpoint(log.span.close_ns);
    let span = Span { open_ns: log.span.open_ns, close_ns: middle };
    let part = log.window_within(span, 0.5, &ask);
    let sums = [log.sum(&whole, &ask), log.sum(&part, &ask)];
    whole.iter().chain(&part).chain(&sums).for_each(check);
    for warning in log.warnings.iter().chain(&log.say_of_windows(&[span], &ask)) {
        assert!(!warning.to_string().is_empty() && !warning.word().is_empty());
    }
}

fuzz_target!(|bytes: &[u8]| {
    let _ = replay::marks(bytes);
    match replay::read(bytes) {
        Ok(log) => ask_everything(log),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    // The first byte forces a format on the rest.
    if let Some((first, rest)) = bytes.split_first() {
        let format = Format::ALL.get(usize::from(*first)).copied();
        let columns = (*first == 0xff)
            .then(|| ["timestamp", "index", "power.draw"].map(str::to_owned).to_vec());
        if format.is_some() || columns.is_some() {
            if let Ok(log) = replay::read_as(rest, &Form { format, columns }) {
                ask_everything(log);
            }
        }
    }
});
