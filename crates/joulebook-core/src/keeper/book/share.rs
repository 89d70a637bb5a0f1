//! The requests' part of a tick, split among its seats exactly.

#![cfg_attr(not(test), deny(clippy::float_arithmetic, clippy::arithmetic_side_effects))]

use super::Record;
use crate::{
    apportion::apportion,
    keeper::{
        page::{Sums, Weighed},
        requests::Requests,
    },
    ledger::{
        Account,
        settle::{Split, TOKEN},
    },
};

/// What is used again from tick to tick, so that a tick allocates little.
#[derive(Debug, Default)]
pub struct Scratch {
    /// One for each seat of the tick at hand.
    pub weighed: Vec<Weighed>,
    pub sums: Sums,
    pub shares: Vec<(Account, u64)>,
    flat: Vec<u64>,
    split: Vec<u64>,
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
        let mut emitters = 0u64;
        for seat in &record.seats {
            let mut weighed = Weighed::default();
            let mut emits = seat.tokens > 0;
            if let Some(request) = requests.get(seat.place)
                && let Some(page) = request.pages.iter().find(|page| page.card == card)
            {
                weighed.live = true;
                weighed.weight = request.weigh(record.window, page.phases, seat.tokens, now_ns);
                emits = weighed.weight.decode > 0;
                // ρ waits for the number of emitters.
                weighed.prefill = page.rho.a;
                weighed.decode = page.rho.b;
            }
            emitters = emitters.saturating_add(u64::from(emits));
            self.weighed.push(weighed);
        }
        self.sums = Sums::default();
        for weighed in &mut self.weighed {
            let rho = match weighed.decode.checked_div(emitters) {
                Some(each) => weighed.prefill.saturating_add(each),
                None => 0,
            };
            let weight = weighed.weight;
            let decode = decode(weight.decode, rho);
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

    /// Splits an amount among the seats that were weighed; those of forgotten requests get and give
    /// nothing.
    pub(super) fn divide(&mut self, amount_uj: u64, record: &mut Record) {
        self.flat.clear();
        self.flat.extend(self.weighed.iter().flat_map(|it| [it.prefill, it.decode]));
        self.split.clear();
        self.split.resize(self.flat.len(), 0);
        apportion(amount_uj, &self.flat, &mut self.split);
        let pairs = self.split.chunks_exact(2);
        for ((seat, weighed), pair) in record.seats.iter_mut().zip(&self.weighed).zip(pairs) {
            if let (true, [prefill_uj, decode_uj]) = (weighed.live, pair) {
                (seat.prefill_uj, seat.decode_uj) = (*prefill_uj, *decode_uj);
            }
        }
    }
}

/// A decode weight times ρ, in 1/1024.
fn decode(weight: u64, rho: u64) -> u64 {
    match weight.checked_mul(rho) {
        Some(product) => product / TOKEN,
        None => (weight / TOKEN).saturating_mul(rho),
    }
}
