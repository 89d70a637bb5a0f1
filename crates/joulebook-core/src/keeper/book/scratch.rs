//! What a tick's settlement needs on the way, used again from tick to tick.

#![cfg_attr(not(test), deny(clippy::float_arithmetic, clippy::arithmetic_side_effects))]

use super::{Record, seat::Seat};
use crate::{
    keeper::{
        requests::Requests,
        sums::{Sums, Weighed},
        weight::Weight,
    },
    ledger::{
        Entry,
        settle::{Rho, Split},
    },
};

/// So that a tick allocates little.
#[derive(Debug, Default)]
pub struct Scratch {
    /// One for each seat of the tick at hand.
    pub weighed: Vec<Weighed>,
    pub sums: Sums,
    /// The settlement at hand, and where the ledger has the accounts.
    pub entries: Vec<Entry>,
    pub hints: Vec<u32>,
    /// Whose weights are at hand: card and tick, until somebody may have heard news.
    of: Option<(usize, u64)>,
}

impl Scratch {
    /// Begins to weigh a tick while it is seated.
    pub(super) fn begin(&mut self, card: usize, number: u64) {
        self.weighed.clear();
        self.of = Some((card, number));
    }

    /// Weighs the next seat.
    #[inline]
    pub(super) fn push(&mut self, weight: Weight, rho: Rho) {
        self.weighed.push(Weighed::waiting(weight, rho));
    }

    /// What is at hand is of no use (any more).
    pub fn drop_weights(&mut self) {
        self.of = None;
    }

    /// Weighs everybody in a tick, who have been weighed already where it was seated just now.
    pub(super) fn weigh(
        &mut self,
        record: &Record,
        requests: &Requests,
        split: Split,
        now_ns: u64,
        card: usize,
    ) {
        if self.of.take() != Some((card, record.edges.number)) {
            self.weighed.clear();
            let weighed = |seat: &Seat| weighed(seat, record, requests, now_ns, card);
            self.weighed.extend(record.seats.all.iter().map(weighed));
        }
        self.sums = Sums::of(split, &mut self.weighed);
    }
}

/// A seat's weights.
fn weighed(seat: &Seat, record: &Record, requests: &Requests, now_ns: u64, card: usize) -> Weighed {
    let known = requests.get(seat.place);
    let Some((request, page)) = known.and_then(|it| Some((it, it.pages.on(card)?))) else {
        return Weighed::forgotten(seat.tokens > 0);
    };
    let weight = request.weigh(record.window, page.phases, seat.tokens, now_ns);
    Weighed::waiting(weight, page.rho)
}
