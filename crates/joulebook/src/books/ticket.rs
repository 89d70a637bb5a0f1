//! A ticket: a request in flight, in the hands of whoever works on it.

use std::{
    mem,
    sync::{Arc, atomic::Ordering},
};

use joulebook_core::{
    keeper::MOST_MARKS,
    receipt::{Status, Usage},
};

use super::{
    PendingReceipt, Shared,
    cell::{Cell, Ending, Message},
};

/// A request in flight. Dropped, it is cancelled, and charged for what it used.
#[derive(Debug)]
#[must_use = "a ticket that is dropped is cancelled"]
pub struct Ticket {
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    shared: Arc<Shared>,
    cell: Arc<Cell>,
    marks: Vec<(Arc<str>, u64)>,
}

impl Ticket {
    /// Of books that are off, or full.
    pub(super) const fn none() -> Self {
        Self { open: None }
    }

    pub(super) fn new(shared: Arc<Shared>, cell: Arc<Cell>) -> Self {
        Self { open: Some(Open { shared, cell, marks: Vec::new() }) }
    }

    /// Its number in the books; none when it is not in them.
    pub fn id(&self) -> Option<u64> {
        self.open.as_ref().map(|open| open.cell.id)
    }

    /// How long the prompt is, and how much of that came from a cache, where that is known.
    pub fn prompt(&mut self, tokens: u64, cached: Option<u64>) {
        let Some(open) = &self.open else { return };
        if let Some(cached) = cached {
            open.cell.cached.store(cached.saturating_add(1), Ordering::Relaxed);
        }
        open.cell.prompt.store(tokens.saturating_add(1), Ordering::Release);
    }

    /// Its work begins now: it was queued until here.
    pub fn admitted(&mut self) {
        let Some(open) = &self.open else { return };
        open.cell.admitted_ns.store((open.shared.clock)(), Ordering::Release);
    }

    /// More tokens of the answer. The first call is its first token.
    #[inline]
    pub fn tokens(&mut self, more: u64) {
        if let Some(open) = &self.open {
            open.cell.add_tokens(more, open.shared.clock);
        }
    }

    /// A point in its life, for its receipt; so many are kept.
    pub fn mark(&mut self, name: &str) {
        let Some(open) = &mut self.open else { return };
        if open.marks.len() < MOST_MARKS {
            open.marks.push((name.into(), (open.shared.clock)()));
        }
    }

    /// What it has cost so far.
    pub fn so_far(&self) -> PendingReceipt {
        PendingReceipt::of(self.open.as_ref().map(|open| (&open.shared, &open.cell)))
    }

    /// Answered.
    pub fn close(self, usage: Usage) -> PendingReceipt {
        self.end(Status::Done, usage)
    }

    /// Failed, or given up by whoever worked on it.
    pub fn fail(self, usage: Usage) -> PendingReceipt {
        self.end(Status::Failed, usage)
    }

    /// Given up by whoever asked.
    pub fn cancel(self, usage: Usage) -> PendingReceipt {
        self.end(Status::Cancelled, usage)
    }

    /// Whoever asked has left, and the server may work on: the account stays open until a card is
    /// back at rest or long enough has passed.
    pub fn abandon(self, usage: Usage) -> PendingReceipt {
        self.end(Status::Abandoned, usage)
    }

    fn end(mut self, status: Status, usage: Usage) -> PendingReceipt {
        let Some(mut open) = self.open.take() else { return PendingReceipt::of(None) };
        open.tell(status, usage);
        PendingReceipt::of(Some((&open.shared, &open.cell)))
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some(mut open) = self.open.take() {
            open.tell(Status::Cancelled, Usage::default());
        }
    }
}

impl Open {
    fn tell(&mut self, status: Status, usage: Usage) {
        let ending = Ending {
            cell: Arc::clone(&self.cell),
            at_ns: (self.shared.clock)(),
            status,
            usage,
            marks: mem::take(&mut self.marks),
        };
        self.shared.send(Message::Ended(Box::new(ending)), false);
    }
}
