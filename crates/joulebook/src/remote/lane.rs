//! One card of another host on its way into a series of ours.
//!
//! What a register's reading means was decided on its own host; here a publish becomes a point of
//! our clock, with the clocks' uncertainty on top of its own. Invariants: energy of two lives of an
//! agent is never subtracted; a total that falls within one life, or rises by more than the card
//! can draw, adds nothing and is marked; no point lies after the instant it arrived.

use std::sync::{Arc, atomic::Ordering};

use joulebook_core::{
    Energy, Fault, Flags, Power,
    register::{Kind, Modulus, Scale},
    ring::Point,
    series::{GaugeTrack, Poll, SeriesWriter},
    units::energy_over,
};

use super::Offset;
use crate::{
    card::{Card, Told, ceiling},
    profile::Lag,
    reader::{Backend, Device, Process},
    tenancy::{Family, Unseen},
    wire,
};

const MS: f64 = 1e6;
const SECOND: u64 = 1_000_000_000;
/// A stream of events is never silent for longer than a second; a card is read well until nothing
/// was heard for so long.
pub(super) const PATIENCE_NS: u64 = 3 * SECOND;
/// A card that its agent cannot read is in trouble at once.
const NO_PATIENCE_NS: u64 = 1;
/// How long a card may draw more than its ceiling until a total is not believed.
const GRACE_NS: u64 = 2 * SECOND;

/// A card that is being filled.
#[derive(Debug)]
pub(super) struct Lane {
    /// What was asked for.
    pub ask: String,
    pub card: Arc<Card>,
    /// The agent's number of the card, once that is known.
    pub gpu: Option<u32>,
    pub writer: SeriesWriter,
    last: Option<Last>,
    /// To be said of the next point.
    marks: Flags,
    /// Since when nothing was heard of the card, ns of our clock.
    lost_ns: Option<u64>,
    /// Where its power is asked for and integrated here.
    gauge: Option<GaugeTrack>,
    /// What its agent cannot read it for, and since when, ns of the agent's clock.
    hole: Option<(u64, Fault)>,
}

/// The last publish that was taken.
#[derive(Debug)]
struct Last {
    boot_id: String,
    generation: u64,
    t_ns: u64,
    energy_uj: u64,
}

/// What became of a publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// A point.
    Point,
    /// It was known.
    Known,
    /// It cannot be true.
    Refused,
}

impl Lane {
    pub fn new(ask: &str, card: Arc<Card>, writer: SeriesWriter) -> Self {
        let (ask, marks) = (ask.to_owned(), Flags::NONE);
        Self {
            ask,
            card,
            gpu: None,
            writer,
            last: None,
            marks,
            lost_ns: None,
            gauge: None,
            hole: None,
        }
    }

    /// The card as its agent describes it.
    pub fn describe(&mut self, seen: &wire::CardSeen) {
        self.gpu = Some(seen.gpu);
        let (device, known) = (device(seen), self.card.device());
        if !known.uuid.is_empty() && known.uuid != device.uuid {
            // Another card under the same number.
            self.last = None;
        }
        if *known != device {
            if let Some(elsewhere) =
                self.card.elsewhere.as_ref().filter(|_| !device.uuid.is_empty())
            {
                self.card.shelf.is_of(format!("{} {}", elsewhere.status.endpoint(), device.uuid));
            }
            self.card.set_device(device);
        }
        let told = told(seen);
        let gap_ns = told.period_ns.unwrap_or(SECOND / 10).clamp(SECOND / 1000, SECOND);
        let health = &self.card.health;
        health.gap_ns.store(gap_ns, Ordering::Relaxed);
        health.update_ns.store(told.period_ns.unwrap_or(0), Ordering::Relaxed);
        if let Some(elsewhere) = &self.card.elsewhere {
            elsewhere.set(told);
        }
        self.hole = None;
        if !seen.up {
            self.fails(fault_of(seen.error.as_deref()));
        }
    }

    /// The next point gets these marks.
    pub fn mark(&mut self, marks: Flags) {
        self.marks |= marks;
    }

