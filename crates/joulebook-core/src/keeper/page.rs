//! A request's page in the book of one card: what it knows beside the integer accounts.
//!
//! Floats, because they are for the receipt and never for the books: the bound of the measurement
//! (error of each publish × change of the request's share there), what other rules would have
//! charged, its share of idle.

#![allow(clippy::float_arithmetic, clippy::arithmetic_side_effects)] // the page, not the books

use std::sync::Arc;

use super::{
    Publish,
    request::{Payer, Phases, Weight},
};
use crate::{
    flags::Flags,
    ledger::settle::{Outline, Rho},
};

/// The page.
#[derive(Clone, Debug)]
pub struct Page {
    pub card: usize,
    pub phases: Phases,
    pub rho: Rho,
    /// Up to when its presence has been taken into ticks, ns of work.
    pub seated_ns: u64,
    /// Settled, placed time of it, ns.
    pub covered_ns: u64,
    /// First and last transaction that charged it.
    pub entries: Option<(u64, u64)>,
    pub flags: Flags,
    /// A placed tick it was in has been settled.
    pub seen: bool,
    pub floorless: bool,
    pub shared_device: bool,
    pub contended_by: Option<Arc<str>>,
    pub tally: Tally,
}

/// What is summed up for the receipt, µJ.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub rules_uj: [f64; 3],
    pub idle_uj: f64,
    pub alone_uj: f64,
    bound_uj: f64,
    /// The request's part of what lay above the floor in the last tick it was in.
    part: f64,
    /// That tick, and the error of the publish that ends it.
    tick: u64,
    edge_uj: f64,
}

/// A seat's weights.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weighed {
    pub weight: Weight,
    /// Its request is still known; else nothing more is charged or moved here.
    pub live: bool,
    /// Under the rule that is charged, prefill and decode.
    pub prefill: u64,
    pub decode: u64,
    /// Under the rule of weights.
    pub weighted: u64,
}

/// What a tick weighs in all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sums {
    pub charged: u64,
    pub weighted: u64,
    pub emitted: u64,
    pub resident: u64,
    pub open: u64,
    pub heads: u64,
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

impl Page {
    pub const fn new(payer: Payer) -> Self {
        Self {
            card: payer.card,
            phases: payer.phases,
            rho: payer.rho,
            seated_ns: 0,
            covered_ns: 0,
            entries: None,
            flags: Flags::NONE,
            seen: false,
            floorless: false,
            shared_device: false,
            contended_by: None,
            tally: Tally {
                rules_uj: [0.0; 3],
                idle_uj: 0.0,
                alone_uj: 0.0,
                bound_uj: 0.0,
                part: 0.0,
                tick: 0,
                edge_uj: 0.0,
            },
        }
    }

    /// Notes what is to be said of a tick it was in.
    pub fn note(&mut self, publish: &Publish, outline: &Outline, open_ns: u64) {
        self.flags |= publish.flags;
        if outline.unplaced {
            self.flags |= Flags::GAP;
            return;
        }
        if outline.floor_suspect {
            self.flags |= Flags::FLOOR_SUSPECT;
        }
        self.covered_ns = self.covered_ns.saturating_add(open_ns);
        self.seen = true;
        self.floorless |= publish.rest.is_none();
        self.shared_device |= outline.shared_device;
        if publish.contended_by.is_some() && self.contended_by != publish.contended_by {
            self.contended_by.clone_from(&publish.contended_by);
        }
    }

    /// Notes that a transaction charged it.
    pub fn entered(&mut self, number: u64) {
        let (first, last) = self.entries.unwrap_or((number, number));
        self.entries = Some((first.min(number), last.max(number)));
    }
}

impl Tally {
    /// A tick in which the request was there. `figures` is none where nothing was charged.
    pub fn tick(&mut self, edges: Edges, outline: &Outline, figures: Option<Figures>, idle: f64) {
        if self.tick.checked_add(1) != Some(edges.number) {
            self.leave();
        }
        let figures = figures.unwrap_or_default();
        let own = if outline.above_uj > 0 {
            outline.active_uj as f64 / outline.above_uj as f64
        } else {
            1.0
        };
        let part = f64::from(figures.part) * own;
        // The publish is wrong by so much on one side and on the other the opposite; what it moves
        // is the change of the share there.
        self.bound_uj += edges.begin_uj as f64 * (part - self.part).abs();
        // What the floor is wrong by, and a whole microjoule.
        self.bound_uj += edges.floor_uj as f64 * part + 1.0;
        self.idle_uj += outline.idle_uj as f64 * idle;
        if outline.shared_device {
            self.alone_uj += outline.above_uj as f64 * f64::from(figures.part);
        } else {
            self.add(figures.rules_uj, 1.0);
        }
        (self.part, self.tick, self.edge_uj) = (part, edges.number, edges.end_uj as f64);
    }

    /// A tick that was settled turns out to have been another.
    pub fn correct(&mut self, edge_uj: u64, before: Figures, after: Figures) {
        self.add(before.rules_uj, -1.0);
        self.add(after.rules_uj, 1.0);
        // A share that moves by so much in one tick moves its changes at both edges by that.
        let moved = f64::from((after.part - before.part).abs());
        self.bound_uj += 2.0 * moved * edge_uj as f64 + 1.0;
    }

    fn add(&mut self, rules_uj: [f32; 3], sign: f64) {
        for (sum, rule) in self.rules_uj.iter_mut().zip(rules_uj) {
            *sum += sign * f64::from(rule);
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
}

impl Sums {
    /// Adds a seat's weights.
    pub fn add(&mut self, weighed: &Weighed) {
        let weight = &weighed.weight;
        self.weighted = self.weighted.saturating_add(weighed.weighted);
        self.emitted = self.emitted.saturating_add(weight.emitted);
        self.resident = self.resident.saturating_add(weight.resident_ns);
        self.open = self.open.saturating_add(weight.open_ns);
        self.heads = self.heads.saturating_add(u64::from(weighed.live));
        self.charge(weighed);
    }

    /// Adds what a seat weighs under the rule that is charged.
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

    /// A seat's figures when `amount_uj` is split.
    pub fn figures(&self, amount_uj: u64, weighed: &Weighed) -> Figures {
        if !weighed.live {
            return Figures::default();
        }
        let amount = amount_uj as f64;
        let weight = &weighed.weight;
        let time = if self.resident > 0 {
            weight.resident_ns as f64 * self.parts.resident
        } else {
            self.idle(weighed)
        };
        let or_time = |weight: u64, whole: u64, part: f64| {
            if whole == 0 { time } else { weight as f64 * part }
        };
        let rules = [
            time,
            or_time(weight.emitted, self.emitted, self.parts.emitted),
            or_time(weighed.weighted, self.weighted, self.parts.weighted),
        ];
        let charged = weighed.prefill.saturating_add(weighed.decode);
        let part = or_time(charged, self.charged, self.parts.charged);
        Figures { rules_uj: rules.map(|share| (share * amount) as f32), part: part as f32 }
    }

    /// A seat's share of idle: by the time it was open.
    pub fn idle(&self, weighed: &Weighed) -> f64 {
        match self.open {
            0 => self.parts.head,
            _ => weighed.weight.open_ns as f64 * self.parts.open,
        }
    }
}
