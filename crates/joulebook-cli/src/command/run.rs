//! `joulebook run -- COMMAND`: what a command cost in joules, as `time` says what it took.
//!
//! The command is not touched: its input, output and terminal are its own, signals reach it as if it
//! had been started by hand, and its exit code is returned. Metering never costs it its run: where
//! nothing can be measured it runs all the same, and why is said afterwards. Only what the asker got
//! wrong is refused, and before it starts.
//!
//! `--pid` and `--for` watch instead of starting: until the process ends, the span is over, or a
//! signal ends the window.

pub(super) mod child;
mod meter;
mod peak;
mod result;
mod watch;

use std::{ffi::OsString, fs::File, path::PathBuf, process::ExitCode, time::Duration};

use anyhow::Context as _;
use joulebook::{Card, Meter, clock::now_ns, core::ring::Point};

use crate::{
    command::nodes::FileOption,
    context::{Context, Usage},
    duration,
    signals::Signals,
    words::say_error,
};
use child::Exit;
use result::{Outcome, What};

/// joulebook itself failed, as `env` and `timeout` say it.
const FAILED: u8 = 125;
/// How long a card may take to show its first reading before the command starts.
const FIRST_READING: Duration = Duration::from_secs(1);
/// With a floor to compare them to, a few ticks at rest before the command make a short window much
/// sharper, where a probe has shown how to follow the card's updates closely; no longer than this is
/// spent on them.
const REST: Duration = Duration::from_secs(1);
const TICKS_AT_REST: usize = 3;
/// A publish is closely followed when it is known to within this share of the period.
const CLOSELY: f64 = 0.04;
/// How long the last publish may take to come. Most need a tenth.
const SETTLE: Duration = Duration::from_secs(5);

/// Options of `run`.
#[derive(Debug, clap::Args)]
#[command(override_usage = "joulebook run [OPTIONS] [--] COMMAND [ARGUMENTS]...\n       \
    joulebook run [OPTIONS] --pid PID [--for SPAN]\n       joulebook run [OPTIONS] --for SPAN")]
pub struct Arguments {
    /// A card it runs on: the driver's index, a UUID or its beginning, a PCI address, or cuda:N;
    /// repeatable, the cards add up (default: 0)
    #[arg(long = "gpu", value_name = "GPU")]
    gpus: Vec<String>,
    /// A node of the file of nodes that it runs on, instead of this host; --gpu then means its cards
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
    #[command(flatten)]
    file: FileOption,
    /// What the cards draw at rest, in place of what is stored: one sum, or one for each card
    #[arg(long, value_name = "WATTS[,WATTS]", value_delimiter = ',', value_parser = watts, allow_negative_numbers = true)]
    idle: Vec<f64>,
    /// Tokens it produced: adds joules per token
    #[arg(long)]
    tokens: Option<u64>,
    /// What 1000 tokens cost by your own estimate: used, and named so, where nothing was measured
    #[arg(long, value_name = "J_PER_1K", value_parser = watts, allow_negative_numbers = true)]
    hint: Option<f64>,
    /// A part of the name of the process that serves: other tenants then void the measurement
    #[arg(long, value_name = "NAME")]
    serving_match: Option<String>,
    /// One line of JSON instead of sentences
    #[arg(long)]
    json: bool,
    /// Write the result to this file instead of standard error
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Watch this process until it ends, instead of running a command
    #[arg(long, conflicts_with = "command")]
    pid: Option<u32>,
    /// Watch for this long (10s, 500ms, 1m30s), instead of running a command
    #[arg(long = "for", value_name = "SPAN", conflicts_with = "command", value_parser = duration::span)]
    span: Option<Duration>,
    /// The command and its arguments
    #[arg(trailing_var_arg = true, required_unless_present_any = ["pid", "span"])]
    command: Vec<OsString>,
}

fn watts(text: &str) -> Result<f64, String> {
    text.parse::<f64>()
        .ok()
        .filter(|value| value.is_finite() && *value >= 0.0)
        .ok_or_else(|| "give a number of 0 or more".to_owned())
}

