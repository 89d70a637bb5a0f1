//! Live joules per token: what the cards drew over a stretch, and the tokens that came of it.
//!
//! Tokens are kept in a series like a card's, so that a stretch is two look-ups in each. Absent,
//! never 0 or infinite, when either side is zero or not known.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use joulebook_core::{
    Power,
    ring::Point,
    series::{Series, SeriesWriter, series},
};
use serde::Serialize;

use crate::{card::Card, meter::Meter};

/// Stands for an idle floor that is not known.
const NO_FLOOR: u64 = u64::MAX;
/// The tokens are written at least this often.
const EVERY_NS: u64 = 1_000_000_000;

/// What a stretch drew and gave.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rate {
    /// Its length, s.
    pub seconds: f64,
    /// Tokens of answers.
    pub tokens: u64,
    /// What the cards drew, J.
    pub gross_joules: f64,
    /// The part above their present floor, where that is known, J.
    pub joules: Option<f64>,
}

impl Rate {
    /// Joules above idle a token; none without either.
    pub fn joules_per_token(&self) -> Option<f64> {
        self.joules.and_then(|joules| ratio(joules, self.tokens))
    }

    /// The same with what the cards draw at rest.
    pub fn gross_joules_per_token(&self) -> Option<f64> {
        ratio(self.gross_joules, self.tokens)
    }
}

fn ratio(joules: f64, tokens: u64) -> Option<f64> {
    (tokens > 0 && joules > 0.0).then(|| joules / tokens as f64)
}

/// Readers' side.
#[derive(Debug)]
pub(super) struct Live {
    cards: Vec<(Arc<Card>, Option<Point>)>,
    /// What they draw at rest now, together, µW.
    idle_uw: Arc<AtomicU64>,
    tokens: Arc<Series>,
    start_ns: u64,
}

/// The owner's side.
pub(super) struct Tokens {
    writer: SeriesWriter,
    total: u64,
    idle_uw: Arc<AtomicU64>,
    /// The floor of all cards together was declared, and nothing learnt of each changes it.
    declared: bool,
}

impl Live {
    pub fn of(meter: &Meter, start_ns: u64) -> (Self, Tokens) {
        let (mut writer, tokens) = series();
        writer.push(Point { at_ns: start_ns, ..Point::default() });
        let with_anchor = |card: &Arc<Card>| (Arc::clone(card), card.series().newest());
        let cards = meter.cards().iter().map(with_anchor).collect();
        let idle_uw = meter.idle_watts().and_then(Power::from_watts);
        let idle_uw = Arc::new(AtomicU64::new(idle_uw.map_or(NO_FLOOR, Power::microwatts)));
        let live = Self { cards, idle_uw: Arc::clone(&idle_uw), tokens, start_ns };
        let declared = meter.inner.is_declared();
        (live, Tokens { writer, total: 0, idle_uw, declared })
    }

    /// The newest instant that all cards have shown, ns.
    fn newest_ns(&self) -> Option<u64> {
        let shown = |(card, _): &(Arc<Card>, Option<Point>)| {
            let lag_ns = (card.facts().lag_s * 1e9) as u64;
            card.series().newest().map(|point| point.at_ns.saturating_sub(lag_ns))
        };
        let all: Option<Vec<u64>> = self.cards.iter().map(shown).collect();
        all?.into_iter().min()
    }

    pub fn last(&self, length_ns: u64) -> Option<Rate> {
        let to_ns = self.newest_ns()?;
        self.between(to_ns.saturating_sub(length_ns), to_ns)
    }

    pub fn since_start(&self) -> Option<Rate> {
        self.between(self.start_ns, self.newest_ns()?)
    }

    pub fn between(&self, from_ns: u64, to_ns: u64) -> Option<Rate> {
        if self.cards.is_empty() || from_ns >= to_ns {
            return None;
        }
        let mut gross_joules = 0.0;
        for (card, anchor) in &self.cards {
            let lag_ns = (card.facts().lag_s * 1e9) as u64;
            let at = |at_ns: u64| energy_uj(card.series(), at_ns.saturating_add(lag_ns));
            // Of the start more is known than the ring keeps.
            let begin = if from_ns == self.start_ns {
                anchor.map_or_else(|| at(from_ns), |anchor| Some(anchor.energy_uj as f64))
            } else {
                at(from_ns)
            };
            gross_joules += (at(to_ns)? - begin?) / 1e6;
        }
        let seconds = (to_ns - from_ns) as f64 / 1e9;
        let count = |at_ns: u64| energy_uj(&self.tokens, at_ns.max(self.start_ns));
        let tokens = (count(to_ns)? - count(from_ns)?).max(0.0).round() as u64;
        let idle_uw = self.idle_uw.load(Ordering::Relaxed);
        let joules = (idle_uw != NO_FLOOR).then(|| gross_joules - idle_uw as f64 / 1e6 * seconds);
        Some(Rate { seconds, tokens, gross_joules, joules })
    }
}

/// Between two points where both are kept, else the one before.
fn energy_uj(series: &Series, at_ns: u64) -> Option<f64> {
    let whole = || series.at_or_before(at_ns).map(|point| point.energy_uj as f64);
    series.energy_uj_at(at_ns).or_else(whole)
}

impl Tokens {
    /// What the cards draw at rest now, together.
    pub fn rest_at(&self, idle_uw: Option<u64>) {
        if !self.declared {
            self.idle_uw.store(idle_uw.unwrap_or(NO_FLOOR), Ordering::Relaxed);
        }
    }

    /// More tokens, seen at an instant.
    pub fn add(&mut self, at_ns: u64, more: u64) {
        self.total = self.total.saturating_add(more);
        let last = self.writer.last();
        let last_ns = last.map_or(0, |last| last.at_ns);
        if last.is_none_or(|last| last.energy_uj != self.total)
            || at_ns.saturating_sub(last_ns) >= EVERY_NS
        {
            // A series counts; here it counts tokens.
            self.writer.push(Point { at_ns, energy_uj: self.total, ..Point::default() });
        }
    }
}
