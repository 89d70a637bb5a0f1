//! `joulebook bench compare A B`.

use std::{path::PathBuf, process::ExitCode};

use super::{print, usage};
use crate::bench::{
    compare::{Comparison, json, page},
    output,
};

/// Its options.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The record compared with (record.json, or its folder)
    #[arg(value_name = "A")]
    a: PathBuf,
    /// The record that is compared
    #[arg(value_name = "B")]
    b: PathBuf,
    /// Changes within so many per cent count as none
    #[arg(long, value_name = "PERCENT", default_value = "1", value_parser = percent)]
    within: f64,
    /// One JSON object in place of a page
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let a = output::read(&arguments.a).map_err(|error| usage(&error))?;
    let b = output::read(&arguments.b).map_err(|error| usage(&error))?;
    let of = Comparison::of(&a, &b, arguments.within / 100.0);
    if arguments.json {
        print(&format!("{}\n", json(&of)));
    } else {
        print(&page(&of));
    }
    Ok(ExitCode::SUCCESS)
}

/// A number of per cent, with or without its sign.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end().parse().ok();
    number
        .filter(|percent: &f64| (0.0..100.0).contains(percent))
        .ok_or_else(|| format!("`{text}` is no number of per cent from 0 to 100"))
}
