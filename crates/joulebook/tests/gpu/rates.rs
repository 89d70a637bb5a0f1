//! Whether a register cares how often it is read: a counter's slope against the mean of a gauge,
//! both read at one rate.

use std::time::Duration;

use joulebook::{Reader, clock::now_ns, core::register::Bracket};

use super::trace::{Trace, Until, line, poll, seconds_from};

/// What one rate of reading showed.
#[derive(Clone, Debug)]
pub struct Rate {
    /// Reads a second; `None`: as fast as the driver answers.
    pub hertz: Option<f64>,
    pub is_loaded: bool,
    pub seconds: f64,
    /// Reads a second of the counter and of the gauge that were made.
    pub counter_per_s: f64,
    pub gauge_per_s: f64,
    /// The counter's slope, and how far the places of its publishes let it be off at most, W.
    pub slope_w: Option<f64>,
    pub slope_uncertainty_w: Option<f64>,
    /// The gauge's mean, W.
    pub mean_w: Option<f64>,
    pub failed: u64,
    pub odd: u64,
}

impl Rate {
    /// Slope over mean.
    pub fn ratio(&self) -> Option<f64> {
        self.slope_w
            .zip(self.mean_w)
            .filter(|(_, mean)| *mean > 0.0)
            .map(|(slope, mean)| slope / mean)
    }
}

/// Reads both at one rate for so long.
pub fn at(
    counter: &mut dyn Reader,
    gauge: &mut dyn Reader,
    hertz: Option<f64>,
    seconds: f64,
    period_s: Option<f64>,
    is_loaded: bool,
) -> Rate {
    let gap = hertz.map(|hertz| Duration::from_secs_f64(1.0 / hertz));
    let until_ns = now_ns() + (seconds * 1e9) as u64;
    let (of_counter, of_gauge) = std::thread::scope(|scope| {
        let of_gauge = scope.spawn(|| poll(gauge, gap, Until::Instant(until_ns)));
        let of_counter = poll(counter, gap, Until::Instant(until_ns));
        (of_counter, of_gauge.join().unwrap_or_default())
    });
    let slope = slope(&of_counter, period_s);
    let per_s = |trace: &Trace| trace.polls as f64 / trace.seconds().max(1e-9);
    Rate {
        hertz,
        is_loaded,
        seconds: of_counter.seconds(),
        counter_per_s: per_s(&of_counter),
        gauge_per_s: per_s(&of_gauge),
        slope_w: slope.map(|slope| slope.0),
        slope_uncertainty_w: slope.map(|slope| slope.1),
        mean_w: of_gauge.mean_w(),
        failed: of_counter.failed + of_gauge.failed,
        odd: of_counter.odd,
    }
}

/// A counter's slope over its publishes, each put no earlier than a period before the poll that
/// first showed it; and what their places leave open, W.
fn slope(trace: &Trace, period_s: Option<f64>) -> Option<(f64, f64)> {
    let period_ns = period_s.map_or(u64::MAX, |period_s| (period_s * 1e9) as u64);
    let places: Vec<(Bracket, f64)> = trace
        .publishes
        .iter()
        .map(|publish| {
            let earliest_ns = publish.at.by_ns.saturating_sub(period_ns);
            let after_ns = publish.at.after_ns.max(earliest_ns);
            (Bracket { after_ns, ..publish.at }, publish.value)
        })
        .collect();
    let base_ns = places.first()?.0.middle_ns();
    let at_s = |at: &Bracket| seconds_from(base_ns, at.middle_ns());
    let points: Vec<_> = places.iter().map(|(at, joules)| (at_s(at), *joules)).collect();
    let (slope_w, _) = line(&points)?;
    // The worst that all of them together can turn the line.
    let mean_s = points.iter().map(|(at_s, _)| at_s).sum::<f64>() / points.len() as f64;
    let spread = points.iter().map(|(at_s, _)| (at_s - mean_s).powi(2)).sum::<f64>();
    let turns = places
        .iter()
        .map(|(at, _)| (at_s(at) - mean_s).abs() * at.uncertainty_ns() as f64 / 1e9 / spread);
    Some((slope_w, slope_w * turns.sum::<f64>()))
}
