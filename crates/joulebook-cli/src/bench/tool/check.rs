//! `joulebook bench check RECORD --ceiling …`.

use std::{fs, path::PathBuf, process::ExitCode};

use anyhow::Context as _;
use joulebook::core::units::significant;
use serde_json::{Map, Value, json};

use super::{print, usage};
use crate::{
    bench::{
        ceiling::{Ceiling, Verdict},
        output,
    },
    context::Usage,
};

/// Its options.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The record (record.json, or its folder; any flat JSON object will do)
    #[arg(value_name = "RECORD")]
    record: PathBuf,
    /// A bound, as 'c8_gpu_rail_joules_per_token <= 0.9' (also <, >=, >), or a file with one a line
    #[arg(long = "ceiling", required = true, value_name = "FILE|EXPR")]
    ceilings: Vec<String>,
    /// One JSON object in place of a page
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut ceilings = Vec::new();
    for text in &arguments.ceilings {
        ceilings.extend(Ceiling::of_option(text).map_err(|error| Usage(error.to_string()))?);
    }
    let keys = keys(arguments).map_err(|error| usage(&error))?;
    let judged: Vec<(&Ceiling, Verdict)> =
        ceilings.iter().map(|ceiling| (ceiling, ceiling.judge(&keys))).collect();
    let is_kept = judged.iter().all(|(_, verdict)| verdict.is_kept());
    if arguments.json {
        let one = |(ceiling, verdict): &(&Ceiling, Verdict)| {
            json!({
                "key": ceiling.key,
                "ceiling": ceiling.to_string(),
                "limit": ceiling.limit,
                "value": verdict.value(),
                "verdict": verdict.word(),
            })
        };
        let all: Vec<Value> = judged.iter().map(one).collect();
        print(&format!("{}\n", json!({"kept": is_kept, "ceilings": all})));
    } else {
        print(&page(&judged));
    }
    Ok(ExitCode::from(u8::from(!is_kept)))
}

fn page(judged: &[(&Ceiling, Verdict)]) -> String {
    let mut page = String::new();
    for (ceiling, verdict) in judged {
        let (word, what) = match verdict {
            Verdict::Kept(value) => ("kept   ", format!("is {}", significant(*value))),
            Verdict::Broken(value) => ("BROKEN ", format!("is {}", significant(*value))),
            Verdict::Missing => ("MISSING", "the record has no such key".to_owned()),
            Verdict::NoNumber(value) => ("BROKEN ", format!("is no number: {value}")),
        };
        page += &format!("{word} {ceiling}: {what}\n");
    }
    let broken = judged.iter().filter(|(_, verdict)| !verdict.is_kept()).count();
    page + &match (broken, judged.len()) {
        (0, 1) => "The ceiling is kept.\n".to_owned(),
        (0, all) => format!("All {all} ceilings are kept.\n"),
        (broken, all) => format!("{broken} of {all} ceilings not kept.\n"),
    }
}

fn keys(arguments: &Arguments) -> anyhow::Result<Map<String, Value>> {
    let path = output::path_of(&arguments.record);
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    serde_json::from_str(&text).with_context(|| format!("{}: not a JSON object", path.display()))
}
