//! `driver`: the simulated driver library, under the name that programs load.

use std::path::PathBuf;

use anyhow::Context;
use joulebook_lab::driver;

use super::say;

/// Put libnvidia-ml.so.1 into a directory and print that directory.
///
/// A program then reads the scenario's cards as if a driver were there:
///
///   FAKEGPU_SCENARIO=cards.scenario LD_LIBRARY_PATH=$(joulebook-lab driver) PROGRAM
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Arguments {
    /// Where to put it; otherwise `lab-driver` beside this program.
    #[arg(long)]
    dir: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let library = driver::find()?;
    let program = std::env::current_exe().context("cannot find the running program")?;
    let beside = || program.parent().map(|dir| dir.join("lab-driver"));
    let dir = arguments.dir.clone().or_else(beside).context("the program lies nowhere")?;
    driver::install(&library, &dir)?;
    let dir = dir.canonicalize().with_context(|| format!("cannot find {}", dir.display()))?;
    say(&dir.display().to_string());
    Ok(())
}
