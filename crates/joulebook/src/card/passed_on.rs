//! What is passed on of a card, to others than windows: a page of metrics, an agent's clients.
//!
//! All of it is what the recorder has found; nothing here asks the driver. A figure that is not
//! fresh is an error with the word for it, never the last one again.

use std::{
    future::{Future, poll_fn},
    sync::atomic::Ordering,
    task::Poll,
};

use joulebook_core::{Energy, Fault, Flags, register::Kind, ring::Point};

use super::{Card, lock};
use crate::{
    clock::now_ns,
    reader::{Usage, Value},
};

/// A usage is looked at about once a second; one that is older than this is not known.
const USAGE_NS: u64 = 5_000_000_000;
/// Marks of a publish behind a stretch that was not seen.
pub(crate) const UNSEEN: Flags = Flags::GAP.union(Flags::BRIDGED).union(Flags::HOLE);
/// Publishes that the seen period is the median of.
const SPACINGS: u64 = 16;

/// What has happened to a card's reading so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    /// How often its register restarted or was set to another value.
    pub resets: u64,
    /// Publishes behind a stretch that was not seen: a failed poll, a restart, a suspend.
    pub gaps: u64,
    /// Time spent in calls that read the register, ns.
    pub asked_ns: u64,
}

impl Card {
    /// The newest publish while the card can be read and the publish is fresh; else why not.
    pub fn fresh(&self) -> Result<Point, Fault> {
        if let Some(fault) = self.trouble() {
            return Err(fault);
        }
        match (self.power(), self.series.newest()) {
            (Some(_), Some(point)) => Ok(point),
            // The first publish behind a stretch that was not seen lies somewhere in that stretch.
            (None, Some(point)) if point.flags.intersects(UNSEEN) => Err(Fault::Gap),
            // It answers, and shows nothing new.
            _ if self.series.pushed() > 1 => Err(Fault::CounterFrozen),
            _ => Err(Fault::NotReady),
        }
    }

    /// When it was last read well, ns of the [`crate::clock`].
    pub fn read_ns(&self) -> Option<u64> {
        Some(self.health.good_ns.load(Ordering::Relaxed)).filter(|good_ns| *good_ns > 0)
    }

    /// What has happened so far.
    pub fn tally(&self) -> Tally {
        let health = &self.health;
        Tally {
            resets: health.resets.load(Ordering::Relaxed),
            gaps: health.gaps.load(Ordering::Relaxed),
            asked_ns: health.asked_ns.load(Ordering::Relaxed),
        }
    }

    /// What its energy register shows, as last accepted; absent for a gauge, and before the first
    /// reading. It starts anew when the driver does, unlike the energy of its series.
    pub fn register(&self) -> Option<Energy> {
        let Kind::Counter { scale, .. } = self.device().register else { return None };
        let raw = self.health.raw_and_one.load(Ordering::Relaxed).checked_sub(1)?;
        let microjoules = u128::from(raw) * u128::from(scale.numerator);
        let microjoules = microjoules.checked_div(u128::from(scale.denominator))?;
        u64::try_from(microjoules).ok().map(Energy::from_microjoules)
    }

    /// How often new values come, ns: what a probe found, else what is seen; absent until it is.
    pub fn seen_period_ns(&self) -> Option<u64> {
        if let Some(period_ns) = self.probed_period_ns() {
            return Some(period_ns);
        }
        if !self.is_counter() {
            let update_ns = self.health.update_ns.load(Ordering::Relaxed);
            return Some(update_ns).filter(|update_ns| *update_ns > 0);
        }
        let pushed = self.series.pushed();
        let numbers = pushed.saturating_sub(SPACINGS)..pushed;
        let at: Vec<u64> =
            numbers.filter_map(|number| self.series.point(number)).map(|it| it.at_ns).collect();
        let pairs = at.iter().zip(at.iter().skip(1));
        let mut spacings: Vec<u64> = pairs.map(|(from, to)| to.saturating_sub(*from)).collect();
        spacings.sort_unstable();
        (spacings.len() >= 4).then(|| spacings.get(spacings.len() / 2).copied()).flatten()
    }

    /// From now on the recorder looks how full and how busy the card is, too: two more driver calls
    /// about once a second.
    pub fn want_usage(&self) {
        self.usage_wanted.store(true, Ordering::Relaxed);
    }

    /// How full and how busy it is, where that was wanted and is known now.
    pub fn usage(&self) -> Usage {
        let known = *lock(&self.usage);
        let fresh = known.filter(|(at_ns, _)| now_ns().saturating_sub(*at_ns) <= USAGE_NS);
        fresh.map_or_else(Usage::default, |(_, usage)| usage)
    }

    /// Waits until more than `seen` points were pushed ([`joulebook_core::series::Series::pushed`]);
    /// how many there are then.
    pub fn published(&self, seen: u64) -> impl Future<Output = u64> + '_ {
        poll_fn(move |context| {
            let news = || Some(self.series.pushed()).filter(|pushed| *pushed > seen);
            if news().is_none() {
                self.signal.register(context.waker());
            }
            // Looked at again: what came in between rang before anybody listened.
            news().map_or(Poll::Pending, Poll::Ready)
        })
    }

    /// Called by the recorder alone.
    pub(crate) fn note_usage(&self, at_ns: u64, usage: Usage) {
        *lock(&self.usage) = Some((at_ns, usage));
    }

    /// Called by the recorder alone, of a reading that was accepted.
    pub(crate) fn note_accepted(&self, value: Value) {
        if let Value::Counter(raw) = value {
            self.health.raw_and_one.store(raw.saturating_add(1), Ordering::Relaxed);
        }
    }
}
