//! The proof, from what was written down: a journal's transactions one after the other into an
//! empty book. The first that breaks the law is named.

use super::{Ledger, Refused, Transaction};

/// The first thing in a journal that breaks the law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditError {
    /// The transaction's number.
    pub number: u64,
    /// What is wrong with it.
    pub refused: Refused,
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

    /// The next transaction of the journal.
    pub fn next(&mut self, transaction: &Transaction) -> Result<(), AuditError> {
        let applied = self.ledger.apply(transaction);
        applied.map_err(|refused| AuditError { number: transaction.number, refused })?;
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
