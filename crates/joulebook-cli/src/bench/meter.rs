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
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use joulebook::{
    Card, Idle, Meter, Node, Power,
    books::{Books, Rhos, Settings},
    core::ring::Point,
    smi::Feed,
};

pub use accounts::Accounts;
use tap::Log;
pub use window::{Closed, Figures, Opened};

use crate::bench::{
    gauge,
    record::{Baseline, Place, Sampler, Source},
};

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
    /// The port that the serving process listens on, on the cards' host.
    pub port: Option<u16>,
    /// The agent on the cards' host, where that is not this one.
    pub node: Option<String>,
    /// The file with the agent's token.
    pub token_file: Option<PathBuf>,
}

/// The energy half of a run.
#[derive(Debug)]
pub struct Energy {
    rails: Option<Rails>,
    source: Source,
    books: Option<Books>,
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
    /// Each reading as it was; none where only the card's series holds them.
    log: Option<Arc<Log>>,
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
            books: None,
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

    /// The books; off where nothing is read, and before the baseline.
    pub fn books(&self) -> Books {
        self.books.clone().unwrap_or_else(Books::off)
    }

    /// True once requests have receipts.
    pub const fn keeps_books(&self) -> bool {
        self.books.is_some()
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

    fn open_books(&self, rails: &Rails, floors: Vec<f64>, rho: Rhos) -> Option<Books> {
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
            is_local: self.asked.node.is_none(),
            power_endpoint: self.asked.node.clone(),
            ..Node::default()
        };
        let meter = Meter::of_cards(&node, rails.meter.cards().to_vec());
        let settings = Settings {
            rho,
            // Whose work the server's is cannot be told where it cannot be seen.
            lenient: port.is_none(),
            journal: Some(self.accounts.journal()),
            ..Settings::default()
        };
        Books::of(&meter, settings)
            .inspect_err(|error| tracing::warn!("no request has a receipt: {error}"))
            .ok()
    }

    /// Over how long the gauge averages, where that is known: load must have gone on for so long
    /// before its readings are the load's.
    pub fn averages_over(&self) -> Option<Duration> {
        let gauges = self.rails.iter().flat_map(|rails| &rails.gauges);
        let averages = gauges.filter_map(|gauge| gauge.card.facts().averaging_s);
        averages.reduce(f64::max).and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
    }

    /// What the long-lived reader of the gauge did so far, and cost.
    pub fn sampler(&self) -> Option<Sampler> {
        let rails = self.rails.as_ref()?;
        if rails.gauges.is_empty() {
            return None;
        }
        let refused: u64 = rails.gauges.iter().map(Gauge::refused).sum();
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

impl Asked {
    /// Where energy is read from, by the loopback rule: at the agent that is named, else here if the
    /// target is this machine, else nowhere, and then why.
    pub fn place(&self, is_local: bool, url: &str) -> Result<Place, String> {
        match &self.node {
            Some(_) => Ok(Place::Node),
            None if is_local => Ok(Place::Local),
            None => Err(format!(
                "{url} is not this machine, so the cards here say nothing of it: no energy is \
                 recorded (--node names the agent of its host)"
            )),
        }
    }
}

impl Gauge {
    /// The readings between two instants.
    fn between(&self, from_ns: u64, to_ns: u64) -> Vec<gauge::Reading> {
        if let Some(log) = &self.log {
            return log.between(from_ns, to_ns);
        }
        let points = self.card.series().span(from_ns, to_ns, 1, 1);
        let inside = points.iter().filter(|point| (from_ns..=to_ns).contains(&point.at_ns));
        let reading = |point: &Point| gauge::Reading {
            at_ns: point.at_ns,
            power: Power::from_microwatts(point.power_uw),
            capped: None,
            braked: None,
        };
        inside.map(reading).collect()
    }

    fn has_any(&self) -> bool {
        match &self.log {
            Some(log) => log.has_any(),
            None => self.card.series().newest().is_some(),
        }
    }

    fn refused(&self) -> u64 {
        self.log.as_ref().map_or_else(|| self.card.cost().rejected, |log| log.refused())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::{keys::Keys, record::Record, sample};

    #[test]
    fn only_the_targets_own_cards_are_read() {
        let here = Asked::default();
        assert_eq!(here.place(true, "http://127.0.0.1:1/v1"), Ok(Place::Local));
        let why = here.place(false, "http://192.0.2.7:1/v1").unwrap_err();
        assert!(why.contains("192.0.2.7") && why.contains("--node"), "{why}");
        let there = Asked { node: Some("http://192.0.2.7:9402".to_owned()), ..Asked::default() };
        // Also through a tunnel, whose near end is this machine.
        assert_eq!(there.place(false, ""), Ok(Place::Node));
        assert_eq!(there.place(true, ""), Ok(Place::Node));
    }

    #[tokio::test]
    async fn without_cards_there_are_no_keys_of_energy_and_a_line_says_why() {
        let mut energy = Energy::none("the target is another machine");
        let figures = energy.settle(energy.open().close()).await;
        assert_eq!((figures.gauge(), figures.counter()), (None, None));
        assert_eq!(energy.keep_baseline(&figures, Rhos::default()), None);
        assert!(energy.warnings.is_empty() && energy.sampler().is_none());
        assert_eq!(energy.accounts().window(0, u64::MAX, &std::collections::HashSet::new()), None);
        let record = Record { source: energy.source().clone(), ..sample::empty() };
        let record = Record { baseline: None, sampler: None, ..record };
        assert!(Keys::of(&record).iter().all(|(key, _)| !key.contains("gpu_")));
        let page = crate::bench::report::page(&record);
        assert!(page.contains("No energy: the target is another machine"), "{page}");
    }
}
