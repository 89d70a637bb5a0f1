//! The owner of the books: one thread that hears of tickets, looks at their tokens, takes what the
//! cards published, and lets the state machine do what is due.
//!
//! In this order at each turn: messages, tokens, publishes; so whatever came before a publish is
//! known before its tick is seated. It wakes about every ten milliseconds while anybody is in
//! flight, and seldom when nobody is.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
        mpsc::{Receiver, TryRecvError},
    },
    thread,
    time::Duration,
};

use joulebook_core::{
    Fault,
    keeper::{Keeper, Payer, Phases, Publish},
    receipt::{Receipt, Status},
};

use super::{
    Rhos, Settings, TrialBalance,
    cell::{Cell, Ending, Message, Request},
    claim::Claim,
    feed::Feed,
    journal::Sink,
    live::Tokens,
};
use crate::{clock, meter::Meter};

/// How long it sleeps while nobody is in flight.
const IDLE: Duration = Duration::from_millis(100);
/// How often the journal is flushed.
const FLUSH_NS: u64 = 1_000_000_000;

pub(super) struct Owner {
    receiver: Receiver<Message>,
    keeper: Keeper,
    feeds: Vec<Feed>,
    names: Vec<(String, String)>,
    rho: Rhos,
    sink: Sink,
    tokens: Tokens,
    sample_every: Duration,
    clock: fn() -> u64,
    asleep: Arc<AtomicBool>,
    open: Arc<AtomicUsize>,
    refused: Arc<AtomicU64>,
    /// Tickets in flight, as they were seen last.
    seen: Vec<Seen>,
    /// Those whose receipt is not final.
    cells: HashMap<u64, Arc<Cell>>,
    /// Ticks on their way into a book.
    due: Vec<Publish>,
    sampled_ns: u64,
    flushed_ns: u64,
    stopped: bool,
    /// Given back last, when the journal is at rest.
    _claim: Claim,
}

struct Seen {
    cell: Arc<Cell>,
    tokens: u64,
    admitted_ns: u64,
    prompt: u64,
}

impl Owner {
    pub fn new(
        meter: &Meter,
        settings: Settings,
        receiver: Receiver<Message>,
        tokens: Tokens,
        claim: Claim,
    ) -> Self {
        let feeds = Feed::of(meter, settings.lenient);
        let facts: Vec<_> = feeds.iter().map(Feed::facts).collect();
        let cards = facts.iter().map(|facts| Arc::clone(&facts.name)).collect();
        let mut keeping = settings.keeping;
        keeping.journal = settings.journal.is_some();
        let mut keeper = Keeper::new(keeping, facts);
        let (sink, numbers) = Sink::begin(settings.journal, cards);
        for (card, number) in numbers.into_iter().enumerate() {
            keeper.begin_at(card, number);
        }
        Self {
            receiver,
            keeper,
            names: feeds.iter().map(Feed::names).collect(),
            feeds,
            rho: settings.rho,
            sink,
            tokens,
            sample_every: settings.sample_every,
            clock: settings.clock,
            asleep: Arc::default(),
            open: Arc::default(),
            refused: Arc::default(),
            seen: Vec::new(),
            cells: HashMap::new(),
            due: Vec::new(),
            sampled_ns: (settings.clock)(),
            flushed_ns: 0,
            stopped: false,
            _claim: claim,
        }
    }

    pub fn sharing(
        self,
        asleep: Arc<AtomicBool>,
        open: Arc<AtomicUsize>,
        refused: Arc<AtomicU64>,
    ) -> Self {
        Self { asleep, open, refused, ..self }
    }

    pub fn run(mut self) {
        while !self.stopped {
            self.hear();
            let now = (self.clock)();
            self.look(now);
            self.do_what_is_due(now);
            if !self.stopped {
                let idle = self.cells.is_empty();
                self.asleep.store(idle, Ordering::Relaxed);
                thread::park_timeout(if idle { IDLE } else { self.sample_every });
                self.asleep.store(false, Ordering::Relaxed);
            }
        }
        self.end();
    }

    /// All that has been said since the last turn.
    fn hear(&mut self) {
        loop {
            match self.receiver.try_recv() {
                Ok(Message::Opened(cell, request)) => self.opened(cell, *request),
                Ok(Message::Ended(ending)) => self.ended(*ending),
                Ok(Message::Ask(id, reply)) => {
                    let now = (self.clock)();
                    self.look(now);
                    self.do_what_is_due(now);
                    // Whoever asked may have stopped waiting.
                    let _ = reply.try_send(self.receipt(id, now));
                }
                Ok(Message::Trial(reply)) => {
                    let now = (self.clock)();
                    self.do_what_is_due(now);
                    let _ = reply.try_send(self.trial(now));
                }
                Ok(Message::Stop) | Err(TryRecvError::Disconnected) => {
                    self.stopped = true;
                    return;
                }
                Err(TryRecvError::Empty) => return,
            }
        }
    }

    fn opened(&mut self, cell: Arc<Cell>, request: Request) {
        let Request { mut opening, mut cards } = request;
        if cards.is_empty() {
            cards = (0..self.feeds.len()).map(|card| (card, Phases::Both)).collect();
        }
        let model = opening.labels.model.as_deref();
        let payer = |(card, phases): (usize, Phases)| {
            let (name, uuid) = self.names.get(card)?;
            Some(Payer { card, phases, rho: self.rho.of(model, name, uuid) })
        };
        opening.payers = cards.into_iter().filter_map(payer).collect();
        let refused = self.keeper.open(cell.opened_ns, opening).is_err();
        if refused {
            self.refused.fetch_add(1, Ordering::Relaxed);
            cell.finish(Receipt::unknown(cell.id, Fault::NotReady));
        } else {
            self.cells.insert(cell.id, Arc::clone(&cell));
        }
        self.seen.push(Seen { cell, tokens: 0, admitted_ns: 0, prompt: 0 });
    }

