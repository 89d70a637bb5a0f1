//! Live control: a file in shared memory where another process says what each card draws now.
//!
//! The file is an append-only log of changes for each card, so the integral under live load is
//! exact and the truth of any past window can be read afterwards, by anybody. One writer a card;
//! any number of readers, which never block it. All words are little-endian and aligned to 8 bytes.
//!
//! | offset | word | meaning |
//! | --- | --- | --- |
//! | 0 | 8 bytes | the magic `JBLIVE01`, written last |
//! | 8 | u64 | how many cards |
//! | 16 | u64 | how many changes a card's log holds at most (its capacity) |
//! | 24 | u64 | the clock of all stamps: 0 CLOCK_MONOTONIC, 1 CLOCK_REALTIME |
//! | 64 + 64·card | u64 | that card's head: how many changes are written |
//! | 64 + 64·cards + 32·(card·capacity + n) | 32 bytes | change n of that card |
//!
//! A change is `t_ns: u64` (on that clock, never before the last one's), `watts: f64` (from then
//! on, the board's whole draw), `joules: f64` (from change 0 to this one: the last change's joules +
//! its watts × the time since), `check: u64` = t_ns ⊕ bits(watts) ⊕ bits(joules) ⊕ (n + 1). The
//! writer writes the change, then the head, the head as one aligned 8-byte store (in Python:
//! `memoryview(map).cast("Q")[i] = head`). A reader takes no change whose check is wrong. Before
//! its first change a card idles. A full log refuses further changes; nothing is overwritten.
//! The file is sparse: a large capacity costs nothing until it is used.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use crate::{
    clock::system_ns,
    load::{Change, Live},
    scenario::ClockKind,
};

mod map;

use map::Map;

const MAGIC: u64 = u64::from_le_bytes(*b"JBLIVE01");
const HEADER_WORDS: usize = 8;
const CARD_WORDS: usize = 8;
const CHANGE_WORDS: usize = 4;

/// Changes a card's log holds unless said otherwise: a change each millisecond for 17 minutes.
pub const DEFAULT_CAPACITY: usize = 1 << 20;

/// An open control file.
pub struct Control {
    path: PathBuf,
    map: Map,
    cards: usize,
    capacity: usize,
    clock: ClockKind,
}

/// Why a control file could not be used.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The system refused.
    #[error("cannot use the control file {}: {source}", path.display())]
    System {
        /// The file.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// It is no control file.
    #[error("{} is no control file: {why}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: &'static str,
    },
    /// The file stamps by another clock than asked for.
    #[error("{} is stamped by the {file:?} clock, the scenario says {wanted:?}", path.display())]
    OtherClock {
        /// The file.
        path: PathBuf,
        /// The file's clock.
        file: ClockKind,
        /// The scenario's.
        wanted: ClockKind,
    },
    /// There is no such card.
    #[error("the control file {} has no card {card}; it has {cards} (from 0)", path.display())]
    NoCard {
        /// The file.
        path: PathBuf,
        /// The card asked for.
        card: usize,
        /// How many there are.
        cards: usize,
    },
    /// No more changes fit.
    #[error("card {card}'s log of {capacity} changes is full: create {} with a larger capacity", path.display())]
    Full {
        /// The file.
        path: PathBuf,
        /// The card.
        card: usize,
        /// What it holds.
        capacity: usize,
    },
    /// No power, or no time to set it.
    #[error(
        "{watts} W at {t_ns} ns cannot be set: a power is finite and not below 0, and time does not go back"
    )]
    Unusable {
        /// The power.
        watts: f64,
        /// When.
        t_ns: i64,
    },
}

/// What a scenario's card follows: one card's log, on the scenario's time. The file may come late.
pub struct ControlledCard {
    path: PathBuf,
    clock: ClockKind,
    epoch_ns: i64,
    card: usize,
    control: OnceLock<Arc<Control>>,
}

impl Control {
    /// A new file, or an old one emptied.
    pub fn create(
        path: &Path,
        cards: usize,
        capacity: usize,
        clock: ClockKind,
    ) -> Result<Self, ControlError> {
        let words = HEADER_WORDS + cards * CARD_WORDS + cards * capacity * CHANGE_WORDS;
        let map = Map::create(path, words)
            .map_err(|source| ControlError::System { path: path.to_owned(), source })?;
        map.set(1, cards as u64);
        map.set(2, capacity as u64);
        map.set(3, u64::from(clock == ClockKind::Realtime));
        map.set(0, MAGIC);
        Ok(Self { path: path.to_owned(), map, cards, capacity, clock })
    }

    /// A file that somebody created.
    pub fn open(path: &Path) -> Result<Self, ControlError> {
        let map = Map::open(path)
            .map_err(|source| ControlError::System { path: path.to_owned(), source })?;
        let malformed = |why| ControlError::Malformed { path: path.to_owned(), why };
        if map.get(0) != Some(MAGIC) {
            return Err(malformed("it does not begin with JBLIVE01"));
        }
        let size = |at: usize| map.get(at).and_then(|word| usize::try_from(word).ok());
        let (Some(cards), Some(capacity)) = (size(1), size(2)) else {
            return Err(malformed("its header is cut short"));
        };
        let needed = capacity.checked_mul(CHANGE_WORDS).and_then(|words| {
            words.checked_add(CARD_WORDS)?.checked_mul(cards)?.checked_add(HEADER_WORDS)
        });
        if needed.is_none_or(|needed| needed > map.words()) {
            return Err(malformed("it is shorter than its header says"));
        }
        let clock = match map.get(3) {
            Some(0) => ClockKind::Monotonic,
            Some(1) => ClockKind::Realtime,
            _ => return Err(malformed("its clock is neither 0 nor 1")),
        };
        Ok(Self { path: path.to_owned(), map, cards, capacity, clock })
    }

