//! The program `joulebook` as a library: [`main`] takes the arguments and returns the exit code.
//!
//! One file a command under `command`; this page is the way in and the way out: how errors are said
//! and which exit code they have. 0: done. 1: not done, and why. 2: asked for something that makes
//! no sense here. `run` has the codes of the command it runs, and 125 to 127 as `env` has them.

mod agent;
pub mod bench;
mod cards;
mod command;
mod context;
mod duration;
mod signals;
mod words;

use std::{ffi::OsString, io::IsTerminal, process::ExitCode};

use clap::Parser;
use context::{Context, Usage};

/// Variable that sets how much is logged to standard error (`error`, `warn`, `info`, `debug`).
pub(crate) const LOG_VARIABLE: &str = "JOULEBOOK_LOG";

/// What a piece of work cost in joules, measured on your own GPUs.
#[derive(Parser)]
#[command(name = "joulebook", version, propagate_version = true, max_term_width = 100)]
struct Program {
    #[command(flatten)]
    shared: context::Shared,
    #[command(subcommand)]
    command: command::Command,
}

/// Runs the program: the first argument is its own name.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let program = match Program::try_parse_from(arguments) {
        Ok(program) => program,
        Err(error) => {
            // Help and version are errors of a kind, with code 0.
            let _ = error.print();
            return exit_code(error.exit_code());
        }
    };
    log(&program.command);
    match program.command.run(&Context::new(&program.shared)) {
        Ok(code) => code,
        Err(error) => {
            words::say_error(&error);
            ExitCode::from(if error.is::<Usage>() { 2 } else { 1 })
        }
    }
}

fn exit_code(code: i32) -> ExitCode {
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

/// Warnings of the library to standard error, without time or place.
fn log(command: &command::Command) {
    use tracing_subscriber::EnvFilter;
    let usual = || EnvFilter::new(command.usual_log());
    let filter = EnvFilter::builder().try_from_env().unwrap_or_else(|_| usual());
    let filter = std::env::var(LOG_VARIABLE).map_or(filter, EnvFilter::new);
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    // Whoever embeds this may have a subscriber already.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(colours)
        .with_target(false)
        .without_time()
        .try_init();
}
