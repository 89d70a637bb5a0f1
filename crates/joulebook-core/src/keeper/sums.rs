//! What all requests in a tick weigh together, and what each makes of it.
//!
//! The weights are integers and the charge is split by them exactly. What other rules would have
//! charged, and a request's share of idle, are floats for its receipt and never for the books.

#![allow(clippy::float_arithmetic, clippy::arithmetic_side_effects)] // the page, not the books

use super::weight::Weight;
use crate::{
    apportion::Portions,
    ledger::settle::{Rho, Split, TOKEN},
};

/// A seat's weights.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weighed {
    pub weight: Weight,
    /// Under the rule that is charged, prefill and decode; until all are weighed, what a decode token
    /// costs, which waits for the number of those who emit.
    pub prefill: u64,
    pub decode: u64,
    /// Under the rule of weights.
    pub weighted: u64,
    /// Its request is still known; else nothing more is charged or moved here.
    pub live: bool,
    /// It wrote in the tick.
    pub emits: bool,
}

/// What a tick weighs in all, and by which rule.
#[derive(Clone, Copy, Debug)]
pub struct Sums {
    pub split: Split,
    /// How many write.
    pub emitters: u64,
    /// Nobody weighs anything by that rule.
    pub weightless: bool,
    pub charged: u64,
    pub weighted: u64,
    /// Prompts, and those with all of them queued until the last moment.
    pub prefill: u64,
    pub late: u64,
    pub emitted: u64,
    pub resident: u64,
    pub open: u64,
    pub heads: u64,
    /// Some prompt may have been queued, nobody knows how long.
    pub coarse: bool,
    amount: f64,
    parts: Parts,
}

/// What a seat's weight is multiplied by to get its part of the tick: a division a tick, and none a
/// seat. Zero where there is no such weight.
#[derive(Clone, Copy, Debug, Default)]
struct Parts {
    charged: f64,
    weighted: f64,
    emitted: f64,
    resident: f64,
    open: f64,
    head: f64,
}

/// A seat's figures in one tick.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    /// Under time, token and weighted, µJ.
    pub rules_uj: [f32; 3],
    /// What the others of the range charge more than weighted, µJ.
    pub late_uj: [f32; 2],
    /// Part of what the requests paid.
    pub part: f32,
}

impl Default for Sums {
    fn default() -> Self {
        Self::NONE
    }
}

impl Sums {
    /// Of nobody.
    pub const NONE: Self = Self {
        split: Split::Weighted,
        emitters: 0,
        weightless: false,
        charged: 0,
        weighted: 0,
        prefill: 0,
        late: 0,
        emitted: 0,
        resident: 0,
        open: 0,
        heads: 0,
        coarse: false,
        amount: 0.0,
        parts: Parts {
            charged: 0.0,
            weighted: 0.0,
            emitted: 0.0,
            resident: 0.0,
            open: 0.0,
            head: 0.0,
        },
    };

    /// What a seat weighs by the rule of weights and by the one that is charged, at that ρ.
    #[inline]
    pub fn rule(&self, weighed: &mut Weighed, rho: u64) {
        let weight = &weighed.weight;
        let decode = match weight.decode.checked_mul(rho) {
            Some(product) => product / TOKEN,
            None => (weight.decode / TOKEN).saturating_mul(rho),
        };
        weighed.weighted = weight.prefill.saturating_add(decode);
        (weighed.prefill, weighed.decode) = match self.split {
            Split::Weighted => (weight.prefill, decode),
            Split::Token => (0, weight.emitted),
            Split::Time => (0, weight.resident_ns),
            Split::Equal => (0, u64::from(weighed.live)),
        };
    }

    /// The same where nobody weighs anything: by time, and where there was none by heads.
    pub fn rule_of_time(&self, weighed: &mut Weighed) {
        weighed.decode = match (self.resident, self.open) {
            (0, 0) => u64::from(weighed.live),
            (0, _) => weighed.weight.open_ns,
            _ => weighed.weight.resident_ns,
        };
    }

    /// What a request that is known weighs, when all have been summed up.
    pub fn weighed(&self, weight: Weight, rho: Rho) -> Weighed {
        let mut weighed = Weighed::waiting(weight, rho);
        self.rule(&mut weighed, rho.at(self.emitters));
        if self.weightless {
            self.rule_of_time(&mut weighed);
        }
        weighed
    }

    /// All have been weighed: what a decode token costs is known, and so what each weighs by the
    /// rule.
    pub fn of(split: Split, all: &mut [Weighed]) -> Self {
        let emitters = all.iter().filter(|it| it.emits).count();
        let emitters = u64::try_from(emitters).unwrap_or(u64::MAX);
        let mut sums = Self { split, emitters, ..Self::NONE };
        // Nearly always the same for all.
        let mut last = (Rho::default(), Rho::default().at(emitters));
        for weighed in all.iter_mut() {
            let rho = weighed.rho();
            if last.0 != rho {
                last = (rho, rho.at(emitters));
            }
            sums.rule(weighed, last.1);
            sums.add(weighed);
        }
        if split == Split::Weighted {
            sums.charged = sums.weighted;
        }
        if sums.charged == 0 {
            sums.weightless = true;
            for weighed in all.iter_mut() {
                sums.rule_of_time(weighed);
                sums.charge(weighed);
            }
        }
        sums
    }