    /// How many cards it has.
    pub const fn cards(&self) -> usize {
        self.cards
    }

    /// The clock of its stamps.
    pub const fn clock(&self) -> ClockKind {
        self.clock
    }

    /// Sets a card's power from now on; the instant it took, ns on the file's clock.
    pub fn set_watts(&self, card: usize, watts: f64) -> Result<i64, ControlError> {
        self.set_watts_at(card, system_ns(self.clock), watts)
    }

    /// Sets a card's power from an instant on. One process at a time may do so for one card.
    pub fn set_watts_at(&self, card: usize, t_ns: i64, watts: f64) -> Result<i64, ControlError> {
        if card >= self.cards {
            let (path, cards) = (self.path.clone(), self.cards);
            return Err(ControlError::NoCard { path, card, cards });
        }
        if !self.map.writable() {
            let source = io::ErrorKind::PermissionDenied.into();
            return Err(ControlError::System { path: self.path.clone(), source });
        }
        let count = self.count(card);
        if count >= self.capacity {
            let (path, capacity) = (self.path.clone(), self.capacity);
            return Err(ControlError::Full { path, card, capacity });
        }
        let last = count.checked_sub(1).and_then(|last| self.change(card, last));
        let before = last.is_some_and(|last| last.t_ns > t_ns);
        if before || t_ns < 0 || !watts.is_finite() || watts < 0.0 {
            return Err(ControlError::Unusable { watts, t_ns });
        }
        let joules = last.map_or(0.0, |last| last.joules_at(t_ns));
        let at = self.at(card, count);
        let stamp = t_ns.cast_unsigned();
        self.map.set(at, stamp);
        self.map.set(at + 1, watts.to_bits());
        self.map.set(at + 2, joules.to_bits());
        self.map.set(at + 3, check(stamp, watts, joules, count));
        self.map.set(HEADER_WORDS + card * CARD_WORDS, count as u64 + 1);
        Ok(t_ns)
    }

    fn at(&self, card: usize, n: usize) -> usize {
        HEADER_WORDS + self.cards * CARD_WORDS + (card * self.capacity + n) * CHANGE_WORDS
    }

    /// How many whole changes a card's log has.
    fn count(&self, card: usize) -> usize {
        if card >= self.cards {
            return 0;
        }
        let head = self.map.get(HEADER_WORDS + card * CARD_WORDS).unwrap_or(0);
        let mut count = usize::try_from(head).unwrap_or(0).min(self.capacity);
        // A head that was seen half written points at changes that are not there yet.
        while count > 0 && self.change(card, count - 1).is_none() {
            count -= 1;
        }
        count
    }

    /// A change, unless it is not wholly written.
    fn change(&self, card: usize, n: usize) -> Option<Change> {
        let at = self.at(card, n);
        let stamp = self.map.get(at)?;
        let watts = f64::from_bits(self.map.get(at + 1)?);
        let joules = f64::from_bits(self.map.get(at + 2)?);
        let whole = self.map.get(at + 3)? == check(stamp, watts, joules, n);
        whole.then_some(Change { t_ns: stamp.cast_signed(), watts, joules })
    }

    /// A card's last change at or before an instant of the file's clock.
    pub fn last_at(&self, card: usize, t_ns: i64) -> Option<Change> {
        let (mut low, mut high) = (0, self.count(card));
        // The newest is asked for most.
        let newest = high.checked_sub(1).and_then(|newest| self.change(card, newest));
        if newest.is_some_and(|newest| newest.t_ns <= t_ns) {
            return newest;
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if self.change(card, middle)?.t_ns <= t_ns {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        self.change(card, low.checked_sub(1)?)
    }

    /// A card's first change.
    pub fn first(&self, card: usize) -> Option<Change> {
        (self.count(card) > 0).then(|| self.change(card, 0))?
    }
}

fn check(stamp: u64, watts: f64, joules: f64, n: usize) -> u64 {
    stamp ^ watts.to_bits() ^ joules.to_bits() ^ (n as u64 + 1)
}

impl ControlledCard {
    /// A card of the file at that path, on a time that begins at `epoch_ns` of its clock.
    pub const fn new(path: PathBuf, clock: ClockKind, epoch_ns: i64, card: usize) -> Self {
        Self { path, clock, epoch_ns, card, control: OnceLock::new() }
    }

    /// Opens the file now, and says what is wrong with it.
    pub fn open(&self) -> Result<&Control, ControlError> {
        if let Some(control) = self.control.get() {
            return Ok(control);
        }
        let control = Control::open(&self.path)?;
        if control.clock != self.clock {
            let (path, file, wanted) = (self.path.clone(), control.clock, self.clock);
            return Err(ControlError::OtherClock { path, file, wanted });
        }
        Ok(self.control.get_or_init(|| Arc::new(control)))
    }

    fn shifted(&self, change: Change) -> Change {
        Change { t_ns: change.t_ns.saturating_sub(self.epoch_ns), ..change }
    }
}

impl Live for ControlledCard {
    fn last_at(&self, t_ns: i64) -> Option<Change> {
        let control = self.open().ok()?;
        let change = control.last_at(self.card, t_ns.saturating_add(self.epoch_ns))?;
        Some(self.shifted(change))
    }

    fn first(&self) -> Option<Change> {
        self.open().ok()?.first(self.card).map(|change| self.shifted(change))
    }
}

#[cfg(test)]
mod tests;
