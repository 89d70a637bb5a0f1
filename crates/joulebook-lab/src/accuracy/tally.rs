//! Sums over the windows of a cell.

use joulebook::core::{
    Flags, Measurement, Method,
    estimate::{Estimated, Rule},
    grade::Context,
};

/// What many windows came to. Energies are above idle; those that were not kept are left out of
/// the sums and counted.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Windows asked about.
    pub windows: u64,
    /// Windows with a sampled figure.
    pub kept: u64,
    /// Kept ones whose bound is larger than the figure.
    pub unresolved: u64,
    /// Kept ones made by the rule alone.
    pub alone: u64,
    /// Figures further from the truth than their bound, intervals without it, lower bounds above it.
    pub violations: u64,
    truth_j: f64,
    error_j: f64,
    absolute_error_j: f64,
    bound_shares: Vec<f64>,
}

/// Rounding of doubles is no violation, J.
const ROUNDING_J: f64 = 1e-6;

impl Tally {
    pub(super) fn add(
        &mut self,
        estimated: &Estimated,
        measurement: &Measurement,
        context: &Context,
        gross_truth_j: f64,
    ) {
        self.windows += 1;
        let truth_j = gross_truth_j - context.idle_w.unwrap_or(0.0) * context.idle_seconds;
        if !holds(estimated, gross_truth_j) || !spans(measurement, truth_j) {
            self.violations += 1;
        }
        let (Method::Sampled, Some(joules)) = (measurement.method, measurement.joules) else {
            return;
        };
        let error_j = joules - truth_j;
        self.kept += 1;
        self.truth_j += truth_j;
        self.error_j += error_j;
        self.absolute_error_j += error_j.abs();
        self.unresolved += u64::from(measurement.flags.contains(Flags::UNRESOLVED));
        self.alone += u64::from(measurement.rule == Some(Rule::Alone));
        self.bound_shares.extend(measurement.bound_joules.map(|bound_j| bound_j / joules));
    }

    /// Σ|error| / Σtruth.
    pub fn error(&self) -> Option<f64> {
        self.share_of_truth(self.absolute_error_j)
    }

    /// Σerror / Σtruth.
    pub fn bias(&self) -> Option<f64> {
        self.share_of_truth(self.error_j)
    }

    /// Half of the kept figures have a bound of at most this share of themselves.
    pub fn median_bound(&self) -> Option<f64> {
        let mut shares = self.bound_shares.clone();
        shares.sort_unstable_by(f64::total_cmp);
        shares.get(shares.len() / 2).copied()
    }

    fn share_of_truth(&self, joules: f64) -> Option<f64> {
        (self.kept > 0 && self.truth_j > 0.0).then(|| joules / self.truth_j)
    }
}

/// Whether an estimate keeps what it promises of the energy before idle; also one that got no label.
fn holds(estimated: &Estimated, truth_j: f64) -> bool {
    let within =
        |(low, high): (f64, f64)| low - ROUNDING_J <= truth_j && truth_j <= high + ROUNDING_J;
    match estimated {
        Ok(estimate) => {
            (estimate.gross_j - truth_j).abs() <= estimate.bound_j + ROUNDING_J
                && within(estimate.range_j)
        }
        Err(missing) => {
            missing.lower_bound_j.is_none_or(|least_j| least_j <= truth_j + ROUNDING_J)
                && missing.seen.is_none_or(|seen| within(seen.range_j))
        }
    }
}

/// Whether the label's own promises hold.
fn spans(measurement: &Measurement, truth_j: f64) -> bool {
    measurement.low_joules.is_none_or(|low_j| low_j <= truth_j + ROUNDING_J)
        && measurement.high_joules.is_none_or(|high_j| truth_j <= high_j + ROUNDING_J)
        && match (measurement.joules, measurement.bound_joules) {
            (Some(joules), Some(bound_j)) => (joules - truth_j).abs() <= bound_j + ROUNDING_J,
            _ => true,
        }
}
