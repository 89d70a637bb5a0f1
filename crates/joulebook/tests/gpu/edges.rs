//! How late a register shows what the card does, and over how long a gauge averages: from pulses of
//! work whose edges are known.
//!
//! A counter's publishes lie on one line before an edge and on another after it; the lines meet at
//! the edge plus the lag. A gauge's publishes are compared with what a mean over W that comes L late
//! would show after such a step, and the best W and L are taken.

use super::trace::{Publish, Trace, line, seconds_from};

/// Begin and end of each pulse, ns, and how far they can be off.
#[derive(Clone, Debug, Default)]
pub struct Pulses {
    pub edges: Vec<(u64, u64)>,
    pub edge_ns: u64,
    /// Before the first pulse, between two, and after the last: at least so long, s.
    pub stretch_s: f64,
}

/// A figure and how far it can be off.
#[derive(Clone, Copy, Debug)]
pub struct About {
    pub value: f64,
    pub uncertainty: f64,
}

/// What a gauge makes of a step.
#[derive(Clone, Copy, Debug)]
pub struct Response {
    /// It shows the mean over so long, s.
    pub averaging_s: About,
    /// And that so late, s.
    pub lag_s: About,
    /// How well that describes what it showed: the root mean square of what is left, as a share of
    /// the step.
    pub rest: f64,
    /// The plateaus, W.
    pub low_w: f64,
    pub high_w: f64,
}

/// A counter's lag.
pub fn counter_lag(trace: &Trace, pulses: &Pulses) -> Option<About> {
    let stretch_ns = (pulses.stretch_s * 1e9) as u64;
    // The first part of a stretch still shows what was before it.
    let settled_ns = stretch_ns / 2;
    let slope = |from_ns: u64, edge_ns: u64| {
        let shown = trace.between(from_ns, from_ns + (stretch_ns - settled_ns));
        let points: Vec<_> = shown
            .map(|publish| (seconds_from(edge_ns, publish.at.middle_ns()), publish.value))
            .collect();
        line(&points).filter(|_| points.len() >= 3)
    };
    let lags: Vec<f64> = pulses
        .edges
        .iter()
        .flat_map(|(begin_ns, end_ns)| [*begin_ns, *end_ns])
        .filter_map(|edge_ns| {
            let before = slope(edge_ns - (stretch_ns - settled_ns), edge_ns)?;
            let after = slope(edge_ns + settled_ns, edge_ns)?;
            let turn_w = after.0 - before.0;
            (turn_w.abs() > 1.0).then(|| (before.1 - after.1) / turn_w)
        })
        .collect();
    let value = lags.iter().sum::<f64>() / lags.len() as f64;
    let spread = lags.iter().map(|lag| (lag - value).abs()).fold(0.0, f64::max);
    let widths = trace.publishes.iter().skip(1).map(|publish| publish.at.uncertainty_ns());
    let mut widths: Vec<u64> = widths.collect();
    widths.sort_unstable();
    let poll_ns = *widths.get(widths.len() / 2)?;
    let uncertainty = spread + (poll_ns + pulses.edge_ns) as f64 / 1e9;
    (!lags.is_empty()).then_some(About { value, uncertainty })
}

/// A gauge's averaging and lag.
pub fn gauge_response(trace: &Trace, pulses: &Pulses) -> Option<Response> {
    let (low_w, high_w) = plateaus(trace, pulses)?;
    if (high_w - low_w).abs() < 5.0 {
        return None;
    }
    let reach_ns = (pulses.stretch_s * 1e9) as u64;
    // What each publish showed of the step, by the time since its edge.
    let mut shown: Vec<(f64, f64)> = Vec::new();
    for (begin_ns, end_ns) in &pulses.edges {
        for (edge_ns, from_w, to_w) in [(*begin_ns, low_w, high_w), (*end_ns, high_w, low_w)] {
            let after = trace.between(edge_ns, edge_ns + reach_ns);
            shown.extend(after.map(|publish| share(publish, edge_ns, from_w, to_w)));
        }
    }
    // A value that stayed is no publish: the last one before an edge says nothing was shown yet.
    let misfit = |averaging_s: f64, lag_s: f64| {
        let left = |(since_s, share): &(f64, f64)| {
            let passed_s = since_s - lag_s;
            let whole = if averaging_s > 0.0 {
                (passed_s / averaging_s).clamp(0.0, 1.0)
            } else {
                f64::from(u8::from(passed_s >= 0.0))
            };
            (share - whole).powi(2)
        };
        shown.iter().map(left).sum::<f64>() / shown.len() as f64
    };
    const STEP_S: f64 = 0.005;
    let tries = |most_s: f64| (0..=(most_s / STEP_S) as u32).map(|n| f64::from(n) * STEP_S);
    let fits: Vec<(f64, f64, f64)> = tries(reach_ns as f64 / 1e9)
        .flat_map(|averaging_s| tries(0.3).map(move |lag_s| (averaging_s, lag_s)))
        .map(|(averaging_s, lag_s)| (misfit(averaging_s, lag_s), averaging_s, lag_s))
        .collect();
    let best = fits.iter().map(|fit| fit.0).min_by(f64::total_cmp)?;
    // All that describe it nearly as well (2 % of the step more) are as good.
    let as_good = || fits.iter().filter(move |fit| fit.0.sqrt() <= best.sqrt() + 0.02);
    let about = |pick: fn(&(f64, f64, f64)) -> f64| {
        let least = as_good().map(pick).fold(f64::INFINITY, f64::min);
        let most = as_good().map(pick).fold(0.0, f64::max);
        About { value: (least + most) / 2.0, uncertainty: (most - least) / 2.0 + STEP_S }
    };
    (shown.len() >= 2).then(|| Response {
        averaging_s: about(|fit| fit.1),
        lag_s: about(|fit| fit.2),
        rest: best.sqrt(),
        low_w,
        high_w,
    })
}

fn share(publish: &Publish, edge_ns: u64, from_w: f64, to_w: f64) -> (f64, f64) {
    let since_s = seconds_from(edge_ns, publish.at.middle_ns());
    (since_s, (publish.value - from_w) / (to_w - from_w))
}

/// What a gauge shows at the end of the pauses and of the pulses, W.
fn plateaus(trace: &Trace, pulses: &Pulses) -> Option<(f64, f64)> {
    let at = |edge_ns: u64| {
        let last = trace.publishes.iter().rfind(|publish| publish.at.by_ns <= edge_ns);
        last.map(|publish| publish.value)
    };
    let mean = |values: Vec<f64>| {
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let low = mean(pulses.edges.iter().filter_map(|(begin_ns, _)| at(*begin_ns)).collect())?;
    let high = mean(pulses.edges.iter().filter_map(|(_, end_ns)| at(*end_ns)).collect())?;
    Some((low, high))
}
