//! What a card draws at rest, measured on request and kept with its provenance.
//!
//! Decides whether what was seen is rest: nobody was at work, and the power was steady. Refused: a
//! floor of a card that was busy, that nobody could see the work of and that wavered, or that stands
//! on too few updates. A wavering that the instants of the publishes explain (an unprobed register
//! is known to within a polling gap) is not held against the card; the power gauge, looked at beside
//! it, sees a load that comes and goes between two polls.

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use joulebook_core::{Fault, Flags, ring::Point};
use serde::Serialize;

use crate::{
    card::Card,
    clock::{now_ns, unix_ns},
    nvml::{CardState, Driver, state},
    profile::Floor,
};

/// A process with this much memory has a model loaded.
pub const LOADED_MIB: u64 = 512;
/// A card that is at work for more of the time than this is busy, %.
const BUSY_PCT: u32 = 5;
/// Power may stray from its mean by as much.
const STEADY_SHARE: f64 = 0.05;
const STEADY_W: f64 = 5.0;
/// Stretches by which steadiness is judged, beside single ticks.
const STRETCH_NS: u64 = 1_000_000_000;
const FEWEST_READINGS: u64 = 5;
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A floor, and what was seen while it was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// The floor.
    pub floor: Floor,
    /// The highest utilisation seen, %; `None` where it cannot be read, and steadiness alone
    /// spoke for rest.
    pub utilization_pct: Option<u32>,
    /// Who was resident could not be seen, and the memory in use stood for it.
    pub tenants_hidden: bool,
}

/// Why there is no floor.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NoFloor {
    /// It was at work.
    #[error("the card was busy: {percent} % utilisation (at most {BUSY_PCT} %)")]
    Busy {
        /// The highest utilisation seen.
        percent: u32,
    },
    /// It was not at rest.
    #[error(
        "the power was not steady: {strayed_w:.1} W away from its mean of {watts:.1} W for a while \
         (at most {limit_w:.1} W)"
    )]
    Unsteady {
        /// The mean.
        watts: f64,
        /// The furthest from it.
        strayed_w: f64,
        /// How far is still steady.
        limit_w: f64,
    },
    /// Too little was seen.
    #[error("only {readings} updates were seen; measure for longer")]
    TooFew {
        /// How many.
        readings: u64,
    },
    /// It could not be read.
    #[error("the card could not be read: {0}")]
    Unreadable(Fault),
    /// The register restarted, stood still or had a hole in it.
    #[error("the readings have a break in them ({0}); measure again")]
    Broken(String),
}

/// Measures a card's floor for this long, through its recorder. Blocks.
pub fn measure(driver: &Driver, card: &Arc<Card>, length: Duration) -> Result<Measured, NoFloor> {
    let uuid = card.device().uuid.clone();
    let from_ns = now_ns();
    let until = Instant::now() + length;
    let mut seen = Seen::default();
    while let Some(left) = until.checked_duration_since(Instant::now()) {
        seen.look(state(driver, &uuid).ok().as_ref());
        thread::sleep(left.min(LOOK_EVERY));
    }
    seen.look(state(driver, &uuid).ok().as_ref());
    if let Some(fault) = card.trouble() {
        return Err(NoFloor::Unreadable(fault));
    }
    if let Some(percent) = seen.utilization_pct.filter(|percent| *percent > BUSY_PCT) {
        return Err(NoFloor::Busy { percent });
    }
    seen.steady()?;
    let mut points = card.series().span(from_ns, now_ns(), 1, 1);
    points.retain(|point| point.at_ns >= from_ns);
    let steady = steady(&points)?;
    let device = card.device();
    Ok(Measured {
        floor: Floor {
            watts: steady.watts,
            spread_watts: steady.spread_w,
            unix_s: (unix_ns(now_ns()) / 1_000_000_000) as u64,
            seconds: steady.seconds,
            readings: steady.readings,
            backend: device.backend.word().to_owned(),
            scope: device.scope,
            model_loaded: seen.loaded,
        },
        utilization_pct: seen.utilization_pct,
        tenants_hidden: seen.hidden,
    })
}

