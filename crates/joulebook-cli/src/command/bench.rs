//! `joulebook bench`: what a token costs at each level of concurrency.

use std::process::ExitCode;

use crate::bench::tool::Tool;

/// What a token costs at each level of concurrency.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    tool: Tool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    arguments.tool.run()
}
