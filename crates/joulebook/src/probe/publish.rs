//! How a register is renewed: its period and how far it strays from an even grid, from the brackets
//! that polls put around each change.

use joulebook_core::register::Bracket;
use serde::Serialize;

const SECOND: f64 = 1e9;
/// Changes that a grid needs.
const FEWEST: usize = 4;

/// How a register is renewed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Renewal {
    /// From one publish to the next, s.
    pub period_s: f64,
    /// 19 of 20 publishes lie no further than this from an even grid, s; what the polls could not
    /// tell apart is in it.
    pub jitter_s: f64,
    /// Changes seen.
    pub publishes: usize,
    /// True when it changed at every poll: the period may be shorter than given.
    pub at_most: bool,
}

/// The renewal that these changes show; `None` where they are too few. `poll_gap_ns`: how far apart
/// the polls were that saw most of them.
pub(super) fn renewal(changes: &[Bracket], poll_gap_ns: u64) -> Option<Renewal> {
    if changes.len() < FEWEST {
        return None;
    }
    let middle = |change: &Bracket| change.middle_ns() as f64;
    let steps = changes.iter().skip(1).zip(changes);
    let mut spacings: Vec<f64> = steps.map(|(to, from)| middle(to) - middle(from)).collect();
    spacings.sort_by(f64::total_cmp);
    let typical = spacings.get(spacings.len() / 2).copied().filter(|spacing| *spacing > 0.0)?;
    // Changes that are known closely tell more than all of them.
    let mut widths: Vec<u64> = changes.iter().map(|change| change.uncertainty_ns()).collect();
    widths.sort_unstable();
    let close_ns = widths.get(widths.len() / 2).map_or(u64::MAX, |median| median * 3 / 2 + 1);
    let close = changes.iter().filter(|change| change.uncertainty_ns() <= close_ns);
    let middles: Vec<f64> = close.map(middle).collect();
    let base = middles.first().copied()?;
    let mut number = 0.0;
    let mut numbered = Vec::with_capacity(middles.len());
    let mut last = base;
    for middle in &middles {
        number += ((middle - last) / typical).round();
        last = *middle;
        numbered.push((number, middle - base));
    }
    let (offset, period) = line(&numbered)?;
    let mut strays: Vec<f64> =
        numbered.iter().map(|(number, at)| (at - offset - period * number).abs()).collect();
    strays.sort_by(f64::total_cmp);
    let stray = strays.get((strays.len() * 19).div_ceil(20).saturating_sub(1)).copied()?;
    Some(Renewal {
        period_s: period / SECOND,
        jitter_s: stray / SECOND,
        publishes: changes.len(),
        at_most: typical < 1.5 * poll_gap_ns as f64,
    })
}

/// Least squares: offset and slope.
fn line(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let count = points.len() as f64;
    let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / count;
    let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / count;
    let spread = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum::<f64>();
    let slope = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum::<f64>() / spread;
    (spread > 0.0 && slope > 0.0).then_some((mean_y - slope * mean_x, slope))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A register of this period, seen by even polls.
    fn seen(period_ms: u64, gap_ms: u64, for_ms: u64) -> Vec<Bracket> {
        let (mut changes, mut last) = (Vec::new(), 0);
        for poll_ms in (0..for_ms).step_by(gap_ms as usize) {
            let shown = poll_ms / period_ms;
            if shown != last {
                let after_ns = (poll_ms - gap_ms) * MS;
                changes.push(Bracket { after_ns, by_ns: poll_ms * MS });
                last = shown;
            }
        }
        changes
    }

    #[test]
    fn the_period_is_found_between_the_polls() {
        for (period_ms, gap_ms) in [(100, 7), (20, 7), (50, 7), (1000, 7)] {
            let found = renewal(&seen(period_ms, gap_ms, 6000), gap_ms * MS).unwrap();
            let ratio = found.period_s * 1000.0 / period_ms as f64;
            assert!((ratio - 1.0).abs() < 0.01, "{period_ms}: {found:?}");
            assert!(found.jitter_s <= 0.0036, "{found:?}");
            assert!(!found.at_most);
        }
    }

    #[test]
    fn a_publish_that_was_not_seen_shifts_no_number() {
        let mut changes = seen(100, 7, 6000);
        changes.remove(20);
        changes.remove(30);
        let found = renewal(&changes, 7 * MS).unwrap();
        assert!((found.period_s - 0.1).abs() < 0.001, "{found:?}");
    }

    #[test]
    fn polls_that_come_late_make_no_longer_period() {
        // One of three is seen within 30 ms only, as on a busy machine.
        let mut changes = seen(100, 7, 6000);
        for (number, change) in changes.iter_mut().enumerate() {
            if number % 3 == 0 {
                change.by_ns += 30 * MS;
            }
        }
        let found = renewal(&changes, 7 * MS).unwrap();
        assert!((found.period_s - 0.1).abs() < 0.001, "{found:?}");
    }

    #[test]
    fn what_changes_at_every_poll_may_be_faster() {
        assert!(renewal(&seen(7, 7, 600), 7 * MS).unwrap().at_most);
        assert_eq!(renewal(&seen(100, 7, 300), 7 * MS), None);
    }
}
