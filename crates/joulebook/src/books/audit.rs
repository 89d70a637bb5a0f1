//! The audit of a journal: read line by line, one book of each card after the other.
//!
//! A book begins with a line that says so; its number is the next one in the file. Journals without
//! such lines are read too: there a posting with number 0 begins a card's next book. A last line
//! without its end is what a crash leaves: it is said, and everything before it is judged.
//!
//! What is held is bounded by the requests that are open at once: those that a journal closes, and
//! those of a book that has ended, are only summed up, unless each of them is asked for.
//!
//! Refused: what is no journal.

use std::{
    collections::BTreeMap,
    fmt,
    io::{self, BufRead, Read},
};

use joulebook_core::ledger::{Account, Auditor, Phase, Reason, RequestId, Transaction};
use serde::Serialize;

use super::journal::{Line, What};

/// A line of ten thousand requests is under two megabytes.
const LONGEST_LINE: u64 = 64 << 20;

/// An audit in progress: what a journal holds, as far as it can be believed.
#[derive(Debug, Default)]
pub struct Audit {
    cards: BTreeMap<String, CardAudit>,
    each: bool,
    line: u64,
    byte: u64,
    transactions: u64,
    cut: Option<Cut>,
    lacks_newline: bool,
    broken: Option<Broken>,
}

/// The books of one card: the one that is open, and the sum of those before.
#[derive(Debug, Default)]
pub struct CardAudit {
    books: u64,
    /// Its book began with a line that said so.
    announced: bool,
    auditor: Auditor,
    before: BTreeMap<Account, i128>,
    transactions: u64,
    requests: u64,
    each: Vec<(u64, Account, i128)>,
}

/// The first entry that breaks the law.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Broken {
    /// In which line of the journal, from 1.
    pub line: u64,
    /// Of which card's book.
    pub card: String,
    /// Its number.
    pub transaction: u64,
    /// What is wrong with it.
    pub what: String,
}

/// A last line without its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Its number, from 1.
    pub line: u64,
    /// Where it begins in the file.
    pub from_byte: u64,
    /// How long it is.
    pub bytes: u64,
}

/// Why something is no journal.
#[derive(Debug)]
pub struct NoJournal {
    /// The line that shows it, from 1.
    pub line: u64,
    /// Why.
    pub why: Why,
}

/// Why a line is none of a journal.
#[derive(Debug)]
pub enum Why {
    /// It could not be read.
    Unreadable(io::Error),
    /// It is longer than any could be.
    TooLong,
    /// It is of another form.
    Malformed(serde_json::Error),
}

/// One line of a journal, and whether it has an end.
enum Next {
    Whole,
    Cut,
    End,
    TooLong,
}

impl fmt::Display for NoJournal {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.why {
            Why::Unreadable(error) => write!(to, "{}: {error}", self.line),
            Why::TooLong => {
                write!(to, "{}: no entry of a journal: the line is longer than 64 MiB", self.line)
            }
            Why::Malformed(error) => write!(to, "{}: no entry of a journal: {error}", self.line),
        }
    }
}

impl std::error::Error for NoJournal {}

impl Audit {
    /// Of nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps what each request was charged, those too that are closed: as much memory as the journal
    /// has requests.
    pub fn of_each_request() -> Self {
        Self { each: true, ..Self::default() }
    }

    /// Reads a journal to its end, or to what breaks it.
    pub fn read(&mut self, journal: &mut impl BufRead) -> Result<(), NoJournal> {
        let mut text = Vec::new();
        while self.broken.is_none() {
            let line = self.line.saturating_add(1);
            let no = |why| NoJournal { line, why };
            let next = next(journal, &mut text).map_err(|error| no(Why::Unreadable(error)))?;
            match next {
                Next::End => break,
                Next::TooLong => return Err(no(Why::TooLong)),
                Next::Whole | Next::Cut => {}
            }
            let bytes = text.len() as u64;
            match serde_json::from_slice::<Line>(&text) {
                Ok(entry) => {
                    self.judge(entry);
                    self.byte = self.byte.saturating_add(bytes).saturating_add(1);
                    self.lacks_newline = matches!(next, Next::Cut);
                }
                // What was not written any more; a lost page is read as zeros.
                Err(error) if matches!(next, Next::Cut) && is_cut(&text, &error) => {
                    self.cut = Some(Cut { line, from_byte: self.byte, bytes });
                    break;
                }
                Err(error) => return Err(no(Why::Malformed(error))),
            }
        }
        Ok(())
    }

    /// The next line; nothing is taken of one that breaks the law, nor of any after it.
    pub fn judge(&mut self, entry: Line) {
        self.line = self.line.saturating_add(1);
        if self.broken.is_some() {
            return;
        }
        let Line { card, what } = entry;
        let known = self.cards.contains_key(&card);
        let it = self.cards.entry(card.clone()).or_default();
        let judged = match what {
            What::Open(opened) => it.open(opened.number, known, self.each).map(|()| 0),
            What::Moved(transaction) => it.moved(&transaction, known, self.each).map(|()| 1),
        };
        match judged {
            Ok(one) => self.transactions = self.transactions.saturating_add(one),
            Err((transaction, what)) => {
                self.broken = Some(Broken { line: self.line, card, transaction, what });
            }
        }
    }

