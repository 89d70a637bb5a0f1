//! What a card is taken to draw at rest, followed while it serves.
//!
//! A floor is a state, not a constant: it is kept by power state and by whether one of our processes
//! holds a model. Declared wins; else it is learnt from the quiet ticks of the last ten minutes; else
//! it is the one that was stored on request. What has been learnt stays until something newer is, and
//! is marked stale when nothing of the last ten minutes speaks for it. A floor of another power state
//! stands in where the present one has not been seen at rest, marked as suspect.
//!
//! Quiet ticks are taken together until the instants of their publishes matter little: of a short
//! tick they say more about the polls than about the card. And they teach only when a later look has
//! found the card in the same state: in which state a tick between two looks was is not known before.
//!
//! Refused: what a card drew while somebody was or may have been at work; a floor without a model for
//! a card that holds one, but for one that was stored.

use std::collections::{BTreeMap, VecDeque};

use joulebook_core::{
    Flags, Power,
    idle::{Floor, Quiet, REMEMBERED_NS, Tick},
    ledger::settle::Rest,
    ring::Point,
};

use crate::{
    books::trial::{FloorFrom, IdleFloor},
    card::Card,
    clock::unix_ns,
    profile,
};

const SECOND_NS: u64 = 1_000_000_000;
/// Stretches that wait for a look: ten a second of one that hangs for long.
const MOST_PENDING: usize = 1024;
/// A stretch is so long, or so many times as long as its ends are uncertain.
const SHORTEST_NS: u64 = 100_000_000;
const CERTAINTY: u64 = 20;

/// A card's state, as far as floors depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct State {
    pub model_loaded: bool,
    pub power_state: Option<u8>,
}

/// A card's floors.
#[derive(Debug, Default)]
pub(super) struct Floors {
    declared_uw: Option<u64>,
    /// Without and with a model.
    stored: [Option<Known>; 2],
    /// By the word of its host's agent.
    told_uw: Option<u64>,
    /// By power state.
    quiet: BTreeMap<Option<u8>, Quiet>,
    learnt: BTreeMap<State, Learnt>,
    /// The quiet ticks that are being taken together.
    stretch: Option<Stretch>,
    /// Stretches that no look has come after.
    pending: VecDeque<Stretch>,
}

/// Time in which nobody was or may have been at work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    pub from: Point,
    pub to: Point,
    /// When its energy was drawn, at most, ns.
    pub drawn_from_ns: u64,
    pub drawn_to_ns: u64,
    pub state: State,
}

/// A floor that was learnt.
#[derive(Clone, Copy, Debug)]
struct Learnt {
    floor: Floor,
    /// The last quiet tick behind it, and when it was worked out, ns.
    seen_ns: u64,
    found_ns: u64,
}

/// A floor in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    power_uw: u64,
    spread_uw: u64,
    from: FloorFrom,
    ticks: Option<usize>,
    /// When it was seen last (learnt: ns of the clock; stored: s since 1970).
    seen: u64,
    flags: Flags,
}

/// What goes with a tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AtRest {
    pub rest: Option<Rest>,
    pub spread_uw: u64,
    pub flags: Flags,
}

impl Floors {
    /// Of a card: what was declared of it, and what is stored.
    pub fn of(card: &Card, declared: Option<f64>) -> Self {
        let stored = |loaded| card.profile().floor(card.scope(), loaded).and_then(Known::stored);
        Self {
            declared_uw: declared.and_then(microwatts),
            stored: [false, true].map(stored),
            ..Self::default()
        }
    }

    /// What the agent of the card's host says it draws at rest, W.
    pub fn tell(&mut self, watts: Option<f64>) {
        self.told_uw = watts.and_then(microwatts);
    }

    /// A tick in which nobody was or may have been at work.
    pub fn quiet(&mut self, tick: Stretch) {
        let whole = match self.stretch {
            Some(so_far) if so_far.to == tick.from && so_far.state == tick.state => {
                Stretch { to: tick.to, drawn_to_ns: tick.drawn_to_ns, ..so_far }
            }
            _ => tick,
        };
        self.stretch = Some(whole);
        if whole.is_long() {
            self.stretch = None;
            if self.pending.len() == MOST_PENDING {
                self.pending.pop_front();
            }
            self.pending.push_back(whole);
        }
    }

    /// Learns from the ticks that a look has come after. `has_stayed`: whether the card's state was
    /// the same from one instant on until after another; none as long as that is not known.
    pub fn learn(&mut self, has_stayed: impl Fn(u64, u64) -> Option<bool>) {
        while let Some(stretch) = self.pending.front().copied() {
            let (from_ns, to_ns) = (stretch.drawn_from_ns, stretch.drawn_to_ns);
            let Some(stayed) = has_stayed(from_ns, to_ns) else { return };
            self.pending.pop_front();
            if stayed && let Some(power) = stretch.power() {
                self.take(stretch.state, to_ns, power);
            }
        }
    }

    fn take(&mut self, state: State, to_ns: u64, power: Power) {
        let tick = Tick { to_ns, power, occupied: false, model_loaded: state.model_loaded };
        let quiet = self.quiet.entry(state.power_state).or_default();
        quiet.tick(tick);
        let due = |learnt: &Learnt| tick.to_ns.saturating_sub(learnt.found_ns) >= SECOND_NS;
        let known = self.learnt.get_mut(&state);
        // A median of thousands of ticks, so not at each.
        if known.as_deref().is_none_or(due) {
            if let Ok(floor) = quiet.floor(state.model_loaded, tick.to_ns) {
                let learnt = Learnt { floor, seen_ns: tick.to_ns, found_ns: tick.to_ns };
                self.learnt.insert(state, learnt);
            }
        } else if let Some(known) = known {
            known.seen_ns = tick.to_ns;
        }
    }

