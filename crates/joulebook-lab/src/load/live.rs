//! A load that somebody sets while time goes on.
//!
//! The history of what was set is kept whole, with the energy summed at every change, so the truth
//! of any past window stays exact. Refused: a change that lies before the last one.

use std::sync::{Arc, PoisonError, RwLock};

use super::SECOND_NS;
use crate::clock::Clock;

/// One change of a live load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// When, ns from the epoch.
    pub t_ns: i64,
    /// The power from there on, W.
    pub watts: f64,
    /// The energy from the first change to this one, J.
    pub joules: f64,
}

impl Change {
    /// The energy from the first change to an instant after this one, J.
    pub fn joules_at(&self, t_ns: i64) -> f64 {
        self.joules + self.watts * t_ns.saturating_sub(self.t_ns) as f64 / SECOND_NS
    }
}

/// A source of changes, in the order of their instants.
pub trait Live: Send + Sync {
    /// The last change at or before an instant.
    fn last_at(&self, t_ns: i64) -> Option<Change>;

    /// The first change of all.
    fn first(&self) -> Option<Change>;
}

/// The power of a card in this process, set by this process.
#[derive(Clone)]
pub struct LiveLoad {
    clock: Clock,
    history: Arc<RwLock<Vec<Change>>>,
}

/// Why a live load could not be set.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum LiveLoadError {
    /// Time went back.
    #[error("the load was set at {last_ns} ns already; {t_ns} ns lies before that")]
    Backwards {
        /// The instant asked for.
        t_ns: i64,
        /// The last change.
        last_ns: i64,
    },
    /// No power.
    #[error("{0} W is no power: it must be finite and not below 0")]
    NoPower(f64),
}

impl LiveLoad {
    /// A load that was never set, on that clock.
    pub fn new(clock: Clock) -> Self {
        Self { clock, history: Arc::default() }
    }

    /// Sets the power from now on, W; the instant it took, ns.
    pub fn set_watts(&self, watts: f64) -> Result<i64, LiveLoadError> {
        self.set(None, watts)
    }

    /// Sets the power from an instant on, W.
    pub fn set_watts_at(&self, t_ns: i64, watts: f64) -> Result<i64, LiveLoadError> {
        self.set(Some(t_ns), watts)
    }

    fn set(&self, t_ns: Option<i64>, watts: f64) -> Result<i64, LiveLoadError> {
        if !(watts.is_finite() && watts >= 0.0) {
            return Err(LiveLoadError::NoPower(watts));
        }
        let mut history = self.history.write().unwrap_or_else(PoisonError::into_inner);
        // The clock is read under the lock: no reader sees an instant pass before it is written.
        let t_ns = t_ns.unwrap_or_else(|| self.clock.now_ns());
        let joules = match history.last() {
            Some(last) if last.t_ns > t_ns => {
                return Err(LiveLoadError::Backwards { t_ns, last_ns: last.t_ns });
            }
            Some(last) => last.joules_at(t_ns),
            None => 0.0,
        };
        history.push(Change { t_ns, watts, joules });
        Ok(t_ns)
    }
}

impl Live for LiveLoad {
    fn last_at(&self, t_ns: i64) -> Option<Change> {
        let history = self.history.read().unwrap_or_else(PoisonError::into_inner);
        let after = history.partition_point(|change| change.t_ns <= t_ns);
        history.get(after.checked_sub(1)?).copied()
    }

    fn first(&self) -> Option<Change> {
        self.history.read().unwrap_or_else(PoisonError::into_inner).first().copied()
    }
}

/// The energy since the epoch under a live source that idles before its first change, J.
pub(super) fn joules(source: &dyn Live, idle_w: f64, t_ns: i64) -> f64 {
    let Some(first) = source.first() else {
        return idle_w * t_ns as f64 / SECOND_NS;
    };
    let from_first = |t_ns: i64| match source.last_at(t_ns) {
        Some(last) => last.joules_at(t_ns),
        None => idle_w * t_ns.saturating_sub(first.t_ns) as f64 / SECOND_NS,
    };
    from_first(t_ns) - from_first(0)
}
