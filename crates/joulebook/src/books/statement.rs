//! A fleet's statement: the sum of its cards' books, one line for each node, card and account, then
//! the totals.
//!
//! Nothing is added that no register counted: no losses of supplies, no cooling, no hosts that nobody
//! reads. The accounts of a card come to what its register counted, and so do the totals.

use std::{collections::BTreeMap, fmt};

use joulebook_core::ledger::Account;
use serde::Serialize;

use super::{CardAudit, TrialBalance};

/// The accounts of a statement: those of a card's books, with all requests as one, and all tenants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Post {
    /// Charged to requests.
    #[serde(rename = "requests")]
    Requests,
    /// Drawn with no model.
    #[serde(rename = "idle/off")]
    IdleOff,
    /// What keeping a model loaded added, or all idle.
    #[serde(rename = "idle/resident")]
    IdleResident,
    /// Others', by utilisation.
    #[serde(rename = "foreign")]
    Foreign,
    /// Others' or ours.
    #[serde(rename = "foreign/unresolved")]
    ForeignUnresolved,
    /// Active, and nobody known caused it.
    #[serde(rename = "unattributed")]
    Unattributed,
    /// Counted, but nobody knows when.
    #[serde(rename = "gap")]
    Gap,
    /// Counted, not settled yet.
    #[serde(rename = "suspense")]
    Suspense,
}

/// A line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StatementLine {
    /// The node; absent for books that name none.
    pub node: Option<String>,
    /// The card.
    pub card: String,
    /// The account.
    pub account: Post,
    /// What it holds, µJ.
    pub energy_uj: i128,
}

/// The statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statement {
    accounts: BTreeMap<(Option<String>, String, Post), i128>,
    counted_uj: i128,
}

impl fmt::Display for Post {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Requests => "requests",
            Self::IdleOff => "idle/off",
            Self::IdleResident => "idle/resident",
            Self::Foreign => "foreign",
            Self::ForeignUnresolved => "foreign/unresolved",
            Self::Unattributed => "unattributed",
            Self::Gap => "gap",
            Self::Suspense => "suspense",
        })
    }
}

impl Post {
    /// Where an account of a card's books stands; `None` for the register, the other side of all.
    const fn of(account: Account) -> Option<Self> {
        Some(match account {
            Account::Register => return None,
            Account::Request(..) | Account::Closed(_) => Self::Requests,
            Account::IdleOff => Self::IdleOff,
            Account::IdleResident => Self::IdleResident,
            Account::Foreign(_) => Self::Foreign,
            Account::ForeignUnresolved => Self::ForeignUnresolved,
            Account::Unattributed => Self::Unattributed,
            Account::Gap => Self::Gap,
            Account::Suspense => Self::Suspense,
        })
    }
}

impl Statement {
    /// Adds the books that a journal tells of a card.
    pub fn add_books(&mut self, card: &str, books: &CardAudit) {
        for (account, energy_uj) in books.accounts() {
            match Post::of(account) {
                Some(post) => self.add(card, post, energy_uj),
                None => self.counted_uj = self.counted_uj.saturating_sub(energy_uj),
            }
        }
    }

    /// Adds books as they stand.
    pub fn add_trial(&mut self, trial: &TrialBalance) {
        for card in &trial.cards {
            for (post, joules) in [
                (Post::Requests, card.requests_joules),
                (Post::IdleOff, card.idle_off_joules),
                (Post::IdleResident, card.idle_resident_joules),
                (Post::Foreign, card.foreign_joules),
                (Post::ForeignUnresolved, card.foreign_unresolved_joules),
                (Post::Unattributed, card.unattributed_joules),
                (Post::Gap, card.gap_joules),
                (Post::Suspense, card.suspense_joules),
            ] {
                self.add(&card.card, post, microjoules(joules));
            }
            self.counted_uj = self.counted_uj.saturating_add(microjoules(card.counted_joules));
        }
    }

