//! The books of a window: what each account got in the ticks that ended inside it.
//!
//! It is the journal, read as it is written: each transaction names the tick that it is about, so
//! that what is corrected later still belongs to its own tick. The accounts of a window sum to what
//! the registers counted in its ticks, exactly, in microjoules.

use std::{
    collections::HashSet,
    io::{self, Write},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use joulebook::{
    books::{Journal, JournalFile, Line},
    core::ledger::{Account, Phase, Reason, RequestId},
};

use crate::bench::record;

/// Where the journal is written; clones are one.
#[derive(Clone, Debug, Default)]
pub struct Accounts(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    rest: Vec<u8>,
    postings: Vec<Posting>,
    file: Option<JournalFile>,
}

/// What an account got in a tick.
#[derive(Clone, Copy, Debug)]
struct Posting {
    tick_ns: u64,
    account: Account,
    amount_uj: i64,
}

impl Accounts {
    /// The journal is kept there.
    pub fn keep_in(&self, file: JournalFile) {
        self.lock().file = Some(file);
    }

    /// The journal of books that are to be opened: read here, and kept where it is to be kept.
    pub fn journal(&self) -> Journal {
        match self.lock().file.take() {
            Some(file) => Journal::from(file).also(self.clone()),
            None => Journal::to(self.clone()),
        }
    }

    /// What the accounts got in the ticks that ended after `open_ns` and by `close_ns`; `done` are
    /// the requests that ended well. None where the books were not kept.
    pub fn window(
        &self,
        open_ns: u64,
        close_ns: u64,
        done: &HashSet<u64>,
    ) -> Option<record::Books> {
        let inner = self.lock();
        let mut books = record::Books::default();
        let mut any = false;
        for posting in &inner.postings {
            if posting.tick_ns <= open_ns || posting.tick_ns > close_ns {
                continue;
            }
            any = true;
            let amount = posting.amount_uj;
            let account = match posting.account {
                Account::Register => {
                    books.counted_uj -= amount;
                    continue;
                }
                Account::Closed(_) => continue,
                Account::Request(RequestId(id), phase) => match (done.contains(&id), phase) {
                    (true, Phase::Prefill) => &mut books.prefill_uj,
                    (true, Phase::Decode) => &mut books.decode_uj,
                    (false, _) => &mut books.failed_uj,
                },
                Account::IdleOff | Account::IdleResident => &mut books.idle_uj,
                Account::Foreign(_) | Account::ForeignUnresolved => &mut books.foreign_uj,
                Account::Unattributed => &mut books.unattributed_uj,
                Account::Gap => &mut books.gap_uj,
                Account::Suspense => &mut books.suspense_uj,
            };
            *account += amount;
        }
        any.then_some(books)
    }

    /// Ticks that ended before are not asked for any more.
    pub fn forget(&self, before_ns: u64) {
        self.lock().postings.retain(|posting| posting.tick_ns >= before_ns);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for Accounts {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut inner = self.lock();
        inner.rest.extend_from_slice(bytes);
        if let Some(end) = inner.rest.iter().rposition(|byte| *byte == b'\n') {
            let whole: Vec<u8> = inner.rest.drain(..=end).collect();
            for line in whole.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                let line: Line = serde_json::from_slice(line)?;
                // What is closed was charged before; nobody gets anything.
                let moved = line.transaction().filter(|it| it.reason != Reason::Close);
                let Some(transaction) = moved else { continue };
                inner.postings.extend(transaction.entries.iter().map(|entry| Posting {
                    tick_ns: transaction.tick_ns,
                    account: entry.account,
                    amount_uj: entry.amount_uj,
                }));
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use joulebook::core::ledger::{Entry, Transaction};

    use super::*;

    #[test]
    fn the_accounts_of_a_window_sum_to_what_was_counted_in_it() {
        let mut accounts = Accounts::default();
        let mut write = |tick_ns, reason, entries: &[(Account, i64)]| {
            let entries =
                entries.iter().map(|(account, uj)| Entry { account: *account, amount_uj: *uj });
            let transaction =
                Transaction { number: 0, reason, tick_ns, entries: entries.collect() };
            let line = serde_json::to_string(&Line::moved("GPU", transaction)).unwrap();
            // In pieces, as a pipe may have it.
            for piece in (line + "\n").as_bytes().chunks(7) {
                accounts.write_all(piece).unwrap();
            }
        };
        let request = |id, phase| Account::Request(RequestId(id), phase);
        for tick_ns in [10, 20, 30] {
            write(tick_ns, Reason::Post, &[(Account::Register, -100), (Account::Suspense, 100)]);
        }
        write(
            20,
            Reason::Settle,
            &[
                (request(1, Phase::Prefill), 30),
                (request(2, Phase::Decode), 20),
                (Account::IdleResident, 50),
                (Account::Suspense, -100),
            ],
        );
        write(
            20,
            Reason::Correct,
            &[(request(1, Phase::Decode), 5), (request(2, Phase::Decode), -5)],
        );
        let books = accounts.window(10, 30, &HashSet::from([1])).unwrap();
        assert_eq!((books.counted_uj, books.prefill_uj, books.decode_uj), (200, 30, 5));
        assert_eq!((books.failed_uj, books.idle_uj, books.suspense_uj), (15, 50, 100));
        assert_eq!(books.residual_uj(), 0);
        assert_eq!(accounts.window(30, 40, &HashSet::new()), None);
        accounts.forget(30);
        assert_eq!(accounts.window(0, 30, &HashSet::new()).unwrap().counted_uj, 100);
    }
}
