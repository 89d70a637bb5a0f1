//! The journal: every transaction of the books, one JSON object a line, appended and never
//! rewritten.
//!
//! A card's book begins with a line that says so: the number of its first transaction, and that its
//! accounts begin at nothing. In one file numbers go on over all starts of the program. A sink that
//! fails is counted and holds nobody up; nothing more is written to it, since nobody could prove
//! what stands behind a hole.

mod file;

use std::{
    collections::BTreeMap,
    fmt,
    io::{self, Write},
    sync::Arc,
};

use joulebook_core::ledger::Transaction;
use serde::{Deserialize, Serialize};

pub use file::{JournalFile, Mended};

/// A line of a journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Text", into = "Text")]
pub struct Line {
    /// The card whose book it is about.
    pub card: String,
    /// What it says.
    pub what: What,
}

/// What a line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A book begins.
    Open(Opened),
    /// Something was moved.
    Moved(Transaction),
}

/// How a book begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Opened {
    /// The number of its first transaction: the next one in the file.
    pub number: u64,
    /// What its accounts hold.
    pub balances: Balances,
}

/// What the accounts of a book hold when it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Balances {
    /// Nothing: what stood in the book before stays there.
    Afresh,
}

/// A line as it is written.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    card: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    open: Option<Opened>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    transaction: Option<Transaction>,
}

/// The same, borrowed.
#[derive(Serialize)]
struct TextOf<'a> {
    card: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    open: Option<Opened>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transaction: Option<&'a Transaction>,
}

/// Where the books write their journal.
pub struct Journal {
    to: Box<dyn Write + Send>,
    numbers: BTreeMap<String, u64>,
}

/// The journal, and whoever reads along.
struct Both(Box<dyn Write + Send>, Box<dyn Write + Send>);

/// The owner's side: writes, and counts what could not be written.
pub(super) struct Sink {
    to: Option<Box<dyn Write + Send>>,
    cards: Vec<Arc<str>>,
    line: Vec<u8>,
    pub written: u64,
    pub failed: u64,
}

impl Line {
    /// A transaction of a card's book.
    pub fn moved(card: impl Into<String>, transaction: Transaction) -> Self {
        Self { card: card.into(), what: What::Moved(transaction) }
    }

    /// A card's book that begins, with that number.
    pub fn open(card: impl Into<String>, number: u64) -> Self {
        let opened = Opened { number, balances: Balances::Afresh };
        Self { card: card.into(), what: What::Open(opened) }
    }

    /// What was moved, where that is what it says.
    pub fn transaction(self) -> Option<Transaction> {
        match self.what {
            What::Moved(transaction) => Some(transaction),
            What::Open(_) => None,
        }
    }
}

impl TryFrom<Text> for Line {
    type Error = &'static str;

    fn try_from(text: Text) -> Result<Self, Self::Error> {
        let what = match (text.open, text.transaction) {
            (Some(opened), None) => What::Open(opened),
            (None, Some(transaction)) => What::Moved(transaction),
            (None, None) => return Err("neither `transaction` nor `open`"),
            (Some(_), Some(_)) => return Err("both `transaction` and `open`"),
        };
        Ok(Self { card: text.card, what })
    }
}

impl From<Line> for Text {
    fn from(line: Line) -> Self {
        let (open, transaction) = match line.what {
            What::Open(opened) => (Some(opened), None),
            What::Moved(transaction) => (None, Some(transaction)),
        };
        Self { card: line.card, open, transaction }
    }
}

impl Journal {
    /// A new journal, written there.
    pub fn to(writer: impl Write + Send + 'static) -> Self {
        Self { to: Box::new(writer), numbers: BTreeMap::new() }
    }

    /// The same lines go there as well; what fails there is no failure of the journal.
    pub fn also(self, writer: impl Write + Send + 'static) -> Self {
        Self { to: Box::new(Both(self.to, Box::new(writer))), ..self }
    }

    /// The number of a card's next transaction.
    pub fn number(&self, card: &str) -> u64 {
        self.numbers.get(card).copied().unwrap_or(0)
    }
}

impl Write for Both {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.0.write(bytes)?;
        let same = bytes.get(..written).unwrap_or_default();
        if let Err(error) = self.1.write_all(same) {
            tracing::debug!("a reader of the journal fails: {error}");
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Journal").field("numbers", &self.numbers).finish_non_exhaustive()
    }
}

impl Sink {
    /// Begins a book for each card; the numbers of their first transactions.
    pub fn begin(journal: Option<Journal>, cards: Vec<Arc<str>>) -> (Self, Vec<u64>) {
        let number = |card: &Arc<str>| journal.as_ref().map_or(0, |it| it.number(card));
        let numbers: Vec<u64> = cards.iter().map(number).collect();
        let to = journal.map(|journal| journal.to);
        let mut sink = Self { to, cards, line: Vec::new(), written: 0, failed: 0 };
        for (card, number) in numbers.iter().enumerate() {
            let open = Opened { number: *number, balances: Balances::Afresh };
            sink.line(card, Some(open), None);
        }
        sink.written = 0;
        (sink, numbers)
    }

    pub fn write(&mut self, lines: impl Iterator<Item = (usize, Transaction)>) {
        for (card, transaction) in lines {
            self.line(card, None, Some(&transaction));
        }
    }

    fn line(&mut self, card: usize, open: Option<Opened>, transaction: Option<&Transaction>) {
        let (Some(to), Some(card)) = (&mut self.to, self.cards.get(card)) else { return };
        if self.failed > 0 {
            self.failed = self.failed.saturating_add(1);
            return;
        }
        self.line.clear();
        let written = serde_json::to_writer(&mut self.line, &TextOf { card, open, transaction })
            .map_err(io::Error::from)
            .and_then(|()| {
                self.line.push(b'\n');
                to.write_all(&self.line)
            });
        match written {
            Ok(()) => self.written = self.written.saturating_add(1),
            Err(error) => {
                tracing::warn!("the journal cannot be written, and ends here: {error}");
                self.failed = 1;
            }
        }
    }

    pub fn flush(&mut self) {
        if let Some(Err(error)) = self.to.as_mut().map(Write::flush) {
            self.failed = self.failed.saturating_add(1);
            tracing::debug!("the journal could not be flushed: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_one_thing() {
        let open = Line::open("GPU-a", 7);
        let text = serde_json::to_string(&open).unwrap();
        assert_eq!(text, r#"{"card":"GPU-a","open":{"number":7,"balances":"afresh"}}"#);
        assert_eq!(serde_json::from_str::<Line>(&text).unwrap(), open);
        for (text, why) in [
            (r#"{"card":"GPU-a"}"#, "neither"),
            (r#"{"card":"GPU-a","open":{"number":7,"balances":"carried"}}"#, "carried"),
            (r#"{"card":"GPU-a","shut":{}}"#, "shut"),
            (r#"{"open":{"number":7,"balances":"afresh"}}"#, "card"),
        ] {
            let error = serde_json::from_str::<Line>(text).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
