//! Summaries of latencies, as the usual load generators define theirs.
//!
//! Percentiles are numpy's default (linear between the two nearest ranks, of `n − 1` steps), the
//! standard deviation is the population's: aiperf's and vLLM's figures from the same values are the
//! same numbers. Refused: values that are no numbers, and a summary of none.

use serde::{Deserialize, Serialize};

mod named;

/// The percentiles of a summary, in per cent.
pub const PERCENTILES: [u8; 9] = [1, 5, 10, 25, 50, 75, 90, 95, 99];

/// A summary of values; all in the unit of the values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "named::Named", into = "named::Named")]
pub struct Statistics {
    /// How many.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation (of the population).
    pub std: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
    /// The percentiles of [`PERCENTILES`], in their order.
    pub percentiles: [f64; 9],
}

impl Statistics {
    /// Of these; none where there are none, or where one is no number.
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let count = sorted.len() as f64;
        let sum: f64 = values.iter().sum();
        let mean = sum / count;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
        let at = |percent: u8| percentile(&sorted, f64::from(percent)).unwrap_or(min);
        Some(Self {
            count: values.len() as u64,
            sum,
            mean,
            std: variance.sqrt(),
            min,
            max,
            percentiles: PERCENTILES.map(at),
        })
    }

    /// One of the percentiles of [`PERCENTILES`].
    pub fn percentile(&self, percent: u8) -> Option<f64> {
        let at = PERCENTILES.iter().position(|it| *it == percent)?;
        self.percentiles.get(at).copied()
    }

    /// The middle one.
    pub fn median(&self) -> f64 {
        let [_, _, _, _, median, ..] = self.percentiles;
        median
    }
}

/// A percentile of values in rising order, linear between the two nearest ranks; none of none.
pub fn percentile(sorted: &[f64], percent: f64) -> Option<f64> {
    let steps = sorted.len().checked_sub(1)?;
    let rank = (percent / 100.0).clamp(0.0, 1.0) * steps as f64;
    let below = rank.floor() as usize;
    let (low, high) = (*sorted.get(below)?, *sorted.get((below + 1).min(steps))?);
    let part = rank - below as f64;
    // From the nearer end, so that the ends are met exactly.
    let apart = high - low;
    Some(if part < 0.5 { low + apart * part } else { high - apart * (1.0 - part) })
}

/// The value at the nearest rank of values in rising order, of which `infinite` more lie beyond all
/// (requests that failed have an unbounded latency); none where the rank falls among those.
pub fn nearest_rank(sorted: &[f64], infinite: usize, percent: f64) -> Option<f64> {
    let steps = (sorted.len() + infinite).checked_sub(1)?;
    let rank = (percent / 100.0).clamp(0.0, 1.0) * steps as f64;
    sorted.get(rank.round_ties_even() as usize).copied()
}

/// The median, as that of [`Statistics`].
pub fn median(values: &[f64]) -> Option<f64> {
    Statistics::of(values).map(|it| it.median())
}

#[cfg(test)]
mod tests;
