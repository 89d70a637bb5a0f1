//! What the tests of recordings share.

use std::{
    fs,
    path::{Path, PathBuf},
};

use joulebook::{
    core::estimate::Span,
    replay::{self, Answer, Ask, Options, Recording, ReplayError, Warning, Zone},
};

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// A made-up log's bytes.
pub fn made_up(name: &str) -> Vec<u8> {
    fs::read(root().join("testdata/recordings").join(name)).unwrap()
}

/// The names of all made-up logs and files of windows.
pub fn all_made_up() -> Vec<String> {
    let entries = fs::read_dir(root().join("testdata/recordings")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name != "README.md").collect();
    names.sort();
    names
}

pub fn recording(bytes: &[u8]) -> Recording {
    with(bytes, &Options::default())
}

pub fn with(bytes: &[u8], options: &Options) -> Recording {
    Recording::of(replay::read(bytes).unwrap(), options).unwrap()
}

pub fn refusal(text: &str) -> ReplayError {
    match replay::read(text.as_bytes()) {
        Err(error) => error,
        Ok(log) => Recording::of(log, &Options::default()).expect_err("it is refused"),
    }
}

/// The windows of a file of marks, on the recording's clock.
pub fn spans(recording: &Recording, marks: &[u8], zone: &str) -> Vec<Span> {
    let zone: Zone = zone.parse().unwrap();
    let marks = replay::marks(marks).unwrap();
    let first_ns = recording.span.open_ns;
    let span = |mark: &replay::Mark| Span {
        open_ns: mark.start.on(recording.clock, Some(&zone), first_ns).unwrap(),
        close_ns: mark.end.on(recording.clock, Some(&zone), first_ns).unwrap(),
    };
    marks.windows.iter().map(span).collect()
}

/// The gross energy of all cards over all of a recording, J.
pub fn whole_j(recording: &Recording, ask: &Ask) -> f64 {
    recording.sum(&recording.whole(ask), ask).seen.unwrap().gross_j
}

/// The one card of a recording over a window.
pub fn window(recording: &Recording, span: Span, ask: &Ask) -> Answer {
    let mut cards = recording.window(span, ask);
    assert_eq!(cards.len(), 1);
    cards.remove(0)
}

pub fn words(warnings: &[Warning]) -> Vec<&'static str> {
    warnings.iter().map(Warning::word).collect()
}

pub fn close(value: f64, wanted: f64, share: f64) -> bool {
    (value - wanted).abs() <= share * wanted.abs()
}
