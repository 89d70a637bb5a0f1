//! `serve`: the engine in real time behind the usual HTTP interface.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use anyhow::Context;
use joulebook_lab::{
    engine::Hardware,
    serve::{Home, Server, Settings},
};

use super::say;

/// Serve an OpenAI-compatible model on a simulated card, until it is ended.
///
/// The second line that it prints is for the shell of whatever program is to see the card.
///
/// GET /truth says what each request truly cost; with ?from_ns=A&to_ns=B (CLOCK_MONOTONIC) also what
/// the card drew between the two instants.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Arguments {
    /// Where to listen; port 0 is any that is free.
    #[arg(long, default_value = "127.0.0.1:8000")]
    listen: SocketAddr,
    /// The name of the model.
    #[arg(long, default_value = "lab-8b")]
    model: String,
    /// The folder of the simulated machine (default: one for this port in the folder of temporary files).
    #[arg(long)]
    home: Option<PathBuf>,
    /// A file with more of the card's scenario: its register, its faults.
    #[arg(long)]
    about: Option<PathBuf>,
    /// Each of so many answers breaks off half-way with an error.
    #[arg(long, default_value_t = 0)]
    break_every: u64,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let about = match &arguments.about {
        Some(path) => std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?,
        None => String::new(),
    };
    let hardware = Hardware::default();
    let folder = arguments.home.clone().unwrap_or_else(|| {
        std::env::temp_dir().join(format!("joulebook-lab-{}", arguments.listen.port()))
    });
    let home = Home::make(&folder, &hardware, &about)?;
    home.install_driver()?;
    joulebook_lab::Scenario::read(&home.scenario_file())?;
    let settings = Settings {
        listen: arguments.listen,
        model: arguments.model.clone(),
        hardware,
        break_every: arguments.break_every,
        ..Settings::default()
    };
    let server = Server::start(settings, &home)?;
    say(&format!("serving {} on {}", arguments.model, server.url()));
    let exports: Vec<String> =
        home.environment().iter().map(|(name, value)| format!("{name}={value}")).collect();
    say(&format!("export {} PATH={}:$PATH", exports.join(" "), home.folder().display()));
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}
