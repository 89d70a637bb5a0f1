//! `joulebook demo`: the meter and the books on a card whose true energy is known.
//!
//! The card is simulated in this process, and every page says so; nothing of this machine is read.

mod card;
mod requests;
mod windows;

use std::{path::PathBuf, process::ExitCode};

/// Measure on a simulated card whose true energy is known.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// One JSON object instead of tables.
    #[arg(long)]
    json: bool,
    /// Single pieces of work of 5 ms to 2 s, in place of requests in flight together.
    #[arg(long)]
    windows: bool,
    /// Keep the journal of the books in this file, for `joulebook audit`.
    #[arg(long, value_name = "FILE", conflicts_with = "windows")]
    journal: Option<PathBuf>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if arguments.windows {
        windows::run(arguments.json)
    } else {
        requests::run(arguments.json, arguments.journal.as_deref())
    }
}
