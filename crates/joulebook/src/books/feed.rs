//! From a card's series to ticks for its book: the interval between two points, with what is known
//! around it (floor, tenants, how far the publish may be off).
//!
//! Ticks go on in their order, each as soon as what is to be known around it is known: with a tenant
//! beside us that is when it has been told who was at work, about a second later, and never more than
//! [`LONGEST_WAIT_NS`]. A tick whose points are not neighbours any more (the owner came too late for
//! the ring), or whose end is marked as a gap, is counted but not placed.

mod neighbours;

use std::{collections::VecDeque, sync::Arc};

use joulebook_core::{
    Flags, Power,
    keeper::{CardFacts, Publish},
    ledger::settle::{Rest, Tick},
    measurement::Source,
    ring::Point,
};
use neighbours::Neighbours;

use crate::{
    card::{Card, Work},
    meter::Meter,
};

const SECOND: f64 = 1e9;
/// A tick waits so long after its end for what is known around it; then it goes without.
const LONGEST_WAIT_NS: u64 = 3_000_000_000;

/// A card on its way into its book.
pub(super) struct Feed {
    card: Arc<Card>,
    neighbours: Neighbours,
    rest: Option<Rest>,
    spread_uw: u64,
    /// Marks that go with the floor.
    marks: Flags,
    /// Number of the next point, and the last one taken.
    next: u64,
    last: Option<Point>,
    /// Points between them are gone.
    lost: bool,
    /// Ticks that wait.
    waiting: VecDeque<Stretch>,
}

/// Two points that follow each other.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    from: Point,
    to: Point,
    /// There were others between them.
    lost: bool,
}

impl Feed {
    /// The cards of a meter, from their newest points on.
    pub fn of(meter: &Meter, lenient: bool) -> Vec<Self> {
        let inner = &meter.inner;
        let floors = inner.floors.iter().copied().chain(std::iter::repeat(None));
        let feed = |(card, floor): (&Arc<Card>, Option<f64>)| {
            let profile = card.profile();
            let off = profile.floor(card.scope(), false);
            let stored = profile.resting(card.scope()).filter(|it| Some(it.watts) == floor);
            let microwatts = |watts: f64| Power::from_watts(watts).map(Power::microwatts);
            let power_uw = floor.and_then(microwatts);
            let rest = power_uw.map(|power_uw| Rest {
                power_uw,
                off_uw: off
                    .and_then(|off| microwatts(off.watts))
                    .filter(|off_uw| *off_uw < power_uw),
                model_loaded: true,
            });
            let next = card.series.pushed();
            let last = next.checked_sub(1).and_then(|last| card.series.point(last));
            Self {
                card: Arc::clone(card),
                neighbours: Neighbours::new(inner.rules.clone(), lenient),
                rest,
                spread_uw: stored.and_then(|it| microwatts(it.spread_watts)).unwrap_or(0),
                marks: inner.flags,
                next,
                last,
                lost: false,
                waiting: VecDeque::new(),
            }
        };
        inner.cards.iter().zip(floors).map(feed).collect()
    }

    /// What is known of the card itself.
    pub fn facts(&self) -> CardFacts {
        let device = self.card.device();
        let facts = self.card.facts();
        CardFacts {
            name: device.uuid.as_str().into(),
            backend: device.backend.word(),
            source: Source::Local,
            lag_ns: (facts.lag_s * SECOND) as u64,
            lag_uncertainty_ns: (facts.lag_uncertainty_s * SECOND) as u64,
        }
    }

    /// The card's name and UUID.
    pub fn names(&self) -> (String, String) {
        let device = self.card.device();
        (device.name.clone(), device.uuid.clone())
    }

    /// The ticks that have been published and are due.
    pub fn take(&mut self, now_ns: u64, mut into: impl FnMut(Publish)) {
        let pushed = self.card.series.pushed();
        while self.next < pushed {
            let number = self.next;
            self.next += 1;
            let Some(point) = self.card.series.point(number) else {
                // Gone from the ring: the next tick spans it, and is not placed.
                self.lost = true;
                continue;
            };
            if let Some(last) = self.last.replace(point) {
                let lost = std::mem::take(&mut self.lost);
                self.waiting.push_back(Stretch { from: last, to: point, lost });
            }
        }
        while let Some(stretch) = self.waiting.front().copied() {
            let Some(publish) = self.publish(stretch, now_ns) else { return };
            self.waiting.pop_front();
            into(publish);
        }
    }

    /// A tick with what is known around it; none when it has to wait for that.
    fn publish(&mut self, stretch: Stretch, now_ns: u64) -> Option<Publish> {
        let facts = self.card.facts();
        let Stretch { from, to, lost } = stretch;
        let tick = Tick {
            // Two points of one instant (a register that restarted between two polls) are a tick all
            // the same: of a nanosecond.
            begin_ns: from.at_ns.min(to.at_ns.saturating_sub(1)),
            end_ns: to.at_ns,
            counted_uj: to.energy_uj.saturating_sub(from.energy_uj),
            unplaced: lost || to.flags.contains(Flags::GAP),
        };
        let rest = self.rest;
        let seen = self.neighbours.seen(&self.card, tick.begin_ns, tick.end_ns);
        let work = if seen.is_alone() {
            Work::Unknown
        } else {
            self.work(tick, (facts.lag_s * SECOND) as u64, now_ns)
        };
        let at_rest = rest.is_some_and(|rest| tick.is_at_rest(rest));
        let around = self.neighbours.around(&seen, work, at_rest)?;
        let edge_s = match facts.averaging_s {
            // A gauge's edges: what its averaging and its updates hide.
            Some(averaging_s) => averaging_s + facts.period_s,
            None => f64::from(to.uncertainty_ns) / SECOND,
        };
        let swing_w = (facts.ceiling_w - facts.deepest_w).max(0.0);
        let edge_j = edge_s * facts.ceiling_w + facts.lag_uncertainty_s * swing_w + facts.quantum_j;
        Some(Publish {
            tick,
            edge_uj: (edge_j * 1e6) as u64,
            rest,
            spread_uw: self.spread_uw,
            others: around.others,
            contended_by: around.contended_by,
            flags: to.flags.without(Flags::REPEATED) | self.marks | around.flags,
        })
    }

    /// Who was at work while its energy was drawn.
    fn work(&self, tick: Tick, lag_ns: u64, now_ns: u64) -> Work {
        let drawn = |at_ns: u64| at_ns.saturating_sub(lag_ns);
        match self.card.work(drawn(tick.begin_ns), drawn(tick.end_ns)) {
            Work::Pending if tick.end_ns.saturating_add(LONGEST_WAIT_NS) <= now_ns => Work::Unknown,
            work => work,
        }
    }
}
