//! `joulebook bench show RECORD`.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use super::{print, usage};
use crate::{
    bench::{files::write_whole, formats, output, picture, report},
    context::Usage,
};

/// Its options.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The record (record.json, or its folder)
    #[arg(value_name = "RECORD")]
    record: PathBuf,
    /// Write each rung with this tool's keys, into the record's folder
    #[arg(long = "format", value_name = "TOOL", value_enum)]
    formats: Vec<formats::Format>,
    /// Draw the picture into this file
    #[arg(long, value_name = "SVG")]
    picture: Option<PathBuf>,
    /// One JSON object in place of a page
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let record = output::read(&arguments.record).map_err(|error| usage(&error))?;
    let path = output::path_of(&arguments.record);
    let folder = path.parent().unwrap_or(Path::new("."));
    if !arguments.formats.is_empty() && output::requests(&record).next().is_none() {
        let lines = folder.join(output::REQUESTS);
        return Err(Usage(format!(
            "{}: not there or empty, and other tools' keys are made of its requests",
            lines.display()
        ))
        .into());
    }
    for format in &arguments.formats {
        for path in formats::write(&record, *format, folder)? {
            crate::words::say_note(&format!("wrote {}", path.display()));
        }
    }
    if let Some(path) = &arguments.picture {
        let svg = picture::svg(&record)?.ok_or_else(|| {
            Usage("a picture needs two rungs of concurrency, or two of rate".to_owned())
        })?;
        write_whole(path, &svg)?;
    }
    if arguments.json {
        print(&output::json(&record)?);
    } else {
        print(&report::page(&record));
    }
    Ok(ExitCode::SUCCESS)
}
