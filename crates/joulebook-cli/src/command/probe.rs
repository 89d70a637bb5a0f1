//! `joulebook probe`: what can be read of each card, and whether it can be trusted.
//!
//! All cards are probed at once, a thread each; one whose driver hangs holds up no other. What was
//! found is kept, so that from then on the card is read in step with its own updates. Without a card
//! it says what is missing and has done its work.

mod page;

use std::{
    io::IsTerminal,
    process::ExitCode,
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressStyle};
use joulebook::{
    nvml::{CardInfo, Driver},
    probe::{self, Report},
    profile_of,
};
use serde::Serialize;

use crate::{
    cards::{Found, find},
    context::Context,
    words::{say_error, say_warning},
};

/// A driver that takes so much longer than the probe itself does not answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// Options of `probe`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A card: the driver's index, a UUID or its beginning, a PCI address, or cuda:N; repeatable
    /// (default: all)
    #[arg(long = "gpu", value_name = "GPU")]
    gpus: Vec<String>,
    /// How long to watch; longer is sharper, 6 s is the least
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, value_parser = seconds)]
    seconds: f64,
    /// One line of JSON instead of pages
    #[arg(long)]
    json: bool,
    /// Do not keep what is found
    #[arg(long)]
    no_store: bool,
}

/// All that was found.
#[derive(Serialize)]
struct Answer {
    cards: Vec<Probed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<joulebook::Fault>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// One card.
#[derive(Serialize)]
struct Probed {
    #[serde(flatten)]
    report: Report,
    /// The file it is kept in.
    stored: Option<String>,
}

fn seconds(text: &str) -> Result<f64, String> {
    let least = probe::SHORTEST.as_secs_f64();
    text.parse::<f64>()
        .ok()
        .filter(|seconds| (least..=3600.0).contains(seconds))
        .ok_or_else(|| format!("give a number of seconds from {least} to 3600"))
}

/// Runs the command.
pub fn run(arguments: &Arguments, context: &Context) -> anyhow::Result<ExitCode> {
    let driver = Driver::shared();
    let (cards, warnings) = match find(&driver, &arguments.gpus)? {
        Found::Cards(cards, warnings) => (cards, warnings),
        Found::Nothing(fault, why) => {
            let answer = Answer { cards: Vec::new(), error: Some(fault), message: Some(why) };
            return answer.say(arguments);
        }
    };
    warnings.iter().for_each(|warning| say_warning(warning));
    let length = Duration::from_secs_f64(arguments.seconds);
    let (reports, silent) = probe_all(&driver, &cards, length, arguments.json);
    let cards = reports.into_iter().map(|report| keep(report, arguments, context)).collect();
    let code = Answer { cards, error: None, message: None }.say(arguments)?;
    for card in &silent {
        let error = anyhow::anyhow!(
            "card {} ({}): the driver did not answer for {:.0} s; look for a hung driver in the \
             kernel's log (dmesg)",
            card.index,
            card.name,
            (length + PATIENCE).as_secs_f64()
        );
        say_error(&error);
    }
    Ok(if silent.is_empty() { code } else { ExitCode::FAILURE })
}

/// The reports in the cards' order, and the cards whose driver did not answer in time.
fn probe_all(
    driver: &Arc<Driver>,
    cards: &[CardInfo],
    length: Duration,
    quiet: bool,
) -> (Vec<Report>, Vec<CardInfo>) {
    let (sender, receiver) = mpsc::channel();
    for card in cards {
        let (sender, driver, card) = (sender.clone(), Arc::clone(driver), card.clone());
        thread::spawn(move || {
            // Nobody waits any more for one that took too long.
            let _ = sender.send(probe::probe(&driver, &card, length));
        });
    }
    drop(sender);
    let what = match cards {
        [card] => format!("probing card {}", card.index),
        _ => format!("probing {} cards", cards.len()),
    };
    let progress = progress(&what, length, quiet);
    let until = Instant::now() + length + PATIENCE;
    let mut reports: Vec<Report> = Vec::new();
    while reports.len() < cards.len() && Instant::now() < until {
        match receiver.recv_timeout(Duration::from_millis(100)) {
            Ok(report) => reports.push(report),
            Err(mpsc::RecvTimeoutError::Timeout) => progress.inc(100),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        }
    }
    progress.finish_and_clear();
    reports.sort_by_key(|report| report.index);
    let silent = |card: &&CardInfo| reports.iter().all(|report| report.uuid != card.uuid);
    let silent = cards.iter().filter(silent).cloned().collect();
    (reports, silent)
}

/// A bar on a terminal, nothing elsewhere.
pub(super) fn progress(what: &str, length: Duration, quiet: bool) -> ProgressBar {
    if quiet || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let steps = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
    let style = ProgressStyle::with_template("{msg} {bar:30} {elapsed}");
    let bar = ProgressBar::new(steps).with_message(what.to_owned());
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.tick();
    bar
}

fn keep(report: Report, arguments: &Arguments, context: &Context) -> Probed {
    let not_kept = |report| Probed { report, stored: None };
    if arguments.no_store {
        return not_kept(report);
    }
    let Some(profiles) = &context.profiles else {
        say_warning("nothing is kept: there is no home; name a folder with --state-dir");
        return not_kept(report);
    };
    let mut profile = profile_of(&report.card, Some(profiles));
    if !report.keep_in(&mut profile) {
        return not_kept(report);
    }
    match profiles.save(&profile) {
        Ok(path) => Probed { report, stored: Some(path.display().to_string()) },
        Err(error) => {
            say_warning(&format!("nothing is kept of card {}: {error}", report.index));
            not_kept(report)
        }
    }
}

impl Answer {
    fn say(&self, arguments: &Arguments) -> anyhow::Result<ExitCode> {
        if arguments.json {
            anstream::println!("{}", serde_json::to_string(self)?);
            return Ok(ExitCode::SUCCESS);
        }
        if let Some(message) = &self.message {
            anstream::println!("No card can be probed: {message}");
        }
        for (place, card) in self.cards.iter().enumerate() {
            if place > 0 {
                anstream::println!();
            }
            let stored = match (&card.stored, arguments.no_store) {
                (Some(path), _) => format!("kept in {path}"),
                (None, true) => "not kept (--no-store)".to_owned(),
                (None, false) => "not kept: it rests on a failure that may pass".to_owned(),
            };
            anstream::print!("{}", page::of(&card.report, &stored));
        }
        Ok(ExitCode::SUCCESS)
    }
}
