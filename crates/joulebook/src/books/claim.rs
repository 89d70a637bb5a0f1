//! One card has one book: who keeps it.
//!
//! Decides whether books may be opened on a card. A claim holds from the opening of books until
//! their owner has ended, its journal brought to rest; books whose last handle is gone are on their
//! way out, and whoever comes next waits a moment for that. A card that is read anew while its book is
//! still kept ([`crate::release`]) is the card of before: it is known by its UUID. One of another host
//! is known by its endpoint beside that, and by what it was asked for by until its agent has told the
//! UUID.
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

/// Whether a card's book is kept, and by which claim. Each card has one; one that was asked for in
/// several ways before it was known may have several.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    kept: Mutex<Option<Kept>>,
    freed: Condvar,
    /// What the card is known by: what it was asked for by, then what it turned out to be.
    names: Mutex<Vec<String>>,
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
    shelves: Vec<Arc<Shelf>>,
}

/// Tells, when it is dropped, that the books of a claim are on their way out.
#[derive(Debug)]
pub(super) struct Notice {
    number: u64,
    shelves: Vec<Arc<Shelf>>,
}

impl Claim {
    /// Claims all of these cards, or none.
    pub fn of(cards: &[Arc<Card>]) -> Result<Self, BooksError> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut claim = Self { number, shelves: Vec::with_capacity(cards.len()) };
        for card in cards {
            for shelf in card.shelf.all() {
                if !shelf.take(number) {
                    let device = card.device();
                    let (name, uuid) = (device.name.clone(), device.uuid.clone());
                    return Err(BooksError::Kept { index: device.index, name, uuid });
                }
                claim.shelves.push(shelf);
            }
        }
        Ok(claim)
    }

    pub fn notice(&self) -> Notice {
        Notice { number: self.number, shelves: self.shelves.clone() }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.shelves.iter().for_each(|shelf| shelf.give_back(self.number));
    }
}

impl Drop for Notice {
    fn drop(&mut self) {
        self.shelves.iter().for_each(|shelf| shelf.will_end(self.number));
    }
}

impl Shelf {
    /// That of the card of this name, however often it is read anew.
    pub(crate) fn of(card: String) -> Arc<Self> {
        let mut shelves = lock(&SHELVES);
        if let Some(shelf) = shelves.get(&card).and_then(Weak::upgrade) {
            return shelf;
        }
        shelves.retain(|_, shelf| shelf.strong_count() > 0);
        let shelf = Arc::new(Self { names: Mutex::new(vec![card.clone()]), ..Self::default() });
        shelves.insert(card, Arc::downgrade(&shelf));
        shelf
    }

    /// It has become known which card it is of.
    pub(crate) fn is_of(&self, card: String) {
        let mut names = lock(&self.names);
        names.truncate(1);
        names.push(card);
    }

    /// This one, and those of the same card asked for in another way.
    fn all(self: &Arc<Self>) -> Vec<Arc<Self>> {
        let names = lock(&self.names).clone();
        let is_same = |other: &Arc<Self>| {
            !Arc::ptr_eq(other, self) && lock(&other.names).iter().any(|name| names.contains(name))
        };
        let shelves = lock(&SHELVES);
        let others = shelves.values().filter_map(Weak::upgrade).filter(is_same);
        std::iter::once(Arc::clone(self)).chain(others).collect()
    }

    fn take(&self, claim: u64) -> bool {
        let kept = lock(&self.kept);
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
        if let Some(kept) = lock(&self.kept).as_mut().filter(|kept| kept.claim == claim) {
            kept.ending = true;
        }
    }

    fn give_back(&self, claim: u64) {
        let mut kept = lock(&self.kept);
        if kept.is_some_and(|kept| kept.claim == claim) {
            *kept = None;
            self.freed.notify_all();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
