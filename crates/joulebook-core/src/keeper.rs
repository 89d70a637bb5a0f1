//! The books of several cards as a state machine: events with their times go in, receipts and
//! journal lines come out.
//!
//! No clock, no thread, no I/O: whoever drives it says what time it is, so the same books are kept
//! in real time and in simulated time. A request may work on several cards; it has the same weights
//! on each (but for cards that only read prompts, or only write answers), and its receipt is the
//! sum.
//!
//! Everything is bounded whatever happens: the requests that are open, those that are kept for late
//! news, the ticks and seats that are kept, the pieces of an answer's history. What goes beyond is
//! refused or let go of, and counted.

#![cfg_attr(not(test), deny(clippy::float_arithmetic, clippy::arithmetic_side_effects))]

mod book;
mod end;
mod page;
mod pieces;
mod request;
mod requests;
mod sums;
mod tally;
mod weight;
mod write;

use std::{collections::VecDeque, sync::Arc};

use book::{Book, Scratch};
use request::Request;
pub use request::{MOST_MARKS, Opening, Payer, Phases};
use requests::{Place, Requests};

use crate::{
    flags::Flags,
    ledger::{
        Entry, Ledger, Transaction,
        settle::{Carry, Others, Rest, Split, Tick},
    },
    measurement::Source,
    receipt::{Receipt, Status, Usage},
};

const SECOND_NS: u64 = 1_000_000_000;

/// How books are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How the requests' part of a tick is split.
    pub split: Split,
    /// How late token events may come, ns.
    pub lateness_ns: u64,
    /// How long a tick waits for first tokens at most, ns.
    pub wait_ns: u64,
    /// How long a settled tick may be corrected, ns.
    pub correct_ns: u64,
    /// How long a request that has ended waits for its ticks, ns.
    pub give_up_ns: u64,
    /// How long the account of an abandoned request stays open, ns.
    pub abandon_after_ns: u64,
    /// How long a request may be open, ns; then it counts as lost.
    pub longest_ns: u64,
    /// Requests that may be open at once.
    pub most_open: usize,
    /// Requests that have ended and are kept for late news.
    pub most_ended: usize,
    /// Seats (a request in a tick) kept on each card.
    pub most_seats: usize,
    /// Transactions are kept for a journal.
    pub journal: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            split: Split::Weighted,
            lateness_ns: 1_000_000,
            wait_ns: 10 * SECOND_NS,
            correct_ns: 60 * SECOND_NS,
            give_up_ns: 60 * SECOND_NS,
            abandon_after_ns: 60 * SECOND_NS,
            longest_ns: 6 * 3600 * SECOND_NS,
            most_open: 65_536,
            most_ended: 65_536,
            most_seats: 262_144,
            journal: false,
        }
    }
}

/// What is known of a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardFacts {
    /// What receipts call it.
    pub name: Arc<str>,
    /// What reads it.
    pub backend: &'static str,
    /// Whose reading that is.
    pub source: Source,
    /// How long publishes lag behind the energy they show, ns.
    pub lag_ns: u64,
    /// How far the lag may be off, ns.
    pub lag_uncertainty_ns: u64,
}

/// A tick, and what is known around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publish {
    /// The tick.
    pub tick: Tick,
    /// By how much the publish that ends it may be off, µJ.
    pub edge_uj: u64,
    /// What the card draws at rest, where that is known.
    pub rest: Option<Rest>,
    /// How far that may be off, µW.
    pub spread_uw: u64,
    /// Who else was there.
    pub others: Others,
    /// Their names.
    pub contended_by: Option<Arc<str>>,
    /// What else is to be said of it.
    pub flags: Flags,
}

/// What was counted of things that should be rare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests opened.
    pub opened: u64,
    /// Requests that were not let in because too many were open.
    pub full: u64,
    /// Requests that ended without being seen to the end of the last tick.
    pub given_up: u64,
    /// Requests that were never closed.
    pub lost: u64,
    /// Ticks settled before all was known, because they had waited long enough.
    pub capped: u64,
    /// The same, because too many seats were held.
    pub forced: u64,
    /// Ticks that can no longer be corrected though they are not old, because too many are held.
    pub let_go: u64,
    /// Requests forgotten before late news of them was ruled out.
    pub forgotten_early: u64,
    /// Corrections made.
    pub corrections: u64,
    /// Transactions that the ledger refused: always 0.
    pub refused: u64,
}

/// How a card's book stands.
#[derive(Clone, Copy, Debug)]
pub struct Standing<'a> {
    /// The card.
    pub facts: &'a CardFacts,
    /// Its accounts.
    pub ledger: &'a Ledger,
    /// Idle energy that ticks lacked.
    pub carry: Carry,
    /// Requests that may be present.
    pub active: usize,
    /// Ticks that are kept.
    pub ticks: usize,
}

/// Why a request was not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotOpened {
    /// Too many are open.
    Full,
    /// Its number is in use.
    Known,
}

#[derive(Debug)]
struct Journal {
    keep: bool,
    lines: VecDeque<(usize, Transaction)>,
}

