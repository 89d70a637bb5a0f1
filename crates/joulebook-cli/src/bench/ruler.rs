//! By which of its readers a record's energies are told where only one can be shown.
//!
//! The energy counter where it covers every finished window that has energy, else the power gauge;
//! one for all of a record, so that its rungs stand beside each other.

use super::record::{Record, Repeat, Rung};

/// One of the readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruler {
    /// The energy counter.
    Counter,
    /// The power gauge.
    Gauge,
}

impl Ruler {
    /// Of these records; none where one has no energy, or where no reader covers all of them.
    pub fn of(records: &[&Record]) -> Option<Self> {
        let rungs = || records.iter().flat_map(|record| &record.rungs);
        let has_any = |it: &&Repeat| it.gauge.is_some() || it.counter.is_some();
        Self::covering(|| rungs().flat_map(|rung| rung.finished()).filter(has_any))
    }

    /// Of these windows; none of none, or where no reader covers all of them.
    pub fn covering<'a, I: Iterator<Item = &'a Repeat>>(windows: impl Fn() -> I) -> Option<Self> {
        windows().next()?;
        let covers = |ruler: &Self| windows().all(|repeat| ruler.joules(repeat).is_some());
        [Self::Counter, Self::Gauge].into_iter().find(covers)
    }

    /// What people call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "energy counter",
            Self::Gauge => "power gauge, held forward",
        }
    }

    /// The prefix of its keys.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Counter => "gpu_counter",
            Self::Gauge => "gpu_rail",
        }
    }

    /// Energy of a window, J.
    pub fn joules(self, repeat: &Repeat) -> Option<f64> {
        match self {
            Self::Counter => repeat.counter.map(|it| it.joules()),
            Self::Gauge => repeat.gauge.map(|it| it.joules()),
        }
    }

    /// Its length as the reader covers it, s.
    fn seconds(self, repeat: &Repeat) -> Option<f64> {
        match self {
            Self::Counter => repeat.counter.map(|it| it.seconds()),
            Self::Gauge => repeat.gauge.map(|it| it.seconds()),
        }
    }

    /// What the cards drew at rest by this reader, W.
    pub fn idle_watts(self, record: &Record) -> Option<f64> {
        let baseline = record.baseline.as_ref()?;
        match self {
            Self::Counter => baseline.counter_watts(),
            Self::Gauge => baseline.gauge_watts(),
        }
    }

    /// Energy of a window above idle, J; may be below 0.
    pub fn above_idle_joules(self, record: &Record, repeat: &Repeat) -> Option<f64> {
        let idle = self.idle_watts(record)? * self.seconds(repeat)?;
        Some(self.joules(repeat)? - idle)
    }

    /// The most that the energy of one of these rungs can be off, as a share of it; none where one
    /// of their windows has no bound.
    pub fn worst_bound<'a>(self, rungs: impl IntoIterator<Item = &'a Rung>) -> Option<f64> {
        let bound = |repeat: &Repeat| match self {
            Self::Counter => repeat.counter?.bound_uj.map(|uj| uj as f64 / 1e6),
            Self::Gauge => None,
        };
        let mut worst = None;
        for rung in rungs {
            let (mut off, mut joules) = (0.0, 0.0);
            for repeat in rung.finished() {
                off += bound(repeat)?;
                joules += self.joules(repeat)?;
            }
            if joules > 0.0 {
                worst = Some(worst.unwrap_or(0.0_f64).max(off / joules));
            }
        }
        worst
    }

    /// Gross J/token of a window.
    pub fn per_token(self, repeat: &Repeat) -> Option<f64> {
        super::sums::per_token(self.joules(repeat)?, repeat.completion_tokens())
    }
}
