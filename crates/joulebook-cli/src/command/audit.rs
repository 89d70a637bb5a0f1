//! `joulebook audit`: whether a journal of the books balances, and the first entry that breaks it.
//!
//! The journal is streamed: one line is held at a time, beside the requests that are open in it. A
//! last line without its end is what a crash leaves: it is said, and everything before it is judged.
//!
//! Refused, with code 2: what is no journal. A journal that does not balance has code 1.

pub(super) mod page;

use std::{
    fs::File,
    io::{self, BufReader},
    path::{Path, PathBuf},
    process::ExitCode,
};

use joulebook::books::Audit;

use crate::{
    context::Usage,
    words::{say_error, say_warning},
};

/// Check a journal of the books: every microjoule charged once, or the entry that breaks it.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The journal, one transaction a line; `-` for standard input
    #[arg(value_name = "JOURNAL")]
    journal: PathBuf,
    /// Each request's accounts too, and not only their sums: all of them are held in memory
    #[arg(long)]
    requests: bool,
    /// One line of JSON instead of tables
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let (name, audit) = read(&arguments.journal, arguments.requests)?;
    if arguments.json {
        anstream::println!("{}", page::object(&audit, &name, arguments.requests));
    } else {
        anstream::print!("{}", page::page(&audit, arguments.requests));
    }
    match judgement(&audit, &name) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) => {
            say_error(&error);
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Audits a file, or standard input; and what to call it.
pub(super) fn read(path: &Path, each_request: bool) -> Result<(String, Audit), Usage> {
    let mut audit = if each_request { Audit::of_each_request() } else { Audit::new() };
    let (name, read) = if is_stdin(path) {
        ("standard input".to_owned(), audit.read(&mut io::stdin().lock()))
    } else {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|error| Usage(format!("{name}: {error}")))?;
        (name, audit.read(&mut BufReader::with_capacity(1 << 20, file)))
    };
    read.map_err(|fault| Usage(format!("{name}:{fault}")))?;
    Ok((name, audit))
}

/// Warns of a cut line; an error where the journal does not balance.
pub(super) fn judgement(audit: &Audit, name: &str) -> anyhow::Result<()> {
    if let Some(cut) = audit.cut() {
        say_warning(&format!(
            "{name}:{}: the last line is cut, as a crash leaves it; it is not counted",
            cut.line
        ));
    }
    match audit.broken() {
        None => Ok(()),
        Some(broken) => {
            anyhow::bail!("{name}:{}: card {}: {}", broken.line, broken.card, broken.what)
        }
    }
}

fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}
