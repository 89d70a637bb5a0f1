//! `joulebook config`: where things are kept and come from, and what is known of each card.

use std::{env, path::PathBuf, process::ExitCode};

use joulebook::{
    nodes,
    nvml::{Driver, LIBRARY_VARIABLE},
    profile::{Profile, STATE_VARIABLE, Trust},
};
use serde::Serialize;

use crate::{
    LOG_VARIABLE,
    command::nodes::NODES_VARIABLE,
    context::Context,
    words::{self, FAINT, STRONG, say_warning},
};

/// Options of `config`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// One line of JSON instead of pages
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Answer {
    state_dir: Option<String>,
    /// The file of nodes; null where there is none.
    nodes: Option<String>,
    driver_library: Library,
    environment: Vec<Variable>,
    cards: Vec<Profile>,
    unreadable: Vec<String>,
}

#[derive(Serialize)]
struct Library {
    /// What is asked for.
    name: String,
    /// `environment` or `default`.
    from: &'static str,
    version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Serialize)]
struct Variable {
    name: &'static str,
    value: Option<String>,
    meaning: &'static str,
}

/// The variables that matter, and what each of them decides.
const VARIABLES: [(&str, &str); 10] = [
    (STATE_VARIABLE, "the folder of what is known of the cards (--state-dir goes before it)"),
    ("XDG_STATE_HOME", "the user's state folder, else ~/.local/state"),
    (NODES_VARIABLE, "the file of nodes (--nodes goes before it)"),
    ("XDG_CONFIG_HOME", "the user's configuration folder, else ~/.config"),
    (LIBRARY_VARIABLE, "another driver library than libnvidia-ml.so.1"),
    (LOG_VARIABLE, "what is logged to standard error: error, warn, info, debug"),
    ("CUDA_VISIBLE_DEVICES", "the cards that cuda:N counts"),
    ("CUDA_DEVICE_ORDER", "the order in which it counts them"),
    ("NO_COLOR", "no colours, if set"),
    ("TZ", "the time zone of what is shown"),
];

/// Runs the command.
pub fn run(arguments: &Arguments, context: &Context) -> anyhow::Result<ExitCode> {
    let named = env::var_os(LIBRARY_VARIABLE).filter(|path| !path.is_empty());
    let driver = Driver::shared();
    let error = driver.check().err().map(|error| error.to_string());
    let driver_library = Library {
        name: named
            .as_ref()
            .map_or("libnvidia-ml.so.1".into(), |path| path.to_string_lossy().into_owned()),
        from: if named.is_some() { "environment" } else { "default" },
        version: driver.version(),
        error,
    };
    let (mut cards, mut unreadable) = (Vec::new(), Vec::new());
    if let Some(profiles) = &context.profiles {
        for profile in profiles.all()? {
            match profile {
                Ok(profile) => cards.push(profile),
                Err(error) => unreadable.push(error.to_string()),
            }
        }
    }
    let environment = VARIABLES.map(|(name, meaning)| {
        let value = env::var_os(name).map(|value| value.to_string_lossy().into_owned());
        Variable { name, value, meaning }
    });
    let state_dir =
        context.profiles.as_ref().map(|profiles| profiles.directory().display().to_string());
    let environment = environment.into();
    let named = env::var_os(NODES_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
    let nodes = named.or_else(nodes::default_path).filter(|path| path.exists());
    let nodes = nodes.map(|path| path.display().to_string());
    let answer = Answer { state_dir, nodes, driver_library, environment, cards, unreadable };
    if arguments.json {
        anstream::println!("{}", serde_json::to_string(&answer)?);
    } else {
        answer.say();
    }
    Ok(ExitCode::SUCCESS)
}

impl Answer {
    fn say(&self) {
        let heading = |text: &str| anstream::println!("{STRONG}{text}{STRONG:#}");
        heading("what is known of the cards is kept in");
        let none = "nowhere: there is no home; name a folder with --state-dir";
        anstream::println!("  {}", self.state_dir.as_deref().unwrap_or(none));
        heading("nodes are read from");
        let none = "no file: there is only this host (joulebook nodes --help)";
        anstream::println!("  {}", self.nodes.as_deref().unwrap_or(none));
        heading("driver library");
        let library = &self.driver_library;
        anstream::println!("  {} ({})", library.name, library.from);
        match (&library.version, &library.error) {
            (Some(version), _) => anstream::println!("  loaded, driver {version}"),
            (None, Some(error)) => {
                error.lines().for_each(|line| anstream::println!("  {line}"));
            }
            (None, None) => anstream::println!("  loaded, driver of unknown version"),
        }
        heading("environment");
        for Variable { name, value, meaning } in &self.environment {
            let value = value.as_deref().unwrap_or("not set");
            anstream::println!("  {name:<22}{value}  {FAINT}{meaning}{FAINT:#}");
        }
        heading("cards");
        if self.cards.is_empty() && self.unreadable.is_empty() {
            anstream::println!("  none known yet: joulebook probe, joulebook idle");
        }
        self.cards.iter().for_each(say_card);
        self.unreadable.iter().for_each(|error| {
            say_warning(&format!("{error}; remove the file, and probe again"));
        });
    }
}

fn say_card(card: &Profile) {
    anstream::println!("  {} {FAINT}{}{FAINT:#}", card.name, card.uuid);
    match &card.probe {
        None => anstream::println!("    not probed: joulebook probe"),
        Some(probe) => {
            let by = match probe.trust {
                Trust::Counter => "its energy counter",
                Trust::Gauge => "its power gauge",
                Trust::Nothing => "nothing",
            };
            let ratio =
                probe.ratio.map_or(String::new(), |ratio| format!(", counter ÷ power {ratio:.3}"));
            let marks = [(probe.mismatch, "mismatch"), (probe.poll_sensitive, "poll_sensitive")];
            let marks: String = marks
                .iter()
                .filter(|(holds, _)| *holds)
                .map(|(_, mark)| format!(", {mark}"))
                .collect();
            anstream::println!(
                "    probed {} (driver {}): read by {by}, renewed every {:.1} ms ± {:.1} ms{ratio}{marks}",
                words::when(probe.unix_s),
                card.driver.as_deref().unwrap_or("unknown"),
                probe.period_s * 1e3,
                probe.jitter_s * 1e3,
            );
        }
    }
    for floor in &card.floors {
        anstream::println!("    floor {:.1} W: {}", floor.watts, words::of_floor(floor));
    }
    if card.floors.is_empty() {
        anstream::println!("    no idle floor: joulebook idle");
    }
}
