//! `case`: runs cases.

use std::{
    io::Read,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context;
use joulebook_lab::case::Case;

use super::say;

/// Run cases (one JSON object a line: id, input, expected) through the meter's own parsers,
/// registers and grades, and print what came of each: id, got, pass.
///
/// Exit code 0 when all passed, 1 when some did not, 2 when the file cannot be read.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Arguments {
    /// The file; `-` for standard input.
    file: PathBuf,
}

/// Runs them; the exit code.
pub fn run(arguments: &Arguments) -> ExitCode {
    match judged(&arguments.file) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("joulebook-lab: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn judged(file: &Path) -> anyhow::Result<bool> {
    let mut text = String::new();
    if file == Path::new("-") {
        std::io::stdin().read_to_string(&mut text).context("cannot read standard input")?;
    } else {
        text = std::fs::read_to_string(file)
            .with_context(|| format!("cannot read {}", file.display()))?;
    }
    let cases = Case::read(&text).with_context(|| format!("cannot run {}", file.display()))?;
    let mut passed = 0;
    for case in &cases {
        let outcome = case.judge();
        say(&serde_json::to_string(&outcome).context("cannot write an outcome")?);
        passed += usize::from(outcome.pass);
        if !outcome.pass {
            eprintln!("{}: {}", outcome.id, outcome.differs.join("; "));
        }
    }
    eprintln!("{passed} of {} cases passed", cases.len());
    Ok(passed == cases.len())
}
