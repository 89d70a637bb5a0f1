//! What is known of a card of another host by its agent's word, in place of what a probe of this
//! host would have learnt: replaced as a whole whenever the agent says it anew.
//!
//! What the agent has not said is filled in as it would be for a card that nobody has probed.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use joulebook_core::{
    estimate::{Facts, Skew},
    register::Kind,
    ring::Point,
};

use super::{Card, SECOND, ceiling, lock};
use crate::{
    profile::Lag,
    reader::{Backend, Device},
    remote::{DRIFT, Offset, Status},
};

/// Offsets that are remembered: each holds for seconds at least, mostly for minutes.
const MOST_OFFSETS: usize = 1024;

/// The lag of a register that nobody has probed may be this or its period, whichever is longer, s.
const UNPROBED_LAG_S: f64 = 0.1;

/// A card's word.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
    /// What reads it on its own host (`nvml_counter` …); nothing where the agent does not say.
    pub reads: Option<String>,
    /// The update period, ns.
    pub period_ns: Option<u64>,
    /// How late publishes come, where its host has probed that.
    pub lag: Option<Lag>,
    /// The least it draws, W.
    pub deepest_w: Option<f64>,
    /// Its idle floor, W.
    pub idle_w: Option<f64>,
    /// How that was got.
    pub idle_from: Option<String>,
}

/// From a point on, stamps were moved by one offset of the other clock.
#[derive(Clone, Copy, Debug)]
struct Moved {
    from_ns: u64,
    by: Offset,
}

/// What only a card of another host has.
#[derive(Debug)]
pub(crate) struct Elsewhere {
    told: Mutex<Arc<Told>>,
    /// By which offsets its points were moved, of late.
    moved: Mutex<VecDeque<Moved>>,
    /// How long a publish takes until it is here, ns.
    pub delivery_ns: AtomicU64,
    pub status: Arc<Status>,
}

impl Elsewhere {
    pub(crate) fn new(status: Arc<Status>) -> Self {
        Self {
            told: Mutex::default(),
            moved: Mutex::default(),
            delivery_ns: AtomicU64::new(0),
            status,
        }
    }

    /// Points from this instant on are moved by that offset.
    pub(crate) fn moved(&self, from_ns: u64, by: Offset) {
        let mut moved = lock(&self.moved);
        if moved.back().is_some_and(|last| last.by == by) {
            return;
        }
        if moved.len() == MOST_OFFSETS {
            moved.pop_front();
        }
        moved.push_back(Moved { from_ns, by });
    }

    /// What one offset leaves open of all points between two instants, ns; `None` where they were
    /// moved by several.
    fn together_ns(&self, from_ns: u64, to_ns: u64) -> Option<u64> {
        let moved = lock(&self.moved);
        let after = moved.partition_point(|it| it.from_ns <= to_ns);
        let last = moved.get(after.checked_sub(1)?)?;
        (last.from_ns <= from_ns).then_some(last.by.uncertainty_ns)
    }

    pub(crate) fn set(&self, told: Told) {
        let mut known = lock(&self.told);
        if **known != told {
            *known = Arc::new(told);
        }
    }
}

impl Card {
    /// The state of the connection that brings its readings; `None` for a card of this host.
    pub fn connection(&self) -> Option<&Status> {
        self.elsewhere.as_ref().map(|elsewhere| &*elsewhere.status)
    }

    /// What its agent says of it; `None` for a card of this host.
    pub fn told(&self) -> Option<Arc<Told>> {
        self.elsewhere.as_ref().map(|elsewhere| Arc::clone(&lock(&elsewhere.told)))
    }

    /// What bounds of these points rest on. Where one offset moved them all they are off together, and
    /// each for itself only by what its own host does not know; else each carries all of it.
    pub(crate) fn in_common<'a>(
        &self,
        points: impl IntoIterator<Item = &'a mut Point>,
        facts: Facts,
    ) -> Facts {
        let Some(elsewhere) = &self.elsewhere else { return facts };
        let mut points: Vec<&mut Point> = points.into_iter().collect();
        let at_ns = || points.iter().map(|point| point.at_ns);
        let Some((from_ns, to_ns)) = at_ns().min().zip(at_ns().max()) else { return facts };
        let Some(together_ns) = elsewhere.together_ns(from_ns, to_ns) else { return facts };
        for point in &mut points {
            let own_ns = u64::from(point.uncertainty_ns).saturating_sub(together_ns);
            point.uncertainty_ns = u32::try_from(own_ns).unwrap_or(u32::MAX);
        }
        let skew = Skew { together_s: together_ns as f64 / SECOND, drift: DRIFT };
        Facts { skew, ..facts }
    }

    /// How long a publish takes until it is known here, ns: 0 on this host.
    pub(crate) fn delivery_ns(&self) -> u64 {
        self.elsewhere.as_ref().map_or(0, |it| it.delivery_ns.load(Ordering::Relaxed))
    }

    /// The floor it is charged above where none was declared, W.
    pub fn resting_watts(&self) -> Option<f64> {
        match self.told() {
            Some(told) => told.idle_w,
            None => self.profile.resting(self.scope()).map(|floor| floor.watts),
        }
    }

    /// What bounds rest on, by its agent's word.
    pub(super) fn facts_told(&self, told: &Told) -> Facts {
        let device = self.device();
        let period_s = self.period_ns() as f64 / SECOND;
        let unprobed = || Lag { value: 0.0, uncertainty: period_s.max(UNPROBED_LAG_S) };
        let lag = told.lag.unwrap_or_else(unprobed);
        let (quantum_j, averaging_s) = match device.register {
            Kind::Counter { quantum, .. } => (quantum.joules(), None),
            Kind::Gauge { averaging_ns } => (0.0, averaging_ns.map(|ns| ns as f64 / SECOND)),
        };
        Facts {
            ceiling_w: ceiling(&device).watts(),
            deepest_w: told.deepest_w.unwrap_or(0.0),
            poll_gap_s: self.health.gap_ns.load(Ordering::Relaxed) as f64 / SECOND,
            period_s,
            lag_s: lag.value,
            lag_uncertainty_s: lag.uncertainty,
            quantum_j,
            averaging_s,
            skew: Skew::default(),
        }
    }
}

/// A card of another host before it is known what it is.
pub(crate) fn unknown_device(place: &str) -> Device {
    Device {
        index: place.parse().unwrap_or(0),
        uuid: String::new(),
        pci: None,
        name: String::new(),
        driver: None,
        backend: Backend::RemoteAgent,
        scope: joulebook_core::Scope::Gpu,
        register: Kind::Gauge { averaging_ns: None },
        limit: None,
        consumer: false,
    }
}
