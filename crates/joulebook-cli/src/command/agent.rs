//! `joulebook agent`: this node's cards over HTTP. What it serves is in [`crate::agent`].

use std::{net::SocketAddr, path::PathBuf, process::ExitCode};

use crate::{
    agent::{self, Settings, Token, address},
    context::Context,
};

/// Options of `agent`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Where to listen, with or without a port; repeatable (default: 127.0.0.1:9402 and [::1]:9402,
    /// which this host alone can reach)
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    bind: Vec<SocketAddr>,
    /// The card that is meant where a client names none
    #[arg(long, value_name = "GPU", default_value = "0")]
    gpu: String,
    /// A file whose first line clients must show (Authorization: Bearer …); without it /healthz says
    /// whether the card can be read, and no more
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// What this node is called in answers and metrics (default: the host's name)
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Room for so many connections at once, streams among them
    #[arg(long, value_name = "NUMBER", default_value_t = 1024, value_parser = room)]
    connections: usize,
    /// Answer /metrics as dcgm-exporter does, for tools that know no other path (its names are always
    /// on /dcgm/metrics, ours on /metrics/joulebook)
    #[arg(long)]
    dcgm: bool,
}

fn room(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|number| (1..=65_536).contains(number))
        .ok_or_else(|| "give a number from 1 to 65536".to_owned())
}

/// Runs the command.
pub fn run(arguments: Arguments, context: &Context) -> anyhow::Result<ExitCode> {
    let token = arguments.token_file.as_deref().map(Token::read).transpose()?;
    agent::serve(Settings {
        bind: arguments.bind,
        gpu: arguments.gpu,
        token,
        name: arguments.name,
        profiles: context.profiles.clone(),
        connections: arguments.connections,
        dcgm: arguments.dcgm,
    })
}
