//! The true power of a simulated card at any instant, and its exact integral over any window.
//!
//! A load is a level (knots of a scenario, or what a live source was told) plus waves. Every part
//! is integrated in closed form, so the truth of a window is as exact as the arithmetic of doubles
//! and does not depend on who reads when. Instants are ns from the epoch, i64; an energy is counted
//! from the epoch and is negative before it.
//!
//! Invariants: `joules(0) == 0`; `energy(a, b) + energy(b, c) == energy(a, c)` up to rounding; a
//! look-up is O(log knots + waves).

use std::sync::Arc;

use crate::scenario::{Card, Wave};

mod level;
mod live;
mod wave;

use level::Level;
pub use live::{Change, Live, LiveLoad, LiveLoadError};

/// Nanoseconds in a second.
const SECOND_NS: f64 = 1e9;

/// A card's true power over time.
#[derive(Clone)]
pub struct Load {
    base: Base,
    waves: Vec<Wave>,
    /// What the waves' integrals are at the epoch.
    origin_joules: f64,
}

#[derive(Clone)]
enum Base {
    Level(Arc<Level>),
    Live { idle_w: f64, source: Option<Arc<dyn Live>> },
}

impl Load {
    /// The load of a scenario's card; `live` is what a `dynamic` card follows (none: it idles).
    pub fn new(card: &Card, live: Option<Arc<dyn Live>>) -> Self {
        let base = if card.dynamic {
            Base::Live { idle_w: card.idle_w, source: live }
        } else {
            Base::Level(Arc::new(Level::new(card.idle_w, &card.knots)))
        };
        let waves = card.waves.clone();
        let origin_joules = waves.iter().map(|wave| wave::joules(wave, 0)).sum();
        Self { base, waves, origin_joules }
    }

    /// The power at an instant, W. A jump already holds at its own instant.
    pub fn watts(&self, t_ns: i64) -> f64 {
        let base = match &self.base {
            Base::Level(level) => level.watts(t_ns),
            Base::Live { idle_w, source } => {
                let last = source.as_ref().and_then(|source| source.last_at(t_ns));
                last.map_or(*idle_w, |change| change.watts)
            }
        };
        base + self.waves.iter().map(|wave| wave::watts(wave, t_ns)).sum::<f64>()
    }

    /// The energy since the epoch, J.
    pub fn joules(&self, t_ns: i64) -> f64 {
        let base = match &self.base {
            Base::Level(level) => level.joules(t_ns),
            Base::Live { idle_w, source: None } => idle_w * t_ns as f64 / SECOND_NS,
            Base::Live { idle_w, source: Some(source) } => {
                live::joules(source.as_ref(), *idle_w, t_ns)
            }
        };
        if self.waves.is_empty() {
            return base;
        }
        let waves: f64 = self.waves.iter().map(|wave| wave::joules(wave, t_ns)).sum();
        base + waves - self.origin_joules
    }

    /// The energy of a window, J.
    pub fn energy(&self, t0_ns: i64, t1_ns: i64) -> f64 {
        self.joules(t1_ns) - self.joules(t0_ns)
    }
}

#[cfg(test)]
mod tests;
