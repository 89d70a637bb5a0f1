//! A run as one line of JSON.

use joulebook::{Card, core::measurement::Form, profile::Floor};
use serde::Serialize;

use super::{End, Exit, Outcome, What, stored_floor};

/// The line of JSON: the measurement's own form, and what it was of.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    form: Form<'a>,
    watt_hours: Option<f64>,
    /// What the one card drew at its highest, at least: a mean over so long; several have one each.
    peak_watts: Option<f64>,
    peak_seconds: Option<f64>,
    idle: IdleLine,
    cards: Vec<CardLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<Vec<String>>,
    /// What ended it: its exit code, a signal; of a watch, `process`, `span` or a signal.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_signal: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_by: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    warnings: &'a [String],
}

#[derive(Serialize)]
struct IdleLine {
    /// `declared`, `stored`, `mixed` (of some cards the one, of some the other) or `unknown`.
    from: &'static str,
    watts: Option<f64>,
}

#[derive(Serialize)]
struct CardLine {
    index: u32,
    name: String,
    uuid: String,
    driver: Option<String>,
    backend: &'static str,
    peak_watts: Option<f64>,
    peak_seconds: Option<f64>,
    floor: Option<Floor>,
    reader_cpu_seconds: f64,
}

impl Outcome<'_> {
    /// The line.
    pub(super) fn line(&self) -> anyhow::Result<String> {
        let cards: Vec<CardLine> =
            self.cards().map(|(card, declared)| self.card(card, declared)).collect();
        let only = if let [only] = cards.as_slice() { Some(only) } else { None };
        let (command, exit_code, exit_signal, ended_by) = match &self.what {
            What::Command(command, exit) => {
                let words = command.iter().map(|word| word.to_string_lossy().into_owned());
                let (code, signal) = match exit {
                    Exit::Code(code) => (Some(*code), None),
                    Exit::Signal(number) => (None, Some(i32::from(*number))),
                };
                (Some(words.collect()), code, signal, None)
            }
            What::Watched(End::Process) => (None, None, None, Some("process")),
            What::Watched(End::Span) => (None, None, None, Some("span")),
            What::Watched(End::Signal(number)) => (None, None, Some(*number), Some("signal")),
        };
        let watts = self.meter.idle_watts();
        let line = Line {
            form: self.measured.form(self.tokens),
            watt_hours: self.measured.joules.map(|joules| joules / 3600.0),
            peak_watts: only.and_then(|card| card.peak_watts),
            peak_seconds: only.and_then(|card| card.peak_seconds),
            idle: IdleLine { from: self.idle_from(), watts },
            cards,
            command,
            exit_code,
            exit_signal,
            ended_by,
            message: self.message(),
            warnings: self.meter.warnings(),
        };
        Ok(serde_json::to_string(&line)? + "\n")
    }

    fn card(&self, card: &Card, declared: bool) -> CardLine {
        let device = card.device();
        let peak = self.peak_of(card);
        CardLine {
            index: device.index,
            name: device.name.clone(),
            uuid: device.uuid.clone(),
            driver: device.driver.clone(),
            backend: device.backend.word(),
            peak_watts: peak.map(|peak| peak.watts),
            peak_seconds: peak.map(|peak| peak.seconds),
            floor: stored_floor(card).filter(|_| !declared),
            reader_cpu_seconds: card.cost().cpu_ns as f64 / 1e9,
        }
    }
}
