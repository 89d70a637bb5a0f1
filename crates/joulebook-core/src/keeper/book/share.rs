//! The requests' part of a tick, weighed and split among its seats exactly.

#![cfg_attr(not(test), deny(clippy::float_arithmetic, clippy::arithmetic_side_effects))]

use super::{Record, Seat};
use crate::{
    apportion::Portions,
    keeper::{
        requests::Requests,
        tally::{Sums, Weighed},
    },
    ledger::{
        Entry,
        settle::{Rho, Split, TOKEN},
    },
};

/// What is used again from tick to tick, so that a tick allocates little.
#[derive(Debug, Default)]
pub struct Scratch {
    /// One for each seat of the tick at hand.
    pub weighed: Vec<Weighed>,
    pub sums: Sums,
    /// The settlement at hand, and where the ledger has the accounts.
    pub entries: Vec<Entry>,
    pub hints: Vec<u32>,
    /// What a decode token costs, for each seat.
    rhos: Vec<Rho>,
}

impl Scratch {
    /// Weighs everybody in a tick.
    pub(super) fn weigh(
        &mut self,
        record: &Record,
        requests: &Requests,
        split: Split,
        now_ns: u64,
        card: usize,
    ) {
        self.weighed.clear();
        self.rhos.clear();
        let mut emitters = 0u64;
        for seat in &record.seats {
            let (weighed, rho, emits) = weighed(seat, record, requests, now_ns, card);
            emitters = emitters.saturating_add(u64::from(emits));
            self.weighed.push(weighed);
            self.rhos.push(rho);
        }
        self.sums = Sums::default();
        // Nearly always the same for all.
        let mut last = (Rho::default(), Rho::default().at(emitters));
        for (weighed, rho) in self.weighed.iter_mut().zip(&self.rhos) {
            if last.0 != *rho {
                last = (*rho, rho.at(emitters));
            }
            let weight = weighed.weight;
            let decode = decode(weight.decode, last.1);
            weighed.weighted = weight.prefill.saturating_add(decode);
            (weighed.prefill, weighed.decode) = match split {
                Split::Weighted => (weight.prefill, decode),
                Split::Token => (0, weight.emitted),
                Split::Time => (0, weight.resident_ns),
                Split::Equal => (0, u64::from(weighed.live)),
            };
            self.sums.add(weighed);
        }
        if self.sums.charged == 0 {
            self.fall_back();
        }
        self.sums.close();
    }

    /// Nobody weighs anything: by time, and where there was none by heads.
    fn fall_back(&mut self) {
        let (resident, open) = (self.sums.resident, self.sums.open);
        for weighed in &mut self.weighed {
            weighed.decode = match (resident, open) {
                (0, 0) => u64::from(weighed.live),
                (0, _) => weighed.weight.open_ns,
                _ => weighed.weight.resident_ns,
            };
            self.sums.charge(weighed);
        }
    }
}

impl Sums {
    /// An amount for the seats that were weighed, one after the other; none where there is none, or
    /// nobody who can be charged.
    pub(super) fn portions(&self, amount_uj: u64) -> Option<Portions> {
        if amount_uj == 0 || self.heads == 0 {
            return None;
        }
        Portions::new(amount_uj, self.charged.into())
    }
}

impl Seat {
    /// Takes its share; that of a forgotten request gets and gives nothing.
    #[inline]
    pub(super) fn take(&mut self, weighed: &Weighed, portions: &mut Portions) {
        if weighed.live {
            self.prefill_uj = portions.next(weighed.prefill);
            self.decode_uj = portions.next(weighed.decode);
        }
    }
}

/// A seat's weights, but for ρ, which waits for the number of emitters.
#[inline]
fn weighed(
    seat: &Seat,
    record: &Record,
    requests: &Requests,
    now_ns: u64,
    card: usize,
) -> (Weighed, Rho, bool) {
    if let Some(request) = requests.get(seat.place)
        && let Some(page) = request.pages.on(card)
    {
        let weight = request.weigh(record.window, page.phases, seat.tokens, now_ns);
        let weighed = Weighed { weight, live: true, ..Weighed::default() };
        return (weighed, page.rho, weight.decode > 0);
    }
    (Weighed::default(), Rho::default(), seat.tokens > 0)
}

/// A decode weight times ρ, in 1/1024.
#[inline]
fn decode(weight: u64, rho: u64) -> u64 {
    match weight.checked_mul(rho) {
        Some(product) => product / TOKEN,
        None => (weight / TOKEN).saturating_mul(rho),
    }
}
