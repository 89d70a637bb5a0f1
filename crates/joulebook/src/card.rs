//! A card while it is being read: what its recorder has found, for any number of windows.
//!
//! Nothing here waits for the driver: a reader reads atomics and the ring. Locks are held for a
//! few instructions, and never by the recorder while it is in a driver call.

mod passed_on;
mod state;
mod told;
mod work;

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use joulebook_core::{
    Fault, Flags, Power, Scope,
    estimate::{Facts, Skew},
    register::{DEFAULT_CEILING, Kind},
    ring::Point,
    series::Series,
};
pub use passed_on::Tally;
pub(crate) use passed_on::UNSEEN;
use state::StateLog;
pub use told::Told;
pub(crate) use told::{Elsewhere, unknown_device};
pub(crate) use work::Work;
use work::WorkLog;

use crate::{
    books::Shelf,
    occupancy::Occupancy,
    profile::{Lag, Profile},
    reader::{AtWork, Backend, Device, Process, Usage},
    signal::Signal,
    tenancy::{Family, Unseen, linux::Processes},
    wire,
};

/// Changes of the resident processes that are kept.
const MOST_CHANGES: usize = 1024;
/// How often it is looked anew where unchanged residents come from.
const LOOK_AGAIN_NS: u64 = 10_000_000_000;
const SECOND: f64 = 1e9;
/// Averages over which a span is long: what averaging hides at its edges is small.
const LONG_SPANS: f64 = 3.0;

/// A card being read. Shared by [`Arc`]; the recorder stops when the last one is gone.
#[derive(Debug)]
pub struct Card {
    device: Mutex<Arc<Device>>,
    profile: Profile,
    pub(crate) series: Arc<Series>,
    /// A gauge's averaging sibling, once it has shown itself, and what it averages over, ns.
    mean: OnceLock<(Arc<Series>, u64)>,
    /// A slow counter's gauge, once it has shown something.
    shape: OnceLock<Arc<Series>>,
    pub(crate) signal: Signal,
    /// Rung at a publish alone, not at each poll.
    publishes: Signal,
    /// Points that there were at the last ring.
    rung: AtomicU64,
    pub(crate) occupancy: Occupancy,
    pub(crate) health: Health,
    /// Who keeps its book.
    pub(crate) shelf: Arc<Shelf>,
    /// It is another host's.
    pub(crate) elsewhere: Option<Elsewhere>,
    residents: Mutex<VecDeque<Residents>>,
    work: Mutex<WorkLog>,
    /// Somebody wants to know how full and how busy it is.
    pub(crate) usage_wanted: AtomicBool,
    usage: Mutex<Option<(u64, Usage)>>,
    /// When it was last looked where the residents come from, ns.
    looked_ns: AtomicU64,
    states: Mutex<StateLog>,
}

/// How the reading goes. Times in ns of the [`crate::clock`].
#[derive(Debug, Default)]
pub(crate) struct Health {
    /// The longest time between two polls.
    pub gap_ns: AtomicU64,
    /// A gauge's update period: how closely distinct values follow each other.
    pub update_ns: AtomicU64,
    pub polls: AtomicU64,
    /// Reads of the gauge beside a slow counter.
    pub samples: AtomicU64,
    pub rejected: AtomicU64,
    /// The last good poll.
    pub good_ns: AtomicU64,
    /// How old that may be; 0: three polling gaps and a little.
    pub patience_ns: AtomicU64,
    /// When the driver was last asked, 0 while it is not being asked.
    pub asking_ns: AtomicU64,
    /// Polls that came so late that one was left out.
    pub late: AtomicU64,
    pub cpu_ns: AtomicU64,
    /// The register's stillness, ns: how long it has shown one value.
    pub still_ns: AtomicU64,
    /// Time spent in calls that read the register, ns.
    pub asked_ns: AtomicU64,
    /// How often the register restarted or was set.
    pub resets: AtomicU64,
    /// Publishes behind a stretch that was not seen.
    pub gaps: AtomicU64,
    /// The register's last accepted value, in its own units, and 1; 0 before the first.
    pub raw_and_one: AtomicU64,
    pub fault: Mutex<Option<Fault>>,
}

/// Who was on the card, from an instant on.
#[derive(Clone, Debug)]
pub(crate) struct Residents {
    pub from_ns: u64,
    pub seen: Arc<Result<Vec<Process>, Unseen>>,
    pub family: Arc<Family>,
}

