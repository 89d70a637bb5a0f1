//! What is summed up for a receipt beside the integer accounts.
//!
//! Floats, because they are for the receipt and never for the books: the bound of the measurement
//! (error of each publish × change of the request's share there), what other rules would have
//! charged, its share of idle.
//!
//! The rules of the model range: by time, by token, by weight; and where of somebody in the tick the
//! arrival alone is known, by weight with prompts queued until the last possible moment: its own, and
//! all others'. The one is what it costs at least, the other at most; all together lie between.

#![allow(clippy::float_arithmetic, clippy::arithmetic_side_effects)] // the page, not the books

use super::sums::Figures;
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
    /// What the last two rules of the range charge more than weights do.
    late_uj: [f64; 2],
    pub alone_uj: f64,
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
    pub fn tick(&mut self, common: &Common, figures: &Figures, idle: f64, coarse: bool) {
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
            self.add(figures, coarse);
        }
        (self.part, self.tick, self.edge_uj) = (part, common.number, common.end_uj);
    }

    /// A tick that was settled turns out to have been another.
    pub fn correct(&mut self, edge_uj: u64, before: &Figures, after: &Figures, coarse: bool) {
        self.add(&before.back(), coarse);
        self.add(after, coarse);
        // A share that moves by so much in one tick moves its changes at both edges by that.
        let moved = f64::from((after.part - before.part).abs());
        self.bound_uj += 2.0 * moved * edge_uj as f64 + 1.0;
    }

    #[inline]
    fn add(&mut self, figures: &Figures, coarse: bool) {
        for (sum, rule) in self.rules_uj.iter_mut().zip(figures.rules_uj) {
            *sum += f64::from(rule);
        }
        if coarse {
            for (sum, more) in self.late_uj.iter_mut().zip(figures.late_uj) {
                *sum += f64::from(more);
            }
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
        let [own, others] = self.late_uj.map(|more| weighted + more);
        [time, token, weighted, own, others]
    }
}
