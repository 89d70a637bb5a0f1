//! The table of commands: one line each here, one file each below.

use std::process::ExitCode;

use clap::Subcommand;

use crate::context::Context;

mod agent;
mod audit;
mod bench;
mod config;
mod demo;
mod idle;
mod nodes;
mod probe;
mod read;
mod run;

/// What can be asked of the program.
#[derive(Subcommand)]
pub enum Command {
    /// Measure pieces of work on a simulated card whose true energy is known
    Demo(demo::Arguments),
    /// Find out what can be read of each card here, how often, and whether it can be trusted
    Probe(probe::Arguments),
    /// Measure what each card draws at rest, and keep it as its idle floor
    Idle(idle::Arguments),
    /// Run a command and say what it cost in joules; or watch a process, or a span of time
    Run(run::Arguments),
    /// Say what recordings of cards, or windows in them, cost
    Read(read::Arguments),
    /// Serve this node's cards over HTTP: to readers on other hosts, Prometheus, and old clients
    Agent(agent::Arguments),
    /// Show what can be read of the cards of all nodes now, or what their books come to
    Nodes(nodes::Arguments),
    /// Check a journal of the books: every microjoule charged once, or the entry that breaks it
    Audit(audit::Arguments),
    /// Say what a token costs at each level of concurrency, and hold records against each other
    Bench(Box<bench::Arguments>),
    /// Show where things are kept, what is known of each card, and what was set how
    Config(config::Arguments),
}

impl Command {
    /// Does it.
    pub fn run(self, context: &Context) -> anyhow::Result<ExitCode> {
        match self {
            Self::Demo(arguments) => demo::run(&arguments),
            Self::Probe(arguments) => probe::run(&arguments, context),
            Self::Idle(arguments) => idle::run(&arguments, context),
            Self::Run(arguments) => run::run(&arguments, context),
            Self::Read(arguments) => read::run(arguments),
            Self::Agent(arguments) => agent::run(arguments, context),
            Self::Nodes(arguments) => nodes::run(&arguments, context),
            Self::Audit(arguments) => audit::run(&arguments),
            Self::Bench(arguments) => bench::run(&arguments, context),
            Self::Config(arguments) => config::run(&arguments, context),
        }
    }

    /// What it logs where nobody says otherwise: nothing where standard error belongs to somebody
    /// else, a command that is run; a service also what is good again.
    pub const fn usual_log(&self) -> &'static str {
        match self {
            Self::Run(_) | Self::Demo(_) => "off",
            Self::Agent(_) => "warn,joulebook=info",
            // Its table says what it could not read.
            Self::Nodes(_) => "error",
            _ => "warn",
        }
    }
}
