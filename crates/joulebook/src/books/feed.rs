//! From a card's series to ticks for its book: the interval between two points, with what is known
//! around it (floor, tenants, how far the publish may be off).
//!
//! Ticks go on in their order, each as soon as what is to be known around it is known: with a tenant
//! beside us that is when it has been told who was at work, about a second later, and never more than
//! [`LONGEST_WAIT_NS`]; a long tick waits for the gauge that it is cut by. A tick whose points are not neighbours any more (the owner came too late for
//! the ring), or whose end is marked as a gap, is counted but not placed.

mod cut;
mod floor;
mod neighbours;

use std::{collections::VecDeque, sync::Arc};

use cut::{Limits, Shaped, cut};
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
    recorder::SLOW_NS,
};

const SECOND: f64 = 1e9;
/// A tick waits so long after its end for what is known around it; then it goes without.
const LONGEST_WAIT_NS: u64 = 3_000_000_000;
/// The same for what the gauge shows of it.
const SHAPE_WAIT_NS: u64 = 1_000_000_000;
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
    pub fn take<P>(&mut self, now_ns: u64, present: impl Fn() -> P + Copy, into: &mut Vec<Publish>)
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
            let Some((publish, shaped)) = self.publish(stretch, now_ns, present()) else { return };
            self.waiting.pop_front();
            self.cut(publish, shaped, present, into);
        }
    }

    /// A tick with what is known around it; none when it has to wait for that.
    fn publish(
        &mut self,
        stretch: Stretch,
        now_ns: u64,
        present: impl Iterator<Item = (u64, Option<u64>)>,
    ) -> Option<(Publish, Shaped)> {
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
        let shaped = self.shaped(tick, lag_ns, now_ns);
        if shaped == Shaped::Pending {
            return None;
        }
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
        let publish = Publish {
            tick,
            edge_uj: (edge_j * 1e6) as u64,
            rest: idle.rest,
            spread_uw: idle.spread_uw,
            others: around.others,
            contended_by: around.contended_by,
            flags: to.flags.without(Flags::REPEATED) | idle.flags | around.flags,
        };
        Some((publish, shaped))
    }

    /// What the gauge shows of a long tick.
    fn shaped(&self, tick: Tick, lag_ns: u64, now_ns: u64) -> Shaped {
        let is_cut = !tick.is_unplaced() && tick.length_ns() >= SLOW_NS;
        let Some(shape) = self.card.shape().filter(|_| is_cut) else { return Shaped::Unknown };
        let drawn = |at_ns: u64| at_ns.saturating_sub(lag_ns);
        match Shaped::of(shape, drawn(tick.begin_ns), drawn(tick.end_ns)) {
            Shaped::Pending if tick.end_ns.saturating_add(SHAPE_WAIT_NS) <= now_ns => {
                Shaped::Unknown
            }
            shaped => shaped,
        }
    }

    /// A tick as one publish, or as several where its shape is known and requests were there.
    fn cut<P>(
        &self,
        publish: Publish,
        shaped: Shaped,
        present: impl Fn() -> P,
        into: &mut Vec<Publish>,
    ) where
        P: Iterator<Item = (u64, Option<u64>)>,
    {
        let Shaped::Knots(knots) = shaped else { return into.push(publish) };
        let facts = self.card.facts();
        let lag_ns = (facts.lag_s * SECOND) as u64;
        let limits = Limits { least_w: facts.deepest_w, most_w: facts.ceiling_w };
        let present: Vec<_> = present().collect();
        let pieces = cut(publish.tick.counted_uj, &knots, publish.rest, &present, limits);
        let Some(pieces) = pieces else { return into.push(publish) };
        let mut begin_ns = publish.tick.begin_ns;
        let last = pieces.len().saturating_sub(1);
        for (number, piece) in pieces.into_iter().enumerate() {
            let end_ns = if number == last {
                publish.tick.end_ns
            } else {
                piece.end_ns.saturating_add(lag_ns)
            };
            let tick = Tick { begin_ns, end_ns, counted_uj: piece.counted_uj, unplaced: false };
            let edge_uj = publish.edge_uj.saturating_add(piece.error_uj);
            into.push(Publish { tick, edge_uj, ..publish.clone() });
            begin_ns = end_ns;
        }
    }

    /// What its floor depends on. Where the residents cannot be seen a model is taken to be there.
    fn state(&self, seen: &Seen, at_ns: u64) -> State {
        let model_loaded = seen.is_unknown() || seen.model_loaded();
        State { model_loaded, power_state: self.card.power_state(at_ns) }
    }

    /// Who was at work while its energy was drawn.
    fn work(&self, tick: Tick, lag_ns: u64, now_ns: u64) -> Work {
        // The agents of other hosts do not tell.
        if self.card.elsewhere.is_some() {
            return Work::Unknown;
        }
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
