//! The journal: every transaction of the books, one JSON object a line, appended and never
//! rewritten.
//!
//! A card's book begins with a line that says so: the number of its first transaction, and that its
//! accounts begin at nothing. In one file numbers go on over all starts of the program. A sink that
//! fails is said once, counted, and holds nobody up; nothing more is written to it, since nobody could
//! prove what stands behind a hole. Whoever reads along reads on.

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
    along: Vec<Box<dyn Write + Send>>,
    numbers: BTreeMap<String, u64>,
}

/// The owner's side: writes, and counts what could not be written.
pub(super) struct Sink {
    to: Option<Box<dyn Write + Send>>,
    /// Whoever reads along.
    along: Vec<Box<dyn Write + Send>>,
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
        Self { to: Box::new(writer), along: Vec::new(), numbers: BTreeMap::new() }
    }

    /// The same lines go there as well; what fails there is no failure of the journal, nor does a
    /// failure of the journal end them.
    pub fn also(mut self, writer: impl Write + Send + 'static) -> Self {
        self.along.push(Box::new(writer));
        self
    }

    /// The number of a card's next transaction.
    pub fn number(&self, card: &str) -> u64 {
        self.numbers.get(card).copied().unwrap_or(0)
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
        let (to, along) = journal.map(|it| (it.to, it.along)).unzip();
        let along = along.unwrap_or_default();
        let mut sink = Self { to, along, cards, line: Vec::new(), written: 0, failed: 0 };
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
        if self.failed > 0 && self.along.is_empty() {
            self.failed = self.failed.saturating_add(1);
            return;
        }
        self.line.clear();
        if let Err(error) =
            serde_json::to_writer(&mut self.line, &TextOf { card, open, transaction })
        {
            self.fails(&error.into());
            return;
        }
        self.line.push(b'\n');
        for reader in &mut self.along {
            if let Err(error) = reader.write_all(&self.line) {
                tracing::debug!("a reader of the journal fails: {error}");
            }
        }
        if self.failed > 0 {
            self.failed = self.failed.saturating_add(1);
            return;
        }
        match to.write_all(&self.line) {
            Ok(()) => self.written = self.written.saturating_add(1),
            Err(error) => self.fails(&error),
        }
    }

    pub fn flush(&mut self) {
        if let Some(Err(error)) = self.to.as_mut().map(Write::flush) {
            self.fails(&error);
        }
    }

    /// Said the first time alone: nothing is written after it.
    fn fails(&mut self, error: &io::Error) {
        if self.failed == 0 {
            tracing::warn!(
                "the journal cannot be written, and ends here: {error}; the books go on without it \
                 (make room there, and open them anew to write on)"
            );
        }
        self.failed = self.failed.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Mutex,
        atomic::{AtomicU32, Ordering},
    };

    use joulebook_core::ledger::Reason;
    use tracing::{Event, Level, Metadata, Subscriber, span};

    use super::*;

    /// Takes so many lines, and can never be flushed.
    struct Full(u32);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(1).ok_or_else(|| io::Error::other("full"))?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(io::Error::other("full"))
        }
    }

    #[derive(Clone, Default)]
    struct Reader(Arc<Mutex<Vec<u8>>>);

    impl Write for Reader {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Counts the warnings.
    #[derive(Clone, Default)]
    struct Warnings(Arc<AtomicU32>);

    impl Subscriber for Warnings {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            *metadata.level() <= Level::WARN
        }

        fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
            span::Id::from_u64(1)
        }

        fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

        fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

        fn event(&self, _: &Event<'_>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }

        fn enter(&self, _: &span::Id) {}

        fn exit(&self, _: &span::Id) {}
    }

    fn move_one(sink: &mut Sink) {
        let entries = std::iter::empty().collect();
        let moved = Transaction { number: 0, reason: Reason::Post, tick_ns: 0, entries };
        sink.write(std::iter::once((0, moved)));
    }

    fn sink(journal: Journal) -> Sink {
        Sink::begin(Some(journal), vec!["GPU-a".into()]).0
    }

    #[test]
    fn a_flush_that_fails_ends_the_journal_and_is_said_once() {
        let warnings = Warnings::default();
        tracing::subscriber::with_default(warnings.clone(), || {
            let mut sink = sink(Journal::to(Full(100)));
            move_one(&mut sink);
            assert_eq!((sink.written, sink.failed), (1, 0));
            sink.flush();
            assert_eq!(warnings.0.load(Ordering::Relaxed), 1);
            move_one(&mut sink);
            sink.flush();
            assert_eq!((sink.written, sink.failed), (1, 3), "nothing behind a hole");
        });
        assert_eq!(warnings.0.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn whoever_reads_along_reads_on_when_the_journal_fails() {
        let lines = Reader::default();
        // Its second line finds no room.
        let mut sink = sink(Journal::to(Full(1)).also(lines.clone()));
        for _ in 0..3 {
            move_one(&mut sink);
        }
        assert_eq!((sink.written, sink.failed), (0, 3));
        let lines = lines.0.lock().unwrap();
        assert_eq!(lines.split(|byte| *byte == b'\n').filter(|it| !it.is_empty()).count(), 4);
    }

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
