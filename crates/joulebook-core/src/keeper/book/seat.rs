//! Who was there in a tick, and what each was charged of it.
//!
//! Seats are kept for as long as their tick may be corrected, so they are small: of a request that
//! did nothing but write through the whole tick, as most do, its tokens and its charge say all, and
//! the rest is worked out again from the sums of the tick. Others keep what they were charged beside.

#![cfg_attr(not(test), deny(clippy::float_arithmetic, clippy::arithmetic_side_effects))]

use crate::{
    keeper::{
        requests::Place,
        sums::{Figures, Sums, Weighed},
        weight::Weight,
    },
    ledger::settle::Rho,
};

const NOTHING: u32 = u32::MAX;

/// Somebody's seat.
#[derive(Clone, Copy, Debug)]
pub struct Seat {
    pub place: Place,
    pub tokens: u32,
    /// Which of those that keep more.
    more: u32,
    decode_uj: u64,
}

/// What has been taken for a seat.
#[derive(Clone, Copy, Debug, Default)]
pub struct Held {
    pub prefill_uj: u64,
    pub decode_uj: u64,
    /// The time of it that counts as covered, ns.
    pub open_ns: u64,
    pub figures: Figures,
}

/// The seats of a tick.
#[derive(Debug, Default)]
pub struct Seats {
    pub all: Vec<Seat>,
    more: Vec<Held>,
    /// What they weighed together when they were charged last.
    pub sums: Sums,
    pub length_ns: u64,
}

impl Seat {
    pub const fn new(place: Place, tokens: u32) -> Self {
        Self { place, tokens, more: NOTHING, decode_uj: 0 }
    }
}

impl Seats {
    pub const fn of(all: Vec<Seat>, length_ns: u64) -> Self {
        Self { all, more: Vec::new(), sums: Sums::NONE, length_ns }
    }

    /// Somebody who is heard of after the tick was settled: nothing has been taken for him.
    pub fn push_late(&mut self, place: Place) {
        self.all.push(Seat { more: next(&self.more), ..Seat::new(place, 0) });
        self.more.push(Held::default());
    }

    /// More tokens of somebody; what was taken for him stays what it was.
    pub fn add_tokens(&mut self, place: Place, tokens: u32, rho: Rho, settled: bool) -> bool {
        let Some(number) = self.all.iter().position(|seat| seat.place == place) else {
            return false;
        };
        if settled {
            let held = self.held(number, rho);
            self.keep(number, held);
        }
        if let Some(seat) = self.all.get_mut(number) {
            seat.tokens = seat.tokens.saturating_add(tokens);
        }
        true
    }

    /// What a seat was charged, µJ.
    pub fn charged_uj(&self, number: usize) -> u64 {
        let Some(seat) = self.all.get(number) else { return 0 };
        let more = self.more.get(seat.more as usize);
        more.map_or(seat.decode_uj, |held| held.prefill_uj.saturating_add(held.decode_uj))
    }

    /// What has been taken for a seat of a settled tick.
    pub fn held(&self, number: usize, rho: Rho) -> Held {
        let Some(seat) = self.all.get(number) else { return Held::default() };
        if let Some(held) = self.more.get(seat.more as usize) {
            return *held;
        }
        let weighed = self.sums.weighed(Weight::writing(seat.tokens, self.length_ns), rho);
        Held {
            prefill_uj: 0,
            decode_uj: seat.decode_uj,
            open_ns: self.length_ns,
            figures: self.sums.figures(&weighed),
        }
    }

    /// Takes this for a seat, which weighs so much.
    #[inline]
    pub fn take(&mut self, number: usize, weighed: &Weighed, held: &Held) {
        match self.all.get_mut(number) {
            Some(seat) if weighed.weight.plain => {
                (seat.more, seat.decode_uj) = (NOTHING, held.decode_uj);
            }
            _ => self.keep(number, *held),
        }
    }

    fn keep(&mut self, number: usize, held: Held) {
        let Some(seat) = self.all.get_mut(number) else { return };
        match self.more.get_mut(seat.more as usize) {
            Some(kept) => *kept = held,
            None => {
                seat.more = next(&self.more);
                self.more.push(held);
            }
        }
    }
}

/// Where the next one comes.
fn next(more: &[Held]) -> u32 {
    u32::try_from(more.len()).unwrap_or(NOTHING)
}
