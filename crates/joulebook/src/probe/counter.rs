//! Reads a card's energy counter at all rates, one after the other, and keeps what was published.

use std::{thread, time::Duration};

use joulebook_core::{
    Energy, Fault,
    register::{Bracket, Kind, Register, Step},
    series::Poll,
};

use super::{
    Readable,
    publish::{Renewal, renewal},
};
use crate::{
    card::ceiling,
    clock::now_ns,
    pace::Pace,
    reader::{Reader, Value},
};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;
/// Between two reads when a register is read as fast as it may be: 150 a second.
const FAST_NS: u64 = SECOND / 150;
/// A publish period before it is known.
const ASSUMED_PERIOD_NS: u64 = 100 * MS;
/// A register that has not moved for so long does not move.
const STILL_NS: u64 = 3 * SECOND;
/// Changes that show a period, and how long they are waited for.
const CHANGES: usize = 6;
const PATIENCE_NS: u64 = 8 * SECOND;
/// Polls in a row that may fail before a register is given up.
const FAILURES: usize = 50;

/// A publish of the counter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub at: Bracket,
    /// Energy since the watch began, µJ.
    pub energy_uj: u64,
    /// Reads so far.
    pub reads: u64,
}

/// A stretch in which the counter was read at one rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leg {
    Locked,
    Quick,
    Slow,
}

/// The counter while it is watched.
pub(super) struct CounterWatch<'a, R: Reader> {
    reader: &'a mut R,
    register: Register,
    samples: CounterSamples,
    last_ns: u64,
    failures: usize,
}

/// What the counter showed.
#[derive(Debug, Default)]
pub(super) struct CounterSamples {
    pub publishes: Vec<Edge>,
    pub resets: u32,
    pub took: Duration,
    reads: u64,
    energy_uj: u64,
    newest: Option<u64>,
    calls_ns: Vec<u64>,
    fault: Option<Fault>,
    renewal: Option<Renewal>,
    legs: Vec<(Leg, Edge, Edge)>,
}

impl<'a, R: Reader> CounterWatch<'a, R> {
    /// Watches it at all rates, one after the other.
    pub(super) fn run(reader: &'a mut R, length: Duration) -> CounterSamples {
        let device = reader.device();
        let Kind::Counter { scale, modulus, .. } = device.register else {
            return CounterSamples { fault: Some(Fault::NotSupported), ..Default::default() };
        };
        let register = Register::new(scale, modulus, ceiling(&device), ASSUMED_PERIOD_NS);
        let samples = CounterSamples::default();
        let begin_ns = now_ns();
        let mut watch = Self { reader, register, samples, last_ns: begin_ns, failures: 0 };
        // Fails where the register cannot be read or does not move: nothing more to see then.
        let _ = watch.all_legs(begin_ns, u64::try_from(length.as_nanos()).unwrap_or(u64::MAX));
        watch.samples.took = Duration::from_nanos(now_ns().saturating_sub(begin_ns));
        watch.samples
    }

    fn all_legs(&mut self, begin_ns: u64, length_ns: u64) -> Option<()> {
        let share = |parts: u64| length_ns / 20 * parts;
        self.find(begin_ns + share(3))?;
        let found = self.renewal(FAST_NS)?;
        let period_ns = (found.period_s * SECOND as f64) as u64;
        let first = self.newest()?;
        self.locked(period_ns, begin_ns + share(8))?;
        let locked = self.newest()?;
        let since = |edge: Edge, edges: &[Edge]| {
            let seen = edges.iter().filter(|other| other.at.by_ns >= edge.at.by_ns);
            seen.map(|other| other.at).collect::<Vec<_>>()
        };
        // In step with the publishes each is known more closely; where the steps were lost, or are
        // too short for it, what the fast reads showed stands.
        let closer = renewal(&since(first, &self.samples.publishes), FAST_NS);
        self.samples.renewal = closer.filter(|_| 8 * period_ns >= 23 * FAST_NS).or(Some(found));
        self.samples.legs.push((Leg::Locked, first, locked));
        let quick = self.paced(100 * MS, share(6).max(2 * SECOND), period_ns)?;
        self.samples.legs.push((Leg::Quick, locked, quick));
        let quick = Edge { reads: self.samples.reads, ..quick };
        let slow = self.paced(SECOND, share(6).max(2 * SECOND), period_ns)?;
        self.samples.legs.push((Leg::Slow, quick, slow));
        Some(())
    }

    /// As fast as may be, until the period shows.
    fn find(&mut self, until_ns: u64) -> Option<()> {
        let begin_ns = now_ns();
        loop {
            self.read_at(self.last_ns + FAST_NS)?;
            let now = now_ns();
            let moved_ns = self.newest().map_or(begin_ns, |edge| edge.at.by_ns);
            if now.saturating_sub(moved_ns) > STILL_NS {
                return None;
            }
            let enough = self.samples.publishes.len() >= CHANGES || now - begin_ns > PATIENCE_NS;
            if now >= until_ns && enough {
                return Some(());
            }
        }
    }

