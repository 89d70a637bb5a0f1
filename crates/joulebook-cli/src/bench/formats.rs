//! A rung in the form of the usual load generators, so that a record sits beside theirs.
//!
//! Each writes a rung as one run of that tool: its keys, its units, its definitions of a latency,
//! from the requests that were measured. What we do not know is left out, and nothing is filled in.
//! Energy keys of ours stand beside them under their own names.

use std::path::{Path, PathBuf};

use super::{
    files::write_whole,
    record::{Kind, Outcome, Phase, Record, Repeat, Request, Rung},
};

mod aiperf;
mod metric;
mod vllm;

/// A tool whose keys a record is also written with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// aiperf's summary (JSON and CSV) and its line per request, of each rung
    Aiperf,
    /// The result of vLLM's `bench serve`, of each rung
    Vllm,
}

/// Writes each rung that has measured requests (somebody else's generator has none), and says which
/// files.
pub fn write(record: &Record, format: Format, folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut written = Vec::new();
    for rung in record.rungs.iter().filter(|rung| measured(rung).next().is_some()) {
        let name = rung.kind.to_string();
        let texts = match format {
            Format::Aiperf => vec![
                (format!("{name}.aiperf.json"), aiperf::summary(record, rung)?),
                (format!("{name}.aiperf.csv"), aiperf::csv(record, rung)),
                (format!("{name}.aiperf.jsonl"), aiperf::lines(record, rung)?),
            ],
            Format::Vllm => vec![(format!("{name}.vllm.json"), vllm::result(record, rung)?)],
        };
        for (name, text) in texts {
            let path = folder.join(name);
            write_whole(&path, &text)?;
            written.push(path);
        }
    }
    Ok(written)
}

/// The measured requests of a rung's finished repeats, answered or not.
fn measured(rung: &Rung) -> impl Iterator<Item = &Request> {
    rung.finished().flat_map(of_repeat)
}

fn of_repeat(repeat: &Repeat) -> impl Iterator<Item = &Request> {
    repeat.requests.iter().filter(|request| request.phase == Phase::Measured)
}

fn is_done(request: &Request) -> bool {
    request.outcome == Outcome::Done
}

/// From the first request sent to the last piece of an answer, s, repeats added: what both tools
/// divide by.
fn duration_s(rung: &Rung, last: impl Fn(&Request) -> Option<u64>) -> f64 {
    let of = |repeat: &Repeat| {
        let done = || of_repeat(repeat).filter(|request| is_done(request));
        let first = done().map(|request| request.sent_ns).min()?;
        let last = done().filter_map(|request| Some(request.sent_ns + last(request)?)).max()?;
        Some(last.saturating_sub(first) as f64 / 1e9)
    };
    rung.finished().filter_map(of).sum()
}

/// The rate that requests were sent at, where the rung has one.
const fn rate(kind: Kind) -> Option<f64> {
    match kind {
        Kind::Rate { requests_per_s } => Some(requests_per_s),
        _ => None,
    }
}

/// When a run began, as a point of UTC's calendar.
fn civil(unix_s: f64) -> Option<jiff::civil::DateTime> {
    let timestamp = jiff::Timestamp::from_microsecond((unix_s * 1e6).round() as i64).ok()?;
    Some(jiff::tz::TimeZone::UTC.to_datetime(timestamp))
}

#[cfg(test)]
mod tests;
