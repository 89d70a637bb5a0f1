//! How often a register is renewed, and how evenly.

use super::trace::{Publish, line, rank, seconds_from};

/// The grid of a register's publishes.
#[derive(Clone, Copy, Debug)]
pub struct Grid {
    /// Between two publishes, s.
    pub period_s: f64,
    /// How far 95 % of them lie from an even grid at most, s.
    pub jitter_s: f64,
    /// How far a publish can lie from where it is put, s: half the time between its two polls.
    pub uncertainty_s: f64,
    pub count: usize,
}

/// The grid; `None` where too few publishes were seen.
pub fn grid(publishes: &[Publish]) -> Option<Grid> {
    let half_s = |publish: &Publish| publish.at.uncertainty_ns() as f64 / 1e9;
    let widths: Vec<f64> = publishes.iter().skip(1).map(half_s).collect();
    let uncertainty_s = rank(&widths, 0.5)?;
    // A poll that came late says little about when the register was renewed.
    let pinned: Vec<&Publish> =
        publishes.iter().skip(1).filter(|publish| half_s(publish) <= 3.0 * uncertainty_s).collect();
    let spacing = |pair: &[&Publish]| seconds_from(pair[0].at.middle_ns(), pair[1].at.middle_ns());
    let spacings: Vec<f64> = pinned.windows(2).map(spacing).collect();
    let median_s = rank(&spacings, 0.5).filter(|_| spacings.len() >= 4)?;
    let base_ns = pinned.first()?.at.middle_ns();
    let mut number = 0.0;
    let mut points = vec![(0.0, 0.0)];
    for (publish, spacing_s) in pinned.iter().skip(1).zip(&spacings) {
        number += (spacing_s / median_s).round();
        points.push((number, seconds_from(base_ns, publish.at.middle_ns())));
    }
    let (period_s, offset_s) = line(&points)?;
    let strays: Vec<f64> =
        points.iter().map(|(number, at_s)| (at_s - offset_s - period_s * number).abs()).collect();
    let jitter_s = rank(&strays, 0.95)?;
    Some(Grid { period_s, jitter_s, uncertainty_s, count: pinned.len() })
}
