//! The trial balance: all accounts of all cards, against what the registers counted.

use joulebook_core::{
    keeper::{Counts, Keeper, Standing},
    ledger::Account,
};
use serde::Serialize;

/// All books at one instant.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TrialBalance {
    /// A card each.
    pub cards: Vec<CardTrial>,
    /// Requests that are open.
    pub open: usize,
    /// Requests that are kept, the open ones too.
    pub held: usize,
    /// Tickets refused because too many were open.
    pub refused_tickets: u64,
    /// Transactions written to the journal.
    pub journal_written: u64,
    /// Writes to the journal that failed.
    pub journal_failed: u64,
    /// Things that should be rare.
    #[serde(skip)]
    pub counts: Counts,
}

/// One card's accounts, J.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CardTrial {
    /// The card.
    pub card: String,
    /// What its register counted.
    pub counted_joules: f64,
    /// Charged to requests.
    pub requests_joules: f64,
    /// Drawn with no model.
    pub idle_off_joules: f64,
    /// What keeping the model loaded added, or all idle.
    pub idle_resident_joules: f64,
    /// Others', by utilisation.
    pub foreign_joules: f64,
    /// Others' or ours.
    pub foreign_unresolved_joules: f64,
    /// Active, and nobody known caused it.
    pub unattributed_joules: f64,
    /// Counted, but nobody knows when.
    pub gap_joules: f64,
    /// Counted, not settled yet.
    pub suspense_joules: f64,
    /// How far the accounts are from the register, µJ: always 0.
    pub imbalance_uj: i128,
    /// Idle energy that the floor asked for and the card did not draw, given up.
    pub floor_dropped_joules: f64,
}

impl TrialBalance {
    pub(super) fn of(keeper: &Keeper) -> Self {
        let (open, held) = keeper.sizes();
        let cards = keeper.standings().map(|standing| CardTrial::of(&standing)).collect();
        Self { cards, open, held, counts: keeper.counts(), ..Self::default() }
    }

    /// True when every card's accounts are what its register counted.
    pub fn balances(&self) -> bool {
        self.cards.iter().all(|card| card.imbalance_uj == 0)
    }
}

impl CardTrial {
    fn of(standing: &Standing<'_>) -> Self {
        let ledger = standing.ledger;
        let joules = |uj: i128| uj as f64 / 1e6;
        let of = |account| joules(ledger.balance(account));
        let (balances, _) = ledger.balances();
        let foreign = balances.filter(|(account, _)| matches!(account, Account::Foreign(_)));
        Self {
            card: standing.facts.name.to_string(),
            counted_joules: joules(ledger.counted_uj()),
            requests_joules: joules(ledger.requests_uj()),
            idle_off_joules: of(Account::IdleOff),
            idle_resident_joules: of(Account::IdleResident),
            foreign_joules: foreign.map(|(_, uj)| joules(uj)).sum(),
            foreign_unresolved_joules: of(Account::ForeignUnresolved),
            unattributed_joules: of(Account::Unattributed),
            gap_joules: of(Account::Gap),
            suspense_joules: of(Account::Suspense),
            imbalance_uj: ledger.imbalance_uj(),
            floor_dropped_joules: standing.carry.dropped_uj as f64 / 1e6,
        }
    }
}
