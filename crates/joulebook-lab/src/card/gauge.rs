//! The power registers, and the energy that the averaged one adds up to.

use std::sync::{Mutex, PoisonError};

use crate::{load::Load, scenario::Gauge};

/// Publishes from one kept sum to the next.
const STRIDE: i64 = 64;
/// Younger publishes are summed afresh each time: a live load may still be written there.
const YOUNG_NS: i64 = 1_000_000_000;

/// The running sum of what a power register showed since the epoch, kept at every [`STRIDE`]th
/// publish so that a look-up costs a few dozen means and not the whole history.
#[derive(Default)]
pub(super) struct SensorSum(Mutex<Vec<f64>>);

/// What the register shows at an instant, W.
pub(super) fn shown_w(gauge: &Gauge, load: &Load, t_ns: i64) -> f64 {
    mean_w(gauge, load, publish_ns(gauge, index_at(gauge, t_ns), t_ns))
}

/// The publish that is the last at an instant.
fn index_at(gauge: &Gauge, t_ns: i64) -> i64 {
    t_ns.saturating_sub(gauge.phase_ns).checked_div_euclid(gauge.period_ns).unwrap_or(0)
}

fn publish_ns(gauge: &Gauge, index: i64, t_ns: i64) -> i64 {
    if gauge.period_ns == 0 {
        return t_ns;
    }
    gauge.phase_ns.saturating_add(index.saturating_mul(gauge.period_ns))
}

/// What is published at an instant, W.
fn mean_w(gauge: &Gauge, load: &Load, publish_ns: i64) -> f64 {
    let end_ns = publish_ns.saturating_sub(gauge.lag_ns);
    if gauge.window_ns == 0 {
        return gauge.gain * load.watts(end_ns);
    }
    let start_ns = end_ns.saturating_sub(gauge.window_ns);
    gauge.gain * load.energy(start_ns, end_ns) / (gauge.window_ns as f64 / 1e9)
}

impl SensorSum {
    /// The sum from the epoch to an instant, J; 0 before the epoch.
    pub(super) fn joules(&self, gauge: &Gauge, load: &Load, t_ns: i64) -> f64 {
        if t_ns <= 0 {
            return 0.0;
        }
        if gauge.period_ns == 0 {
            // A register that publishes without end: its trailing mean sums to almost the truth.
            return gauge.gain * load.joules(t_ns.saturating_sub(gauge.lag_ns));
        }
        let held_j = |index: i64, until_ns: i64| {
            let from_ns = publish_ns(gauge, index, 0).max(0);
            mean_w(gauge, load, publish_ns(gauge, index, 0)) * (until_ns - from_ns) as f64 / 1e9
        };
        let step_j = |index: i64| held_j(index, publish_ns(gauge, index + 1, 0));
        // The publish that is shown at the epoch is the first of the sum.
        let first = index_at(gauge, 0);
        let last = index_at(gauge, t_ns);
        let old = index_at(gauge, t_ns.saturating_sub(YOUNG_NS)).max(first);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut at = first;
        let mut sum = 0.0;
        // Kept sum n stands before publish first + (n + 1)·STRIDE.
        let wanted = usize::try_from((last - first) / STRIDE).unwrap_or(0);
        if let Some(n) = wanted.min(kept.len()).checked_sub(1) {
            sum = kept.get(n).copied().unwrap_or(0.0);
            at = first + (n as i64 + 1) * STRIDE;
        }
        while at < last {
            sum += step_j(at);
            at += 1;
            let n = (at - first) / STRIDE;
            if (at - first) % STRIDE == 0 && at <= old && kept.len() as i64 == n - 1 {
                kept.push(sum);
            }
        }
        drop(kept);
        sum + held_j(last, t_ns)
    }
}
