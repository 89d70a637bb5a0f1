//! A program that behaves as a case says in the place of `nvidia-smi`.

use std::{
    fs, os::unix::fs::PermissionsExt, path::PathBuf, process, sync::atomic::AtomicU32,
    sync::atomic::Ordering,
};

use joulebook::{
    Meter, MeterError, Node,
    smi::sentence::{Meaning, meaning},
    smi::{Columns, Feed, PERIOD, Program, SmiError},
};
use serde_json::{Value, json};

use crate::case::{
    Answer,
    field::{Refused, list, refused, text},
    measured, readings,
};

pub(super) fn answer(input: &Value) -> Result<Answer, Refused> {
    // A program that only sleeps and prints, or one that knows some fields; nothing else.
    match input.get("behaviour").and_then(Value::as_str) {
        Some(behaviour) if behaviour.starts_with("sleep ") => behaves(input),
        None if input.get("known").is_some() => asked(input),
        _ => Err(Refused::Unsupported),
    }
}

/// A driver that knows only some fields: what it is asked in the end.
fn asked(input: &Value) -> Result<Answer, Refused> {
    let known: Vec<String> = list(input, "known")?.iter().map(readings::cell).collect();
    let unknown = input.get("if_field_unknown").ok_or_else(|| refused("if_field_unknown"))?;
    let sentence = text(unknown, "stdout")?;
    let code =
        unknown.get("exit").and_then(Value::as_i64).and_then(|code| i32::try_from(code).ok());
    // Its sentence, with the name of the field that it is about now.
    let (before, after) = sentence
        .split_once('"')
        .and_then(|(before, rest)| Some((before, rest.split_once('"')?.1)))
        .ok_or_else(|| refused("if_field_unknown"))?;
    let mut columns = Columns::default();
    let is_unknown = |field: &&str| !known.iter().any(|known| known == field);
    loop {
        let unknown = columns.fields().find(is_unknown);
        let Some(field) = unknown else { break };
        let said = format!("{before}\"{field}\"{after}");
        let Meaning::UnknownField(field) = meaning(&said, code) else {
            return Err(refused("if_field_unknown"));
        };
        if !columns.refuse(&field) {
            return Err(refused("known"));
        }
    }
    let powers = ["power.draw.instant", "power.draw.average", "power.draw"];
    let field = powers.into_iter().find(|power| columns.fields().any(|field| field == *power));
    let mut answer = Answer::new();
    answer.insert("query".into(), json!(columns.query()));
    answer.insert("suffices".into(), json!(columns.suffice()));
    answer.insert("field".into(), json!(field));
    let watts = field.map(|field| format!("from {field}, field recorded"));
    answer.insert("watts".into(), json!(watts));
    Ok(answer)
}

/// `sleep 6 s then print '0, 100.0'`: run as a real program, read by the real reader.
fn behaves(input: &Value) -> Result<Answer, Refused> {
    let behaviour = text(input, "behaviour")?;
    let bad = || refused("behaviour");
    let seconds: f64 = behaviour
        .strip_prefix("sleep ")
        .and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .ok_or_else(bad)?;
    let printed = behaviour.split('\'').nth(1).ok_or_else(bad)?;
    let script = Script::new(seconds, printed).map_err(|_| bad())?;
    let feed = Feed::start(&Program::at(&script.0), PERIOD).map_err(|_| bad())?;
    let Err(error) = feed.cards() else { return Err(bad()) };
    let cost = feed.cost();
    let error: MeterError = SmiError::into(error);
    let node = Node::of("0").idle_watts(0.0);
    let measured = Meter::refused(&node, &error).open().close().now();
    let mut answer = measured::of(&measured);
    answer.insert("starts".into(), json!(cost.starts));
    Ok(answer)
}

/// A program on disk, until it is dropped.
struct Script(PathBuf);

impl Script {
    fn new(seconds: f64, printed: &str) -> std::io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("joulebook-case-{}-{number}", process::id());
        let path = std::env::temp_dir().join(name);
        // What it prints is data of its own, and is no part of the program.
        fs::write(path.with_extension("txt"), printed.to_owned() + "\n")?;
        fs::write(&path, format!("#!/bin/sh\nsleep {seconds}\ncat \"$0.txt\"\n"))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700))?;
        Ok(Self(path))
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        // What is left in the temporary folder harms nobody.
        let _ = fs::remove_file(&self.0);
        let _ = fs::remove_file(self.0.with_extension("txt"));
    }
}