/// Runs the command.
pub fn run(arguments: &Arguments, context: &Context) -> anyhow::Result<ExitCode> {
    match measured(arguments, context) {
        Ok(code) => Ok(ExitCode::from(code)),
        Err(error) if error.is::<Usage>() => Err(error),
        Err(error) => {
            say_error(&error);
            Ok(ExitCode::from(FAILED))
        }
    }
}

fn measured(arguments: &Arguments, context: &Context) -> anyhow::Result<u8> {
    // Before any thread is started, so that all of them have it.
    let signals = Signals::block().context("signals cannot be read")?;
    let target = arguments.pid.map(watch::Target::of).transpose()?;
    let meter::Found { meter, declared, trouble } = meter::of(arguments, context)?;
    let file = arguments.output.as_ref().map(|path| {
        File::create(path).with_context(|| format!("cannot write {} (-o)", path.display()))
    });
    let file = file.transpose()?;
    let trouble = trouble.or_else(|| first_reading(&meter));

    let window = meter.open();
    let open_ns = now_ns();
    let what = match arguments.command.split_first() {
        Some((program, rest)) => match child::run(program, rest, &signals) {
            Ok(exit) => What::Command(arguments.command.clone(), exit),
            Err(refused) => {
                say_error(&anyhow::anyhow!("{refused}"));
                return Ok(refused.code());
            }
        },
        None => What::Watched(watch::until(target.as_ref(), arguments.span, &signals)),
    };
    let close_ns = now_ns();
    let tokens = arguments.tokens.unwrap_or(0);
    let pending = window.close().tokens(tokens);
    let code = what.code();
    if trouble.is_some() && meter.cards().is_empty() && arguments.command.is_empty() {
        let why = trouble.unwrap_or_default();
        anyhow::bail!("there was nothing to measure with: {}", crate::words::one_line(&why));
    }
    let outcome = Outcome {
        measured: pending.settle(SETTLE),
        meter: &meter,
        span_ns: (open_ns, close_ns),
        tokens,
        what,
        trouble,
        declared,
        only_first: arguments.gpus.is_empty() && arguments.node.is_none(),
    };
    outcome.write(arguments.json, file)?;
    drop(signals);
    Ok(code)
}

/// Waits for the first reading, and for a few at rest where they are of use; in words why there is
/// none.
fn first_reading(meter: &Meter) -> Option<String> {
    if !meter.wait_ready(FIRST_READING) {
        let fault = meter.cards().iter().find_map(|card| card.trouble());
        let why = fault.map_or("it is not known why", crate::words::of_fault);
        return Some(format!("a card showed no reading within {FIRST_READING:?}: {why}"));
    }
    if meter.idle_watts().is_some() {
        let until = std::time::Instant::now() + REST;
        let followed = || meter.cards().iter().all(|card| is_followed(card));
        while !followed() && std::time::Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    None
}

/// True when its last publishes were seen closely, or cannot be.
fn is_followed(card: &Card) -> bool {
    let Some(probe) = card.profile().probe.as_ref().filter(|probe| !probe.poll_sensitive) else {
        return true;
    };
    let Some(newest) = card.series().newest() else { return true };
    let points = card.series().span(newest.at_ns, newest.at_ns, TICKS_AT_REST as u64 + 1, 1);
    let close = |point: &Point| f64::from(point.uncertainty_ns) / 1e9 <= probe.period_s * CLOSELY;
    points.len() > TICKS_AT_REST && points.iter().all(close)
}

impl What {
    /// The exit code of the program.
    fn code(&self) -> u8 {
        match self {
            Self::Command(_, Exit::Code(code)) => *code,
            Self::Command(_, Exit::Signal(number)) => 128u8.saturating_add(*number),
            Self::Watched(watch::End::Signal(number)) if *number != libc::SIGINT => {
                128u8.saturating_add(u8::try_from(*number).unwrap_or(0))
            }
            Self::Watched(_) => 0,
        }
    }
}
