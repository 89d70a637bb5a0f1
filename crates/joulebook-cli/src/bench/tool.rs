//! What is done with records once they are there: the commands below `bench` that run nothing.

use std::{io::Write as _, process::ExitCode};

use crate::context::Usage;

mod check;
mod compare;
pub mod fit;
mod show;

/// What can be done with records.
#[derive(clap::Subcommand)]
pub enum Tool {
    /// Say what changed from one record to another, by how much, and whether that can be told
    ///
    /// Rung by rung: medians over repeats, the change with its 95 % interval, and a verdict. Of one
    /// repeat there is no interval, and nothing is claimed.
    Compare(compare::Arguments),
    /// Hold a record to ceilings: exit code 0 when all are kept, 1 when one is not
    ///
    /// A key that the record does not have fails its ceiling: what was not measured was not kept.
    /// Exit code 2: a ceiling or the record cannot be read.
    Check(check::Arguments),
    /// Find what a token of a prompt and of an answer cost, and from them ρ for the books
    ///
    /// Above idle, from isolated points alone: what a decode token weighs in prompt tokens with B
    /// sequences is rho_a + rho_b / B.
    Fit(fit::Arguments),
    /// Show a record again, draw its picture, or write it with another tool's keys
    Show(show::Arguments),
}

impl Tool {
    /// Does it.
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Compare(arguments) => compare::run(arguments),
            Self::Check(arguments) => check::run(arguments),
            Self::Fit(arguments) => fit::run(arguments),
            Self::Show(arguments) => show::run(arguments),
        }
    }
}

/// Prints; a reader that went away is no error of ours.
fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// What was named cannot be read: the asker's error.
fn usage(error: &anyhow::Error) -> anyhow::Error {
    Usage(format!("{error:#}")).into()
}
