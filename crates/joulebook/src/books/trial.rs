//! The trial balance: all accounts of all cards, against what the registers counted.

use joulebook_core::{
    Flags,
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
    /// What it is taken to draw at rest now; none where that is not known.
    pub idle_floor: Option<IdleFloor>,
}

/// What a card is taken to draw at rest in its present state, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IdleFloor {
    /// The floor.
    pub watts: f64,
    /// How far it may be off.
    pub spread_watts: f64,
    /// Who says so.
    pub from: FloorFrom,
    /// One of our processes holds a model in the card's memory.
    pub model_loaded: bool,
    /// The driver's power state (P0 is 0), where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_state: Option<u8>,
    /// Quiet ticks that it was learnt from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ticks: Option<usize>,
    /// How long ago the card was seen so, s; none of one that was declared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_seconds: Option<f64>,
    /// What it draws without a model, where that has been seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub off_watts: Option<f64>,
    /// `baseline_stale`: nothing recent speaks for it; `baseline_suspect`: seen in another power
    /// state.
    #[serde(skip_serializing_if = "no_flags")]
    pub flags: Flags,
}

/// Where a floor comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FloorFrom {
    /// The node says so.
    Declared,
    /// The median of the card's quiet ticks, seen by these books.
    Learnt,
    /// Measured on request before.
    Stored,
    /// The agent of the card's own host says so.
    Told,
}

impl IdleFloor {
    /// Nothing recent speaks for it.
    pub const fn is_stale(&self) -> bool {
        self.flags.contains(Flags::BASELINE_STALE)
    }
}

const fn no_flags(flags: &Flags) -> bool {
    flags.is_empty()
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
        let foreign =
            ledger.balances().filter(|(account, _)| matches!(account, Account::Foreign(_)));
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
            idle_floor: None,
        }
    }
}