    /// The cards, and their books.
    pub fn cards(&self) -> impl Iterator<Item = (&str, &CardAudit)> {
        self.cards.iter().map(|(card, it)| (card.as_str(), it))
    }

    /// How many transactions hold.
    pub const fn transactions(&self) -> u64 {
        self.transactions
    }

    /// The first entry that breaks the law.
    pub const fn broken(&self) -> Option<&Broken> {
        self.broken.as_ref()
    }

    /// The last line, where it was cut.
    pub const fn cut(&self) -> Option<Cut> {
        self.cut
    }

    /// The last line is whole but for its newline.
    pub const fn lacks_newline(&self) -> bool {
        self.lacks_newline
    }

    /// Requests that are held one by one.
    pub fn held(&self) -> usize {
        self.cards.values().map(|it| it.auditor.ledger().open_requests()).sum()
    }
}

impl CardAudit {
    /// The book begins that a line announces.
    fn open(&mut self, number: u64, known: bool, each: bool) -> Result<(), (u64, String)> {
        let expected = self.next_number();
        if known && number != expected {
            let what = format!(
                "the book that begins here should go on with transaction {expected}, not {number}"
            );
            return Err((number, what));
        }
        self.begin(number, known, each);
        self.announced = true;
        Ok(())
    }

    fn moved(
        &mut self,
        transaction: &Transaction,
        known: bool,
        each: bool,
    ) -> Result<(), (u64, String)> {
        // The first posting of the next book, where no line says so.
        let anew = self.auditor.transactions() > 0
            && transaction.number == 0
            && transaction.reason == Reason::Post;
        if !known || (anew && !self.announced) {
            self.begin(0, known, each);
        }
        self.auditor.next(transaction).map_err(|error| (error.number, error.to_string()))?;
        if let Some((request, taken_uj)) = transaction.closed().filter(|_| each) {
            self.keep(request, [taken_uj.0.into(), taken_uj.1.into()]);
        }
        Ok(())
    }

    fn keep(&mut self, request: RequestId, charged_uj: [i128; 2]) {
        for (phase, uj) in [Phase::Prefill, Phase::Decode].into_iter().zip(charged_uj) {
            if uj != 0 {
                self.each.push((self.books, Account::Request(request, phase), uj));
            }
        }
    }

    /// The book ends, and the next one begins at nothing.
    fn begin(&mut self, number: u64, known: bool, each: bool) {
        if known {
            if each {
                let open: Vec<_> = self.open_requests().collect();
                let of_book = |(account, uj)| (self.books, account, uj);
                self.each.extend(open.into_iter().map(of_book));
            }
            self.before = self.accounts();
            self.transactions = self.transactions();
            self.requests = self.requests();
        }
        self.auditor = Auditor::from_number(number);
        self.announced = false;
        self.books = self.books.saturating_add(1);
    }

    /// The number of the next transaction.
    pub const fn next_number(&self) -> u64 {
        self.auditor.ledger().next_number()
    }

    /// How many books there are: one for each start of the program.
    pub const fn books(&self) -> u64 {
        self.books
    }

    /// The book that is open.
    pub const fn book(&self) -> &Auditor {
        &self.auditor
    }

    /// How many transactions hold, in all books.
    pub const fn transactions(&self) -> u64 {
        self.transactions.saturating_add(self.auditor.transactions())
    }

    /// Requests that were charged, in all books.
    pub fn requests(&self) -> u64 {
        self.requests.saturating_add(self.auditor.requests())
    }

    /// What each account holds over all books, with all requests as [`Account::Closed`].
    pub fn accounts(&self) -> BTreeMap<Account, i128> {
        let mut accounts = self.before.clone();
        for (account, uj) in self.auditor.ledger().balances() {
            let account = match account {
                Account::Request(_, phase) => Account::Closed(phase),
                account => account,
            };
            let sum = accounts.entry(account).or_default();
            *sum = sum.saturating_add(uj);
        }
        accounts.retain(|_, uj| *uj != 0);
        accounts
    }

    /// What each request was charged, µJ, and in which book; only of an audit that keeps them.
    pub fn each(&self) -> impl Iterator<Item = (u64, Account, i128)> {
        let open = self.open_requests().map(|(account, uj)| (self.books, account, uj));
        self.each.iter().copied().chain(open)
    }

    fn open_requests(&self) -> impl Iterator<Item = (Account, i128)> {
        let balances = self.auditor.ledger().balances();
        balances.filter(|(account, _)| matches!(account, Account::Request(..)))
    }
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
