//! `joulebook demo`: the meter and the books on a card whose true energy is known.
//!
//! The card is simulated in this process, and every page says so; nothing of this machine is read.

mod card;
mod windows;

use std::process::ExitCode;

/// Measure on a simulated card whose true energy is known.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// One JSON object instead of tables.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    windows::run(arguments.json)
}
