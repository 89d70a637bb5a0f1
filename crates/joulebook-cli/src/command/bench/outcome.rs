//! What a run leaves: its record in a folder, other tools' forms beside it, a page for people or
//! JSON for programs, and the exit code.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;

use super::Shared;
use crate::{
    bench::{
        formats, output,
        record::{FORM, Record, Rung, Settings, Source, Target},
        report,
    },
    context::Usage,
};

/// A record that holds nothing yet.
pub fn blank(target: Target, settings: Settings, source: Source, start_ns: u64) -> Record {
    Record {
        form: FORM.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_unix_s: joulebook::clock::unix_ns(start_ns) as f64 / 1e9,
        seconds: 0.0,
        target,
        settings,
        source,
        baseline: None,
        sampler: None,
        incomplete: None,
        warnings: Vec::new(),
        rungs: Vec::new(),
    }
}

/// Where the record goes. Refused: a folder that holds one already, a place that cannot be a folder,
/// and files for no folder.
pub fn folder(shared: &Shared) -> anyhow::Result<Option<PathBuf>> {
    let folder = match (&shared.output, shared.json) {
        (Some(folder), _) => folder.clone(),
        (None, true) if !shared.format.is_empty() => {
            let what = "--format writes into the record's folder: name one with -o beside --json";
            return Err(Usage(what.to_owned()).into());
        }
        (None, true) => return Ok(None),
        (None, false) => {
            let now = jiff::Timestamp::now().to_zoned_datetime(jiff::tz::TimeZone::system());
            PathBuf::from(format!("bench-{}", now.strftime("%Y%m%d-%H%M%S")))
        }
    };
    let refuse = |why: &str| Err(Usage(format!("{} {why} (-o)", folder.display())).into());
    if folder.join(output::RECORD).exists() {
        return refuse("holds a record already: name another folder");
    }
    if folder.exists() && !folder.is_dir() {
        return refuse("is no folder");
    }
    Ok(Some(folder))
}

impl Shared {
    /// Writes and says all there is; the exit code. Beside a command standard output is the
    /// command's, and what is said goes to standard error.
    pub fn tell(&self, record: &mut Record, folder: Option<&Path>) -> anyhow::Result<ExitCode> {
        record.close();
        let written = folder.map(|folder| self.write(record, folder)).transpose();
        let text = if self.json { output::json(record)? } else { report::page(record) };
        // A reader that went away is no error of ours.
        let _ = if record.target.command.is_empty() {
            write!(anstream::stdout(), "{text}")
        } else {
            write!(anstream::stderr(), "{text}")
        };
        // What was measured is told before what could not be written.
        if let Some(folder) = folder {
            written?;
            anstream::eprintln!("kept in {}", folder.display());
        }
        let whole = record.incomplete.is_none() && record.rungs.iter().any(Rung::is_measured);
        Ok(if whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn write(&self, record: &mut Record, folder: &Path) -> anyhow::Result<()> {
        let at = || format!("the record could not be kept in {}", folder.display());
        // The record itself comes last: where it is, all the rest is.
        for format in &self.format {
            formats::write(record, *format, folder).with_context(at)?;
        }
        output::write(record, folder).with_context(at)?;
        Ok(())
    }
}

impl Rung {
    fn is_measured(&self) -> bool {
        self.finished().next().is_some()
    }
}
