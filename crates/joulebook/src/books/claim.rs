//! One card has one book: who keeps it.
//!
//! Decides whether books may be opened on a card. A claim holds from the opening of books until
//! their owner has ended, its journal brought to rest; books whose last handle is gone are on their
//! way out, and whoever comes next waits a moment for that. A card that is read anew while its book is
//! still kept ([`crate::release`]) is the card of before: it is known by its UUID, on another host by
//! the endpoint and what it was asked for by.
//!
//! Refused: a second set of books on a card, since each microjoule would be charged twice.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use super::BooksError;
use crate::card::Card;

/// Books that are ending are waited for so long.
const PATIENCE: Duration = Duration::from_secs(1);

static NEXT: AtomicU64 = AtomicU64::new(1);

/// The shelves of this process, by the cards' names.
pub(crate) static SHELVES: Mutex<Shelves> = Mutex::new(BTreeMap::new());

pub(crate) type Shelves = BTreeMap<String, Weak<Shelf>>;

/// Whether a card's book is kept, and by which claim. Each card has one.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    kept: Mutex<Option<Kept>>,
    freed: Condvar,
}

#[derive(Clone, Copy, Debug)]
struct Kept {
    claim: u64,
    ending: bool,
}

/// The right to keep the books of some cards; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Claim {
    number: u64,
    cards: Vec<Arc<Card>>,
}

/// Tells, when it is dropped, that the books of a claim are on their way out.
#[derive(Debug)]
pub(super) struct Notice {
    number: u64,
    cards: Vec<Arc<Card>>,
}

impl Claim {
    /// Claims all of these cards, or none.
    pub fn of(cards: &[Arc<Card>]) -> Result<Self, BooksError> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut claim = Self { number, cards: Vec::with_capacity(cards.len()) };
        for card in cards {
            if !card.shelf.take(number) {
                let device = card.device();
                let (index, name, uuid) = (device.index, device.name.clone(), device.uuid.clone());
                return Err(BooksError::Kept { index, name, uuid });
            }
            claim.cards.push(Arc::clone(card));
        }
        Ok(claim)
    }

    pub fn notice(&self) -> Notice {
        Notice { number: self.number, cards: self.cards.clone() }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.cards.iter().for_each(|card| card.shelf.give_back(self.number));
    }
}

impl Drop for Notice {
    fn drop(&mut self) {
        self.cards.iter().for_each(|card| card.shelf.will_end(self.number));
    }
}

impl Shelf {
    /// That of the card of this name, however often it is read anew.
    pub(crate) fn of(card: String) -> Arc<Self> {
        let mut shelves = SHELVES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shelf) = shelves.get(&card).and_then(Weak::upgrade) {
            return shelf;
        }
        shelves.retain(|_, shelf| shelf.strong_count() > 0);
        let shelf = Arc::<Self>::default();
        shelves.insert(card, Arc::downgrade(&shelf));
        shelf
    }

    fn take(&self, claim: u64) -> bool {
        let kept = self.lock();
        let is_ending = |kept: &mut Option<Kept>| kept.is_some_and(|kept| kept.ending);
        let waited = self.freed.wait_timeout_while(kept, PATIENCE, is_ending);
        let (mut kept, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if kept.is_some() {
            return false;
        }
        *kept = Some(Kept { claim, ending: false });
        true
    }

    fn will_end(&self, claim: u64) {
        if let Some(kept) = self.lock().as_mut().filter(|kept| kept.claim == claim) {
            kept.ending = true;
        }
    }

    fn give_back(&self, claim: u64) {
        let mut kept = self.lock();
        if kept.is_some_and(|kept| kept.claim == claim) {
            *kept = None;
            self.freed.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