/// What was seen beside the register.
#[derive(Clone, Debug, Default)]
struct Seen {
    watts: Vec<f64>,
    utilization_pct: Option<u32>,
    loaded: bool,
    hidden: bool,
}

impl Seen {
    fn look(&mut self, now: Option<&CardState>) {
        let Some(now) = now else { return };
        self.utilization_pct = self.utilization_pct.max(now.utilization_pct);
        self.watts.extend(now.watts);
        match &now.compute_apps {
            // Memory that is not known counts as large.
            Some(apps) => {
                self.loaded |=
                    apps.iter().any(|app| app.used_mib.is_none_or(|used| used >= LOADED_MIB));
            }
            None => {
                self.hidden = true;
                self.loaded |= now.memory_used_mib.is_some_and(|used| used >= 2 * LOADED_MIB);
            }
        }
    }
}

impl Seen {
    /// One look in ten may stray: the look itself wakes some cards for a moment.
    fn steady(&self) -> Result<(), NoFloor> {
        let sorted = |mut values: Vec<f64>| {
            values.sort_by(f64::total_cmp);
            values
        };
        let watts = sorted(self.watts.clone());
        let Some(middle) = watts.get(watts.len() / 2).copied() else { return Ok(()) };
        let strayed = sorted(watts.iter().map(|watts| (watts - middle).abs()).collect());
        let strayed_w = strayed.get(strayed.len() * 9 / 10).copied().unwrap_or_default();
        let limit_w = limit_w(middle);
        if strayed_w > limit_w {
            return Err(NoFloor::Unsteady { watts: middle, strayed_w, limit_w });
        }
        Ok(())
    }
}

/// How far from its mean a card at rest may stray, W.
fn limit_w(watts: f64) -> f64 {
    (watts * STEADY_SHARE).max(STEADY_W)
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Steady {
    watts: f64,
    spread_w: f64,
    seconds: f64,
    readings: u64,
}

/// Judges a stretch of the series.
fn steady(points: &[Point]) -> Result<Steady, NoFloor> {
    let polls = points.len().saturating_sub(1) as u64;
    let repeated = points.iter().skip(1).filter(|point| point.flags.contains(Flags::REPEATED));
    // A gauge that shows one value all the while has been updated to it at least once.
    let readings = polls.saturating_sub(repeated.count() as u64).max(polls.min(1));
    let few = NoFloor::TooFew { readings };
    let breaks = points.iter().skip(1).fold(Flags::NONE, |flags, point| flags | point.flags);
    let broken = Flags::GAP | Flags::BRIDGED | Flags::COUNTER_FROZEN;
    if breaks.intersects(broken) {
        let words: Vec<_> =
            breaks.words().filter(|word| broken.words().any(|other| other == *word)).collect();
        return Err(NoFloor::Broken(words.join(", ")));
    }
    if polls < FEWEST_READINGS {
        return Err(few);
    }
    let points = sharpest(points);
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return Err(few) };
    let mean = Mean::of(first, last).ok_or(few)?;
    let limit_w = limit_w(mean.watts);
    let ticks = points.windows(2).filter_map(|pair| Mean::of(pair.first()?, pair.last()?));
    let stretches = stretches(&points);
    let mut spread_w: f64 = 0.0;
    for part in ticks.chain(stretches.iter().copied()) {
        spread_w = spread_w.max(part.low_w - mean.watts).max(mean.watts - part.high_w);
    }
    if spread_w > limit_w {
        return Err(NoFloor::Unsteady { watts: mean.watts, strayed_w: spread_w, limit_w });
    }
    Ok(Steady { watts: mean.watts, spread_w, seconds: mean.seconds, readings })
}

/// The points whose instants are known closely; energy is cumulative, so the others may be left
/// out.
fn sharpest(points: &[Point]) -> Vec<Point> {
    let mut widths: Vec<u32> = points.iter().map(|point| point.uncertainty_ns).collect();
    widths.sort_unstable();
    let close_ns = widths.get(widths.len() / 2).map_or(u32::MAX, |ns| ns.saturating_mul(2));
    points.iter().filter(|point| point.uncertainty_ns <= close_ns).copied().collect()
}