/// What reading a card has cost so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// CPU time of its recorder, ns.
    pub cpu_ns: u64,
    /// Polls made.
    pub polls: u64,
    /// Polls that failed or were refused.
    pub rejected: u64,
    /// Polls left out because the one before took too long.
    pub late: u64,
    /// Reads of the gauge beside a slow counter, which are no polls.
    pub samples: u64,
}

impl Card {
    pub(crate) fn new(device: Device, profile: Profile, series: Arc<Series>) -> Self {
        Self {
            device: Mutex::new(Arc::new(device)),
            profile,
            series,
            mean: OnceLock::new(),
            shape: OnceLock::new(),
            signal: Signal::default(),
            publishes: Signal::default(),
            rung: AtomicU64::new(0),
            occupancy: Occupancy::default(),
            health: Health::default(),
            shelf: Arc::default(),
            elsewhere: None,
            residents: Mutex::default(),
            work: Mutex::default(),
            usage_wanted: AtomicBool::new(false),
            usage: Mutex::default(),
            looked_ns: AtomicU64::new(0),
            states: Mutex::default(),
        }
    }

    /// A card of another host.
    pub(crate) fn remote(device: Device, series: Arc<Series>, elsewhere: Elsewhere) -> Self {
        let elsewhere = Some(elsewhere);
        Self { elsewhere, ..Self::new(device, Profile::default(), series) }
    }

    /// Its book is kept there.
    pub(crate) fn on(self, shelf: Arc<Shelf>) -> Self {
        Self { shelf, ..self }
    }

    /// The card, and what its register is.
    pub fn device(&self) -> Arc<Device> {
        Arc::clone(&lock(&self.device))
    }

    /// Something is known of it that was not: whoever waits looks. Called by its one writer.
    pub(crate) fn ring(&self) {
        self.signal.ring();
        let pushed = self.series.pushed();
        if self.rung.swap(pushed, Ordering::Relaxed) != pushed {
            self.publishes.ring();
        }
    }

    pub(crate) fn set_device(&self, device: Device) {
        *lock(&self.device) = Arc::new(device);
    }

    /// What is known of it from before.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Its series of publishes.
    pub fn series(&self) -> &Series {
        &self.series
    }

    /// What it draws now, and the age of that, ns; absent when no reading is fresh.
    pub fn power(&self) -> Option<(Power, u64)> {
        let newest = self.series.newest()?;
        let age_ns = crate::clock::now_ns().saturating_sub(newest.at_ns);
        let fresh_ns = 3 * (self.period_ns() + self.health.gap_ns.load(Ordering::Relaxed))
            + self.delivery_ns();
        // The first point has no tick behind it.
        (age_ns <= fresh_ns && self.series.pushed() > 1).then(|| (self.power_until(newest), age_ns))
    }

    /// What it drew at a publish of its own: a gauge's reading, a counter's mean over as long as it
    /// takes to know it.
    pub fn power_until(&self, publish: Point) -> Power {
        match self.device().register {
            Kind::Counter { .. } => self.series.power_until(publish),
            Kind::Gauge { .. } => Power::from_microwatts(publish.power_uw),
        }
    }

    /// What reading it has cost so far.
    pub fn cost(&self) -> Cost {
        let load = |value: &AtomicU64| value.load(Ordering::Relaxed);
        Cost {
            cpu_ns: load(&self.health.cpu_ns),
            polls: load(&self.health.polls),
            rejected: load(&self.health.rejected),
            late: load(&self.health.late),
            samples: load(&self.health.samples),
        }
    }

    /// Why no reading is fresh, or `None` when one is.
    pub fn trouble(&self) -> Option<Fault> {
        self.health.trouble(crate::clock::now_ns())
    }

    /// True when the counter is known to show less the more often it is read.
    pub(crate) fn is_poll_sensitive(&self) -> bool {
        self.profile.probe.as_ref().is_some_and(|probe| probe.poll_sensitive)
    }

    /// The register's publish period where a probe has found it, else the polling gap.
    pub fn period_ns(&self) -> u64 {
        let gap_ns = self.health.gap_ns.load(Ordering::Relaxed);
        let told_ns = || self.told().and_then(|told| told.period_ns);
        self.probed_period_ns().or_else(told_ns).unwrap_or(gap_ns)
    }

    pub(crate) fn probed_period_ns(&self) -> Option<u64> {
        let probe = self.profile.probe.as_ref().filter(|probe| !probe.poll_sensitive)?;
        let period_ns = (probe.period_s * SECOND) as u64;
        (period_ns > 0 && self.is_counter()).then_some(period_ns)
    }

