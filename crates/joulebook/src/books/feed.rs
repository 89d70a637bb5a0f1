//! From a card's series to ticks for its book: the interval between two points, with what is known
//! around it (floor, tenants, how far the publish may be off).
//!
//! A tick whose points are not neighbours any more (the owner came too late for the ring), or whose
//! end is marked as a gap, is counted but not placed.

use std::sync::Arc;

use joulebook_core::{
    Flags, Power,
    keeper::{CardFacts, Publish},
    ledger::settle::{Others, Rest, Tick},
    measurement::Source,
    ring::Point,
};

use crate::{
    card::Card,
    meter::{Inner, Meter},
    tenancy::{Rules, Tenancy, Verdict, decide},
};

const SECOND: f64 = 1e9;

/// A card on its way into its book.
pub(super) struct Feed {
    card: Arc<Card>,
    /// Its place in its meter.
    number: usize,
    meter: Arc<Inner>,
    rules: Rules,
    lenient: bool,
    rest: Option<Rest>,
    spread_uw: u64,
    /// Marks that go with the floor.
    marks: Flags,
    /// Number of the next point, and the last one taken.
    next: u64,
    last: Option<Point>,
    /// Points between them are gone.
    lost: bool,
    /// The tenants as judged last, and from when on that holds.
    judged: Option<(u64, Verdict)>,
}

impl Feed {
    /// The cards of a meter, from their newest points on.
    pub fn of(meter: &Meter, lenient: bool) -> Vec<Self> {
        let feed = |(number, card): (usize, &Arc<Card>)| {
            let next = card.series.pushed();
            let last = next.checked_sub(1).and_then(|last| card.series.point(last));
            Self {
                card: Arc::clone(card),
                number,
                rules: meter.inner.rules.get(number).cloned().unwrap_or_default(),
                lenient,
                rest: None,
                spread_uw: 0,
                marks: meter.inner.flags,
                meter: Arc::clone(&meter.inner),
                next,
                last,
                lost: false,
                judged: None,
            }
        };
        meter.inner.cards.iter().enumerate().map(feed).collect()
    }

    /// The card's floor: looked for until it is known, which for a card of another host may be
    /// after its books were opened.
    fn look_for_rest(&mut self) {
        if self.rest.is_some() {
            return;
        }
        let floor = self.meter.floor_w(self.number);
        let profile = self.card.profile();
        let off = profile.floor(self.card.scope(), false);
        let stored = profile.resting(self.card.scope()).filter(|it| Some(it.watts) == floor);
        let microwatts = |watts: f64| Power::from_watts(watts).map(Power::microwatts);
        self.spread_uw = stored.and_then(|it| microwatts(it.spread_watts)).unwrap_or(0);
        self.rest = floor.and_then(microwatts).map(|power_uw| Rest {
            power_uw,
            off_uw: off.and_then(|off| microwatts(off.watts)).filter(|off_uw| *off_uw < power_uw),
            model_loaded: true,
        });
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

    /// The ticks that have been published since the last look.
    pub fn take(&mut self, mut into: impl FnMut(Publish)) {
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
                into(self.publish(last, point));
            }
        }
    }

    fn publish(&mut self, from: Point, to: Point) -> Publish {
        self.look_for_rest();
        let facts = self.card.facts();
        let lost = std::mem::take(&mut self.lost);
        // Two points of one instant (a register that restarted between two polls) are a tick all
        // the same: of a nanosecond.
        let begin_ns = from.at_ns.min(to.at_ns.saturating_sub(1));
        let (others, contended_by, foreign) = self.others(begin_ns, to.at_ns);
        let edge_s = match facts.averaging_s {
            // A gauge's edges: what its averaging and its updates hide.
            Some(averaging_s) => averaging_s + facts.period_s,
            None => f64::from(to.uncertainty_ns) / SECOND,
        };
        let swing_w = (facts.ceiling_w - facts.deepest_w).max(0.0);
        let edge_j = edge_s * facts.ceiling_w + facts.lag_uncertainty_s * swing_w + facts.quantum_j;
        Publish {
            tick: Tick {
                begin_ns,
                end_ns: to.at_ns,
                counted_uj: to.energy_uj.saturating_sub(from.energy_uj),
                unplaced: lost || to.flags.contains(Flags::GAP),
            },
            edge_uj: (edge_j * 1e6) as u64,
            rest: self.rest,
            spread_uw: self.spread_uw,
            others,
            contended_by,
            flags: to.flags.without(Flags::REPEATED) | self.marks | foreign,
        }
    }

    /// Who else was there: anybody at any instant of the tick.
    fn others(&mut self, from_ns: u64, to_ns: u64) -> (Others, Option<Arc<str>>, Flags) {
        let states = self.card.residents(from_ns, to_ns);
        let mut flags = if states.is_empty() { Flags::TENANCY_UNKNOWN } else { Flags::NONE };
        let mut names: Vec<String> = Vec::new();
        for state in states {
            let verdict = match &self.judged {
                Some((judged_ns, verdict)) if *judged_ns == state.from_ns => verdict.clone(),
                _ => {
                    let seen = state.seen.as_ref().as_ref();
                    let seen = seen.map(Vec::as_slice).map_err(|unseen| *unseen);
                    decide(seen, &self.rules, &*state.family)
                }
            };
            match &verdict.tenancy {
                Tenancy::Alone => {}
                Tenancy::Foreign(others) => names.extend(others.iter().cloned()),
                Tenancy::Unknown(_) => flags |= Flags::TENANCY_UNKNOWN,
            }
            self.judged = Some((state.from_ns, verdict));
        }
        if names.is_empty() {
            return (Others::Nobody, None, flags);
        }
        names.sort();
        names.dedup();
        let others = if self.lenient { Others::Lenient } else { Others::Unresolved };
        (others, Some(names.join(", ").into()), flags | Flags::FOREIGN)
    }
}
