//! What is summed up for a receipt beside the integer accounts.
//!
//! Floats, because they are for the receipt and never for the books: the bound of the measurement
//! (error of each publish × change of the request's share there), what other rules would have
//! charged, its share of idle.
//!
//! The rules of the model range: by time, by token, by weight; and where the arrival alone is known
//! of somebody in the tick, by weight with prompts queued until the last possible moment: its own
//! alone, all others', all.

#![allow(clippy::float_arithmetic, clippy::arithmetic_side_effects)] // the page, not the books

use super::weight::Weight;
use crate::{ledger::settle::Outline, receipt::RULES};

/// What is summed up, µJ.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    bound_uj: f64,
    /// The request's part of what lay above the floor in the last tick it was in.
    part: f64,
    /// That tick, and the error of the publish that ends it.
    tick: u64,
    edge_uj: f64,
    pub idle_uj: f64,
    rules_uj: [f64; 3],
    /// What the last three rules of the range charge more than weights do.
    late_uj: [f64; 3],
    pub alone_uj: f64,
}

/// A seat's weights.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weighed {
    pub weight: Weight,
    /// Under the rule that is charged, prefill and decode.
    pub prefill: u64,
    pub decode: u64,
    /// Under the rule of weights.
    pub weighted: u64,
    /// Its request is still known; else nothing more is charged or moved here.
    pub live: bool,
}

/// What a tick weighs in all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sums {
    pub charged: u64,
    pub weighted: u64,
    /// The same with prompts queued until the last moment.
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
    pub late_uj: [f32; 3],
    /// Part of what the requests paid.
    pub part: f32,
}

/// A tick for the pages.
#[derive(Clone, Copy, Debug)]
pub struct Edges {
    /// Its number in the book.
    pub number: u64,
    /// The error of the publish it begins and ends with, µJ.
    pub begin_uj: u64,
    pub end_uj: u64,
    /// How far the floor may be off over the tick, µJ.
    pub floor_uj: u64,
}

/// What of a tick is the same for everybody in it.
#[derive(Clone, Copy, Debug)]
pub struct Common {
    number: u64,
    begin_uj: f64,
    end_uj: f64,
    floor_uj: f64,
    /// The requests' part of what lay above the floor.
    own: f64,
    idle_uj: f64,
    above_uj: f64,
    shared_device: bool,
}

impl Common {
    pub fn of(edges: Edges, outline: &Outline) -> Self {
        let above_uj = outline.above_uj as f64;
        Self {
            number: edges.number,
            begin_uj: edges.begin_uj as f64,
            end_uj: edges.end_uj as f64,
            floor_uj: edges.floor_uj as f64,
            own: if outline.above_uj > 0 { outline.active_uj as f64 / above_uj } else { 1.0 },
            idle_uj: outline.idle_uj as f64,
            above_uj,
            shared_device: outline.shared_device,
        }
    }
}

impl Tally {
    /// A tick in which the request was there; its share of idle.
    #[inline]
    pub fn tick(&mut self, common: &Common, figures: &Figures, idle: f64) {
        if self.tick.wrapping_add(1) != common.number {
            self.leave();
        }
        let part = f64::from(figures.part) * common.own;
        // The publish is wrong by so much on one side and on the other the opposite; what it moves
        // is the change of the share there. Then what the floor is wrong by, and a whole microjoule.
        self.bound_uj += common.begin_uj * (part - self.part).abs() + common.floor_uj * part + 1.0;
        self.idle_uj += common.idle_uj * idle;
        if common.shared_device {
            self.alone_uj += common.above_uj * f64::from(figures.part);
        } else {
            self.add(figures, 1.0);
        }
        (self.part, self.tick, self.edge_uj) = (part, common.number, common.end_uj);
    }

    /// A tick that was settled turns out to have been another.
    pub fn correct(&mut self, edge_uj: u64, before: &Figures, after: &Figures) {
        self.add(before, -1.0);
        self.add(after, 1.0);
        // A share that moves by so much in one tick moves its changes at both edges by that.
        let moved = f64::from((after.part - before.part).abs());
        self.bound_uj += 2.0 * moved * edge_uj as f64 + 1.0;
    }

    #[inline]
    fn add(&mut self, figures: &Figures, sign: f64) {
        for (sum, rule) in self.rules_uj.iter_mut().zip(figures.rules_uj) {
            *sum += sign * f64::from(rule);
        }
        for (sum, more) in self.late_uj.iter_mut().zip(figures.late_uj) {
            *sum += sign * f64::from(more);
        }
    }

    fn leave(&mut self) {
        self.bound_uj += self.part * self.edge_uj;
        self.part = 0.0;
    }

    /// The measurement's bound, when it leaves after its last tick, µJ.
    pub fn bound_uj(&self) -> f64 {
        self.bound_uj + self.part * self.edge_uj
    }

    /// What each rule of the range charges, µJ.
    pub fn rules_uj(&self) -> [f64; RULES] {
        let [time, token, weighted] = self.rules_uj;
        let [own, others, all] = self.late_uj.map(|more| weighted + more);
        [time, token, weighted, own, others, all]
    }
}

impl Sums {
    /// Adds a seat's weights.
    #[inline]
    pub fn add(&mut self, weighed: &Weighed) {
        let weight = &weighed.weight;
        self.weighted = self.weighted.saturating_add(weighed.weighted);
        self.late = self.late.saturating_add(weighed.late());
        self.coarse |= weight.late != weight.prefill;
        self.emitted = self.emitted.saturating_add(weight.emitted);
        self.resident = self.resident.saturating_add(weight.resident_ns);
        self.open = self.open.saturating_add(weight.open_ns);
        self.heads = self.heads.saturating_add(u64::from(weighed.live));
        self.charge(weighed);
    }

    /// Adds what a seat weighs under the rule that is charged.
    #[inline]
    pub fn charge(&mut self, weighed: &Weighed) {
        self.charged = self.charged.saturating_add(weighed.prefill).saturating_add(weighed.decode);
    }

    /// Everybody has been added.
    pub fn close(&mut self) {
        let part = |whole: u64| if whole == 0 { 0.0 } else { 1.0 / whole as f64 };
        self.parts = Parts {
            charged: part(self.charged),
            weighted: part(self.weighted),
            emitted: part(self.emitted),
            resident: part(self.resident),
            open: part(self.open),
            head: part(self.heads),
        };
    }

    /// So much is to be split.
    pub const fn amount(&mut self, amount_uj: u64) {
        self.amount = amount_uj as f64;
    }

    /// A seat's figures.
    #[inline]
    pub fn figures(&self, weighed: &Weighed) -> Figures {
        if !weighed.live {
            return Figures::default();
        }
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
        let charged = weighed.prefill.saturating_add(weighed.decode);
        let part = or_time(charged, self.charged, self.parts.charged);
        let rules = [time, token, weighted];
        let late_uj = if self.coarse { self.late_uj(weighed, time, weighted) } else { [0.0; 3] };
        Figures {
            rules_uj: rules.map(|share| (share * self.amount) as f32),
            late_uj,
            part: part as f32,
        }
    }

    /// What it would be charged more with prompts queued until the last moment.
    fn late_uj(&self, weighed: &Weighed, time: f64, weighted: f64) -> [f32; 3] {
        let (own, late) = (float(weighed.weighted), float(weighed.late()));
        let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { time };
        let whole = float(self.weighted) - own;
        let whole_late = float(self.late) - late;
        [share(late, whole + late), share(own, whole_late + own), share(late, whole_late + late)]
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

impl Weighed {
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
