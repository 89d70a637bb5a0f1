//! `joulebook bench`: what a token costs at each level of concurrency, with the evidence on the
//! record.
//!
//! It drives a server of the usual HTTP interface, or meters somebody else's load generator over its
//! own time; its subcommands do something with records that are there. Refused before anything is
//! done: nothing to drive, a target that does not answer or does not list the model, an option of our
//! load beside somebody else's generator, a folder that holds a record already. What is interrupted is
//! kept as far as it was finished, and said to be incomplete.

mod metered;
mod outcome;
mod plans;
mod progress;
mod sweep;

use std::{ffi::OsString, path::PathBuf, process::ExitCode, time::Duration};

use crate::{
    bench::{formats::Format, meter::Asked, tool::Tool},
    context::Context,
    duration,
};

const TARGET: &str = "Target";
const LOAD: &str = "Load";
const ENERGY: &str = "Energy";
const RECORD: &str = "Record";

/// Options of `bench`.
#[derive(clap::Args)]
#[command(
    override_usage = "joulebook bench --url URL [--model MODEL] --concurrency 1,8,32 \
    [OPTIONS]\n       joulebook bench [OPTIONS] -- COMMAND [ARGUMENTS]...\n       \
    joulebook bench compare|check|fit|show ...",
    args_conflicts_with_subcommands = true
)]
pub struct Arguments {
    #[command(subcommand)]
    tool: Option<Tool>,
    #[command(flatten)]
    shared: Shared,
    #[command(flatten)]
    load: plans::Wanted,
    /// Somebody else's load generator and its arguments: it is metered over its own time
    #[arg(last = true, conflicts_with_all = plans::OF_OUR_LOAD)]
    command: Vec<OsString>,
}

/// Options of both kinds of run.
#[derive(Debug, clap::Args)]
struct Shared {
    /// The server under test; its cards are read only if it is this machine
    #[arg(long, value_name = "URL", help_heading = TARGET)]
    url: Option<String>,
    /// A card it runs on: the driver's index, a UUID or its beginning, a PCI address, or cuda:N;
    /// repeatable, the cards add up (default: 0)
    #[arg(long = "gpu", value_name = "GPU", help_heading = ENERGY)]
    gpus: Vec<String>,
    /// The agent on the server's host (http://HOST:9402), whose cards are read instead of these
    #[arg(long, value_name = "URL", help_heading = ENERGY)]
    node: Option<String>,
    /// The file that holds the agent's token
    #[arg(long, value_name = "FILE", requires = "node", help_heading = ENERGY)]
    token_file: Option<PathBuf>,
    /// How long the idle baseline takes, with the model loaded and nothing in flight
    #[arg(long, value_name = "SPAN", default_value = "2s", value_parser = duration::span, help_heading = ENERGY)]
    baseline: Duration,
    /// The folder of the record, which is made (default: one in this folder, named by the time)
    #[arg(short, long, value_name = "FOLDER", help_heading = RECORD)]
    output: Option<PathBuf>,
    /// Write the rungs with another tool's keys as well; repeatable
    #[arg(long, value_enum, conflicts_with = "command", help_heading = RECORD)]
    format: Vec<Format>,
    /// The record as JSON on standard output (of a COMMAND: standard error); a folder is written only
    /// if one is named (-o)
    #[arg(long, help_heading = RECORD)]
    json: bool,
}

impl Shared {
    /// What is asked of the energy half, for a server on that port.
    fn asked(&self, port: Option<u16>) -> Asked {
        Asked {
            gpus: self.gpus.clone(),
            port,
            node: self.node.clone(),
            token_file: self.token_file.clone(),
        }
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments, context: &Context) -> anyhow::Result<ExitCode> {
    if let Some(tool) = &arguments.tool {
        tool.run()
    } else if arguments.command.is_empty() {
        sweep::run(&arguments.load, &arguments.shared, context)
    } else {
        metered::run(&arguments.command, &arguments.load, &arguments.shared, context)
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, Parser};

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        bench: Arguments,
    }

    fn parsed(words: &[&str]) -> Result<Program, clap::Error> {
        Program::try_parse_from(std::iter::once("bench").chain(words.iter().copied()))
    }

    /// Each option of the load, also one that is added later.
    #[test]
    fn no_option_of_our_load_is_ignored_beside_a_command() {
        let command = plans::Wanted::augment_args(clap::Command::new("load"));
        let mut seen = 0;
        for argument in command.get_arguments() {
            let name = format!("--{}", argument.get_long().unwrap());
            let value = match name.as_str() {
                "--header" => "a: b",
                "--duration" | "--warm-up" | "--cool-down" | "--timeout" => "3s",
                _ => "3",
            };
            let takes_value = argument.get_action().takes_values();
            let word = if takes_value { format!("{name}={value}") } else { name.clone() };
            let beside = parsed(&[&word, "--", "true"]);
            if name == "--tokens" {
                assert!(beside.is_ok(), "of a COMMAND alone");
                assert!(parsed(&["--url", "http://a", "--tokens=3"]).is_err());
                continue;
            }
            let error = beside.err().unwrap_or_else(|| panic!("{name} is ignored"));
            assert_eq!(error.kind(), clap::error::ErrorKind::ArgumentConflict, "{error}");
            assert_eq!(error.exit_code(), 2);
            assert!(error.to_string().contains(&name), "{error}");
            assert!(parsed(&["--url", "http://a", &word]).is_ok(), "{name}");
            seen += 1;
        }
        assert_eq!(seen, plans::OF_OUR_LOAD.len());
        // Another tool's keys are made of requests, and nobody saw those.
        let error = parsed(&["--format=vllm", "--", "true"]).err().unwrap();
        assert!(error.to_string().contains("--format"), "{error}");
        assert!(parsed(&["--", "true", "--concurrency", "3"]).is_ok(), "its own are its own");
    }
}
