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
    Compare(compare::Arguments),
    /// Hold a record to ceilings: exit code 0 when all are kept, 1 when one is not
    Check(check::Arguments),
    /// Find what a token of a prompt and of an answer cost, and from them ρ for the books
    Fit(fit::Arguments),
    /// Show a record again, or write it with another tool's keys
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
