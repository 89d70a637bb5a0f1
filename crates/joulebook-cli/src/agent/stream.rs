//! The stream of a node's cards: server-sent events, one for each publish.
//!
//! Each connection follows the cards' own rings, so a client that is slow is sent later what it did
//! not take, and costs no memory meanwhile. What is gone from a ring by then (it holds the last 8,191
//! publishes, thirteen minutes at ten a second) is left out, said so in an event of its own before the
//! publish that spans it, and counted.
//!
//! A client that comes back may say what it has seen last, and is sent what came since, as far as
//! the rings reach and if the agent is still the same.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
    time::Duration,
};

use bytes::Bytes;
use joulebook::{
    Card,
    clock::now_ns,
    core::{Flags, ring::Point, series::Series},
    wire::{ClockNow, EnergyNow, Hello, Skipped, event},
};
use serde::Serialize;
use tokio::sync::watch;

use super::{Agent, connections::Busy, roster::Seat, seen::Described};

/// A client is told that the connection lives at least so often.
const AT_LEAST: Duration = Duration::from_secs(1);
/// What is put together before it is sent; the rest comes next.
const PIECE: usize = 16 * 1024;
/// Marks of a point at which the register began a new line.
const RESTARTS: Flags = Flags::COUNTER_RESET.union(Flags::COUNTER_SET);

/// What one client has been told.
pub struct Stream {
    agent: Arc<Agent>,
    news: watch::Receiver<u64>,
    draining: watch::Receiver<bool>,
    told: BTreeMap<u32, Told>,
    /// Only what came after this is of use, ns.
    since_ns: Option<u64>,
    begun: bool,
    /// There is more than fitted into the last piece.
    more: bool,
    _busy: Busy,
}

/// … of one card.
#[derive(Default)]
struct Told {
    described: Option<Arc<Described>>,
    energy: Option<Following>,
}

/// A card's publishes, as they are told.
struct Following {
    card: Arc<Card>,
    told: Place,
}

/// How far a card's publishes were told.
#[derive(Debug)]
struct Place {
    next: u64,
    generation: u64,
}

/// What is to be told next.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    /// So many publishes are gone; the energy of the one after them spans them.
    Gone(u64),
    /// The publish of this number, in that generation.
    Publish(u64, Point, u64),
}

/// The newest publish of a card as all streams send it.
#[derive(Debug, Default)]
pub struct Newest(Mutex<Option<(u64, Bytes)>>);

impl Stream {
    /// For a client that has just come.
    pub fn new(
        agent: &Arc<Agent>,
        draining: watch::Receiver<bool>,
        since_ns: Option<u64>,
        busy: Busy,
    ) -> Self {
        Self {
            agent: Arc::clone(agent),
            news: agent.news.listen(),
            draining,
            told: BTreeMap::new(),
            since_ns,
            begun: false,
            more: true,
            _busy: busy,
        }
    }

    /// The next piece; `None` when the agent stops.
    pub async fn next(&mut self) -> Option<Bytes> {
        if *self.draining.borrow() {
            return None;
        }
        let mut piece = Vec::new();
        if !self.begun {
            self.begun = true;
            let hello = Hello {
                agent: self.agent.words(),
                node: self.agent.node.clone(),
                boot_id: self.agent.boot_id.clone(),
                now_ns: now_ns(),
            };
            put(&mut piece, event::HELLO, &hello);
        }
        loop {
            if !self.more {
                tokio::select! {
                    news = tokio::time::timeout(AT_LEAST, self.news.changed()) => {
                        if news.is_err() {
                            put(&mut piece, event::CLOCK, &self.agent.clock());
                        }
                    }
                    _ = self.draining.changed() => return None,
                }
            }
            self.news.mark_unchanged();
            self.tell(&mut piece);
            if !piece.is_empty() {
                return Some(piece.into());
            }
        }
    }

    /// All that is new, as far as it fits.
    fn tell(&mut self, piece: &mut Vec<u8>) {
        self.more = false;
        for seat in &self.agent.roster.now().seats {
            let told = self.told.entry(seat.found.index).or_default();
            told.describe(&seat.described(), piece);
            let Ok(open) = &seat.state else { continue };
            let since_ns = self.since_ns;
            let energy = told
                .energy
                .get_or_insert_with(|| Following::from(Arc::clone(&open.card), since_ns));
            self.more |= !energy.tell(&self.agent, seat, piece);
        }
    }
}

impl Told {
    fn describe(&mut self, now: &Arc<Described>, piece: &mut Vec<u8>) {
        let before = self.described.replace(Arc::clone(now));
        if before.as_ref().is_some_and(|before| Arc::ptr_eq(before, now)) {
            return;
        }
        let before = before.as_deref();
        if before.is_none_or(|before| before.seen != now.seen) {
            put(piece, event::CARD, &now.seen);
        }
        if let Some(residents) = &now.residents
            && before.is_none_or(|before| before.residents.as_ref() != Some(residents))
        {
            put(piece, event::TENANCY, residents);
        }
        if let Some(hole) = &now.hole
            && before.is_none_or(|before| before.hole.is_none())
        {
            put(piece, event::HOLE, hole);
        }
    }
}

