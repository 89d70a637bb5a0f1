//! What a card draws at rest, learnt from ticks in which nobody was at work.
//!
//! Decides whether the ticks seen lately show a floor: the median of the quiet ones of one state (a
//! model loaded or not), with its spread. A floor is a state, not a constant, so ticks of two states
//! are never mixed.
//!
//! Invariants: a tick in which somebody was or may have been at work teaches nothing, so a card
//! that was never seen at rest has no floor; what is older than [`REMEMBERED_NS`] is forgotten; the
//! least ever seen is never a floor.
//!
//! Refused: a median that is not the bottom. Where a part of the quiet ticks lies well below it,
//! most of them were not quiet, and nobody knows which.

use std::{collections::VecDeque, fmt};

use crate::units::Power;

/// Ticks older than this teach nothing more.
pub const REMEMBERED_NS: u64 = 600_000_000_000;
/// Ticks kept of one state: ten minutes at ten a second.
const MOST_TICKS: usize = 6000;
/// Fewer tell nothing.
const FEWEST_TICKS: usize = 5;
/// A floor's own ticks lie within this share of it, or this many watts.
const STEADY_SHARE: u64 = 20;
const STEADY: Power = Power::from_microwatts(5_000_000);
/// One tick in so many may lie below: a reading of the tick's edge, a dip.
const BELOW_SHARE: usize = 10;

/// A stretch between two publishes, as the floor sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick {
    /// Where it ends, ns.
    pub to_ns: u64,
    /// Its mean power.
    pub power: Power,
    /// Somebody was at work in it, ours or not, or that could not be seen.
    pub occupied: bool,
    /// Our process held a model in the card's memory.
    pub model_loaded: bool,
}

/// A floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Floor {
    /// The median of the quiet ticks.
    pub power: Power,
    /// How far half of them lie from it, at most.
    pub spread: Power,
    /// On how many ticks.
    pub ticks: usize,
}

/// Why there is no floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoFloor {
    /// The card was hardly seen at rest in this state.
    Unseen {
        /// How many quiet ticks there were.
        ticks: usize,
    },
    /// Most of the ticks that were taken for rest lie above others.
    NotAtRest {
        /// The median of them all.
        median: Power,
        /// How many lie well below it.
        below: usize,
        /// How many there are.
        ticks: usize,
    },
}

impl fmt::Display for NoFloor {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unseen { ticks } => write!(
                to,
                "only {ticks} ticks were seen at rest: leave the card alone for a while, or \
                 declare its idle power"
            ),
            Self::NotAtRest { median, below, ticks } => write!(
                to,
                "the middle one of {ticks} ticks without known work drew {median}, and {below} \
                 drew well below it: somebody unseen was at work; declare the idle power"
            ),
        }
    }
}

impl std::error::Error for NoFloor {}

/// The quiet ticks seen lately.
#[derive(Clone, Debug, Default)]
pub struct Quiet {
    loaded: VecDeque<(u64, Power)>,
    empty: VecDeque<(u64, Power)>,
}

impl Quiet {
    /// One more tick.
    pub fn tick(&mut self, tick: Tick) {
        if tick.occupied {
            return;
        }
        let kept = if tick.model_loaded { &mut self.loaded } else { &mut self.empty };
        if kept.len() == MOST_TICKS {
            kept.pop_front();
        }
        kept.push_back((tick.to_ns, tick.power));
    }

