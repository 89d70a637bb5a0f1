//! `joulebook audit`: whether a journal of the books balances, and the first entry that breaks it.
//!
//! The journal is streamed: one line is held at a time, beside one auditor a book. Numbers of a book
//! follow each other without gaps from 0; a posting with number 0 begins a card's next book, as a
//! program does that was started again. A last line without its end is what a crash leaves: it is
//! said, and everything before it is judged.
//!
//! Refused, with code 2: what is no journal. A journal that does not balance has code 1.

pub(super) mod page;

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::{Path, PathBuf},
    process::ExitCode,
};

use joulebook::{
    books::Line,
    core::ledger::{Auditor, Reason, Transaction},
};
use serde::Serialize;

use crate::{
    context::Usage,
    words::{say_error, say_warning},
};

/// A line of ten thousand requests is under two megabytes.
const LONGEST_LINE: u64 = 64 << 20;

/// Check a journal of the books: every microjoule charged once, or the entry that breaks it.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The journal, one transaction a line; `-` for standard input
    #[arg(value_name = "JOURNAL")]
    journal: PathBuf,
    /// Each request's accounts too, and not only their sums
    #[arg(long)]
    requests: bool,
    /// One line of JSON instead of tables
    #[arg(long)]
    json: bool,
}

/// What the journal holds, as far as it can be believed.
#[derive(Debug, Default)]
pub(super) struct Audit {
    /// The books of each card, the last one still open.
    pub cards: BTreeMap<String, Vec<Auditor>>,
    transactions: u64,
    /// The line that was cut.
    cut_line: Option<u64>,
    broken: Option<Broken>,
}

/// The first entry that breaks the law.
#[derive(Debug, Serialize)]
struct Broken {
    line: u64,
    card: String,
    transaction: u64,
    what: String,
}

/// One line of a journal, and whether it has an end.
enum Next {
    Whole,
    Cut,
    End,
    TooLong,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let (name, audit) = Audit::read(&arguments.journal)?;
    if arguments.json {
        anstream::println!("{}", page::object(&audit, &name, arguments.requests));
    } else {
        anstream::print!("{}", page::page(&audit, arguments.requests));
    }
    match audit.judgement(&name) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) => {
            say_error(&error);
            Ok(ExitCode::FAILURE)
        }
    }
}

impl Audit {
    /// Reads a file, or standard input; and what to call it.
    pub fn read(path: &Path) -> Result<(String, Self), Usage> {
        if is_stdin(path) {
            let name = "standard input".to_owned();
            let audit = Self::of(&mut io::stdin().lock(), &name)?;
            return Ok((name, audit));
        }
        let name = path.display().to_string();
        let file = File::open(path).map_err(|error| Usage(format!("{name}: {error}")))?;
        let audit = Self::of(&mut BufReader::with_capacity(1 << 20, file), &name)?;
        Ok((name, audit))
    }

    /// Warns of a cut line; an error where the journal does not balance.
    pub fn judgement(&self, name: &str) -> anyhow::Result<()> {
        if let Some(line) = self.cut_line {
            say_warning(&format!(
                "{name}:{line}: the last line is cut, as a crash leaves it; it is not counted"
            ));
        }
        match &self.broken {
            None => Ok(()),
            Some(Broken { line, card, what, .. }) => {
                anyhow::bail!("{name}:{line}: card {card}: {what}")
            }
        }
    }

    /// Reads a journal to its end, or to what breaks it.
    fn of(journal: &mut impl BufRead, name: &str) -> Result<Self, Usage> {
        let mut audit = Self::default();
        let mut text = Vec::new();
        for number in 1.. {
            let next = next(journal, &mut text);
            let next = next.map_err(|error| Usage(format!("{name}:{number}: {error}")))?;
            let no_entry =
                |why: &str| Usage(format!("{name}:{number}: no entry of a journal: {why}"));
            match next {
                Next::End => break,
                Next::TooLong => return Err(no_entry("the line is longer than 64 MiB")),
                Next::Whole | Next::Cut => {}
            }
            match serde_json::from_slice::<Line>(&text) {
                Ok(line) => audit.judge(number, line),
                // What was not written any more; a lost page is read as zeros.
                Err(error) if matches!(next, Next::Cut) && is_cut(&text, &error) => {
                    audit.cut_line = Some(number);
                }
                Err(error) => return Err(no_entry(&error.to_string())),
            }
            if audit.broken.is_some() {
                break;
            }
        }
        Ok(audit)
    }

    fn judge(&mut self, line: u64, entry: Line) {
        let Line { card, transaction } = entry;
        let books = self.cards.entry(card.clone()).or_default();
        if books.last().is_none_or(|book| begins_anew(book, &transaction)) {
            books.push(Auditor::new());
        }
        let judged = books.last_mut().map_or(Ok(()), |book| book.next(&transaction));
        match judged {
            Ok(()) => self.transactions = self.transactions.saturating_add(1),
            Err(error) => {
                let (transaction, what) = (error.number, error.to_string());
                self.broken = Some(Broken { line, card, transaction, what });
            }
        }
    }
}

/// The first posting of the next book.
fn begins_anew(book: &Auditor, transaction: &Transaction) -> bool {
    book.transactions() > 0 && transaction.number == 0 && transaction.reason == Reason::Post
}

/// The next line, without its end.
fn next(journal: &mut impl BufRead, text: &mut Vec<u8>) -> io::Result<Next> {
    text.clear();
    let mut limited = journal.take(LONGEST_LINE);
    if limited.read_until(b'\n', text)? == 0 {
        return Ok(Next::End);
    }
    if text.last() == Some(&b'\n') {
        text.pop();
        return Ok(Next::Whole);
    }
    Ok(if limited.limit() == 0 { Next::TooLong } else { Next::Cut })
}

/// It ends before its JSON does.
fn is_cut(text: &[u8], error: &serde_json::Error) -> bool {
    let written = text.iter().rposition(|byte| *byte != 0).map_or(0, |last| last.saturating_add(1));
    if written == text.len() {
        return error.is_eof();
    }
    let text = text.get(..written).unwrap_or_default();
    serde_json::from_slice::<Line>(text).map_or_else(|error| error.is_eof(), |_| true)
}

fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}
