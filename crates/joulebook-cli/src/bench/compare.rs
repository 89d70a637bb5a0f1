//! Two records side by side: what changed at each rung, by how much, and whether that can be told.
//!
//! Rungs pair by what they are (`c8` with `c8`), repeats by their seeds. The change is the ratio of
//! B to A with its 95 % interval by Student on logarithms: paired repeat by repeat where both have
//! the same seeds in the same order, by Welch's rule else. Medians over repeats stand beside it.
//! With one repeat there is no interval, and nothing is claimed. Both are told by one reader.
//!
//! Each interval stands alone: of twenty true draws about one will show a change.

use super::{
    interval::{self, Interval},
    record::{Kind, Record, Repeat, Rung},
    ruler::Ruler,
    statistics::{Statistics, median},
};

mod cautions;
mod page;

pub use page::{json, page};

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Gross joules a token of an answer.
    JoulesPerToken,
    /// Tokens of answers a second.
    TokensPerSecond,
    /// Median time to the first token.
    Ttft,
    /// Median time per token after the first.
    Tpot,
    /// Median time of a whole answer.
    E2el,
}

/// How two samples belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// Repeat by repeat: the same seeds.
    Paired,
    /// Each by itself.
    Apart,
    /// Too few repeats for an interval.
    Single,
}

/// What can be told of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// B is lower.
    Lower,
    /// B is higher.
    Higher,
    /// They are the same within the margin.
    Same,
    /// The interval holds both lower and higher.
    Open,
    /// There is no interval.
    Untold,
}

/// One measure at one rung.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The rung.
    pub kind: Kind,
    /// The measure.
    pub measure: Measure,
    /// Median of A's repeats.
    pub a: f64,
    /// Median of B's.
    pub b: f64,
    /// Repeats of A and of B.
    pub repeats: (usize, usize),
    /// How they belong together.
    pub pairing: Pairing,
    /// B / A: with an interval, or the ratio of the medians alone.
    pub ratio: Result<Interval, f64>,
    /// What can be told.
    pub verdict: Verdict,
}

/// Two records side by side.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// What told the energy; none where no reader covers both.
    pub ruler: Option<Ruler>,
    /// Changes within so much count as none (0.01: one per cent).
    pub margin: f64,
    /// The rows, by rung and measure.
    pub rows: Vec<Row>,
    /// Rungs that A alone has.
    pub only_a: Vec<Kind>,
    /// Rungs that B alone has.
    pub only_b: Vec<Kind>,
    /// Why the two may not be comparable, in sentences.
    pub cautions: Vec<String>,
}

const MEASURES: [Measure; 5] = [
    Measure::JoulesPerToken,
    Measure::TokensPerSecond,
    Measure::Ttft,
    Measure::Tpot,
    Measure::E2el,
];

impl Comparison {
    /// Of two records; `margin` as a part.
    pub fn of(a: &Record, b: &Record, margin: f64) -> Self {
        let ruler = Ruler::of(&[a, b]);
        let mut rows = Vec::new();
        let mut only_a = Vec::new();
        for rung in finished(a) {
            match finished(b).find(|other| other.kind == rung.kind) {
                Some(other) => rows
                    .extend(MEASURES.iter().filter_map(|it| row(*it, rung, other, ruler, margin))),
                None => only_a.push(rung.kind),
            }
        }
        let is_in_a = |kind: Kind| finished(a).any(|rung| rung.kind == kind);
        let only_b = finished(b).map(|rung| rung.kind).filter(|kind| !is_in_a(*kind)).collect();
        let cautions = cautions::of(a, b, ruler);
        Self { ruler, margin, rows, only_a, only_b, cautions }
    }

    /// How many rungs' energies got this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        let energy = self.rows.iter().filter(|row| row.measure == Measure::JoulesPerToken);
        energy.filter(|row| row.verdict == verdict).count()
    }
}

impl Measure {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::JoulesPerToken => "J/token",
            Self::TokensPerSecond => "tokens/s",
            Self::Ttft => "TTFT ms",
            Self::Tpot => "TPOT ms",
            Self::E2el => "E2E ms",
        }
    }

    fn of(self, repeat: &Repeat, ruler: Option<Ruler>) -> Option<f64> {
        let middle = |of: &Option<Statistics>| of.as_ref().map(Statistics::median);
        let value = match self {
            Self::JoulesPerToken => ruler?.per_token(repeat),
            Self::TokensPerSecond => {
                let tokens = repeat.completion_tokens()?;
                (repeat.window_ns > 0).then(|| tokens as f64 / repeat.seconds())
            }
            Self::Ttft => middle(&repeat.latencies.ttft_ms),
            Self::Tpot => middle(&repeat.latencies.tpot_ms),
            Self::E2el => middle(&repeat.latencies.e2el_ms),
        };
        value.filter(|value| *value > 0.0)
    }
}

impl Row {
    /// The ratio of B to A.
    pub fn middle(&self) -> f64 {
        self.ratio.map_or_else(|ratio| ratio, |it| it.mean)
    }
}

fn finished(record: &Record) -> impl Iterator<Item = &Rung> {
    record.rungs.iter().filter(|rung| rung.finished().next().is_some())
}

fn row(measure: Measure, a: &Rung, b: &Rung, ruler: Option<Ruler>, margin: f64) -> Option<Row> {
    let values = |rung: &Rung| -> Option<Vec<f64>> {
        rung.finished().map(|repeat| measure.of(repeat, ruler)).collect()
    };
    let (of_a, of_b) = (values(a)?, values(b)?);
    let seeds = |rung: &Rung| rung.finished().map(|it| it.seed).collect::<Option<Vec<_>>>();
    let (middle_a, middle_b) = (median(&of_a)?, median(&of_b)?);
    let same_seeds = seeds(a).is_some_and(|of_a| seeds(b) == Some(of_a));
    let paired = same_seeds.then(|| interval::of_paired_ratio(&of_a, &of_b)).flatten();
    let (pairing, interval) = match (paired, interval::of_ratio(&of_a, &of_b)) {
        (Some(interval), _) => (Pairing::Paired, Some(interval)),
        (None, Some(interval)) => (Pairing::Apart, Some(interval)),
        (None, None) => (Pairing::Single, None),
    };
    Some(Row {
        kind: a.kind,
        measure,
        a: middle_a,
        b: middle_b,
        repeats: (of_a.len(), of_b.len()),
        pairing,
        ratio: interval.ok_or(middle_b / middle_a),
        verdict: interval.map_or(Verdict::Untold, |interval| judged(interval, margin)),
    })
}

fn judged(interval: Interval, margin: f64) -> Verdict {
    let same = (1.0 / (1.0 + margin))..=(1.0 + margin);
    if same.contains(&interval.low) && same.contains(&interval.high) {
        Verdict::Same
    } else if interval.high < 1.0 {
        Verdict::Lower
    } else if interval.low > 1.0 {
        Verdict::Higher
    } else {
        Verdict::Open
    }
}

#[cfg(test)]
mod tests;
