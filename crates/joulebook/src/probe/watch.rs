//! Reads the registers of a card for a while and keeps what each poll showed.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use joulebook_core::{
    Energy, Fault,
    register::{Bracket, Kind, Register, Step},
    series::{Poll, plausible_power},
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
const GAUGE_GAP_NS: u64 = 10 * MS;
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
        match self.register.advance(poll.at_ns, raw) {
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

/// A gauge that is being watched by a thread of its own.
pub(super) struct GaugeWatch {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<GaugeSamples>,
}

/// What a gauge showed.
#[derive(Debug, Default)]
pub(super) struct GaugeSamples {
    /// When, ns, and what, W.
    readings: Vec<(u64, f64)>,
    changes: Vec<Bracket>,
    calls_ns: Vec<u64>,
    fault: Option<Fault>,
    /// Which call answered.
    field: &'static str,
}

/// What a gauge says was drawn.
pub(super) struct Drawn {
    pub joules: f64,
    /// What the gauge may have missed between its updates, J.
    pub standard_error_j: f64,
    /// Between the powers at both ends, W.
    pub edge_difference_w: f64,
}

impl GaugeWatch {
    /// Starts to watch.
    pub(super) fn start(mut gauge: crate::nvml::NvmlGauge) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut samples = GaugeSamples::default();
            let limit = gauge.device().limit;
            while !stopped.load(Ordering::Relaxed) {
                let begin_ns = now_ns();
                let reading = gauge.read();
                let end_ns = now_ns();
                let power = reading.and_then(|reading| match reading.value {
                    Value::Power(power) if plausible_power(power, limit) => Ok(power.watts()),
                    Value::Power(_) => Err(Fault::Implausible),
                    Value::Counter(_) => Err(Fault::MalformedRow),
                });
                samples.field = gauge.field();
                samples.take(Poll::between(begin_ns, end_ns).at_ns, end_ns - begin_ns, power);
                if samples.fault == Some(Fault::NotSupported) {
                    break;
                }
                let left_ns = (begin_ns + GAUGE_GAP_NS).saturating_sub(now_ns()).max(MS);
                thread::sleep(Duration::from_nanos(left_ns));
            }
            samples
        });
        Self { stop, thread }
    }

    /// What it has shown.
    pub(super) fn stop(self) -> GaugeSamples {
        self.stop.store(true, Ordering::Relaxed);
        let nothing = || GaugeSamples { fault: Some(Fault::Unknown), ..GaugeSamples::default() };
        self.thread.join().unwrap_or_else(|_| nothing())
    }
}

impl GaugeSamples {
    pub(super) fn take(&mut self, at_ns: u64, call_ns: u64, power: Result<f64, Fault>) {
        match power {
            Ok(watts) => {
                if let Some((last_ns, last)) = self.readings.last()
                    && *last != watts
                {
                    self.changes.push(Bracket { after_ns: *last_ns, by_ns: at_ns });
                }
                self.readings.push((at_ns, watts));
                self.calls_ns.push(call_ns);
                self.fault = None;
            }
            Err(fault) => self.fault = Some(fault),
        }
    }

    /// Readable at last, or why not.
    pub(super) fn outcome(&self) -> Result<(), Fault> {
        match self.fault {
            Some(fault) => Err(fault),
            None if self.readings.is_empty() => Err(Fault::NotReady),
            None => Ok(()),
        }
    }

    pub(super) fn renewal(&self) -> Option<Renewal> {
        renewal(&self.changes, GAUGE_GAP_NS)
    }

    pub(super) fn mean_watts(&self) -> Option<f64> {
        let count = self.readings.len() as f64;
        (count > 0.0).then(|| self.readings.iter().map(|(_, watts)| watts).sum::<f64>() / count)
    }

    pub(super) fn range_watts(&self) -> Option<(f64, f64)> {
        let watts = || self.readings.iter().map(|(_, watts)| *watts);
        Some((watts().min_by(f64::total_cmp)?, watts().max_by(f64::total_cmp)?))
    }

    pub(super) fn readable(&self) -> Readable {
        let newest = self.readings.last().map(|(_, watts)| format!("{watts:.1} W"));
        let now = match (newest, self.fault) {
            (_, Some(fault)) => Err(fault),
            (Some(_), None) if self.field == "usage" => Err(Fault::NotSupported),
            (Some(newest), None) => Ok(newest),
            (None, None) => Err(Fault::NotReady),
        };
        Readable::timed("instant", now, &self.calls_ns)
    }

    /// What it says was drawn between two instants; `None` where it did not see all of it.
    pub(super) fn integral(&self, begin_ns: u64, end_ns: u64) -> Option<Drawn> {
        let (first_ns, _) = *self.readings.first()?;
        let (last_ns, _) = *self.readings.last()?;
        if first_ns > begin_ns || last_ns < end_ns || begin_ns >= end_ns {
            return None;
        }
        let mut joules = 0.0;
        let mut unevenness = 0.0;
        let mut at_begin = None;
        let mut at_end = None;
        for pair in self.readings.windows(2) {
            let [(from_ns, from), (to_ns, to)] = *pair else { continue };
            let overlap_ns = end_ns.min(to_ns).saturating_sub(begin_ns.max(from_ns));
            if overlap_ns == 0 {
                continue;
            }
            joules += f64::midpoint(from, to) * overlap_ns as f64 / SECOND as f64;
            unevenness += (to - from).powi(2);
            at_begin.get_or_insert(from);
            at_end = Some(to);
        }
        let seconds = (end_ns - begin_ns) as f64 / SECOND as f64;
        let update_s = self.renewal().map_or(0.1, |renewal| renewal.period_s).max(0.01);
        let updates = (seconds / update_s).max(1.0);
        // Half the mean square of successive differences: a drift counts little, a flicker fully.
        let variance = unevenness / (2.0 * updates);
        Some(Drawn {
            joules,
            standard_error_j: (variance / updates).sqrt() * seconds,
            edge_difference_w: (at_end? - at_begin?).abs(),
        })
    }
}

impl Readable {
    fn timed(what: &'static str, now: Result<String, Fault>, calls_ns: &[u64]) -> Self {
        let mut sorted = calls_ns.to_vec();
        sorted.sort_unstable();
        let at = |place: usize| sorted.get(place).map(|ns| *ns as f64 / 1000.0);
        Self {
            what,
            now,
            read_us: at(sorted.len() / 2),
            read_p95_us: at((sorted.len() * 19 / 20).min(sorted.len().saturating_sub(1))),
        }
    }
}