    /// In step with its publishes.
    fn locked(&mut self, period_ns: u64, until_ns: u64) -> Option<()> {
        let mut pace = Pace::for_period(period_ns);
        // A few publishes at least, if the period is long.
        let until_ns = until_ns.max(now_ns() + 4 * period_ns).max(self.last_ns + SECOND);
        while now_ns() < until_ns {
            let before = self.samples.publishes.len();
            self.read_at(pace.next_ns(self.last_ns))?;
            for edge in self.samples.publishes.get(before..).unwrap_or_default() {
                pace.published(edge.at);
            }
        }
        self.anchor(period_ns)
    }

    /// At a fixed gap, from the last publish to one that is seen as closely; that one.
    fn paced(&mut self, gap_ns: u64, for_ns: u64, period_ns: u64) -> Option<Edge> {
        let until_ns = now_ns() + for_ns;
        while self.last_ns + gap_ns < until_ns {
            self.read_at(self.last_ns + gap_ns)?;
        }
        self.read_at(until_ns)?;
        let reads = self.samples.reads;
        self.anchor(period_ns)?;
        Some(Edge { reads, ..self.newest()? })
    }

    /// Fast reads until a publish falls between two of them.
    fn anchor(&mut self, period_ns: u64) -> Option<()> {
        let begin_ns = now_ns();
        let patience_ns = (3 * period_ns).max(STILL_NS / 3);
        self.read_at(self.last_ns + FAST_NS)?;
        let before = self.samples.publishes.len();
        while self.samples.publishes.len() == before {
            if now_ns().saturating_sub(begin_ns) > patience_ns {
                return None;
            }
            self.read_at(self.last_ns + FAST_NS)?;
        }
        Some(())
    }

    fn read_at(&mut self, at_ns: u64) -> Option<()> {
        let wait_ns = at_ns.saturating_sub(now_ns());
        thread::sleep(Duration::from_nanos(wait_ns));
        let begin_ns = now_ns();
        let reading = self.reader.read();
        let end_ns = now_ns();
        let poll = Poll::between(begin_ns, end_ns);
        self.last_ns = poll.at_ns;
        let raw = reading.and_then(|reading| match reading.value {
            Value::Counter(raw) => Ok(raw),
            Value::Power(_) => Err(Fault::MalformedRow),
        });
        let samples = &mut self.samples;
        samples.reads += 1;
        match raw {
            Ok(raw) => {
                samples.newest = Some(raw);
                samples.calls_ns.push(end_ns.saturating_sub(begin_ns));
                samples.fault = None;
                self.failures = 0;
            }
            Err(fault) => {
                samples.fault = Some(fault);
                self.failures += 1;
                if fault == Fault::NotSupported || self.failures > FAILURES {
                    return None;
                }
            }
        }
        let mut push = |delta: Energy, at: Bracket| {
            samples.energy_uj = samples.energy_uj.saturating_add(delta.microjoules());
            let edge = Edge { at, energy_uj: samples.energy_uj, reads: samples.reads };
            samples.publishes.push(edge);
        };
        match self.register.advance_within(poll.at_ns, poll.slack_ns, raw) {
            Step::Advanced(advance) => push(advance.delta, advance.published),
            Step::Restarted { then, .. } | Step::Set { then, .. } => {
                push(then.delta, then.published);
                samples.resets += 1;
            }
            Step::Anchored(_) | Step::Unchanged | Step::Provisional | Step::Hole(_) => {}
        }
        Some(())
    }

    fn newest(&self) -> Option<Edge> {
        self.samples.publishes.last().copied()
    }

    fn renewal(&self, gap_ns: u64) -> Option<Renewal> {
        // The first change may have come in the middle of anything.
        let changes: Vec<Bracket> = self.samples.publishes.iter().map(|edge| edge.at).collect();
        renewal(&changes, gap_ns)
    }
}

impl CounterSamples {
    /// Readable at last, or why not.
    pub(super) fn outcome(&self) -> Result<(), Fault> {
        self.fault.map_or(Ok(()), Err)
    }

    pub(super) fn renewal(&self) -> Option<Renewal> {
        self.renewal
    }

    pub(super) fn period_ns(&self) -> Option<u64> {
        self.renewal.map(|renewal| (renewal.period_s * SECOND as f64) as u64)
    }

    pub(super) fn leg(&self, leg: Leg) -> Option<(Edge, Edge)> {
        let (_, from, to) = self.legs.iter().find(|(name, _, _)| *name == leg)?;
        Some((*from, *to))
    }

    pub(super) fn readable(&self) -> Readable {
        let now = match (self.newest, self.fault) {
            (_, Some(fault)) => Err(fault),
            (Some(raw), None) => Ok(format!("{:.3} J", raw as f64 / 1000.0)),
            (None, None) => Err(Fault::NotReady),
        };
        Readable::timed("counter", now, &self.calls_ns)
    }
}
