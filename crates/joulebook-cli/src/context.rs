//! What all commands share: the folder of profiles, and the kind of error that is the asker's.

use std::path::PathBuf;

use joulebook::{
    MeterError,
    profile::{Profiles, STATE_VARIABLE},
};

/// Options of every command.
#[derive(Debug, clap::Args)]
pub struct Shared {
    /// The folder of what is known of the cards (default: the user's state folder)
    #[arg(long, global = true, value_name = "FOLDER", env = STATE_VARIABLE, hide_env_values = true)]
    state_dir: Option<PathBuf>,
}

/// What a command is run with.
#[derive(Clone, Debug)]
pub struct Context {
    /// Where profiles are kept; none where there is no home.
    pub profiles: Option<Profiles>,
}

/// Something was asked for that makes no sense here: exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

impl Context {
    /// From the shared options.
    pub fn new(shared: &Shared) -> Self {
        let named = shared.state_dir.clone().filter(|folder| !folder.as_os_str().is_empty());
        Self { profiles: named.map(Profiles::at).or_else(Profiles::of_user) }
    }
}

/// True when the asker is to blame: a card that does not exist, a floor that is none.
pub fn is_usage(error: &MeterError) -> bool {
    match error {
        MeterError::Remote(error) => error.is_of_the_asker(),
        MeterError::Identity(_) | MeterError::Idle(_) => true,
        MeterError::NoneAsked | MeterError::NoEndpoint => true,
        _ => false,
    }
}
