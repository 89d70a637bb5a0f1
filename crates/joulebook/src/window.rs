//! A window: the span of time that one piece of work occupied.
//!
//! Opening, marking and closing read the clock and the newest points; no driver is asked and nobody
//! is waited for. A window that is dropped has closed.

mod answer;
mod pending;

use std::sync::Arc;

use joulebook_core::{Fault, ring::Point};
pub use pending::Pending;

use crate::{card::Card, clock::now_ns, meter::Inner, occupancy::Entry};

/// A window that is open.
#[derive(Debug)]
pub struct Window {
    inner: Arc<Inner>,
    open_ns: u64,
    edges: Vec<Edge>,
    marks: Vec<(String, u64)>,
    /// Inside another window: takes nothing from it.
    child: bool,
    closed: bool,
}

/// A card as a window found it when it opened.
#[derive(Clone, Copy, Debug)]
struct Edge {
    newest: Option<Point>,
    fault: Option<Fault>,
    polls: u64,
    rejected: u64,
    entry: Option<Entry>,
}

impl Window {
    pub(crate) fn open(inner: Arc<Inner>, child: bool) -> Self {
        let open_ns = now_ns();
        let edges = inner.cards.iter().map(|card| {
            let occupancy = &card.occupancy;
            let entry = if child { occupancy.open_inside() } else { occupancy.open(open_ns) };
            Edge { entry: Some(entry), ..Edge::now(card, open_ns) }
        });
        let edges = edges.collect();
        Self { inner, open_ns, edges, marks: Vec::new(), child, closed: false }
    }

    /// Closes the stage that is open and opens the next: what has passed since the mark before (or
    /// the opening) is stage `name`. The same name twice adds up in one stage.
    pub fn mark(&mut self, name: impl Into<String>) {
        self.marks.push((name.into(), now_ns()));
    }

    /// Opens a window inside this one; it takes nothing from it.
    pub fn child(&self) -> Self {
        Self::open(Arc::clone(&self.inner), true)
    }

    /// How it stands so far: the answer at once, with the window still open.
    pub fn so_far(&self) -> Pending {
        self.pending(now_ns())
    }

    /// Closes it. The meter's `sync` runs first, and its time belongs to the window.
    pub fn close(mut self) -> Pending {
        if let Some(sync) = self.inner.sync.clone() {
            let sync = std::panic::AssertUnwindSafe(|| sync());
            if std::panic::catch_unwind(sync).is_err() {
                tracing::warn!(
                    "the sync call of a window panicked; the window closes all the same"
                );
            }
        }
        let close_ns = now_ns();
        self.closed = true;
        let pending = self.pending(close_ns);
        self.leave(close_ns);
        pending
    }

    /// The cards it is on.
    pub(crate) fn cards(&self) -> &[Arc<Card>] {
        &self.inner.cards
    }

    fn leave(&self, close_ns: u64) {
        if !self.child {
            self.inner.cards.iter().for_each(|card| card.occupancy.close(close_ns));
        }
    }

    /// True when windows other than its parent and its children were open on one of the cards
    /// meanwhile.
    fn is_overlapped(&self) -> bool {
        let entries = self.inner.cards.iter().zip(&self.edges);
        entries
            .into_iter()
            .any(|(card, edge)| edge.entry.is_some_and(|entry| card.occupancy.is_overlapped(entry)))
    }

    fn pending(&self, close_ns: u64) -> Pending {
        let closings = self.inner.cards.iter().map(|card| Edge::now(card, close_ns)).collect();
        Pending {
            inner: Arc::clone(&self.inner),
            open_ns: self.open_ns,
            close_ns,
            edges: self.edges.clone(),
            closings,
            marks: self.marks.clone(),
            child: self.child,
            closed: self.closed,
            overlapped: self.is_overlapped(),
            tokens: 0,
        }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        if !self.closed {
            self.leave(now_ns());
        }
    }
}

impl Edge {
    fn now(card: &Card, at_ns: u64) -> Self {
        use std::sync::atomic::Ordering::Relaxed;
        Self {
            newest: card.series.newest(),
            fault: card.health.trouble(at_ns),
            polls: card.health.polls.load(Relaxed),
            rejected: card.health.rejected.load(Relaxed),
            entry: None,
        }
    }
}
