//! From a card's series to ticks for its book: the interval between two points, with what is known
//! around it (floor, tenants, how far the publish may be off).
//!
//! Ticks go on in their order, each as soon as what is to be known around it is known: with a tenant
//! beside us that is when it has been told who was at work, about a second later, and never more than
//! [`LONGEST_WAIT_NS`]. A tick whose points are not neighbours any more (the owner came too late for
//! the ring), or whose end is marked as a gap, is counted but not placed.

mod floor;
mod neighbours;

use std::{collections::VecDeque, sync::Arc};

use floor::{Floors, State};
use joulebook_core::{
    Flags,
    keeper::{CardFacts, Publish},
    ledger::settle::Tick,
    measurement::Source,
    ring::Point,
};
use neighbours::{Neighbours, Seen};

use super::IdleFloor;
use crate::{
    card::{Card, Work},
    meter::{Inner, Meter},
};

const SECOND: f64 = 1e9;
/// A tick waits so long after its end for what is known around it; then it goes without.
const LONGEST_WAIT_NS: u64 = 3_000_000_000;
/// A tick with one of these marks is not as long, or as full, as it looks.
const BROKEN: Flags = Flags::GAP.union(Flags::BRIDGED).union(Flags::COUNTER_FROZEN);

/// A card on its way into its book.
pub(super) struct Feed {
    card: Arc<Card>,
    /// Its place in its meter.
    number: usize,
    meter: Arc<Inner>,
    neighbours: Neighbours,
    floors: Floors,
    /// The floor of the newest tick, µW.
    rest_uw: Option<u64>,
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

/// When a tick's energy was drawn, at most.
#[derive(Clone, Copy, Debug)]
struct Span {
    from_ns: u64,
    to_ns: u64,
}

impl Feed {
    /// The cards of a meter, from their newest points on.
    pub fn of(meter: &Meter, lenient: bool) -> Vec<Self> {
        let inner = &meter.inner;
        let feed = |(number, card): (usize, &Arc<Card>)| {
            let next = card.series.pushed();
            let last = next.checked_sub(1).and_then(|last| card.series.point(last));
            Self {
                card: Arc::clone(card),
                number,
                meter: Arc::clone(inner),
                neighbours: Neighbours::new(
                    inner.rules.get(number).cloned().unwrap_or_default(),
                    lenient,
                ),
                floors: Floors::of(card, inner.declared_w(number)),
                rest_uw: inner.floor_w(number).and_then(floor::microwatts),
                next,
                last,
                lost: false,
                waiting: VecDeque::new(),
            }
        };
        inner.cards.iter().enumerate().map(feed).collect()
    }

    /// What is known of the card itself.
    pub fn facts(&self) -> CardFacts {
        let device = self.card.device();
        let facts = self.card.facts();
        let elsewhere = self.card.elsewhere.is_some();
        CardFacts {
            name: self.meter.account(self.number).into(),
            backend: device.backend.word(),
            source: if elsewhere { Source::Remote } else { Source::Local },
            lag_ns: (facts.lag_s * SECOND) as u64,
            lag_uncertainty_ns: (facts.lag_uncertainty_s * SECOND) as u64,
        }
    }

    /// The card's name and UUID.
    pub fn names(&self) -> (String, String) {
        let device = self.card.device();
        (device.name.clone(), device.uuid.clone())
    }

    /// What the card was taken to draw at rest in its newest tick, µW.
    pub fn rest_uw(&self) -> Option<u64> {
        self.rest_uw
    }

    /// What the card is taken to draw at rest now.
    pub fn idle_floor(&self, now_ns: u64) -> Option<IdleFloor> {
        let mut neighbours = self.neighbours.clone();
        let seen = neighbours.seen(&self.card, now_ns, now_ns);
        self.floors.said(self.state(&seen, now_ns), now_ns)
    }

    /// The ticks that have been published and are due. `present`: from when to when requests were
    /// there that may be in them.
    pub fn take<P>(&mut self, now_ns: u64, present: impl Fn() -> P, into: &mut Vec<Publish>)
    where
        P: Iterator<Item = (u64, Option<u64>)>,
    {
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
        let Self { floors, card, .. } = self;
        floors.learn(|from_ns, to_ns| card.has_stayed(from_ns, to_ns));
        while let Some(stretch) = self.waiting.front().copied() {
            let Some(publish) = self.publish(stretch, now_ns, present()) else { return };
            self.waiting.pop_front();
            into.push(publish);
        }
    }

    /// A tick with what is known around it; none when it has to wait for that.
    fn publish(
        &mut self,
        stretch: Stretch,
        now_ns: u64,
        present: impl Iterator<Item = (u64, Option<u64>)>,
    ) -> Option<Publish> {
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
        let lag_ns = (facts.lag_s * SECOND) as u64;
        let seen = self.neighbours.seen(&self.card, tick.begin_ns, tick.end_ns);
        let work = if seen.is_alone() { Work::Unknown } else { self.work(tick, lag_ns, now_ns) };
        let drawn_ns = tick.end_ns.saturating_sub(lag_ns);
        let state = self.state(&seen, drawn_ns);
        // Of a card of another host it may become known only now.
        self.floors.tell(self.card.told().and_then(|told| told.idle_w));
        let idle = self.floors.at_rest(state, now_ns);
        let at_rest = idle.rest.is_some_and(|rest| tick.is_at_rest(rest));
        let around = self.neighbours.around(&seen, work, at_rest)?;
        self.rest_uw = idle.rest.map(|rest| rest.power_uw);
        let reach_ns = (facts.lag_uncertainty_s * SECOND) as u64;
        let drawn = Span {
            from_ns: tick.begin_ns.saturating_sub(lag_ns.saturating_add(reach_ns)),
            to_ns: drawn_ns.saturating_add(reach_ns),
        };
        if !tick.is_unplaced()
            && !to.flags.intersects(BROKEN)
            && !seen.is_occupied()
            && !drawn.is_occupied(present)
            && !self.card.occupancy.occupied(drawn.from_ns, drawn.to_ns, None)
        {
            let (drawn_from_ns, drawn_to_ns) = (drawn.from_ns, drawn.to_ns);
            self.floors.quiet(floor::Stretch { from, to, drawn_from_ns, drawn_to_ns, state });
        }
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
            rest: idle.rest,
            spread_uw: idle.spread_uw,
            others: around.others,
            contended_by: around.contended_by,
            flags: to.flags.without(Flags::REPEATED) | idle.flags | around.flags,
        })
    }

    /// What its floor depends on. Where the residents cannot be seen a model is taken to be there.
    fn state(&self, seen: &Seen, at_ns: u64) -> State {
        let model_loaded = seen.is_unknown() || seen.model_loaded();
        State { model_loaded, power_state: self.card.power_state(at_ns) }
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

impl Span {
    fn is_occupied(self, mut present: impl Iterator<Item = (u64, Option<u64>)>) -> bool {
        present.any(|(from_ns, to_ns)| {
            from_ns < self.to_ns && to_ns.is_none_or(|to_ns| to_ns > self.from_ns)
        })
    }
}