    /// The floor of a state at `now_ns`.
    pub fn floor(&self, model_loaded: bool, now_ns: u64) -> Result<Floor, NoFloor> {
        let kept = if model_loaded { &self.loaded } else { &self.empty };
        let fresh = |to_ns: u64| now_ns.saturating_sub(to_ns) <= REMEMBERED_NS;
        let mut powers: Vec<Power> =
            kept.iter().filter(|(to_ns, _)| fresh(*to_ns)).map(|(_, power)| *power).collect();
        let ticks = powers.len();
        let median = median(&mut powers).filter(|_| ticks >= FEWEST_TICKS);
        let Some(median) = median else { return Err(NoFloor::Unseen { ticks }) };
        let steady = STEADY.max(Power::from_microwatts(median.microwatts() / STEADY_SHARE));
        let least = median.microwatts().saturating_sub(steady.microwatts());
        let below = powers.iter().filter(|power| power.microwatts() < least).count();
        if below > ticks / BELOW_SHARE {
            return Err(NoFloor::NotAtRest { median, below, ticks });
        }
        let away = |power: &Power| power.microwatts().abs_diff(median.microwatts());
        let mut strays: Vec<Power> = powers.iter().map(away).map(Power::from_microwatts).collect();
        let spread = self::median(&mut strays).unwrap_or_default();
        Ok(Floor { power: median, spread, ticks })
    }
}

/// The middle one; the lower of two.
fn median(powers: &mut [Power]) -> Option<Power> {
    powers.sort_unstable();
    powers.get(powers.len().saturating_sub(1) / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn watts(watts: u64) -> Power {
        Power::from_microwatts(watts * 1_000_000)
    }

    /// One tick a second at these powers.
    fn seen(powers: impl IntoIterator<Item = u64>) -> Quiet {
        let mut quiet = Quiet::default();
        for (second, power) in (1..).zip(powers) {
            let (to_ns, power) = (second * SECOND, watts(power));
            quiet.tick(Tick { to_ns, power, occupied: false, model_loaded: true });
        }
        quiet
    }

    #[test]
    fn load_that_nobody_declared_does_not_lift_the_floor() {
        let powers = (0..30).map(|second| if (10..20).contains(&second) { 250 } else { 60 });
        let floor = seen(powers).floor(true, 30 * SECOND).unwrap();
        assert_eq!(floor, Floor { power: watts(60), spread: watts(0), ticks: 30 });
    }

    #[test]
    fn a_median_that_is_not_the_bottom_is_no_floor() {
        let powers = (0..30).map(|second| if second < 20 { 250 } else { 60 });
        let none = seen(powers).floor(true, 30 * SECOND).unwrap_err();
        assert_eq!(none, NoFloor::NotAtRest { median: watts(250), below: 10, ticks: 30 });
        assert!(none.to_string().contains("250.000 W"), "{none}");
    }

    #[test]
    fn work_and_age_teach_nothing() {
        let mut quiet = seen([60; 10]);
        let power = watts(250);
        for second in 11..100 {
            let to_ns = second * SECOND;
            quiet.tick(Tick { to_ns, power, occupied: true, model_loaded: true });
        }
        assert_eq!(quiet.floor(true, 100 * SECOND).map(|floor| floor.power), Ok(watts(60)));
        let later = 10 * SECOND + REMEMBERED_NS;
        assert_eq!(quiet.floor(true, later).unwrap_err(), NoFloor::Unseen { ticks: 1 });
        assert_eq!(Quiet::default().floor(true, 0), Err(NoFloor::Unseen { ticks: 0 }));
    }

    #[test]
    fn two_states_are_not_mixed() {
        let mut quiet = Quiet::default();
        for second in 1..=20 {
            let model_loaded = second > 10;
            let power = watts(if model_loaded { 48 } else { 12 });
            quiet.tick(Tick { to_ns: second * SECOND, power, occupied: false, model_loaded });
        }
        let floor = |loaded| quiet.floor(loaded, 20 * SECOND).map(|floor| floor.power);
        assert_eq!((floor(false), floor(true)), (Ok(watts(12)), Ok(watts(48))));
    }

    #[test]
    fn a_wavering_rest_has_a_spread() {
        let floor = seen((0..40).map(|second| 68 + second % 5)).floor(true, 0).unwrap();
        assert_eq!((floor.power, floor.spread), (watts(70), watts(1)));
    }
}
