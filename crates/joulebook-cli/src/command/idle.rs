//! `joulebook idle`: what each card draws at rest, kept as its floor with its provenance.
//!
//! Read through the same recorder that windows use, so that a floor and a window are of one kind.
//! A card that was not at rest is refused and nothing of it is kept.

use std::{
    process::ExitCode,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use joulebook::{
    Card, Meter, Node,
    idle::{Measured, NoFloor, measure},
    nvml::{CardInfo, Driver},
    profile_of,
};
use serde::Serialize;

use super::probe::progress;
use crate::{
    cards::{Found, find},
    context::Context,
    words::{self, FAINT, STRONG, say_error, say_warning},
};

/// How long a card may take to show its first reading.
const FIRST_READING: Duration = Duration::from_secs(5);

/// Options of `idle`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A card: the driver's index, a UUID or its beginning, a PCI address, or cuda:N; repeatable
    /// (default: all)
    #[arg(long = "gpu", value_name = "GPU")]
    gpus: Vec<String>,
    /// How long to measure; leave the cards alone meanwhile
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, value_parser = seconds)]
    seconds: f64,
    /// One line of JSON instead of sentences
    #[arg(long)]
    json: bool,
}

/// What came of one card.
#[derive(Serialize)]
struct Outcome {
    index: u32,
    name: String,
    uuid: String,
    #[serde(flatten)]
    measured: Option<Measured>,
    /// The file it is kept in.
    stored: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
}

fn seconds(text: &str) -> Result<f64, String> {
    text.parse::<f64>()
        .ok()
        .filter(|seconds| (1.0..=3600.0).contains(seconds))
        .ok_or_else(|| "give a number of seconds from 1 to 3600".to_owned())
}

/// Runs the command.
pub fn run(arguments: &Arguments, context: &Context) -> anyhow::Result<ExitCode> {
    let driver = Driver::shared();
    let (cards, warnings) = match find(&driver, &arguments.gpus)? {
        Found::Cards(cards, warnings) => (cards, warnings),
        Found::Nothing(_, why) => anyhow::bail!("no idle floor can be measured: {why}"),
    };
    warnings.iter().for_each(|warning| say_warning(warning));
    let length = Duration::from_secs_f64(arguments.seconds);
    let (driver, profiles) = (&driver, &context.profiles);
    let measuring: Vec<_> = cards
        .iter()
        .map(|info| {
            let (driver, uuid, profiles) =
                (Arc::clone(driver), info.uuid.clone(), profiles.clone());
            thread::spawn(move || one(&driver, &uuid, profiles.as_ref(), length))
        })
        .collect();
    let progress = progress("measuring at rest", length, arguments.json);
    let until = Instant::now() + length;
    while Instant::now() < until && !measuring.iter().all(thread::JoinHandle::is_finished) {
        thread::sleep(Duration::from_millis(100));
        progress.inc(100);
    }
    progress.finish_and_clear();
    let mut outcomes = Vec::new();
    for (info, measuring) in cards.iter().zip(measuring) {
        let found = measuring.join().unwrap_or_else(|_| Err(anyhow::anyhow!("an internal error")));
        outcomes.push(outcome(info, found, context));
    }
    let failed = outcomes.iter().any(|outcome| outcome.refused.is_some());
    if arguments.json {
        anstream::println!("{}", serde_json::to_string(&serde_json::json!({"cards": outcomes}))?);
    } else {
        outcomes.iter().for_each(say);
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn one(
    driver: &Driver,
    uuid: &str,
    profiles: Option<&joulebook::profile::Profiles>,
    length: Duration,
) -> anyhow::Result<Measured> {
    let node = Node::of(uuid);
    let meter = match profiles {
        Some(profiles) => Meter::for_node_with(&node, profiles)?,
        None => Meter::for_node(&node)?,
    };
    let card: &Arc<Card> = meter.cards().first().context("the card is not there any more")?;
    if !meter.wait_ready(FIRST_READING) {
        let fault = card.trouble().unwrap_or(joulebook::Fault::NotReady);
        return Err(NoFloor::Unreadable(fault).into());
    }
    Ok(measure(driver, card, length)?)
}

fn outcome(info: &CardInfo, found: anyhow::Result<Measured>, context: &Context) -> Outcome {
    let blank = Outcome {
        index: info.index,
        name: info.name.clone(),
        uuid: info.uuid.clone(),
        measured: None,
        stored: None,
        refused: None,
    };
    let measured = match found {
        Ok(measured) => measured,
        Err(error) => {
            let what_to_do = match error.downcast_ref::<NoFloor>() {
                Some(NoFloor::Busy { .. } | NoFloor::Unsteady { .. }) => {
                    "; stop what runs on it, or wait until it has come to rest"
                }
                Some(NoFloor::TooFew { .. }) => " (--seconds)",
                _ => "",
            };
            return Outcome { refused: Some(format!("{error}{what_to_do}")), ..blank };
        }
    };
    let Some(profiles) = &context.profiles else {
        let refused = "there is no home to keep it in; name a folder with --state-dir".to_owned();
        return Outcome { measured: Some(measured), refused: Some(refused), ..blank };
    };
    let mut profile = profile_of(info, Some(profiles));
    profile.keep(measured.floor.clone());
    match profiles.save(&profile) {
        Ok(path) => {
            let stored = Some(path.display().to_string());
            Outcome { measured: Some(measured), stored, ..blank }
        }
        Err(error) => {
            let refused = Some(format!("it cannot be kept: {error}"));
            Outcome { measured: Some(measured), refused, ..blank }
        }
    }
}

fn say(outcome: &Outcome) {
    let Outcome { index, name, .. } = outcome;
    if let Some(measured) = &outcome.measured {
        let floor = &measured.floor;
        anstream::println!("{STRONG}card {index}: {:.1} W at rest{STRONG:#}  {name}", floor.watts);
        anstream::println!("  {}, by {}", words::of_floor(floor), floor.backend);
        if measured.utilization_pct.is_none() {
            anstream::println!(
                "  its utilisation cannot be read: that it was at rest, only its steady power says"
            );
        }
        if measured.tenants_hidden {
            anstream::println!(
                "  who is on it cannot be seen; whether a model is loaded, the memory in use says"
            );
        }
        if let Some(path) = &outcome.stored {
            anstream::println!("  {FAINT}kept in {path}{FAINT:#}");
        }
    }
    if let Some(refused) = &outcome.refused {
        say_error(&anyhow::anyhow!("card {index} ({name}): {refused}; no floor is kept"));
    }
}
