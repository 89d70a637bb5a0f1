//! What a run leaves in its folder, and how it is read again.
//!
//! `record.json` is written last: where it is, all of the rest is. Each file is there whole or not
//! at all.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use serde::Serialize;
use serde_json::Value;

use super::{
    files::{csv_line, write_whole},
    keys::Keys,
    picture::{self, PICTURE},
    record::{FORM, Record, Request, Rung},
};

/// The record's file.
pub const RECORD: &str = "record.json";
/// A line per request.
pub const REQUESTS: &str = "requests.jsonl";
/// A row per rung.
pub const RUNGS: &str = "rungs.csv";

/// The record with its flat keys, as `record.json` holds it.
#[derive(Serialize)]
struct File<'a> {
    form: &'a str,
    version: &'a str,
    #[serde(flatten)]
    keys: Keys,
    #[serde(flatten)]
    record: &'a Record,
}

/// `record.json` as text.
pub fn json(record: &Record) -> anyhow::Result<String> {
    let (form, version) = (&record.form, &record.version);
    let file = File { form, version, keys: Keys::of(record), record };
    Ok(serde_json::to_string_pretty(&file)? + "\n")
}

/// `requests.jsonl` as text.
pub fn jsonl(record: &Record) -> anyhow::Result<String> {
    let mut lines = String::new();
    for request in requests(record) {
        lines += &serde_json::to_string(request)?;
        lines.push('\n');
    }
    Ok(lines)
}

/// All requests, in the order of the rungs.
pub fn requests(record: &Record) -> impl Iterator<Item = &Request> {
    record.rungs.iter().flat_map(|rung| &rung.repeats).flat_map(|repeat| &repeat.requests)
}

/// `rungs.csv` as text: the keys of each rung without its prefix. A cell whose value is not known
/// is empty.
pub fn csv(record: &Record) -> String {
    let rows: Vec<(&Rung, Keys)> =
        record.rungs.iter().map(|rung| (rung, Keys::of_rung(record, rung))).collect();
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in rows.iter().flat_map(|(_, keys)| keys.iter()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let mut text = csv_line(["rung", "concurrency"].into_iter().chain(names.iter().copied()));
    for (rung, keys) in &rows {
        let kind = rung.kind.to_string();
        let concurrency = rung.kind.concurrency().map(|it| it.to_string()).unwrap_or_default();
        let cell = |name: &&str| keys.get(name).map(cell).unwrap_or_default();
        let cells: Vec<String> = names.iter().map(cell).collect();
        let named = [kind.as_str(), concurrency.as_str()].into_iter();
        text += &csv_line(named.chain(cells.iter().map(String::as_str)));
    }
    text
}

fn cell(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Writes a run's files into a folder and says which.
pub fn write(record: &mut Record, folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    record.close();
    let mut texts = vec![(REQUESTS, jsonl(record)?), (RUNGS, csv(record))];
    texts.extend(picture::svg(record)?.map(|svg| (PICTURE, svg)));
    texts.push((RECORD, json(record)?));
    let mut written = Vec::new();
    for (name, text) in texts {
        let path = folder.join(name);
        write_whole(&path, &text)?;
        written.push(path);
    }
    Ok(written)
}

/// The path of a record: itself, or `record.json` in the folder that it names.
pub fn path_of(path: &Path) -> PathBuf {
    if path.is_dir() { path.join(RECORD) } else { path.to_owned() }
}

/// Reads a record, with its requests where their file is beside it.
pub fn read(path: &Path) -> anyhow::Result<Record> {
    let path = path_of(path);
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let form = serde_json::from_str::<Value>(&text)
        .with_context(|| format!("{}: not JSON", path.display()))?;
    match form.get("form").and_then(Value::as_str) {
        Some(FORM) => {}
        Some(other) => bail!("{}: a record of the form {other}, not {FORM}", path.display()),
        None => bail!("{}: not a record of joulebook bench", path.display()),
    }
    let mut record: Record =
        serde_json::from_str(&text).with_context(|| path.display().to_string())?;
    let lines = path.with_file_name(REQUESTS);
    if lines.is_file() {
        join(&mut record, &lines)?;
    }
    Ok(record)
}

fn join(record: &mut Record, path: &Path) -> anyhow::Result<()> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let request: Request =
            serde_json::from_str(line).with_context(|| format!("{}:{number}", path.display()))?;
        let rung = record.rungs.iter_mut().find(|rung| rung.kind.to_string() == request.rung);
        let repeat = rung.and_then(|rung| {
            rung.repeats.iter_mut().find(|repeat| repeat.number == request.repeat)
        });
        match repeat {
            Some(repeat) => repeat.requests.push(request),
            None => bail!(
                "{}:{number}: of rung {} repeat {}, which {RECORD} does not have",
                path.display(),
                request.rung,
                request.repeat
            ),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