impl Journal {
    /// Takes a transaction; gives its entries back where no journal is kept.
    fn write(&mut self, card: usize, transaction: Transaction) -> Vec<Entry> {
        if !self.keep {
            return transaction.entries;
        }
        self.lines.push_back((card, transaction));
        Vec::new()
    }
}

/// The books.
#[derive(Debug)]
pub struct Keeper {
    settings: Settings,
    requests: Requests,
    books: Vec<Book>,
    open: usize,
    abandoned: Vec<Place>,
    /// Ended, and not settled.
    ending: Vec<Place>,
    /// Settled or given up, in that order; late news may still come.
    ended: VecDeque<(u64, Place)>,
    finished: VecDeque<Receipt>,
    journal: Journal,
    scratch: Scratch,
    counts: Counts,
    swept_ns: u64,
    moved: bool,
}

impl Keeper {
    /// Empty books of these cards.
    pub fn new(settings: Settings, cards: impl IntoIterator<Item = CardFacts>) -> Self {
        let books = cards.into_iter().enumerate().map(|(card, facts)| Book::new(card, facts));
        Self {
            journal: Journal { keep: settings.journal, lines: VecDeque::new() },
            settings,
            requests: Requests::default(),
            books: books.collect(),
            open: 0,
            abandoned: Vec::new(),
            ending: Vec::new(),
            ended: VecDeque::new(),
            finished: VecDeque::new(),
            scratch: Scratch::default(),
            counts: Counts::default(),
            swept_ns: 0,
            moved: false,
        }
    }

    /// The first transaction of a card's book has that number: the next one of a journal that has been
    /// kept before. Of no effect on a book that has begun.
    pub fn begin_at(&mut self, card: usize, number: u64) {
        let is_new = |book: &&mut Book| book.ledger.next_number() == 0;
        if let Some(book) = self.books.get_mut(card).filter(is_new) {
            book.ledger.begin_at(number);
        }
    }

    /// A request comes.
    pub fn open(&mut self, at_ns: u64, mut opening: Opening) -> Result<(), NotOpened> {
        if self.requests.place(opening.id).is_some() {
            return Err(NotOpened::Known);
        }
        if self.open >= self.settings.most_open {
            self.counts.full = self.counts.full.saturating_add(1);
            return Err(NotOpened::Full);
        }
        opening.payers.retain(|payer| payer.card < self.books.len());
        opening.payers.sort_by_key(|payer| payer.card);
        opening.payers.dedup_by_key(|payer| payer.card);
        let cards: Vec<usize> = opening.payers.iter().map(|payer| payer.card).collect();
        let place = self.requests.insert(Request::new(at_ns, opening));
        for card in cards {
            if let Some(book) = self.books.get_mut(card) {
                book.enter(place, &mut self.requests);
            }
        }
        self.open = self.open.saturating_add(1);
        self.counts.opened = self.counts.opened.saturating_add(1);
        Ok(())
    }

    /// How long its prompt is, and how much of that came from a cache.
    pub fn prompt(&mut self, id: u64, tokens: u64, cached: Option<u64>) {
        self.learn(id, |request| {
            request.usage.prompt = Some(tokens);
            request.usage.cached = cached.or(request.usage.cached);
        });
    }

    /// Its work begins.
    pub fn admitted(&mut self, id: u64, at_ns: u64) {
        self.learn(id, |request| {
            request.admitted_ns = Some(at_ns.max(request.opened_ns));
        });
    }

    /// Its first token came.
    pub fn first_token(&mut self, id: u64, at_ns: u64) {
        self.learn(id, |request| {
            request.first_ns = request.first_ns.or(Some(at_ns.max(request.opened_ns)));
        });
    }

    /// A point in its life.
    pub fn mark(&mut self, id: u64, at_ns: u64, name: Arc<str>) {
        self.learn(id, |request| {
            if request.marks.len() < MOST_MARKS {
                request.marks.push((name, at_ns));
            }
        });
    }

    /// Tokens of its answer so far, all together.
    pub fn tokens(&mut self, id: u64, at_ns: u64, total: u64) {
        let Some(place) = self.requests.place(id) else { return };
        let Some(request) = self.requests.get_mut(place) else { return };
        let more = total.saturating_sub(request.counted);
        if more == 0 {
            return;
        }
        let at_ns = at_ns.max(request.opened_ns);
        // Only the first tells something of the past.
        if request.first_ns.is_none() {
            self.first_token(id, at_ns);
        }
        let Some(request) = self.requests.get_mut(place) else { return };
        // Where the final amount is known already, each late token changes what the others weigh.
        let is_closed = request.usage.completion.is_some();
        let before = is_closed.then(|| request.facts());
        let weighing = request.add_tokens(more);
        if is_closed {
            request.refresh();
        }
        if let Some(from_ns) = before.and_then(|before| before.differ_from(request.facts())) {
            for page in request.pages.iter() {
                if let Some(book) = self.books.get_mut(page.card) {
                    book.touch(place, from_ns);
                }
            }
        }
        if weighing == 0 {
            return;
        }
        request.keep_piece(at_ns, weighing);
        for page in request.pages.iter() {
            if page.seated_ns >= at_ns
                && let Some(book) = self.books.get_mut(page.card)
            {
                book.late_tokens(place, page.rho, at_ns, weighing);
            }
        }
    }