    /// A publish, on the agent's clock.
    pub fn publish(&mut self, now: &wire::EnergyNow, offset: Offset, arrived_ns: u64) -> Taken {
        let uncertainty_ns = now.delta_ns.saturating_add(offset.uncertainty_ns);
        let Some(at_ns) = offset.ours(now.t_ns) else { return Taken::Refused };
        if at_ns > arrived_ns.saturating_add(uncertainty_ns) {
            return Taken::Refused;
        }
        let words = now.flags.iter().filter_map(|word| Flags::of_word(word));
        let said = words.fold(Flags::NONE, Flags::union);
        let Some((counted_uj, marks)) = self.step(now, at_ns, said) else { return Taken::Known };
        let flags = self.marks | marks | said;
        let before = self.writer.last();
        let energy_uj = before.map_or(0, |point| point.energy_uj).saturating_add(counted_uj);
        // It came before it arrived; and a better offset may put it before the point before it.
        let early_ns = at_ns.saturating_sub(arrived_ns);
        let at_ns = at_ns.min(arrived_ns);
        let raised_ns = before.map_or(0, |point| point.at_ns.saturating_sub(at_ns));
        let at_ns = at_ns.saturating_add(raised_ns);
        let uncertainty_ns = uncertainty_ns.saturating_add(raised_ns).saturating_add(early_ns);
        let mean_w = before.map_or(0.0, |point| {
            counted_uj as f64 * 1e3 / at_ns.saturating_sub(point.at_ns).max(1) as f64
        });
        let power = now.watts.and_then(Power::from_watts).or_else(|| Power::from_watts(mean_w));
        if let Some(elsewhere) = &self.card.elsewhere {
            elsewhere.moved(at_ns, offset);
        }
        self.writer.push(Point {
            at_ns,
            energy_uj,
            power_uw: power.map_or(0, Power::microwatts),
            uncertainty_ns: u32::try_from(uncertainty_ns).unwrap_or(u32::MAX),
            flags,
        });
        self.marks = Flags::NONE;
        self.gauge = None;
        self.last = Some(Last {
            boot_id: now.boot_id.clone(),
            generation: now.generation,
            t_ns: now.t_ns,
            energy_uj: now.energy_uj,
        });
        let health = &self.card.health;
        if flags.intersects(Flags::GAP | Flags::BRIDGED | Flags::HOLE) {
            health.gaps.fetch_add(1, Ordering::Relaxed);
        }
        if flags.intersects(Flags::COUNTER_RESET | Flags::COUNTER_SET) {
            health.resets.fetch_add(1, Ordering::Relaxed);
        }
        health.still_ns.store(0, Ordering::Relaxed);
        match self.hole {
            // It came before the card could not be read any more, and is only told now.
            Some((from_ns, fault)) if now.t_ns <= from_ns => self.fails(fault),
            _ => {
                self.hole = None;
                self.heard(arrived_ns);
            }
        }
        Taken::Point
    }

    /// What a publish adds to the one before, µJ, and what is to be said of it; `None` for one that
    /// was taken already.
    fn step(&mut self, now: &wire::EnergyNow, at_ns: u64, said: Flags) -> Option<(u64, Flags)> {
        let Some(before) = self.writer.last() else { return Some((0, Flags::NONE)) };
        // It was read as a gauge of ours before.
        let Some(last) = &self.last else { return Some((0, Flags::GAP)) };
        if last.boot_id != now.boot_id {
            // Two lives have nothing in common.
            return Some((0, Flags::COUNTER_RESET | Flags::GAP));
        }
        let moved = self.marks.contains(Flags::CLOCK_SKEW);
        if now.t_ns <= last.t_ns && last.generation == now.generation && !moved {
            return None;
        }
        let Some(counted_uj) = now.energy_uj.checked_sub(last.energy_uj) else {
            return Some((0, Flags::COUNTER_RESET | Flags::GAP));
        };
        let elapsed_ns = at_ns.saturating_sub(before.at_ns).saturating_add(GRACE_NS);
        let most = energy_over(ceiling(&self.card.device()), elapsed_ns);
        if Energy::from_microjoules(counted_uj) > most {
            return Some((0, Flags::COUNTER_SET | Flags::GAP));
        }
        if now.t_ns.saturating_sub(last.t_ns) <= 3 * self.card.period_ns() {
            // It follows on the one before: nothing was missed.
            self.marks = self.marks.without(Flags::HOLE);
        }
        let again = last.generation != now.generation
            && !said.intersects(Flags::COUNTER_RESET | Flags::COUNTER_SET);
        Some((counted_uj, if again { Flags::COUNTER_RESET | Flags::GAP } else { Flags::NONE }))
    }

