//! The books of one card: every microjoule its register counts is charged exactly once.
//!
//! A [`Ledger`] holds accounts and applies transactions. A transaction is a list of entries that
//! add up to zero: what the register counted is debited to [`Account::Register`] and credited to
//! suspense, and settling a tick moves it from suspense to whoever caused it. So after every
//! transaction the sum of all accounts but the register's is exactly what was counted. Entries are
//! never rewritten; what is learnt later is booked by a correcting pair.
//!
//! Refused: a transaction whose entries do not add up to zero, one that would overflow, one that
//! takes from an account more than it holds (suspense, a request).

#![cfg_attr(not(test), deny(clippy::float_arithmetic, clippy::arithmetic_side_effects))]

mod account;
mod audit;
mod numbers;
pub mod settle;

use std::{
    collections::{BTreeMap, HashMap},
    hash::BuildHasherDefault,
};

pub use account::{Account, Phase, RequestId, TenantId};
pub use audit::{AuditError, Auditor, Line};
pub(crate) use numbers::Numbers;
use serde::{Deserialize, Serialize};

/// What is moved between accounts at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transaction {
    /// Its number in the book; one after the other, without gaps.
    pub number: u64,
    /// Why it was made.
    pub reason: Reason,
    /// The tick it is about: when it ended, ns of the book's clock.
    pub tick_ns: u64,
    /// What goes to each account, µJ; the sum is zero.
    pub entries: Vec<Entry>,
}

/// Why a transaction was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The register counted.
    Post,
    /// A tick was settled.
    Settle,
    /// Something was learnt after a tick had been settled.
    Correct,
}

/// What one account gets (or gives, below zero), µJ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The account.
    pub account: Account,
    /// µJ.
    pub amount_uj: i64,
}

/// Why a transaction was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Its entries do not add up to zero.
    Unbalanced {
        /// What is left over, µJ.
        left_uj: i128,
    },
    /// It takes more from an account than that holds.
    Overdrawn(Account),
    /// It does not follow the last one's number.
    OutOfOrder {
        /// The number that would.
        expected: u64,
    },
    /// It moves an account in a way that its reason does not allow; only an audit asks.
    Misplaced(Account),
}

/// The accounts of one card.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    balances: BTreeMap<Account, i128>,
    /// Requests' accounts, prefill and decode, apart: there may be many, and they come and go.
    requests: HashMap<RequestId, (i128, i128), BuildHasherDefault<Numbers>>,
    /// What requests that are forgotten by now have been charged.
    closed_uj: i128,
    next: u64,
}

impl Ledger {
    /// An empty book.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of the next transaction.
    pub const fn next_number(&self) -> u64 {
        self.next
    }

    /// Applies a transaction, all of it or nothing.
    pub fn apply(&mut self, transaction: &Transaction) -> Result<(), Refused> {
        self.follows(transaction)?;
        if let Some(account) = self.overdrawn(&transaction.entries) {
            return Err(Refused::Overdrawn(account));
        }
        for entry in &transaction.entries {
            let balance = self.balance_mut(entry.account);
            *balance = balance.saturating_add(i128::from(entry.amount_uj));
        }
        self.next = self.next.saturating_add(1);
        Ok(())
    }

    /// It is the next one, and adds up.
    fn follows(&self, transaction: &Transaction) -> Result<(), Refused> {
        if transaction.number != self.next {
            return Err(Refused::OutOfOrder { expected: self.next });
        }
        let amounts = transaction.entries.iter().map(|entry| i128::from(entry.amount_uj));
        let left_uj = amounts.fold(0i128, i128::saturating_add);
        if left_uj != 0 {
            return Err(Refused::Unbalanced { left_uj });
        }
        Ok(())
    }

    /// The first account that would hold less than nothing. Only what gives can; entries of one
    /// account may stand apart in a transaction, and only their sum counts.
    fn overdrawn(&self, entries: &[Entry]) -> Option<Account> {
        let is_short = |account: Account, sum: i128| {
            account != Account::Register && self.balance(account).saturating_add(sum) < 0
        };
        let mut giving = entries.iter().filter(|entry| entry.amount_uj < 0);
        let first = giving.next()?.account;
        if giving.all(|entry| entry.account == first) {
            // As in every settlement: suspense gives to all others.
            let of_first = entries.iter().filter(|entry| entry.account == first);
            let sum = of_first.fold(0i128, |sum, it| sum.saturating_add(it.amount_uj.into()));
            return is_short(first, sum).then_some(first);
        }
        let mut sums: BTreeMap<Account, i128> = BTreeMap::new();
        for entry in entries {
            let sum = sums.entry(entry.account).or_default();
            *sum = sum.saturating_add(entry.amount_uj.into());
        }
        sums.into_iter().find(|(account, sum)| is_short(*account, *sum)).map(|(account, _)| account)
    }

    /// What an account holds, µJ.
    pub fn balance(&self, account: Account) -> i128 {
        match account {
            Account::Request(request, Phase::Prefill) => self.charged(request).0,
            Account::Request(request, Phase::Decode) => self.charged(request).1,
            _ => self.balances.get(&account).copied().unwrap_or(0),
        }
    }

