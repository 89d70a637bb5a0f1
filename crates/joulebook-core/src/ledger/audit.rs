//! The proof, from what was written down: a journal's transactions one after the other into an
//! empty book. The first that breaks the law is named.
//!
//! Stricter than the book itself: a transaction must also be what it says it is. Only a posting
//! moves what the register counted, never back, and into suspense alone; a settlement takes from
//! suspense alone; a correction touches neither; a closing empties one request's accounts and no
//! other. So energy that nobody counted, and what was taken from one request for another in the name
//! of a settlement, is found though the entries add up.
//!
//! What an audit holds is bounded by the requests that are open at once: one that is closed is
//! forgotten, and only counted.

use std::fmt;

use super::{Account, Entry, Ledger, Phase, Reason, Refused, RequestId, Transaction};

/// The first thing in a journal that breaks the law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditError {
    /// The transaction's number.
    pub number: u64,
    /// What is wrong with it.
    pub refused: Refused,
}

impl fmt::Display for AuditError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "transaction {} {}", self.number, self.refused)
    }
}

impl std::error::Error for AuditError {}

impl fmt::Display for Refused {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unbalanced { left_uj } if *left_uj > 0 => {
                write!(to, "does not balance: it gives {left_uj} µJ more than it takes")
            }
            Self::Unbalanced { left_uj } => {
                let lost_uj = left_uj.unsigned_abs();
                write!(to, "does not balance: it takes {lost_uj} µJ more than it gives")
            }
            Self::Overdrawn(account) => write!(to, "takes more from `{account}` than that holds"),
            Self::OutOfOrder { expected } => {
                write!(to, "does not follow the one before: number {expected} should come here")
            }
            Self::Misplaced(account) => {
                write!(to, "moves `{account}` in a way that one of its kind must not")
            }
            Self::LeftOpen(account) => {
                write!(to, "closes `{account}` and leaves something in it")
            }
        }
    }
}

/// An audit in progress, of one book.
#[derive(Clone, Debug, Default)]
pub struct Auditor {
    ledger: Ledger,
    transactions: u64,
    closed: u64,
}

impl Auditor {
    /// Nothing seen yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Nothing seen yet of a book whose first transaction has that number.
    pub fn from_number(number: u64) -> Self {
        Self { ledger: Ledger::from_number(number), ..Self::default() }
    }

    /// The next transaction of the journal; nothing is booked of one that breaks the law.
    pub fn next(&mut self, transaction: &Transaction) -> Result<(), AuditError> {
        let at = |refused| AuditError { number: transaction.number, refused };
        // What is out of order, or does not add up, is said first: it explains more.
        self.ledger.follows(transaction).map_err(at)?;
        if let Some(account) = misplaced(transaction) {
            return Err(at(Refused::Misplaced(account)));
        }
        let closed = transaction.closed();
        if let Some((request, taken)) = closed {
            for (phase, taken_uj) in [(Phase::Prefill, taken.0), (Phase::Decode, taken.1)] {
                let account = Account::Request(request, phase);
                if self.ledger.balance(account) > taken_uj.into() {
                    return Err(at(Refused::LeftOpen(account)));
                }
            }
        }
        self.ledger.apply(transaction).map_err(at)?;
        if let Some((request, _)) = closed {
            self.ledger.forget(request);
            self.closed = self.closed.saturating_add(1);
        }
        self.transactions = self.transactions.saturating_add(1);
        Ok(())
    }

    /// How many transactions hold.
    pub const fn transactions(&self) -> u64 {
        self.transactions
    }

    /// Requests that were charged: those that are open, and those that were closed.
    pub fn requests(&self) -> u64 {
        let open = u64::try_from(self.ledger.open_requests()).unwrap_or(u64::MAX);
        self.closed.saturating_add(open)
    }

    /// The book as the journal leaves it.
    pub const fn ledger(&self) -> &Ledger {
        &self.ledger
    }
}

impl Transaction {
    /// The request that it closes, and what that was charged, prefill and decode, µJ.
    pub fn closed(&self) -> Option<(RequestId, (i64, i64))> {
        if self.reason != Reason::Close {
            return None;
        }
        let (mut closed, mut taken) = (None, (0i64, 0i64));
        for Entry { account, amount_uj } in &self.entries {
            let Account::Request(request, phase) = account else { continue };
            closed = closed.or(Some(*request));
            let sum = match phase {
                Phase::Prefill => &mut taken.0,
                Phase::Decode => &mut taken.1,
            };
            *sum = sum.saturating_sub(*amount_uj);
        }
        closed.map(|request| (request, taken))
    }
}

/// The first account that a transaction of its kind must not move as this one does.
fn misplaced(transaction: &Transaction) -> Option<Account> {
    if transaction.reason == Reason::Close {
        return misclosed(transaction);
    }
    let may = |entry: &&Entry| match (transaction.reason, entry.account) {
        (_, Account::Closed(_)) => false,
        (Reason::Post, Account::Register) => entry.amount_uj <= 0,
        (Reason::Post, account) => account == Account::Suspense,
        (Reason::Settle, Account::Suspense) => entry.amount_uj <= 0,
        (Reason::Settle, Account::Register) => false,
        (Reason::Settle, _) => entry.amount_uj >= 0,
        (_, account) => !matches!(account, Account::Register | Account::Suspense),
    };
    transaction.entries.iter().find(|entry| !may(entry)).map(|entry| entry.account)
}

/// The first account that a closing must not move: only one request gives, and only what is closed
/// takes, phase by phase.
fn misclosed(transaction: &Transaction) -> Option<Account> {
    let Some((request, taken)) = transaction.closed() else {
        return transaction.entries.first().map(|entry| entry.account);
    };
    for Entry { account, amount_uj } in &transaction.entries {
        let may = match account {
            Account::Request(other, _) => *other == request && *amount_uj <= 0,
            Account::Closed(_) => *amount_uj >= 0,
            _ => false,
        };
        if !may {
            return Some(*account);
        }
    }
    [(Phase::Prefill, taken.0), (Phase::Decode, taken.1)].into_iter().find_map(
        |(phase, taken_uj)| {
            let of = |entry: &&Entry| entry.account == Account::Closed(phase);
            let given = transaction.entries.iter().filter(of);
            let given_uj = given.fold(0i64, |sum, entry| sum.saturating_add(entry.amount_uj));
            (given_uj != taken_uj).then_some(Account::Closed(phase))
        },
    )
}

#[cfg(test)]
mod tests;