    /// The last publish taken of that life of the agent, on its clock.
    pub fn taken_ns(&self, boot_id: &str) -> Option<u64> {
        self.last.as_ref().filter(|last| last.boot_id == boot_id).map(|last| last.t_ns)
    }

    /// The agent lives, and had nothing new to say of the card: silence is silence.
    pub fn silent(&self, arrived_ns: u64) {
        let health = &self.card.health;
        if health.patience_ns.load(Ordering::Relaxed) == PATIENCE_NS {
            health.good_ns.store(arrived_ns, Ordering::Relaxed);
        }
        if let Some(last) = self.writer.last() {
            let still_ns = arrived_ns.saturating_sub(last.at_ns);
            health.still_ns.store(still_ns, Ordering::Relaxed);
        }
    }

    fn heard(&mut self, arrived_ns: u64) {
        let health = &self.card.health;
        health.patience_ns.store(PATIENCE_NS, Ordering::Relaxed);
        // What is to be said if nothing more is heard.
        health.set_fault(Some(Fault::Timeout));
        health.good_ns.store(arrived_ns, Ordering::Relaxed);
        health.polls.fetch_add(1, Ordering::Relaxed);
        self.lost_ns = None;
        self.card.ring();
    }

    /// Its agent cannot read it since then, ns of the agent's clock.
    pub fn hole(&mut self, fault: Fault, from_ns: Option<u64>) {
        self.hole = from_ns.map(|from_ns| (from_ns, fault));
        self.fails(fault);
    }

    /// True while its agent cannot read it.
    pub const fn is_in_hole(&self) -> bool {
        self.hole.is_some()
    }

    /// Its agent cannot read it.
    pub fn fails(&mut self, fault: Fault) {
        let health = &self.card.health;
        health.set_fault(Some(fault));
        health.patience_ns.store(NO_PATIENCE_NS, Ordering::Relaxed);
        health.polls.fetch_add(1, Ordering::Relaxed);
        health.rejected.fetch_add(1, Ordering::Relaxed);
        self.mark(Flags::HOLE);
        self.card.ring();
    }

    /// A publish or an answer that cannot be true.
    pub fn refuse(&self, fault: Fault) {
        let health = &self.card.health;
        health.polls.fetch_add(1, Ordering::Relaxed);
        health.rejected.fetch_add(1, Ordering::Relaxed);
        health.set_fault(Some(fault));
    }

    /// The connection is lost. What was heard stays good for a while; the counter's next publish
    /// spans what is missed.
    pub fn lose(&mut self, fault: Fault, now_ns: u64) {
        let good_ns = self.card.health.good_ns.load(Ordering::Relaxed);
        self.refuse(if good_ns > 0 && fault == Fault::Absent { Fault::AccessLost } else { fault });
        self.lost_ns.get_or_insert(now_ns);
        if self.last.is_some() {
            self.mark(Flags::HOLE);
        }
        self.card.ring();
    }

    /// Who is on the card.
    pub fn residents(&mut self, residents: &wire::Residents, offset: Offset, arrived_ns: u64) {
        let from_ns = offset.ours(residents.from_ns).unwrap_or(0).min(arrived_ns);
        // Who was there meanwhile nobody knows.
        if let Some(lost_ns) = self.lost_ns.filter(|lost_ns| *lost_ns < from_ns) {
            let unseen = Err(Unseen::from(Fault::AccessLost));
            self.card.note_family(lost_ns, unseen, Family::default());
        }
        let seen = match &residents.processes {
            Some(processes) => Ok(processes.clone()),
            None => Err(unseen(residents.error.as_deref())),
        };
        self.card.note_family(from_ns, seen, Family::told(residents.family.clone()));
    }

