//! What a ticket and the owner share: a few words that the ticket alone writes, and the place where
//! its receipt is laid.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
    mpsc::SyncSender,
};

use joulebook_core::{
    keeper::Opening,
    receipt::{Receipt, Status, Usage},
};

use super::TrialBalance;
use crate::signal::Signal;

/// What the owner is told.
#[derive(Debug)]
pub(super) enum Message {
    Opened(Arc<Cell>, Box<Request>),
    Ended(Box<Ending>),
    Ask(u64, SyncSender<Option<Receipt>>),
    Trial(SyncSender<TrialBalance>),
    Stop,
}

/// A request as its ticket describes it.
#[derive(Debug)]
pub(super) struct Request {
    pub opening: Opening,
    /// The cards that work on it; empty: all.
    pub cards: Vec<(usize, joulebook_core::keeper::Phases)>,
}

#[derive(Debug)]
pub(super) struct Ending {
    pub cell: Arc<Cell>,
    pub at_ns: u64,
    pub status: Status,
    pub usage: Usage,
    pub marks: Vec<(Arc<str>, u64)>,
}

/// A ticket's words; apart from other tickets' in the cache. Zero: not yet.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Cell {
    pub id: u64,
    pub opened_ns: u64,
    pub tokens: AtomicU64,
    pub first_ns: AtomicU64,
    pub admitted_ns: AtomicU64,
    /// One more than the tokens, so that none is told from nothing.
    pub prompt: AtomicU64,
    pub cached: AtomicU64,
    receipt: Mutex<Option<Arc<Receipt>>>,
    pub signal: Signal,
}

impl Cell {
    pub fn new(id: u64, opened_ns: u64) -> Self {
        Self {
            id,
            opened_ns,
            tokens: AtomicU64::new(0),
            first_ns: AtomicU64::new(0),
            admitted_ns: AtomicU64::new(0),
            prompt: AtomicU64::new(0),
            cached: AtomicU64::new(0),
            receipt: Mutex::default(),
            signal: Signal::default(),
        }
    }

    /// Called by the ticket alone, so a load and a store are enough.
    #[inline]
    pub fn add_tokens(&self, more: u64, clock: fn() -> u64) {
        let before = self.tokens.load(Ordering::Relaxed);
        if before == 0 && more > 0 {
            self.first(clock());
        }
        self.tokens.store(before.wrapping_add(more), Ordering::Relaxed);
    }

    #[cold]
    fn first(&self, at_ns: u64) {
        self.first_ns.store(at_ns, Ordering::Release);
    }

    /// Lays the final receipt down and tells whoever waits for it.
    pub fn finish(&self, receipt: Receipt) {
        *self.receipt.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(receipt));
        self.signal.ring();
    }

    pub fn receipt(&self) -> Option<Arc<Receipt>> {
        self.receipt.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
