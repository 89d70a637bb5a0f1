//! The highest power that a card is known to have drawn in a window.
//!
//! A counter shows energy between publishes, so a peak is a mean over a stretch; the shortest
//! stretch is taken whose ends are known closely enough that timing cannot make up a peak.

use joulebook::{Card, core::ring::Point};

/// The ends' uncertainty may be this share of a stretch.
const TIMING: f64 = 0.1;

/// The highest mean over a stretch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Peak {
    /// The mean, W.
    pub watts: f64,
    /// Over how long, s.
    pub seconds: f64,
}

/// The peak of a card between two instants; `None` where no stretch there is known well enough.
pub fn of(card: &Card, open_ns: u64, close_ns: u64) -> Option<Peak> {
    highest(&card.series().span(open_ns, close_ns, 1, 1))
}

fn highest(points: &[Point]) -> Option<Peak> {
    let peaks = points.iter().enumerate().filter_map(|(number, to)| {
        let before = points.get(..number)?;
        let from = before.iter().rev().find(|from| is_sharp(from, to))?;
        let seconds = (to.at_ns - from.at_ns) as f64 / 1e9;
        let joules = to.energy_uj.saturating_sub(from.energy_uj) as f64 / 1e6;
        Some(Peak { watts: joules / seconds, seconds })
    });
    peaks.max_by(|one, other| one.watts.total_cmp(&other.watts))
}

fn is_sharp(from: &Point, to: &Point) -> bool {
    let span_ns = to.at_ns.saturating_sub(from.at_ns) as f64;
    let open_ns = f64::from(from.uncertainty_ns) + f64::from(to.uncertainty_ns);
    span_ns > 0.0 && open_ns <= span_ns * TIMING
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(powers: &[f64], uncertainty_ms: u32) -> Vec<Point> {
        let mut energy = 0.0;
        let mut points = Vec::new();
        for (number, watts) in [0.0].iter().chain(powers).enumerate() {
            energy += watts * 1e5;
            points.push(Point {
                at_ns: number as u64 * 100_000_000,
                energy_uj: energy as u64,
                uncertainty_ns: uncertainty_ms * 1_000_000,
                ..Point::default()
            });
        }
        points
    }

    #[test]
    fn a_tick_is_a_peak_where_its_ends_are_known() {
        let mut powers = vec![70.0; 30];
        powers[12] = 400.0;
        let peak = highest(&points(&powers, 1)).unwrap();
        assert!((peak.watts - 400.0).abs() < 1e-6 && (peak.seconds - 0.1).abs() < 1e-9);
        // Known to within half a tick, only a second is long enough: 330 W more for a tenth of it.
        let peak = highest(&points(&powers, 50)).unwrap();
        assert!((peak.watts - 103.0).abs() < 1e-6 && (peak.seconds - 1.0).abs() < 1e-9, "{peak:?}");
    }

    #[test]
    fn what_is_too_short_has_none() {
        assert_eq!(highest(&points(&[70.0; 3], 50)), None);
        assert_eq!(highest(&[]), None);
    }
}