    fn ended(&mut self, ending: Ending) {
        let Ending { cell, at_ns, status, usage, marks } = ending;
        let id = cell.id;
        // The books may have closed it as lost long ago.
        if let Some(place) = self.seen.iter().rposition(|seen| seen.cell.id == id) {
            let mut seen = self.seen.swap_remove(place);
            let more = seen.look(&mut self.keeper, self.sampled_ns, at_ns);
            self.tokens.add(at_ns, more);
            self.open.fetch_sub(1, Ordering::Relaxed);
        }
        for (name, at_ns) in marks {
            self.keeper.mark(id, at_ns, name);
        }
        if status == Status::Abandoned {
            self.keeper.abandon(id, at_ns, usage);
        } else {
            self.keeper.close(id, at_ns, status, usage);
        }
    }

    /// Looks at every ticket.
    fn look(&mut self, now: u64) {
        let mut more = 0u64;
        for seen in &mut self.seen {
            more = more.saturating_add(seen.look(&mut self.keeper, self.sampled_ns, now));
        }
        self.tokens.add(now, more);
        self.sampled_ns = now;
    }

    fn do_what_is_due(&mut self, now: u64) {
        for (card, feed) in self.feeds.iter_mut().enumerate() {
            let mut due = std::mem::take(&mut self.due);
            feed.take(now, || self.keeper.present(card), &mut due);
            for publish in due.drain(..) {
                self.keeper.publish(card, publish);
            }
            self.due = due;
        }
        self.tokens.rest_at(self.feeds.iter().map(Feed::rest_uw).sum());
        self.keeper.advance(now);
        for receipt in self.keeper.finished() {
            let Some(cell) = self.cells.remove(&receipt.id) else { continue };
            if receipt.status == Status::Lost
                && let Some(place) = self.seen.iter().position(|seen| seen.cell.id == receipt.id)
            {
                self.seen.swap_remove(place);
                self.open.fetch_sub(1, Ordering::Relaxed);
            }
            cell.finish(stamped(receipt, cell.opened_ns));
        }
        self.sink.write(self.keeper.journal());
        if now.saturating_sub(self.flushed_ns) >= FLUSH_NS {
            self.flushed_ns = now;
            self.sink.flush();
        }
    }

    fn trial(&self, now: u64) -> TrialBalance {
        let mut trial = TrialBalance {
            refused_tickets: self.refused.load(Ordering::Relaxed),
            journal_written: self.sink.written,
            journal_failed: self.sink.failed,
            ..TrialBalance::of(&self.keeper)
        };
        for (card, feed) in trial.cards.iter_mut().zip(&self.feeds) {
            card.idle_floor = feed.idle_floor(now);
        }
        trial
    }

    fn receipt(&self, id: u64, now: u64) -> Option<Receipt> {
        let receipt = self.keeper.receipt(id, now)?;
        let since_ns = (receipt.seconds * 1e9) as u64;
        let opened_ns = self.cells.get(&id).map_or(now.saturating_sub(since_ns), |it| it.opened_ns);
        Some(stamped(receipt, opened_ns))
    }

    /// Nobody is to wait for ever.
    fn end(mut self) {
        let now = (self.clock)();
        for (id, cell) in std::mem::take(&mut self.cells) {
            let receipt = self.keeper.receipt(id, now);
            let receipt = receipt.unwrap_or_else(|| Receipt::unknown(id, Fault::NotReady));
            cell.finish(stamped(receipt, cell.opened_ns));
        }
        self.sink.write(self.keeper.journal());
        self.sink.flush();
    }
}

impl Seen {
    /// What its ticket has done since the last look; how many tokens came. When in between they came
    /// is not known: the middle.
    fn look(&mut self, keeper: &mut Keeper, last_ns: u64, now: u64) -> u64 {
        let (id, cell) = (self.cell.id, &self.cell);
        let admitted_ns = cell.admitted_ns.load(Ordering::Acquire);
        if admitted_ns != self.admitted_ns {
            self.admitted_ns = admitted_ns;
            keeper.admitted(id, admitted_ns);
        }
        let prompt = cell.prompt.load(Ordering::Acquire);
        if prompt != self.prompt {
            self.prompt = prompt;
            let cached = cell.cached.load(Ordering::Relaxed).checked_sub(1);
            keeper.prompt(id, prompt.saturating_sub(1), cached);
        }
        let tokens = cell.tokens.load(Ordering::Acquire);
        let more = tokens.wrapping_sub(self.tokens);
        if more == 0 {
            return 0;
        }
        let mut since_ns = last_ns.max(cell.opened_ns);
        if self.tokens == 0 {
            let first_ns = cell.first_ns.load(Ordering::Acquire);
            if first_ns > 0 {
                since_ns = since_ns.max(first_ns);
                keeper.tokens(id, first_ns, 1);
            }
        }
        self.tokens = tokens;
        keeper.tokens(id, since_ns.min(now).midpoint(now), tokens);
        more
    }
}

/// Attaches wall time, once, here at the edge.
fn stamped(receipt: Receipt, opened_ns: u64) -> Receipt {
    Receipt { opened_unix_s: Some(clock::unix_ns(opened_ns) as f64 / 1e9), ..receipt }
}
