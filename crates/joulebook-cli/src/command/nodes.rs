//! `joulebook nodes`: what can be read of which card, where and how well, now; or what journals of the
//! fleet's books come to.
//!
//! All nodes are asked at once, a thread each, and nobody is waited for longer than the time that is
//! given: a node that hangs is a line with its reason. Without a card there the line says so, and the
//! command has done its work.

mod page;
mod statement;
mod survey;

use std::{path::PathBuf, process::ExitCode, time::Duration};

use joulebook::nodes::{self, NodeEntry};

use crate::{
    context::{Context, Usage},
    duration,
};

/// The variable that names the file of nodes.
pub const NODES_VARIABLE: &str = "JOULEBOOK_NODES";

/// Options of `nodes`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    file: FileOption,
    /// How long a node may take to show its cards
    #[arg(long, value_name = "SPAN", default_value = "3s", value_parser = duration::span)]
    timeout: Duration,
    /// Instead: what these journals of the books come to, for each node, card and account
    #[arg(long, value_name = "JOURNAL", num_args = 1.., conflicts_with = "timeout")]
    statement: Vec<PathBuf>,
    /// One line of JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// Where the nodes are written down.
#[derive(Debug, clap::Args)]
pub struct FileOption {
    /// The file of nodes (default: nodes.toml in joulebook's configuration folder)
    #[arg(long, value_name = "FILE", env = NODES_VARIABLE, hide_env_values = true)]
    nodes: Option<PathBuf>,
}

impl FileOption {
    /// The nodes, checked.
    pub fn read(&self) -> Result<Vec<NodeEntry>, Usage> {
        let named = self.nodes.clone().filter(|path| !path.as_os_str().is_empty());
        let path = named.or_else(nodes::default_path).ok_or_else(|| {
            Usage("there is no home to look for nodes.toml in; name a file (--nodes FILE)".into())
        })?;
        let found = nodes::read(&path).map_err(|error| {
            let is_missing = matches!(&error, nodes::NodesError::Unreadable { source, .. }
                if source.kind() == std::io::ErrorKind::NotFound);
            let how = "; write [[node]], and below it name = \"iris\" and \
                       endpoint = \"http://HOST:9402\"";
            Usage(format!("{error}{}", if is_missing { how } else { "" }))
        })?;
        if found.is_empty() {
            return Err(Usage(format!("{} names no node ([[node]])", path.display())));
        }
        Ok(found)
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments, context: &Context) -> anyhow::Result<ExitCode> {
    if !arguments.statement.is_empty() {
        return statement::run(&arguments.statement, arguments.json);
    }
    let nodes = arguments.file.read()?;
    let rows = survey::all(nodes, context.profiles.as_ref(), arguments.timeout);
    if arguments.json {
        anstream::println!("{}", serde_json::json!({ "cards": rows }));
    } else {
        anstream::print!("{}", page::of(&rows));
    }
    Ok(ExitCode::SUCCESS)
}
