//! The program `joulebook-lab`: what only the lab knows.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod command;

/// Cards whose true energy is known, and the tools that judge a meter by them.
#[derive(Parser)]
#[command(version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Truth(command::truth::Arguments),
    Accuracy(command::accuracy::Arguments),
    Case(command::case::Arguments),
    Driver(command::driver::Arguments),
    Score(command::score::Arguments),
    Serve(command::serve::Arguments),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Truth(arguments) => command::truth::run(&arguments),
        Command::Accuracy(arguments) => {
            command::accuracy::run(&arguments);
            Ok(())
        }
        Command::Case(arguments) => return command::case::run(&arguments),
        Command::Driver(arguments) => command::driver::run(&arguments),
        Command::Score(arguments) => command::score::run(&arguments),
        Command::Serve(arguments) => command::serve::run(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("joulebook-lab: {error:#}");
            ExitCode::FAILURE
        }
    }
}
