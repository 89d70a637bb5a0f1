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
mod charges;
mod numbers;
pub mod settle;
mod transactions;

use std::collections::BTreeMap;

pub use account::{Account, Phase, RequestId, TenantId};
pub use audit::{AuditError, Auditor};
use charges::Charges;
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
    /// Nothing more can come of a request: its accounts are closed.
    Close,
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
    /// It closes a request's account and leaves something in it; only an audit asks.
    LeftOpen(Account),
}

/// The accounts of one card.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    balances: BTreeMap<Account, i128>,
    /// Requests' accounts, apart: there may be many, and they come and go.
    requests: Charges,
    next: u64,
}

impl Ledger {
    /// An empty book.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty book whose first transaction has that number: the next one in a journal that has been
    /// kept before.
    pub fn from_number(number: u64) -> Self {
        Self { next: number, ..Self::default() }
    }

    pub(crate) const fn begin_at(&mut self, number: u64) {
        self.next = number;
    }

    /// The number of the next transaction.
    pub const fn next_number(&self) -> u64 {
        self.next
    }

    /// Applies a transaction, all of it or nothing.
    pub fn apply(&mut self, transaction: &Transaction) -> Result<(), Refused> {
        self.apply_hinted(transaction, &[])
    }

    /// The same for somebody who knows where the accounts of the requests that are charged lie: a
    /// hint for each entry.
    pub(crate) fn apply_hinted(
        &mut self,
        transaction: &Transaction,
        hints: &[u32],
    ) -> Result<(), Refused> {
        let giving = self.follows(transaction)?;
        let Transaction { entries, .. } = transaction;
        match giving {
            Giving::One(account, amount_uj) if !self.is_short(account, amount_uj) => {
                self.add::<false>(entries, hints);
            }
            Giving::Nobody => self.add::<false>(entries, hints),
            Giving::One(..) | Giving::Many => {
                // Entries of one account may stand apart, and only their sum counts.
                self.add::<false>(entries, hints);
                if let Some(account) = self.overdrawn(entries) {
                    self.add::<true>(entries, hints);
                    return Err(Refused::Overdrawn(account));
                }
            }
        }
        self.next = self.next.saturating_add(1);
        Ok(())
    }

    /// Adds entries, or takes them back.
    fn add<const BACK: bool>(&mut self, entries: &[Entry], hints: &[u32]) {
        for (number, Entry { account, amount_uj }) in entries.iter().enumerate() {
            let amount_uj = i128::from(*amount_uj);
            let amount_uj = if BACK { amount_uj.saturating_neg() } else { amount_uj };
            let balance = match account {
                Account::Request(request, phase) => {
                    let hint = hints.get(number).copied().unwrap_or(charges::NOWHERE);
                    let Some(charge) = self.requests.at_mut(*request, hint) else { continue };
                    charge.of_mut(*phase)
                }
                _ => self.balances.entry(*account).or_default(),
            };
            *balance = balance.saturating_add(amount_uj);
        }
    }

    /// It is the next one, and adds up; what gives in it.
    fn follows(&self, transaction: &Transaction) -> Result<Giving, Refused> {
        if transaction.number != self.next {
            return Err(Refused::OutOfOrder { expected: self.next });
        }
        let (mut giving, mut left_uj) = (Giving::Nobody, 0i128);
        for Entry { account, amount_uj } in &transaction.entries {
            left_uj = left_uj.saturating_add(i128::from(*amount_uj));
            if *amount_uj < 0 {
                giving = giving.and(*account, *amount_uj);
            }
        }
        if left_uj != 0 {
            return Err(Refused::Unbalanced { left_uj });
        }
        Ok(giving)
    }

    /// The first account that holds less than nothing. Only what gives can.
    fn overdrawn(&self, entries: &[Entry]) -> Option<Account> {
        let giving = entries.iter().filter(|entry| entry.amount_uj < 0);
        giving.map(|entry| entry.account).find(|account| self.is_short(*account, 0))
    }