    pub(crate) fn is_counter(&self) -> bool {
        matches!(self.device().register, Kind::Counter { .. })
    }

    /// What bounds rest on.
    pub fn facts(&self) -> Facts {
        if let Some(told) = self.told() {
            return self.facts_told(&told);
        }
        let device = self.device();
        let gap_ns = self.health.gap_ns.load(Ordering::Relaxed);
        let period_s = self.period_ns() as f64 / SECOND;
        // A probe's lag is the counter's.
        let probe = self.profile.probe.as_ref().filter(|_| self.is_counter());
        let lag = probe.and_then(|probe| probe.lag_s);
        let lag = lag.unwrap_or(Lag { value: 0.0, uncertainty: period_s.max(0.1) });
        let (quantum_j, averaging_s) = match device.register {
            Kind::Counter { quantum, .. } => (quantum.joules(), None),
            // NVIDIA's sensors that do not average over a second average over their update period.
            Kind::Gauge { averaging_ns: None }
                if matches!(device.backend, Backend::NvmlPower | Backend::SmiSampler) =>
            {
                (0.0, Some(self.update_s()))
            }
            Kind::Gauge { averaging_ns } => (0.0, averaging_ns.map(|ns| ns as f64 / SECOND)),
        };
        Facts {
            ceiling_w: ceiling(&device).watts(),
            // A measured floor is a median: the card may draw a little less.
            deepest_w: self
                .profile
                .floor(device.scope, false)
                .map_or(0.0, |floor| (floor.watts - floor.spread_watts).max(0.0)),
            poll_gap_s: gap_ns as f64 / SECOND,
            period_s,
            lag_s: lag.value,
            lag_uncertainty_s: lag.uncertainty,
            quantum_j,
            averaging_s,
            skew: Skew::default(),
        }
    }

    /// The series to read a span from, and what bounds rest on: a gauge's averaging sibling where
    /// the span is three times longer than that averages over.
    pub(crate) fn ruler(&self, seconds: f64) -> (&Series, Facts) {
        let facts = self.facts();
        match self.mean.get() {
            Some((series, over_ns)) if seconds >= LONG_SPANS * *over_ns as f64 / SECOND => {
                (series, Facts { averaging_s: Some(*over_ns as f64 / SECOND), ..facts })
            }
            _ => (&self.series, facts),
        }
    }

    pub(crate) fn set_mean(&self, series: Arc<Series>, over_ns: u64) {
        // The recorder has one such series; a second would be no mistake of the caller's.
        let _ = self.mean.set((series, over_ns));
    }

    pub(crate) fn set_shape(&self, series: Arc<Series>) {
        let _ = self.shape.set(series);
    }

    /// The gauge beside a slow counter.
    pub(crate) fn shape(&self) -> Option<&Series> {
        self.shape.get().map(|series| &**series)
    }

    /// A gauge's update period, s; no less than the time between polls, which see no more.
    pub(crate) fn update_s(&self) -> f64 {
        let update_ns = self.health.update_ns.load(Ordering::Relaxed);
        let gap_ns = self.health.gap_ns.load(Ordering::Relaxed);
        update_ns.max(gap_ns) as f64 / SECOND
    }

    /// Marks that go with every figure of this card.
    pub(crate) fn marks(&self) -> Flags {
        let mut flags = Flags::NONE;
        if let Some(probe) = &self.profile.probe {
            if probe.mismatch {
                flags |= Flags::MISMATCH;
            }
            if probe.poll_sensitive {
                flags |= Flags::POLL_SENSITIVE;
            }
        }
        flags
    }

    /// What covers this register.
    pub(crate) fn scope(&self) -> Scope {
        self.device().scope
    }

    /// Called by the recorder alone: who is there, and where they come from. That is looked up anew
    /// when they change, and now and then: a server may listen only when its model is loaded.
    pub(crate) fn note_residents(&self, from_ns: u64, seen: Result<Vec<Process>, Unseen>) {
        let same = lock(&self.residents).back().is_some_and(|last| *last.seen == seen);
        let looked_ns = self.looked_ns.load(Ordering::Relaxed);
        if same && from_ns.saturating_sub(looked_ns) < LOOK_AGAIN_NS {
            return;
        }
        self.looked_ns.store(from_ns, Ordering::Relaxed);
        let processes = seen.as_ref().map_or(&[][..], Vec::as_slice);
        let family = Family::look(processes, &Processes::default());
        self.note_family(from_ns, seen, family);
    }

