//! Which of several sources of one quantity is believed.
//!
//! Decides between readers of one card (the first that the card supports), between energy counters
//! and the power gauge of one card (the probe's rule, on what they showed over a while), and between
//! two power readings of one thing.
//!
//! Invariants: sources are never added, nor is the larger taken for being larger; a figure keeps
//! the scope of the source it came from, and idle is subtracted only where it was measured at the
//! same scope ([`Profile::resting`](crate::profile::Profile::resting)).

use joulebook_core::{Fault, Power, Scope};

pub use crate::probe::{Verdict, compared};
use crate::{
    profile::Trust,
    reader::{Reader, Reading},
};

/// A source that shows less than this share of another one, while there is work, shows nothing.
const NEXT_TO_NOTHING: f64 = 0.05;
/// Two sources agree within this.
const AGREED: f64 = 0.3;

/// A cumulative counter of a card, as one probe saw it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counter<'a> {
    /// What it is called.
    pub name: &'a str,
    /// What it counted meanwhile, J; `Err` where it could not be read.
    pub counted_j: Result<f64, Fault>,
}

/// What a card is to be read by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruler {
    /// The counter at this place of the list.
    Counter(usize),
    /// The power gauge.
    Gauge,
    /// Nothing can be believed.
    Nothing,
}

/// Which of two power readings was taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settled {
    /// The power; `Err` where neither can be preferred.
    pub power: Result<Power, Fault>,
    /// They disagreed (`source_conflict`).
    pub conflict: bool,
}

/// The first reader that its card supports, with its first reading. Only "not supported" decides
/// against one; any other failure may pass.
pub fn supported(
    candidates: impl IntoIterator<Item = Box<dyn Reader>>,
) -> Option<(Box<dyn Reader>, Result<Reading, Fault>)> {
    candidates.into_iter().find_map(|mut reader| {
        let reading = reader.read();
        (reading != Err(Fault::NotSupported)).then_some((reader, reading))
    })
}

/// What to read: the first counter that the gauge (J meanwhile) does not contradict, else the gauge.
/// The verdicts stand in the counters' order.
pub fn ruler(
    counters: &[Counter<'_>],
    gauge_j: Result<f64, Fault>,
    seconds: f64,
) -> (Ruler, Vec<Verdict>) {
    let judged = |counter: &Counter<'_>| compared(counter.counted_j, gauge_j, seconds).1;
    let verdicts: Vec<Verdict> = counters.iter().map(judged).collect();
    let trusted = verdicts.iter().position(|verdict| verdict.trust == Trust::Counter);
    let ruler = match trusted {
        Some(place) => Ruler::Counter(place),
        None if gauge_j.is_ok() => Ruler::Gauge,
        None => Ruler::Nothing,
    };
    (ruler, verdicts)
}

/// What an energy counter covers, by the card's name: a Grace Hopper chip's covers the module (CPU,
/// memory, GPU).
pub fn counter_scope(name: &str) -> Scope {
    let upper = name.to_ascii_uppercase();
    if upper.contains("GH200") || upper.contains("GRACE HOPPER") {
        Scope::Module
    } else {
        Scope::Gpu
    }
}

/// The power of one thing by two sources, the one asked first before the other. `busy`: whether
/// there is work, where that is known.
pub fn settled(first: Power, second: Power, busy: Option<bool>) -> Settled {
    let (low, high) = (first.min(second).watts(), first.max(second).watts());
    if high - low <= AGREED * high {
        return Settled { power: Ok(first), conflict: false };
    }
    // A source that "works" and shows next to nothing while there is work is not filled.
    let power = if low <= NEXT_TO_NOTHING * high && busy != Some(false) {
        Ok(first.max(second))
    } else {
        Err(Fault::RulersDisagree)
    };
    Settled { power, conflict: true }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::Finding;

    fn counter(counted_j: f64) -> Counter<'static> {
        Counter { name: "card", counted_j: Ok(counted_j) }
    }

    #[test]
    fn a_dead_counter_hides_no_other() {
        let (ruler, verdicts) = ruler(&[counter(0.0), counter(1500.0)], Ok(1800.0), 10.0);
        assert_eq!(ruler, Ruler::Counter(1));
        assert!(verdicts[0].has(Finding::Constant) && verdicts[1].has(Finding::Mismatch));
    }

    #[test]
    fn a_counter_that_physics_contradicts_is_rejected() {
        for (counted_j, expected) in
            [(0.126, Ruler::Gauge), (190.0, Ruler::Counter(0)), (400.0, Ruler::Gauge)]
        {
            assert_eq!(ruler(&[counter(counted_j)], Ok(190.0), 5.0).0, expected, "{counted_j}");
        }
        // Too short to judge by.
        assert_eq!(ruler(&[counter(0.126)], Ok(38.0), 1.0).0, Ruler::Counter(0));
        let unreadable = Counter { name: "card", counted_j: Err(Fault::NotSupported) };
        assert_eq!(ruler(&[unreadable], Err(Fault::NotSupported), 5.0).0, Ruler::Nothing);
    }

    #[test]
    fn next_to_nothing_under_load_is_no_reading() {
        let watts = |watts: f64| Power::from_watts(watts).unwrap();
        let (nothing, good) = (watts(0.012), watts(41.5));
        for (first, second) in [(nothing, good), (good, nothing)] {
            let settled = settled(first, second, Some(true));
            assert_eq!((settled.power, settled.conflict), (Ok(good), true));
        }
        assert_eq!(settled(nothing, good, Some(false)).power, Err(Fault::RulersDisagree));
        assert_eq!(settled(watts(20.0), good, Some(true)).power, Err(Fault::RulersDisagree));
        let agreed = settled(watts(40.0), good, None);
        assert_eq!((agreed.power, agreed.conflict), (Ok(watts(40.0)), false));
    }

    #[test]
    fn a_grace_hopper_counts_its_module() {
        assert_eq!(counter_scope("NVIDIA GH200 480GB"), Scope::Module);
        assert_eq!(counter_scope("NVIDIA H100"), Scope::Gpu);
    }
}
