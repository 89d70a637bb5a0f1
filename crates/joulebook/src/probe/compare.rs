//! The counter's slope over the integral of power, and how far that can be off for reasons that are
//! not the counter's: edges whose instants are not known exactly, and a load that the gauge samples
//! too seldom.

use serde::Serialize;

use super::{counter::Edge, gauge::GaugeSamples};

/// A gauge may be late by as much.
const GAUGE_LAG_S: f64 = 0.1;

/// A ratio and its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// Counter over gauge.
    pub value: f64,
    /// How far it may be off by the load's unevenness and by timing.
    pub uncertainty: f64,
    /// Over how long, s.
    pub seconds: f64,
    /// Reads of the counter a second.
    pub reads_per_second: f64,
}

/// Compares them between two publishes of the counter; `None` where the gauge shows no power.
pub(super) fn ratio(
    from: &Edge,
    to: &Edge,
    gauge: &GaugeSamples,
    period_ns: Option<u64>,
) -> Option<Ratio> {
    let (begin_ns, end_ns) = (from.at.middle_ns(), to.at.middle_ns());
    let seconds = end_ns.checked_sub(begin_ns)? as f64 / 1e9;
    let counted_j = to.energy_uj.checked_sub(from.energy_uj)? as f64 / 1e6;
    let drawn = gauge.integral(begin_ns, end_ns)?;
    if drawn.joules <= 0.0 || seconds <= 0.0 {
        return None;
    }
    let value = counted_j / drawn.joules;
    let timing_s = (from.at.uncertainty_ns() + to.at.uncertainty_ns()) as f64 / 1e9;
    let late_s = GAUGE_LAG_S.max(period_ns.unwrap_or(0) as f64 / 1e9);
    let shift_j = drawn.edge_difference_w * late_s;
    let relative = timing_s / seconds + (2.0 * drawn.standard_error_j + shift_j) / drawn.joules;
    let uncertainty = value * relative;
    let reads_per_second = to.reads.saturating_sub(from.reads) as f64 / seconds;
    Some(Ratio { value, uncertainty, seconds, reads_per_second })
}

impl Ratio {
    /// True when it certainly lies further than `tolerance` from 1.
    pub(super) fn strays_beyond(self, tolerance: f64) -> bool {
        (self.value - 1.0).abs() - self.uncertainty > tolerance
    }

    /// True when it certainly differs from another by more than `tolerance`.
    pub(super) fn differs_from(self, other: Self, tolerance: f64) -> bool {
        let apart = (self.value - other.value).abs() - self.uncertainty - other.uncertainty;
        other.value > 0.0 && apart / other.value > tolerance
    }

    /// True when it cannot tell whether the counter is within `tolerance`.
    pub(super) fn is_vague(self, tolerance: f64) -> bool {
        self.uncertainty > tolerance
    }
}
