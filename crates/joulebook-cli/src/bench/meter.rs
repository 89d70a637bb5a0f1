//! The energy half of a run: which cards are read and how, the windows of their gauge and counter,
//! the books, and what all of that cost.
//!
//! Each card is read by one long-lived reader for the whole run, never by one started for a reading.
//! Where the driver's library answers, its energy counter and its power gauge are read beside each
//! other; where only `nvidia-smi` does, one child of it serves all. A rail that shows no reading in
//! time is declared unreadable and the run goes on without it: no energy is absent, never zero.

mod accounts;
mod open;
mod tap;
mod window;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use joulebook::{
    Card, Idle, Meter, Node,
    books::{Books, Rhos, Settings},
    smi::Feed,
};

pub use accounts::Accounts;
use tap::Log;
pub use window::{Closed, Figures, Opened};

use crate::bench::record::{Baseline, Place, Sampler, Source};

/// How long a rail may take to show its first reading.
const FIRST_READING: Duration = Duration::from_secs(3);
/// A baseline whose highest reading is so far above its mean was not taken at rest.
const UNREST: f64 = 1.15;
const UNREST_W: f64 = 10.0;

/// What is asked of the energy half.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// The cards, as people name them; none: the first.
    pub gpus: Vec<String>,
    /// The port that the serving process listens on, where it is this machine's.
    pub port: Option<u16>,
}

/// The energy half of a run.
#[derive(Debug)]
pub struct Energy {
    rails: Option<Rails>,
    source: Source,
    books: Books,
    accounts: Accounts,
    asked: Asked,
    began: Instant,
    /// What a person should know.
    pub warnings: Vec<String>,
}

/// What is read.
#[derive(Debug)]
struct Rails {
    /// The best reader of each card.
    meter: Meter,
    /// One card each, in the same order; their counters, where they have one.
    counters: Vec<Meter>,
    /// The gauge of each card, in the same order; none where it shows nothing.
    gauges: Vec<Gauge>,
    /// The child that all gauges read through.
    feed: Option<Arc<Feed>>,
    period: Duration,
}

/// A card's gauge.
#[derive(Debug)]
struct Gauge {
    card: Arc<Card>,
    log: Arc<Log>,
}

impl Energy {
    /// No energy, and why.
    pub fn none(why: impl Into<String>) -> Self {
        let source = Source { why_none: Some(why.into()), ..Source::default() };
        Self::with(None, source, Asked::default(), Vec::new())
    }

    fn with(rails: Option<Rails>, source: Source, asked: Asked, warnings: Vec<String>) -> Self {
        Self {
            rails,
            source,
            books: Books::off(),
            accounts: Accounts::default(),
            asked,
            began: Instant::now(),
            warnings,
        }
    }

    /// Where energy is read.
    pub const fn source(&self) -> &Source {
        &self.source
    }

    /// True where anything is read.
    pub const fn is_read(&self) -> bool {
        self.rails.is_some()
    }

    /// The books; off where nothing is read.
    pub const fn books(&self) -> &Books {
        &self.books
    }

    /// What the books did, by time.
    pub const fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    /// What a window at rest showed, as the run's baseline; and the books are opened on it. `None`,
    /// with a warning, where nothing was read.
    pub fn keep_baseline(&mut self, figures: &Figures, rho: Rhos) -> Option<Baseline> {
        let rails = self.rails.as_ref()?;
        let baseline = Baseline { gauge: figures.gauge(), counter: figures.counter() };
        let watts: Vec<Option<f64>> = figures.watts();
        let highest = baseline.gauge.map(|gauge| (gauge.max_watts(), gauge.mean_watts()));
        if let Some((max, Some(mean))) = highest
            && max > (mean * UNREST).max(mean + UNREST_W)
        {
            self.warnings.push(format!(
                "the idle baseline was not taken at rest: {mean:.1} W on average, up to {max:.1} W; \
                 somebody else is at work, and what is above idle reads too low"
            ));
        }
        let floors: Option<Vec<f64>> = watts.into_iter().collect();
        let Some(floors) = floors else {
            self.warnings.push(
                "the idle baseline stands on no reading: totals have no part above idle, and no \
                 request has a receipt (--baseline makes it longer)"
                    .to_owned(),
            );
            return None;
        };
        self.books = self.open_books(rails, floors, rho);
        Some(baseline)
    }

    fn open_books(&self, rails: &Rails, floors: Vec<f64>, rho: Rhos) -> Books {
        let family = || {
            let residents = rails.meter.cards().iter().filter_map(|card| card.residents_now());
            residents.flat_map(|residents| residents.family)
        };
        let seen =
            |port: &u16| family().any(|kin| kin.ports.is_some_and(|ports| ports.contains(port)));
        let port = self.asked.port.filter(seen);
        let node = Node {
            gpus: rails.meter.cards().iter().map(|card| card.device().uuid.clone()).collect(),
            idle: Idle::Each(floors),
            serving_port: port,
            ..Node::default()
        };
        let meter = Meter::of_cards(&node, rails.meter.cards().to_vec());
        let settings = Settings {
            rho,
            // Whose work the server's is cannot be told where it cannot be seen.
            lenient: port.is_none(),
            journal: Some(Box::new(self.accounts.clone())),
            ..Settings::default()
        };
        Books::of(&meter, settings).unwrap_or_else(|error| {
            tracing::warn!("no request has a receipt: {error}");
            Books::off()
        })
    }

    /// What the long-lived reader of the gauge did so far, and cost.
    pub fn sampler(&self) -> Option<Sampler> {
        let rails = self.rails.as_ref()?;
        if rails.gauges.is_empty() {
            return None;
        }
        let refused: u64 = rails.gauges.iter().map(|gauge| gauge.log.refused()).sum();
        let recorders = || rails.gauges.iter().map(|gauge| gauge.card.cost());
        let (cpu_ns, rejected_lines) = match &rails.feed {
            Some(feed) => {
                let cost = feed.cost();
                (cost.cpu_ns, refused + cost.rejected_lines)
            }
            None => (recorders().map(|cost| cost.cpu_ns).sum(), refused),
        };
        Some(Sampler {
            period_ms: u64::try_from(rails.period.as_millis()).unwrap_or(u64::MAX),
            cpu_ns: Some(cpu_ns),
            wall_ns: u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX),
            rejected_lines,
        })
    }
}

/// Where energy is read from, by the loopback rule, in a sentence where it is nowhere.
pub fn place(is_local: bool, url: &str) -> Result<Place, String> {
    if is_local {
        return Ok(Place::Local);
    }
    Err(format!(
        "{url} is not this machine, so the cards here say nothing of it: no energy is recorded \
         (--node names the agent of its host)"
    ))
}