    fn add(&mut self, card: &str, post: Post, energy_uj: i128) {
        // As the books of a named node call its cards.
        let (node, card) = match card.split_once('/') {
            Some((node, card)) => (Some(node.to_owned()), card),
            None => (None, card),
        };
        let sum_uj = self.accounts.entry((node, card.to_owned(), post)).or_default();
        *sum_uj = sum_uj.saturating_add(energy_uj);
    }

    /// The lines: by node, card and account; accounts that hold nothing are left out.
    pub fn lines(&self) -> impl Iterator<Item = StatementLine> {
        let held = self.accounts.iter().filter(|(_, energy_uj)| **energy_uj != 0);
        held.map(|((node, card, account), energy_uj)| StatementLine {
            node: node.clone(),
            card: card.clone(),
            account: *account,
            energy_uj: *energy_uj,
        })
    }

    /// The totals of all nodes, by account.
    pub fn totals(&self) -> BTreeMap<Post, i128> {
        let mut totals: BTreeMap<Post, i128> = BTreeMap::new();
        for line in self.lines() {
            let sum_uj = totals.entry(line.account).or_default();
            *sum_uj = sum_uj.saturating_add(line.energy_uj);
        }
        totals
    }

    /// The sum of all lines, µJ.
    pub fn sum_uj(&self) -> i128 {
        self.accounts.values().fold(0i128, |sum, energy_uj| sum.saturating_add(*energy_uj))
    }

    /// What the registers counted, µJ.
    pub const fn counted_uj(&self) -> i128 {
        self.counted_uj
    }
}

fn microjoules(joules: f64) -> i128 {
    (joules * 1e6).round() as i128
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::books::CardTrial;

    fn card(name: &str, requests: f64, idle: f64) -> CardTrial {
        CardTrial {
            card: name.into(),
            counted_joules: requests + idle,
            requests_joules: requests,
            idle_off_joules: 0.0,
            idle_resident_joules: idle,
            foreign_joules: 0.0,
            foreign_unresolved_joules: 0.0,
            unattributed_joules: 0.0,
            gap_joules: 0.0,
            suspense_joules: 0.0,
            imbalance_uj: 0,
            floor_dropped_joules: 0.0,
            idle_floor: None,
        }
    }

    #[test]
    fn a_statement_is_the_sum_of_its_cards_books_and_nothing_else() {
        let mut statement = Statement::default();
        for cards in [
            vec![card("iris/GPU-1", 10.5, 3.25), card("iris/GPU-2", 1.0, 2.0)],
            vec![card("juno/GPU-3", 4.0, 0.0), card("GPU-4", 0.0, 7.0)],
            // Another book of a card that is there already.
            vec![card("iris/GPU-1", 0.5, 0.75)],
        ] {
            statement.add_trial(&TrialBalance { cards, ..TrialBalance::default() });
        }
        let lines: Vec<_> = statement
            .lines()
            .map(|line| (line.node, line.card, line.account, line.energy_uj))
            .collect();
        let iris = Some("iris".to_owned());
        let expected = [
            (None, "GPU-4", Post::IdleResident, 7_000_000),
            (iris.clone(), "GPU-1", Post::Requests, 11_000_000),
            (iris.clone(), "GPU-1", Post::IdleResident, 4_000_000),
            (iris.clone(), "GPU-2", Post::Requests, 1_000_000),
            (iris, "GPU-2", Post::IdleResident, 2_000_000),
            (Some("juno".to_owned()), "GPU-3", Post::Requests, 4_000_000),
        ]
        .map(|(node, card, account, uj)| (node, card.to_owned(), account, uj));
        assert_eq!(lines, expected);
        let totals = statement.totals();
        assert_eq!(totals[&Post::Requests], 16_000_000);
        assert_eq!(totals[&Post::IdleResident], 13_000_000);
        assert_eq!((statement.sum_uj(), statement.counted_uj()), (29_000_000, 29_000_000));
    }
}