    fn is_short(&self, account: Account, sum_uj: i128) -> bool {
        account != Account::Register && self.balance(account).saturating_add(sum_uj) < 0
    }

    /// What an account holds, µJ.
    pub fn balance(&self, account: Account) -> i128 {
        match account {
            Account::Request(request, Phase::Prefill) => self.charged(request).0,
            Account::Request(request, Phase::Decode) => self.charged(request).1,
            _ => self.balances.get(&account).copied().unwrap_or(0),
        }
    }

    /// What a request has been charged so far, prefill and decode, µJ; nothing once it is closed.
    pub fn charged(&self, request: RequestId) -> (i128, i128) {
        self.requests.get(request).map_or((0, 0), |it| (it.prefill_uj, it.decode_uj))
    }

    /// All accounts that hold something, those of all closed requests together as
    /// [`Account::Closed`].
    pub fn balances(&self) -> impl Iterator<Item = (Account, i128)> + '_ {
        let mut requests: Vec<_> = self.requests.iter().collect();
        requests.sort_unstable_by_key(|(request, _)| *request);
        let requests = requests.into_iter().flat_map(|(request, charge)| {
            [
                (Account::Request(request, Phase::Prefill), charge.prefill_uj),
                (Account::Request(request, Phase::Decode), charge.decode_uj),
            ]
        });
        let others = self.balances.iter().map(|(account, balance)| (*account, *balance));
        others.chain(requests).filter(|(_, balance)| *balance != 0)
    }

    /// What requests that are closed were charged, µJ.
    pub fn closed_uj(&self) -> i128 {
        let closed = |phase| self.balance(Account::Closed(phase));
        closed(Phase::Prefill).saturating_add(closed(Phase::Decode))
    }

    /// What all requests together have been charged, those that are closed too, µJ.
    pub fn requests_uj(&self) -> i128 {
        self.requests.iter().fold(self.closed_uj(), |sum, (_, charge)| {
            sum.saturating_add(charge.prefill_uj).saturating_add(charge.decode_uj)
        })
    }

    /// Requests whose accounts are open.
    pub fn open_requests(&self) -> usize {
        self.requests.len()
    }

    /// What the register has counted, µJ.
    pub fn counted_uj(&self) -> i128 {
        self.balance(Account::Register).saturating_neg()
    }

    /// How far the accounts are from the register, µJ: always zero, and exported so that anybody
    /// can see it.
    pub fn imbalance_uj(&self) -> i128 {
        let closed_uj = self.closed_uj();
        let others = self.balances.values().fold(0i128, |sum, it| sum.saturating_add(*it));
        others.saturating_sub(closed_uj).saturating_add(self.requests_uj())
    }

    /// Opens a request's accounts; where they lie.
    pub(crate) fn open(&mut self, request: RequestId) -> u32 {
        self.requests.place(request)
    }

    /// Forgets a request that nothing can be booked on any more; what it was charged stays in the
    /// sum.
    pub fn forget(&mut self, request: RequestId) {
        let charge = self.requests.remove(request);
        for (phase, held_uj) in
            [(Phase::Prefill, charge.prefill_uj), (Phase::Decode, charge.decode_uj)]
        {
            if held_uj != 0 {
                let closed = self.balances.entry(Account::Closed(phase)).or_default();
                *closed = closed.saturating_add(held_uj);
            }
        }
    }
}

/// Which accounts give in a transaction, and how much in all.
#[derive(Clone, Copy, Debug)]
enum Giving {
    Nobody,
    One(Account, i128),
    Many,
}

impl Giving {
    fn and(self, account: Account, amount_uj: i64) -> Self {
        match self {
            Self::Nobody => Self::One(account, amount_uj.into()),
            Self::One(first, sum_uj) if first == account => {
                Self::One(first, sum_uj.saturating_add(amount_uj.into()))
            }
            Self::One(..) | Self::Many => Self::Many,
        }
    }
}

#[cfg(test)]
#[path = "ledger/tests.rs"]
mod tests;