impl Following {
    /// From the newest publish on, or from those after an instant.
    fn from(card: Arc<Card>, since_ns: Option<u64>) -> Self {
        let pushed = card.series().pushed();
        let newest = pushed.saturating_sub(1);
        let next = since_ns.map_or(newest, |since_ns| after(&card, since_ns).min(newest));
        // Restarts that are yet to be told come with their points.
        let ahead = (next..pushed).filter_map(|number| card.series().point(number));
        let ahead = ahead.filter(|point| point.flags.intersects(RESTARTS)).count() as u64;
        let generation = card.tally().resets.saturating_sub(ahead);
        Self { card, told: Place { next, generation } }
    }

    /// True when all was told.
    fn tell(&mut self, agent: &Agent, seat: &Seat, piece: &mut Vec<u8>) -> bool {
        let series = self.card.series();
        let pushed = series.pushed();
        while piece.len() < PIECE {
            let Some(next) = self.told.next(series, pushed) else { return true };
            match next {
                Next::Gone(publishes) => {
                    agent.counts.skipped.fetch_add(publishes, Ordering::Relaxed);
                    let skipped = Skipped { gpu: seat.found.index, publishes };
                    put(piece, event::SKIPPED, &skipped);
                }
                Next::Publish(number, point, generation) if number + 1 == pushed => {
                    let make = || energy(agent, seat, &point, generation);
                    piece.extend_from_slice(&seat.newest.frame(number, make));
                }
                Next::Publish(_, point, generation) => {
                    put(piece, event::ENERGY, &energy(agent, seat, &point, generation));
                }
            }
        }
        self.told.next >= pushed
    }
}

impl Place {
    /// What comes next of the first `pushed` publishes, which is thereby told.
    fn next(&mut self, series: &Series, pushed: u64) -> Option<Next> {
        let begin = self.next;
        while self.next < pushed {
            let Some(point) = series.point(self.next) else {
                self.next += 1;
                continue;
            };
            if self.next > begin {
                break;
            }
            self.next += 1;
            self.generation += u64::from(point.flags.intersects(RESTARTS));
            return Some(Next::Publish(begin, point, self.generation));
        }
        (self.next > begin).then(|| Next::Gone(self.next - begin))
    }
}

impl Newest {
    /// The event of this publish, made once for all.
    fn frame(&self, number: u64, make: impl FnOnce() -> EnergyNow) -> Bytes {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, frame)) = kept.as_ref()
            && *of == number
        {
            return frame.clone();
        }
        let mut text = Vec::new();
        put(&mut text, event::ENERGY, &make());
        let frame = Bytes::from(text);
        *kept = Some((number, frame.clone()));
        frame
    }
}

/// A publish, as it is told.
pub fn energy(agent: &Agent, seat: &Seat, point: &Point, generation: u64) -> EnergyNow {
    EnergyNow {
        gpu: seat.found.index,
        boot_id: agent.boot_id.clone(),
        generation,
        t_ns: point.at_ns,
        delta_ns: u64::from(point.uncertainty_ns),
        energy_uj: point.energy_uj,
        watts: Some(point.power_uw as f64 / 1e6),
        period_ms: seat.described().seen.period_ms,
        flags: point.flags.words().map(str::to_owned).collect(),
    }
}

impl Agent {
    /// Its clock now.
    pub fn clock(&self) -> ClockNow {
        ClockNow { boot_id: self.boot_id.clone(), now_ns: now_ns() }
    }
}

/// The number of the first publish after an instant that is still kept.
fn after(card: &Card, since_ns: u64) -> u64 {
    let series = card.series();
    let is_before = |number: u64| series.point(number).is_none_or(|point| point.at_ns <= since_ns);
    let (mut low, mut high) = (0, series.pushed());
    while low < high {
        let middle = low.midpoint(high);
        if is_before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

fn put(text: &mut Vec<u8>, event: &str, data: &impl Serialize) {
    let start = text.len();
    text.extend_from_slice(b"event: ");
    text.extend_from_slice(event.as_bytes());
    text.extend_from_slice(b"\ndata: ");
    if serde_json::to_writer(&mut *text, data).is_err() {
        // Numbers, words and lists of them: there is nothing that could not be written.
        text.truncate(start);
        return;
    }
    text.extend_from_slice(b"\n\n");
}

#[cfg(test)]
mod tests {
    use joulebook::core::series::series_of;

    use super::*;

    #[test]
    fn what_is_gone_is_said_before_the_publish_that_spans_it() {
        let (mut writer, series) = series_of(8, 8);
        let mut push = |number: u64| {
            let flags = if number == 17 { Flags::COUNTER_RESET } else { Flags::NONE };
            writer.push(Point { at_ns: number + 1, energy_uj: number, flags, ..Point::default() });
        };
        (0..3).for_each(&mut push);
        let mut place = Place { next: 1, generation: 4 };
        let told = |place: &mut Place| -> Vec<(u64, u64, u64)> {
            let next = std::iter::from_fn(|| place.next(&series, series.pushed()));
            next.map(|next| match next {
                Next::Gone(publishes) => (publishes, 0, 0),
                Next::Publish(number, point, generation) => {
                    assert_eq!(point.energy_uj, number);
                    (0, number, generation)
                }
            })
            .collect()
        };
        assert_eq!(told(&mut place), [(0, 1, 4), (0, 2, 4)]);
        // A ring of eight keeps the newest seven.
        (3..20).for_each(&mut push);
        let after = (13..20).map(|number| (0, number, if number < 17 { 4 } else { 5 }));
        let expected: Vec<_> = std::iter::once((10, 0, 0)).chain(after).collect();
        assert_eq!(told(&mut place), expected);
        assert!(told(&mut place).is_empty());
    }
}