/// Mean power between two points.
#[derive(Clone, Copy, Debug)]
struct Mean {
    watts: f64,
    seconds: f64,
    /// The least and the most that it can be, by the points' instants.
    low_w: f64,
    high_w: f64,
}

impl Mean {
    fn of(from: &Point, to: &Point) -> Option<Self> {
        let nanoseconds = to.at_ns.checked_sub(from.at_ns).filter(|ns| *ns > 0)? as f64;
        let joules = to.energy_uj.saturating_sub(from.energy_uj) as f64 / 1e6;
        let open = f64::from(from.uncertainty_ns) + f64::from(to.uncertainty_ns);
        let watts_over = |nanoseconds: f64| joules * 1e9 / nanoseconds;
        Some(Self {
            watts: watts_over(nanoseconds),
            seconds: nanoseconds / 1e9,
            low_w: watts_over(nanoseconds + open),
            high_w: if open < nanoseconds { watts_over(nanoseconds - open) } else { f64::INFINITY },
        })
    }
}

fn stretches(points: &[Point]) -> Vec<Mean> {
    let mut found = Vec::new();
    let mut begin = points.first();
    for point in points {
        if let Some(from) = begin.filter(|from| point.at_ns - from.at_ns >= STRETCH_NS) {
            found.extend(Mean::of(from, point));
            begin = Some(point);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ticks of 100 ms at these powers, each instant known to within `uncertainty_ms`.
    fn series(powers: &[f64], uncertainty_ms: u32) -> Vec<Point> {
        let mut energy = 0.0;
        let mut points = vec![Point::default()];
        for (number, watts) in powers.iter().enumerate() {
            energy += watts * 1e5;
            points.push(Point {
                at_ns: (number as u64 + 1) * 100_000_000,
                energy_uj: energy as u64,
                uncertainty_ns: uncertainty_ms * 1_000_000,
                ..Point::default()
            });
        }
        points
    }

    #[test]
    fn rest_is_a_floor() {
        let found = steady(&series(&[70.0; 40], 1)).unwrap();
        assert!((found.watts - 70.0).abs() < 1e-6 && found.readings == 40, "{found:?}");
        assert!((found.seconds - 4.0).abs() < 1e-9);
    }

    #[test]
    fn a_burst_or_a_slope_is_no_rest() {
        let mut burst = [70.0; 40];
        burst[17] = 120.0;
        let slope: Vec<f64> = (0..40).map(|tick| 60.0 + f64::from(tick)).collect();
        for powers in [&burst[..], &slope[..]] {
            let refused = steady(&series(powers, 1)).unwrap_err();
            assert!(matches!(refused, NoFloor::Unsteady { .. }), "{refused}");
        }
    }

    #[test]
    fn a_load_between_the_polls_is_seen_by_the_gauge() {
        let looked = |watts: &[f64]| Seen { watts: watts.into(), ..Seen::default() }.steady();
        let blip = [[70.0; 19].as_slice(), &[95.0]].concat();
        assert!(looked(&blip).is_ok() && looked(&[]).is_ok());
        let bursts = [[70.0; 12].as_slice(), &[370.0; 8]].concat();
        assert!(matches!(looked(&bursts), Err(NoFloor::Unsteady { .. })));
    }

    #[test]
    fn instants_that_are_not_known_make_no_unrest() {
        // One publish late by half a tick, as polls at its own period see it.
        let mut points = series(&[70.0; 40], 50);
        points[20].at_ns += 50_000_000;
        assert!(steady(&points).is_ok());
        points.iter_mut().for_each(|point| point.uncertainty_ns = 1_000_000);
        assert!(steady(&points).is_err());
    }

    #[test]
    fn too_little_and_breaks_are_refused() {
        assert!(matches!(steady(&series(&[70.0; 3], 1)), Err(NoFloor::TooFew { readings: 3 })));
        assert!(matches!(steady(&[]), Err(NoFloor::TooFew { readings: 0 })));
        let mut points = series(&[70.0; 40], 1);
        points[9].flags = Flags::GAP | Flags::COUNTER_RESET;
        assert_eq!(steady(&points), Err(NoFloor::Broken("gap".into())));
    }
}
