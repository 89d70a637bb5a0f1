//! A rung's repeats as one: sums first, ratios from the sums.
//!
//! Joules and tokens add across windows, a ratio does not: both are added and divided once. Tokens
//! are summed over the same repeats as the joules they are set against. Incomplete repeats are in
//! none of it. J/token is absent without tokens or joules.

use super::{
    gauge,
    record::{Baseline, Books, Counter, Latencies, RailName, Repeat, Rung, Tokens},
};

/// Energy of one reader and the tokens of the same windows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metered<E> {
    /// Energy and time.
    pub energy: E,
    /// Tokens of answers; none where one of the windows does not know them.
    pub tokens: Option<u64>,
    /// How many windows.
    pub windows: u64,
}

/// A rung's finished repeats as one.
#[derive(Clone, Debug, PartialEq)]
pub struct Sums {
    /// Finished repeats.
    pub repeats: u64,
    /// Length of all windows, s.
    pub seconds: f64,
    /// Requests that ended well; none where a repeat did not count them.
    pub completed: Option<u64>,
    /// Requests that failed; none likewise.
    pub failed: Option<u64>,
    /// Tokens; none where a repeat does not know them.
    pub tokens: Option<Tokens>,
    /// By the gauge.
    pub gauge: Option<Metered<gauge::Window>>,
    /// By the counter.
    pub counter: Option<Metered<Counter>>,
    /// By the books.
    pub books: Option<Books>,
    /// Other rails.
    pub rails: Vec<(RailName, Counter)>,
}

impl Sums {
    /// Of a rung; none where no repeat ended.
    pub fn of(rung: &Rung) -> Option<Self> {
        let finished = || rung.finished();
        let repeats = finished().count() as u64;
        if repeats == 0 {
            return None;
        }
        let tokens =
            finished().map(|repeat| repeat.tokens).reduce(|a, b| a.zip(b).map(|(a, b)| a.then(b)));
        Some(Self {
            repeats,
            seconds: finished().map(Repeat::seconds).sum(),
            completed: finished().map(|repeat| repeat.completed).sum(),
            failed: finished().map(|repeat| repeat.failed).sum(),
            tokens: tokens.flatten(),
            gauge: metered(finished(), |repeat| repeat.gauge, gauge::Window::then),
            counter: metered(finished(), |repeat| repeat.counter, Counter::then),
            books: finished().filter_map(|repeat| repeat.books).reduce(Books::then),
            rails: rails(finished()),
        })
    }

    /// Output tokens a second.
    pub fn tokens_per_s(&self) -> Option<f64> {
        let tokens = self.tokens?.completion as f64;
        (self.seconds > 0.0).then(|| tokens / self.seconds)
    }

    /// Requests a second.
    pub fn requests_per_s(&self) -> Option<f64> {
        let completed = self.completed? as f64;
        (self.seconds > 0.0).then(|| completed / self.seconds)
    }
}

impl Metered<gauge::Window> {
    /// J/token, gross.
    pub fn joules_per_token(&self) -> Option<f64> {
        per_token(self.energy.joules(), self.tokens)
    }

    /// Energy above the run's baseline, J; may be below 0.
    pub fn above_idle_joules(&self, baseline: Option<&Baseline>) -> Option<f64> {
        let watts = baseline?.gauge_watts()?;
        Some(self.energy.above_idle_joules(watts))
    }
}

impl Metered<Counter> {
    /// J/token, gross.
    pub fn joules_per_token(&self) -> Option<f64> {
        per_token(self.energy.joules(), self.tokens)
    }

    /// Energy above the run's baseline, J; may be below 0.
    pub fn above_idle_joules(&self, baseline: Option<&Baseline>) -> Option<f64> {
        let watts = baseline?.counter_watts()?;
        Some(self.energy.joules() - watts * self.energy.seconds())
    }
}

/// J/token; none without tokens or joules.
pub fn per_token(joules: f64, tokens: Option<u64>) -> Option<f64> {
    let tokens = tokens.filter(|tokens| *tokens > 0)?;
    (joules > 0.0).then(|| joules / tokens as f64)
}

fn metered<'a, E: Copy>(
    repeats: impl Iterator<Item = &'a Repeat>,
    energy: impl Fn(&Repeat) -> Option<E>,
    then: impl Fn(E, E) -> E,
) -> Option<Metered<E>> {
    let of = |repeat: &'a Repeat| {
        energy(repeat).map(|energy| Metered {
            energy,
            tokens: repeat.completion_tokens(),
            windows: 1,
        })
    };
    repeats.filter_map(of).reduce(|a, b| Metered {
        energy: then(a.energy, b.energy),
        tokens: a.tokens.zip(b.tokens).map(|(a, b)| a + b),
        windows: a.windows + b.windows,
    })
}

fn rails<'a>(repeats: impl Iterator<Item = &'a Repeat> + Clone) -> Vec<(RailName, Counter)> {
    let of = |name: RailName| {
        let counters = repeats.clone().flat_map(|repeat| &repeat.rails);
        let counters = counters.filter(|rail| rail.name == name).map(|rail| rail.counter);
        Counter::sum(counters).map(|counter| (name, counter))
    };
    [RailName::Cpu, RailName::Dram].into_iter().filter_map(of).collect()
}

/// A rung's latencies: of the requests of all its repeats where they are at hand, else of the only
/// repeat. By itself, since it sorts all of them.
pub fn latencies(rung: &Rung) -> Latencies {
    let of_requests = Latencies::of(rung.finished().flat_map(|repeat| &repeat.requests));
    if !of_requests.is_empty() {
        return of_requests;
    }
    let mut finished = rung.finished();
    match (finished.next(), finished.next()) {
        (Some(only), None) => only.latencies.clone(),
        _ => Latencies::default(),
    }
}
