//! The proof, from what was written down: a journal's transactions one after the other into an
//! empty book. The first that breaks the law is named.
//!
//! Stricter than the book itself: a transaction must also be what it says it is. Only a posting
//! moves what the register counted, never back, and into suspense alone; a settlement takes from
//! suspense alone; a correction touches neither. So energy that nobody counted, and what was taken
//! from one request for another in the name of a settlement, is found though the entries add up.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Account, Entry, Ledger, Reason, Refused, Transaction};

/// A line of a journal: a transaction, and whose book it is of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// The card, by its UUID.
    pub card: String,
    /// What was booked.
    pub transaction: Transaction,
}

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
        }
    }
}

/// An audit in progress.
#[derive(Clone, Debug, Default)]
pub struct Auditor {
    ledger: Ledger,
    transactions: u64,
}

impl Auditor {
    /// Nothing seen yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The next transaction of the journal; nothing is booked of one that breaks the law.
    pub fn next(&mut self, transaction: &Transaction) -> Result<(), AuditError> {
        let at = |refused| AuditError { number: transaction.number, refused };
        // What is out of order, or does not add up, is said first: it explains more.
        self.ledger.follows(transaction).map_err(at)?;
        if let Some(account) = misplaced(transaction) {
            return Err(at(Refused::Misplaced(account)));
        }
        self.ledger.apply(transaction).map_err(at)?;
        self.transactions = self.transactions.saturating_add(1);
        Ok(())
    }

    /// How many transactions hold.
    pub const fn transactions(&self) -> u64 {
        self.transactions
    }

    /// The book as the journal leaves it.
    pub const fn ledger(&self) -> &Ledger {
        &self.ledger
    }
}

/// The first account that a transaction of its kind must not move as this one does.
fn misplaced(transaction: &Transaction) -> Option<Account> {
    let may = |entry: &&Entry| match (transaction.reason, entry.account) {
        (Reason::Post, Account::Register) => entry.amount_uj <= 0,
        (Reason::Post, account) => account == Account::Suspense,
        (Reason::Settle, Account::Suspense) => entry.amount_uj <= 0,
        (Reason::Settle, Account::Register) => false,
        (Reason::Settle, _) => entry.amount_uj >= 0,
        (Reason::Correct, account) => !matches!(account, Account::Register | Account::Suspense),
    };
    transaction.entries.iter().find(|entry| !may(entry)).map(|entry| entry.account)
}