    /// The same, where somebody else has looked where they come from.
    pub(crate) fn note_family(
        &self,
        from_ns: u64,
        seen: Result<Vec<Process>, Unseen>,
        family: Family,
    ) {
        let mut log = lock(&self.residents);
        if log.back().is_some_and(|last| *last.seen == seen && *last.family == family) {
            return;
        }
        if log.len() == MOST_CHANGES {
            log.pop_front();
        }
        log.push_back(Residents { from_ns, seen: Arc::new(seen), family: Arc::new(family) });
    }

    /// Who is on the card now, as it is told to other hosts; `None` when nobody has looked yet.
    pub fn residents_now(&self) -> Option<wire::Residents> {
        let gpu = self.device().index;
        let log = lock(&self.residents);
        let now = log.back()?;
        Some(wire::Residents {
            gpu,
            from_ns: now.from_ns,
            processes: now.seen.as_ref().as_ref().ok().cloned(),
            error: now.seen.as_ref().as_ref().err().map(|unseen| unseen.word().to_owned()),
            family: now.family.tell(),
        })
    }

    /// Called by the recorder alone, at the end of each look: the card's power state.
    pub(crate) fn note_state(&self, at_ns: u64, state: Option<u8>) {
        lock(&self.states).note(at_ns, state);
    }

    /// The power state at an instant, as far as it was seen.
    pub(crate) fn power_state(&self, at_ns: u64) -> Option<u8> {
        lock(&self.states).at(at_ns)
    }

    /// Whether what was seen at an instant still held at the last look; none as long as no look has
    /// come after it.
    pub(crate) fn has_stayed(&self, from_ns: u64, to_ns: u64) -> Option<bool> {
        let (looked_ns, same) = {
            let states = lock(&self.states);
            (states.looked_ns(), states.is_same_since(from_ns))
        };
        (looked_ns >= to_ns).then(|| same && self.residents(from_ns, looked_ns).len() == 1)
    }

    /// Called by the recorder alone: who was at work since the last look, and who is there now.
    pub(crate) fn note_work(
        &self,
        at_ns: u64,
        told: Result<Vec<AtWork>, Fault>,
        present: Vec<u32>,
    ) {
        lock(&self.work).note(at_ns, told, present);
    }

    /// Who was at work between two instants, by the looks that were taken.
    pub(crate) fn work(&self, from_ns: u64, to_ns: u64) -> Work {
        lock(&self.work).between(from_ns, to_ns)
    }

    /// Who was on the card between two instants: the state at the first and each change after it.
    /// Empty when nobody had looked yet.
    pub(crate) fn residents(&self, from_ns: u64, to_ns: u64) -> Vec<Residents> {
        let log = lock(&self.residents);
        let first = log.partition_point(|state| state.from_ns <= from_ns).saturating_sub(1);
        log.iter().skip(first).take_while(|state| state.from_ns <= to_ns).cloned().collect()
    }
}

impl Health {
    /// Why no reading is fresh at `now_ns`.
    pub(crate) fn trouble(&self, now_ns: u64) -> Option<Fault> {
        let gap_ns = self.gap_ns.load(Ordering::Relaxed);
        let stale_ns = match self.patience_ns.load(Ordering::Relaxed) {
            0 => 3 * gap_ns + 50_000_000,
            patience_ns => patience_ns,
        };
        let good_ns = self.good_ns.load(Ordering::Relaxed);
        if good_ns > 0 && now_ns.saturating_sub(good_ns) <= stale_ns {
            return None;
        }
        let asking_ns = self.asking_ns.load(Ordering::Relaxed);
        if asking_ns > 0 && now_ns.saturating_sub(asking_ns) > stale_ns {
            return Some(Fault::Timeout);
        }
        // One that has been read and has not failed is late.
        let late = if good_ns > 0 { Fault::Timeout } else { Fault::NotReady };
        Some(lock(&self.fault).unwrap_or(late))
    }

    pub(crate) fn set_fault(&self, fault: Option<Fault>) {
        *lock(&self.fault) = fault;
    }
}

/// The most a card can draw: its limit and a tenth, else more than any board sold.
pub(crate) fn ceiling(device: &Device) -> Power {
    device.limit.map_or(DEFAULT_CEILING, |limit| {
        Power::from_microwatts(limit.microwatts().saturating_mul(11) / 10)
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