    /// From now on its power is asked for.
    pub fn asks(&mut self, interval_ns: u64) {
        let health = &self.card.health;
        health.gap_ns.store(interval_ns, Ordering::Relaxed);
        health.patience_ns.store(0, Ordering::Relaxed);
        if self.last.take().is_some() {
            self.mark(Flags::GAP);
        }
    }

    /// A reading of its power. One after a pause that is not too long bridges it.
    pub fn power(
        &mut self,
        poll: Poll,
        power: Power,
        gap_ns: u64,
        marks: Flags,
    ) -> Result<(), Fault> {
        let energy_uj = self.writer.last().map_or(0, |point| point.energy_uj);
        let track = self.gauge.get_or_insert_with(|| GaugeTrack::going_on(gap_ns, energy_uj));
        track.learn(gap_ns);
        // The holes of a gauge are told by its own readings.
        let marks = marks | self.marks.without(Flags::HOLE);
        track.reading_within(poll, power, marks, &mut self.writer)?;
        (self.marks, self.lost_ns) = (Flags::NONE, None);
        Ok(())
    }

    /// Who is on the card, by an agent that says it with each reading and cannot say that it does
    /// not know: an empty list may be either.
    pub fn apps(&self, apps: Option<Vec<Process>>, now_ns: u64) {
        let seen = apps.filter(|apps| !apps.is_empty());
        let seen = seen.ok_or(Unseen::from(Fault::Unknown));
        self.card.note_family(now_ns, seen, Family::default());
    }
}

fn device(seen: &wire::CardSeen) -> Device {
    let quantum = Energy::from_microjoules((seen.quantum_joules.unwrap_or(0.0) * 1e6) as u64);
    let positive = |value: f64| (value.is_finite() && value >= 0.0).then_some(value);
    let register = if seen.counter {
        Kind::Counter { scale: Scale::MICROJOULES, modulus: Modulus::None, quantum }
    } else {
        let averaging_ns = seen.averaging_s.and_then(positive).map(|s| (s * 1e9) as u64);
        Kind::Gauge { averaging_ns }
    };
    Device {
        index: seen.gpu,
        uuid: seen.uuid.clone(),
        pci: seen.pci.clone(),
        name: seen.name.clone(),
        driver: seen.driver.clone(),
        backend: Backend::RemoteAgent,
        scope: of_word(&seen.scope).unwrap_or_default(),
        register,
        limit: seen.limit_watts.and_then(Power::from_watts),
        consumer: false,
    }
}

fn told(seen: &wire::CardSeen) -> Told {
    let positive = |value: f64| (value.is_finite() && value >= 0.0).then_some(value);
    let ms = |value: Option<f64>| value.and_then(positive).map(|ms| ms * MS);
    let lag_s = |value: Option<f64>| ms(value).map(|ns| ns / 1e9);
    Told {
        reads: Some(seen.backend.clone()),
        period_ns: ms(seen.period_ms).map(|ns| ns as u64).filter(|period_ns| *period_ns > 0),
        lag: lag_s(seen.lag_ms)
            .zip(lag_s(seen.lag_uncertainty_ms))
            .map(|(value, uncertainty)| Lag { value, uncertainty }),
        deepest_w: seen.deepest_watts.and_then(positive),
        idle_w: seen.idle_watts.and_then(positive),
        idle_from: seen.idle_from.clone(),
    }
}

/// The failure of that word.
pub(super) fn fault_of(word: Option<&str>) -> Fault {
    word.and_then(of_word).unwrap_or(Fault::Unknown)
}

fn of_word<T: serde::de::DeserializeOwned>(word: &str) -> Option<T> {
    serde_json::from_value(serde_json::Value::String(word.to_owned())).ok()
}

fn unseen(word: Option<&str>) -> Unseen {
    const HIDING: [&str; 2] = ["pid_namespace", "unlisted"];
    let hidden_by = HIDING.into_iter().find(|hiding| Some(*hiding) == word);
    let fault = if hidden_by.is_some() { Fault::Permission } else { fault_of(word) };
    Unseen { fault, hidden_by }
}
