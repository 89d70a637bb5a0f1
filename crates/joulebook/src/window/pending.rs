//! A closed window on its way to its figure.
//!
//! Two answers, both honest: [`Pending::now`] from what was published by the close, and
//! [`Pending::settle`] (or `.await`) once the publishes after it have come. Nothing waits longer
//! than the register takes to publish: a lag, three periods and a poll, and for a sensor that
//! averages half of what it averages over.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll},
    time::Duration,
};

use joulebook_core::{Flags, Measurement};

use super::{Edge, answer};
use crate::{card::Card, clock::now_ns, deadline, meter::Inner};

/// Beyond the last publish it can need, a window waits this long for a recorder that is late.
const GRACE_NS: u64 = 250_000_000;

/// A window that has closed (or is asked how it stands) and may get sharper.
#[derive(Clone, Debug)]
#[must_use = "a window's figure is asked for with now(), settle() or .await"]
pub struct Pending {
    pub(super) inner: Arc<Inner>,
    pub(super) open_ns: u64,
    pub(super) close_ns: u64,
    pub(super) edges: Vec<Edge>,
    pub(super) closings: Vec<Edge>,
    pub(super) marks: Vec<(String, u64)>,
    pub(super) child: bool,
    pub(super) closed: bool,
    pub(super) overlapped: bool,
    pub(super) tokens: u64,
}

impl Pending {
    /// The tokens that the window produced: what an estimate is made from where nothing could be
    /// measured and the meter has a hint.
    pub fn tokens(mut self, tokens: u64) -> Self {
        self.tokens = tokens;
        self
    }

    /// The answer at once.
    pub fn now(&self) -> Measurement {
        answer::measurement(self, false)
    }

    /// The settled answer, or the one at once when `timeout` passes before it.
    pub fn settle(&self, timeout: Duration) -> Measurement {
        let mut left_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        for (number, card) in self.inner.cards.iter().enumerate() {
            let began_ns = now_ns();
            let wait = Duration::from_nanos(left_ns.min(self.patience_ns(card, began_ns)));
            card.signal.wait(wait, || self.is_settled_on(card, number));
            left_ns = left_ns.saturating_sub(now_ns().saturating_sub(began_ns));
        }
        self.best()
    }

    /// The last instant by which the card's publishes can still sharpen the figure, ns.
    pub(super) fn deadline_ns(&self, card: &Card) -> u64 {
        let (_, facts) = card.ruler(self.seconds());
        let wait_s = facts.lag_s
            + facts.lag_uncertainty_s
            + answer::gauge_after_s(card, &facts)
            + 3.0 * facts.period_s
            + facts.poll_gap_s;
        self.close_ns.saturating_add((wait_s * 1e9) as u64).saturating_add(card.delivery_ns())
    }

    fn patience_ns(&self, card: &Card, now: u64) -> u64 {
        (self.deadline_ns(card) + GRACE_NS).saturating_sub(now)
    }

    fn is_settled_on(&self, card: &Card, number: usize) -> bool {
        // A window that is still open has only the answer at once, and a card that is not being read
        // now has nothing to wait for.
        let unread =
            card.series.newest().is_none() && card.health.polls.load(Ordering::Relaxed) > 0;
        let out_of_time = now_ns() > self.deadline_ns(card);
        !self.closed || unread || {
            let floor_w = self.inner.floor_w(number);
            answer::is_settled(self, card, floor_w, out_of_time)
        }
    }

    fn best(&self) -> Measurement {
        let settled =
            self.closed && self.inner.cards.iter().all(|card| answer::reaches(self, card));
        answer::measurement(self, settled)
    }

    /// The window's length, s.
    pub(super) fn seconds(&self) -> f64 {
        self.close_ns.saturating_sub(self.open_ns) as f64 / 1e9
    }

    /// Flags of the window itself.
    pub(super) fn flags(&self) -> Flags {
        let overlap = if self.overlapped { Flags::OVERLAP } else { Flags::NONE };
        self.inner.flags | overlap
    }
}

impl Future for Pending {
    type Output = Measurement;

    /// Ready when the window has settled, or when it no longer can.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Measurement> {
        let now = now_ns();
        let mut cards = self.inner.cards.iter().enumerate();
        let waiting = |(number, card): &(usize, &Arc<Card>)| {
            self.patience_ns(card, now) > 0 && !self.is_settled_on(card, *number)
        };
        let Some((number, card)) = cards.find(waiting) else {
            return Poll::Ready(self.best());
        };
        card.signal.register(context.waker());
        // The recorder rings at every poll; this is for one that hangs in the driver.
        deadline::wake_at(self.deadline_ns(card) + GRACE_NS + 1, context.waker());
        if self.is_settled_on(card, number) {
            context.waker().wake_by_ref();
        }
        Poll::Pending
    }
}