    /// A card published.
    pub fn publish(&mut self, card: usize, publish: Publish) {
        if let Some(book) = self.books.get_mut(card) {
            book.post(publish, &mut self.journal, &mut self.counts);
        }
    }

    /// Does what is due by now.
    pub fn advance(&mut self, now_ns: u64) {
        self.scratch.drop_weights();
        for number in 0..self.books.len() {
            self.seat(number, now_ns);
            let Some(book) = self.books.get_mut(number) else { continue };
            let (requests, settings) = (&mut self.requests, &self.settings);
            let (scratch, journal, counts) =
                (&mut self.scratch, &mut self.journal, &mut self.counts);
            self.moved |= book.settle(now_ns, requests, settings, scratch, journal, counts);
            book.correct(now_ns, requests, settings, scratch, journal, counts);
            book.expire(now_ns, settings, counts);
        }
        self.sweep(now_ns);
        self.finish(now_ns);
        self.forget(now_ns);
    }

    fn seat(&mut self, number: usize, now_ns: u64) {
        loop {
            let Some(book) = self.books.get_mut(number) else { return };
            let Some((window, at_rest)) = book.is_due(now_ns, &self.settings) else { return };
            if at_rest && !self.abandoned.is_empty() {
                self.at_rest(number, window.from_ns);
            }
            if let Some(book) = self.books.get_mut(number) {
                book.seat(&mut self.requests, &mut self.scratch, now_ns);
            }
        }
    }

    /// Changes what is known of a request, and looks at its past again where that matters.
    fn learn(&mut self, id: u64, change: impl FnOnce(&mut Request)) {
        let Some(place) = self.requests.place(id) else { return };
        let Some(request) = self.requests.get_mut(place) else { return };
        let before = request.facts();
        let ended_ns = request.ended_ns;
        change(request);
        request.refresh();
        let ended_late = ended_ns != request.ended_ns
            && request
                .ended_ns
                .is_some_and(|ended| request.pages.iter().any(|page| page.seated_ns > ended));
        let from_ns = match before.differ_from(request.facts()) {
            _ if ended_late => request.opened_ns,
            Some(from_ns) => from_ns,
            None => return,
        };
        for page in request.pages.iter() {
            if let Some(book) = self.books.get_mut(page.card) {
                book.touch(place, from_ns);
            }
        }
    }

    /// Receipts that have become final, oldest first.
    pub fn finished(&mut self) -> impl Iterator<Item = Receipt> + '_ {
        self.finished.drain(..)
    }

    /// Transactions since the last look, each with its card's number.
    pub fn journal(&mut self) -> impl Iterator<Item = (usize, Transaction)> + '_ {
        self.journal.lines.drain(..)
    }

    /// What was counted of things that should be rare.
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// How a card's book stands.
    pub fn standing(&self, card: usize) -> Option<Standing<'_>> {
        let book = self.books.get(card)?;
        let (active, ticks) = book.sizes();
        Some(Standing {
            facts: &book.facts,
            ledger: &book.ledger,
            carry: book.carry,
            active,
            ticks,
        })
    }

    /// From when to when those were there who may have been in a card's next tick, or are still.
    pub fn present(&self, card: usize) -> impl Iterator<Item = (u64, Option<u64>)> + '_ {
        let places = self.books.get(card).map_or(&[][..], Book::active).iter();
        let requests = places.filter_map(|place| self.requests.get(*place));
        requests.map(|request| (request.opened_ns, request.ended_ns))
    }

    /// How the book of each card stands.
    pub fn standings(&self) -> impl Iterator<Item = Standing<'_>> {
        (0..self.books.len()).filter_map(|card| self.standing(card))
    }

    /// Requests that are open, and all that are kept.
    pub fn sizes(&self) -> (usize, usize) {
        (self.open, self.requests.len())
    }

    /// Looks at everything that must hold, slowly; what does not.
    pub fn self_check(&self) -> Result<(), String> {
        for book in &self.books {
            let name = &book.facts.name;
            let suspense = book.ledger.balance(crate::ledger::Account::Suspense);
            for (holds, what) in [
                (book.ledger.imbalance_uj() == 0, "the accounts do not sum to the register"),
                (suspense == book.waiting_uj(), "suspense is not what waits"),
                (book.seats_agree(), "seats are miscounted"),
            ] {
                if !holds {
                    return Err(format!("{name}: {what}"));
                }
            }
        }
        let open = self.requests.iter().filter(|(_, request)| request.ended_ns.is_none()).count();
        if open != self.open {
            return Err(format!("{open} requests are open, not {}", self.open));
        }
        if let Some((_, request)) = self.requests.iter().find(|(_, it)| it.steady_ns != it.steady())
        {
            return Err(format!("request {} is not as steady as it seems", request.id));
        }
        if self.counts.refused > 0 {
            return Err(format!("{} transactions were refused", self.counts.refused));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