    /// An amount for those who were weighed, one after the other; none where there is none, or
    /// nobody who can be charged.
    pub fn portions(&self, amount_uj: u64) -> Option<Portions> {
        if amount_uj == 0 || self.heads == 0 {
            return None;
        }
        Portions::new(amount_uj, self.charged.into())
    }

    /// Adds a seat's weights.
    #[inline]
    fn add(&mut self, weighed: &Weighed) {
        let weight = &weighed.weight;
        self.weighted = self.weighted.saturating_add(weighed.weighted);
        if weight.prefill | weight.late > 0 {
            self.prefill = self.prefill.saturating_add(weight.prefill);
            self.late = self.late.saturating_add(weight.late);
            self.coarse |= weight.late != weight.prefill;
        }
        self.emitted = self.emitted.saturating_add(weight.emitted);
        self.resident = self.resident.saturating_add(weight.resident_ns);
        self.open = self.open.saturating_add(weight.open_ns);
        self.heads = self.heads.saturating_add(u64::from(weighed.live));
        if self.split != Split::Weighted {
            self.charge(weighed);
        }
    }

    /// Adds what a seat weighs under the rule that is charged.
    fn charge(&mut self, weighed: &Weighed) {
        self.charged = self.charged.saturating_add(weighed.prefill).saturating_add(weighed.decode);
    }

    /// So much is to be split among them.
    pub fn amount(&mut self, amount_uj: u64) {
        let part = |whole: u64| if whole == 0 { 0.0 } else { 1.0 / whole as f64 };
        self.amount = amount_uj as f64;
        self.parts = Parts {
            charged: part(self.charged),
            weighted: part(self.weighted),
            emitted: part(self.emitted),
            resident: part(self.resident),
            open: part(self.open),
            head: part(self.heads),
        };
    }

    /// A seat's figures; its request is known.
    #[inline]
    pub fn figures(&self, weighed: &Weighed) -> Figures {
        let weight = &weighed.weight;
        let time = if self.resident > 0 {
            float(weight.resident_ns) * self.parts.resident
        } else {
            self.idle(weighed)
        };
        let or_time = |weight: u64, whole: u64, part: f64| {
            if whole == 0 { time } else { float(weight) * part }
        };
        let token = or_time(weight.emitted, self.emitted, self.parts.emitted);
        let weighted = or_time(weighed.weighted, self.weighted, self.parts.weighted);
        let part = if self.split == Split::Weighted && !self.weightless {
            weighted
        } else {
            float(weighed.prefill.saturating_add(weighed.decode)) * self.parts.charged
        };
        let rules = [time, token, weighted];
        let late_uj = if self.coarse { self.late_uj(weighed, time, weighted) } else { [0.0; 2] };
        Figures {
            rules_uj: rules.map(|share| (share * self.amount) as f32),
            late_uj,
            part: part as f32,
        }
    }

    /// What it would be charged more with prompts queued until the last moment.
    fn late_uj(&self, weighed: &Weighed, time: f64, weighted: f64) -> [f32; 2] {
        let (own, late) = (float(weighed.weighted), float(weighed.late()));
        let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { time };
        let whole = float(self.weighted) - own;
        let all_late = self.weighted.saturating_sub(self.prefill).saturating_add(self.late);
        let whole_late = float(all_late) - late;
        [share(late, whole + late), share(own, whole_late + own)]
            .map(|share| ((share - weighted) * self.amount) as f32)
    }

    /// A seat's share of idle: by the time it was open.
    #[inline]
    pub fn idle(&self, weighed: &Weighed) -> f64 {
        match self.open {
            0 => self.parts.head,
            _ => float(weighed.weight.open_ns) * self.parts.open,
        }
    }
}

impl Figures {
    /// Taken back.
    pub fn back(&self) -> Self {
        let back = |uj: f32| -uj;
        let (rules_uj, late_uj) = (self.rules_uj.map(back), self.late_uj.map(back));
        Self { rules_uj, late_uj, part: -self.part }
    }
}

impl Weighed {
    /// Of a request that is known; ρ waits for the number of emitters.
    #[inline]
    pub const fn waiting(weight: Weight, rho: Rho) -> Self {
        let emits = weight.decode > 0;
        Self { weight, prefill: rho.a, decode: rho.b, weighted: 0, live: true, emits }
    }

    /// Of a request that is forgotten.
    pub fn forgotten(emits: bool) -> Self {
        Self { emits, ..Self::default() }
    }

    /// What a decode token costs, before all are weighed.
    #[inline]
    pub const fn rho(&self) -> Rho {
        Rho { a: self.prefill, b: self.decode }
    }

    /// What it weighs when its prompt was queued until the last moment.
    #[inline]
    pub const fn late(&self) -> u64 {
        self.weighted.saturating_sub(self.weight.prefill).saturating_add(self.weight.late)
    }
}

/// A weight as a float: signed words are turned by one instruction, others by several.
#[inline]
const fn float(weight: u64) -> f64 {
    if weight > i64::MAX as u64 { i64::MAX as f64 } else { weight as i64 as f64 }
}