    /// What the card draws at rest in a state, as of `now_ns`.
    pub fn at_rest(&self, state: State, now_ns: u64) -> AtRest {
        let Some(known) = self.known(state, now_ns) else { return AtRest::default() };
        let off_uw = self.off(state.power_state, now_ns).map(|off| off.power_uw);
        // With a model a card draws no less than without.
        let off_uw = off_uw.filter(|off_uw| !state.model_loaded || *off_uw < known.power_uw);
        let rest = Rest { power_uw: known.power_uw, off_uw, model_loaded: state.model_loaded };
        AtRest { rest: Some(rest), spread_uw: known.spread_uw, flags: known.flags }
    }

    /// The same for people.
    pub fn said(&self, state: State, now_ns: u64) -> Option<IdleFloor> {
        let known = self.known(state, now_ns)?;
        let watts = |uw: u64| Power::from_microwatts(uw).watts();
        let age_seconds = match known.from {
            FloorFrom::Declared | FloorFrom::Told => None,
            FloorFrom::Learnt => Some(now_ns.saturating_sub(known.seen) as f64 / 1e9),
            FloorFrom::Stored => Some(unix_s(now_ns).saturating_sub(known.seen) as f64),
        };
        Some(IdleFloor {
            watts: watts(known.power_uw),
            spread_watts: watts(known.spread_uw),
            from: known.from,
            model_loaded: state.model_loaded,
            power_state: state.power_state,
            ticks: known.ticks,
            age_seconds,
            off_watts: self.off(state.power_state, now_ns).map(|off| watts(off.power_uw)),
            flags: known.flags,
        })
    }

    fn known(&self, state: State, now_ns: u64) -> Option<Known> {
        if let Some(power_uw) = self.declared_uw {
            return Some(Known::declared(power_uw));
        }
        let [off, loaded] = self.stored(now_ns);
        let stored = if state.model_loaded { loaded.or(off) } else { off.or(loaded) };
        let told = || Some(Known { from: FloorFrom::Told, ..Known::declared(self.told_uw?) });
        self.learnt(state, now_ns).or(stored).or_else(told)
    }

    /// What it draws without a model.
    fn off(&self, power_state: Option<u8>, now_ns: u64) -> Option<Known> {
        let [stored, _] = self.stored(now_ns);
        self.learnt(State { model_loaded: false, power_state }, now_ns).or(stored)
    }

    fn stored(&self, now_ns: u64) -> [Option<Known>; 2] {
        let now_s = unix_s(now_ns);
        let marked = |known: Known| {
            let stale = now_s.saturating_sub(known.seen) > profile::STALE_S;
            Known { flags: if stale { Flags::BASELINE_STALE } else { Flags::NONE }, ..known }
        };
        self.stored.map(|known| known.map(marked))
    }

    fn learnt(&self, state: State, now_ns: u64) -> Option<Known> {
        let of_model = || {
            let fits = |(of, _): &(&State, &Learnt)| of.model_loaded == state.model_loaded;
            self.learnt.iter().filter(fits).max_by_key(|(_, learnt)| learnt.seen_ns)
        };
        let (learnt, mut flags) = match self.learnt.get(&state) {
            Some(learnt) => (learnt, Flags::NONE),
            None => (of_model()?.1, Flags::BASELINE_SUSPECT),
        };
        if now_ns.saturating_sub(learnt.seen_ns) > REMEMBERED_NS {
            flags |= Flags::BASELINE_STALE;
        }
        Some(Known {
            power_uw: learnt.floor.power.microwatts(),
            spread_uw: learnt.floor.spread.microwatts(),
            from: FloorFrom::Learnt,
            ticks: Some(learnt.floor.ticks),
            seen: learnt.seen_ns,
            flags,
        })
    }
}

impl Stretch {
    fn length_ns(&self) -> u64 {
        self.to.at_ns.saturating_sub(self.from.at_ns)
    }

    /// The instants of its ends matter little.
    fn is_long(&self) -> bool {
        let open_ns = u64::from(self.from.uncertainty_ns) + u64::from(self.to.uncertainty_ns);
        self.length_ns() >= SHORTEST_NS.max(CERTAINTY * open_ns)
    }

    fn power(&self) -> Option<Power> {
        let counted_uj = self.to.energy_uj.saturating_sub(self.from.energy_uj);
        let power_uw = (u128::from(counted_uj) * u128::from(SECOND_NS))
            .checked_div(u128::from(self.length_ns()))?;
        u64::try_from(power_uw).ok().map(Power::from_microwatts)
    }
}

impl Known {
    const fn declared(power_uw: u64) -> Self {
        Self {
            power_uw,
            spread_uw: 0,
            from: FloorFrom::Declared,
            ticks: None,
            seen: 0,
            flags: Flags::NONE,
        }
    }

    fn stored(floor: &profile::Floor) -> Option<Self> {
        Some(Self {
            spread_uw: microwatts(floor.spread_watts).unwrap_or(0),
            from: FloorFrom::Stored,
            seen: floor.unix_s,
            ..Self::declared(microwatts(floor.watts)?)
        })
    }
}

pub(super) fn microwatts(watts: f64) -> Option<u64> {
    Power::from_watts(watts).map(Power::microwatts)
}

fn unix_s(at_ns: u64) -> u64 {
    u64::try_from(unix_ns(at_ns) / u128::from(SECOND_NS)).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "floor_tests.rs"]
mod tests;
