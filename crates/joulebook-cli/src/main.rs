//! The program `joulebook`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod command;

/// What a command, a process or a recording cost in joules.
#[derive(Parser)]
#[command(version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Demo(command::demo::Arguments),
    Read(command::read::Arguments),
}

fn main() -> anyhow::Result<ExitCode> {
    match Arguments::parse().command {
        Command::Demo(arguments) => command::demo::run(&arguments),
        Command::Read(arguments) => command::read::run(arguments),
    }
}
