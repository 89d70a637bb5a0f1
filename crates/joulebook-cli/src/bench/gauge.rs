//! The integral of a power gauge over a window.
//!
//! Each reading is held forward to the next, the first is back-filled to the window's start and the
//! last held to its end, so the parts add to the window exactly, in integer nanoseconds. Sums are
//! stored (energy, time, readings, how many said what of a flag), ratios are derived from them.
//!
//! Invariants: no reading inside, no figure; a flag that was not reported is neither on nor off.

use joulebook::{Power, core::estimate::Span};
use serde::{Deserialize, Serialize};

mod rows;

pub use rows::{Rows, Taken};

/// The name of the integral, as records carry it.
pub const HOLD_FORWARD: &str = "hold_forward";

/// One reading of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// When it was taken, ns.
    pub at_ns: u64,
    /// What it shows.
    pub power: Power,
    /// The software power cap was at work; none where it was not reported.
    pub capped: Option<bool>,
    /// The hardware power brake was at work; none where it was not reported.
    pub braked: Option<bool>,
}

/// How many readings reported a flag, and how many of them said that it was on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Said on.
    pub active: u64,
    /// Said on or off.
    pub reported: u64,
}

/// What a gauge showed in a window. Windows add ([`Window::then`]); ratios do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// The integral, µJ.
    pub energy_uj: u64,
    /// The window's length, ns.
    pub window_ns: u64,
    /// Readings inside.
    pub samples: u64,
    /// The greatest of them (of several cards: of their sum at one time), µW.
    pub max_uw: u64,
    /// The software power cap.
    pub capped: Share,
    /// The hardware power brake.
    pub braked: Share,
}

/// A stretch of a window in which one reading holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// From here, ns.
    pub from_ns: u64,
    /// To here, ns.
    pub to_ns: u64,
    /// The power that holds.
    pub power: Power,
}

/// The readings inside a window (its end is outside), in the order of their times.
fn inside(readings: &[Reading], window: Span) -> Vec<Reading> {
    let is_inside = |reading: &&Reading| (window.open_ns..window.close_ns).contains(&reading.at_ns);
    let mut inside: Vec<Reading> = readings.iter().filter(is_inside).copied().collect();
    inside.sort_by_key(|reading| reading.at_ns);
    inside
}

/// The parts of a window, which together are the window; none where no reading lies inside.
pub fn parts(readings: &[Reading], window: Span) -> Vec<Part> {
    parts_of(&inside(readings, window), window)
}

fn parts_of(inside: &[Reading], window: Span) -> Vec<Part> {
    let ends = inside.iter().skip(1).map(|next| next.at_ns).chain([window.close_ns]);
    let mut from_ns = window.open_ns;
    let held = inside.iter().zip(ends).map(|(reading, to_ns)| {
        let part = Part { from_ns, to_ns, power: reading.power };
        from_ns = to_ns;
        part
    });
    held.collect()
}

/// A card's integral over a window; none where no reading lies inside.
pub fn hold_forward(readings: &[Reading], window: Span) -> Option<Window> {
    hold_forward_cards(&[readings], window)
}

/// The integral of several cards over one window: their energies add, the time does not. None
/// where a card has no reading inside, since a part of the cards is not their sum.
pub fn hold_forward_cards(cards: &[&[Reading]], window: Span) -> Option<Window> {
    let cards: Vec<Vec<Reading>> = cards.iter().map(|readings| inside(readings, window)).collect();
    if cards.is_empty() || cards.iter().any(Vec::is_empty) {
        return None;
    }
    let parts: Vec<Vec<Part>> = cards.iter().map(|readings| parts_of(readings, window)).collect();
    let held =
        |part: &Part| u128::from(part.power.microwatts()) * u128::from(part.to_ns - part.from_ns);
    let microwatt_ns: u128 = parts.iter().flatten().map(held).sum();
    let all = || cards.iter().flatten();
    Some(Window {
        energy_uj: rounded(microwatt_ns, 1_000_000_000),
        window_ns: window.close_ns - window.open_ns,
        samples: all().count() as u64,
        max_uw: greatest(&parts),
        capped: Share::of(all().map(|reading| reading.capped)),
        braked: Share::of(all().map(|reading| reading.braked)),
    })
}

/// The greatest power that all cards drew at one time, µW.
fn greatest(cards: &[Vec<Part>]) -> u64 {
    // Each part begins by adding its power and ends by taking it away; ends come first, so that two
    // parts that meet are not both counted.
    let mut steps: Vec<(u64, bool, u64)> = Vec::new();
    for part in cards.iter().flatten().filter(|part| part.from_ns < part.to_ns) {
        steps.push((part.from_ns, true, part.power.microwatts()));
        steps.push((part.to_ns, false, part.power.microwatts()));
    }
    steps.sort_unstable();
    let (mut now, mut most) = (0u64, 0u64);
    for (_, begins, power) in steps {
        now = if begins { now.saturating_add(power) } else { now.saturating_sub(power) };
        most = most.max(now);
    }
    most
}

fn rounded(value: u128, unit: u128) -> u64 {
    u64::try_from((value + unit / 2) / unit).unwrap_or(u64::MAX)
}

impl Share {
    fn of(flags: impl Iterator<Item = Option<bool>>) -> Self {
        flags.flatten().fold(Self::default(), |share, active| Self {
            active: share.active + u64::from(active),
            reported: share.reported + 1,
        })
    }

    /// The fraction of the readings that reported it; none where none did.
    pub fn fraction(self) -> Option<f64> {
        (self.reported > 0).then(|| self.active as f64 / self.reported as f64)
    }

    const fn then(self, other: Self) -> Self {
        Self { active: self.active + other.active, reported: self.reported + other.reported }
    }
}

impl Window {
    /// This window and another one of the same cards, as one.
    #[must_use]
    pub fn then(self, other: Self) -> Self {
        Self {
            energy_uj: self.energy_uj.saturating_add(other.energy_uj),
            window_ns: self.window_ns.saturating_add(other.window_ns),
            samples: self.samples + other.samples,
            max_uw: self.max_uw.max(other.max_uw),
            capped: self.capped.then(other.capped),
            braked: self.braked.then(other.braked),
        }
    }

    /// All of them as one; none of none.
    pub fn sum(windows: impl IntoIterator<Item = Self>) -> Option<Self> {
        windows.into_iter().reduce(Self::then)
    }

    /// The integral, J.
    pub fn joules(self) -> f64 {
        self.energy_uj as f64 / 1e6
    }

    /// The window's length, s.
    pub fn seconds(self) -> f64 {
        self.window_ns as f64 / 1e9
    }

    /// Mean power, W; none of a window without length.
    pub fn mean_watts(self) -> Option<f64> {
        (self.window_ns > 0).then(|| self.joules() / self.seconds())
    }

    /// The greatest power, W.
    pub fn max_watts(self) -> f64 {
        self.max_uw as f64 / 1e6
    }

    /// Energy above an idle power, J. Not clamped: below 0 the baseline was too high, and is seen.
    pub fn above_idle_joules(self, idle_watts: f64) -> f64 {
        self.joules() - idle_watts * self.seconds()
    }
}

#[cfg(test)]
mod tests;