    fn balance_mut(&mut self, account: Account) -> &mut i128 {
        match account {
            Account::Request(request, phase) => {
                let (prefill, decode) = self.requests.entry(request).or_default();
                match phase {
                    Phase::Prefill => prefill,
                    Phase::Decode => decode,
                }
            }
            _ => self.balances.entry(account).or_default(),
        }
    }

    /// What a request has been charged so far, prefill and decode, µJ.
    pub fn charged(&self, request: RequestId) -> (i128, i128) {
        self.requests.get(&request).copied().unwrap_or_default()
    }

    /// All accounts that hold something, in order, and what requests that are forgotten were
    /// charged.
    pub fn balances(&self) -> (impl Iterator<Item = (Account, i128)> + '_, i128) {
        let mut requests: Vec<_> = self.requests.iter().collect();
        requests.sort_unstable_by_key(|(request, _)| **request);
        let requests = requests.into_iter().flat_map(|(request, (prefill, decode))| {
            [
                (Account::Request(*request, Phase::Prefill), *prefill),
                (Account::Request(*request, Phase::Decode), *decode),
            ]
        });
        let others = self.balances.iter().map(|(account, balance)| (*account, *balance));
        let held = others.chain(requests).filter(|(_, balance)| *balance != 0);
        (held, self.closed_uj)
    }

    /// What all requests together have been charged, those that are forgotten too, µJ.
    pub fn requests_uj(&self) -> i128 {
        self.requests.values().fold(self.closed_uj, |sum, (prefill, decode)| {
            sum.saturating_add(*prefill).saturating_add(*decode)
        })
    }

    /// What the register has counted, µJ.
    pub fn counted_uj(&self) -> i128 {
        self.balance(Account::Register).saturating_neg()
    }

    /// How far the accounts are from the register, µJ: always zero, and exported so that anybody
    /// can see it.
    pub fn imbalance_uj(&self) -> i128 {
        self.balances.values().fold(self.requests_uj(), |sum, balance| sum.saturating_add(*balance))
    }

    /// Forgets a request that nothing can be booked on any more; what it was charged stays in the
    /// sum.
    pub fn forget(&mut self, request: RequestId) {
        let (prefill, decode) = self.requests.remove(&request).unwrap_or_default();
        self.closed_uj = self.closed_uj.saturating_add(prefill).saturating_add(decode);
    }

    /// The transaction that posts what the register counted in a tick.
    pub fn posting(&self, tick_ns: u64, counted_uj: u64) -> Transaction {
        let amount_uj = i64::try_from(counted_uj).unwrap_or(i64::MAX);
        let entry = |account, amount_uj| Entry { account, amount_uj };
        Transaction {
            number: self.next,
            reason: Reason::Post,
            tick_ns,
            entries: vec![
                entry(Account::Register, amount_uj.saturating_neg()),
                entry(Account::Suspense, amount_uj),
            ],
        }
    }

    /// The transaction that takes a tick out of suspense and gives it to those who caused it.
    pub fn settling(&self, tick_ns: u64, shares: &[(Account, u64)]) -> Transaction {
        let mut sum_uj = 0i64;
        let mut entries = Vec::with_capacity(shares.len().saturating_add(1));
        for (account, share_uj) in shares.iter().filter(|(_, share_uj)| *share_uj > 0) {
            let amount_uj = i64::try_from(*share_uj).unwrap_or(i64::MAX);
            sum_uj = sum_uj.saturating_add(amount_uj);
            entries.push(Entry { account: *account, amount_uj });
        }
        entries.push(Entry { account: Account::Suspense, amount_uj: sum_uj.saturating_neg() });
        Transaction { number: self.next, reason: Reason::Settle, tick_ns, entries }
    }

    /// The transaction that turns what a settled tick was into what it should have been: the
    /// difference of two settlements of one sum. `None` when nothing changes.
    pub fn correcting(
        &self,
        tick_ns: u64,
        before: &[(Account, u64)],
        after: &[(Account, u64)],
    ) -> Option<Transaction> {
        let mut change: BTreeMap<Account, i64> = BTreeMap::new();
        for (account, share_uj) in after {
            let amount = i64::try_from(*share_uj).unwrap_or(i64::MAX);
            let sum = change.entry(*account).or_default();
            *sum = sum.saturating_add(amount);
        }
        for (account, share_uj) in before {
            let amount = i64::try_from(*share_uj).unwrap_or(i64::MAX);
            let sum = change.entry(*account).or_default();
            *sum = sum.saturating_sub(amount);
        }
        let entries: Vec<Entry> = change
            .into_iter()
            .filter(|(_, amount_uj)| *amount_uj != 0)
            .map(|(account, amount_uj)| Entry { account, amount_uj })
            .collect();
        (!entries.is_empty()).then_some(Transaction {
            number: self.next,
            reason: Reason::Correct,
            tick_ns,
            entries,
        })
    }
}

#[cfg(test)]
#[path = "ledger/tests.rs"]
mod tests;
