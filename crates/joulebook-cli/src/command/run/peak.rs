//! The highest power that a card is known to have drawn in a window.
//!
//! A counter shows energy between publishes, so a peak is a mean over a stretch, whose ends are known
//! to within what the polls left open; the least that the mean can have been is given, so that
//! timing makes up no peak.

use joulebook::{Card, core::ring::Point};

/// A stretch whose ends are this uncertain, as a share of it, is long enough.
const TIMING: f64 = 0.1;

/// The highest mean over a stretch, at least.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Peak {
    /// The mean was no less than this, W.
    pub watts: f64,
    /// Over how long, s.
    pub seconds: f64,
}

/// The peak of a card between two instants; `None` where no stretch there is known well enough.
pub fn of(card: &Card, open_ns: u64, close_ns: u64) -> Option<Peak> {
    highest(&card.series().span(open_ns, close_ns, 1, 1))
}

fn highest(points: &[Point]) -> Option<Peak> {
    let mut highest: Option<Peak> = None;
    for (number, to) in points.iter().enumerate() {
        for from in points.get(..number).unwrap_or_default().iter().rev() {
            let open_s = (f64::from(from.uncertainty_ns) + f64::from(to.uncertainty_ns)) / 1e9;
            let seconds = to.at_ns.saturating_sub(from.at_ns) as f64 / 1e9;
            if seconds <= 0.0 {
                continue;
            }
            let joules = to.energy_uj.saturating_sub(from.energy_uj) as f64 / 1e6;
            let watts = joules / (seconds + open_s);
            if highest.is_none_or(|highest| watts > highest.watts) {
                highest = Some(Peak { watts, seconds });
            }
            if open_s <= seconds * TIMING {
                break;
            }
        }
    }
    highest
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
        assert!((peak.watts - 400.0 / 1.02).abs() < 1e-6 && (peak.seconds - 0.1).abs() < 1e-9);
    }

    #[test]
    fn timing_makes_up_no_peak() {
        let mut late = points(&[70.0; 30], 50);
        late[9].at_ns += 50_000_000;
        let peak = highest(&late).unwrap();
        assert!(peak.watts <= 70.0 && peak.watts > 60.0, "{peak:?}");
        assert_eq!(highest(&late[..1]), None);
    }
}
