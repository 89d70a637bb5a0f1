//! The books of a node's cards: what each request cost, however many are in flight.
//!
//! One thread owns the books; it is fed by the recorders' series and by tickets. Whoever has a
//! ticket never waits for it: an opening and a closing are messages, at most three for each ticket
//! and tickets are counted, so the queue is bounded without blocking; everything in between (tokens,
//! the prompt's length, admission) is a store into the ticket's own cell, which the owner looks at
//! about every ten milliseconds and at each publish. A ticket that is dropped is cancelled, and
//! charged for what it used.
//!
//! Refused: more tickets than may be open (counted; their receipts say so); a second set of books on
//! a card. At level [`Level::Off`] a ticket reads no clock, allocates nothing and writes nothing.

mod audit;
mod cell;
mod claim;
mod feed;
mod journal;
mod live;
mod owner;
mod pending;
mod rho;
mod settings;
mod statement;
mod ticket;
mod trial;

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
        mpsc::{self, Sender},
    },
    thread::{self, JoinHandle, Thread},
    time::Duration,
};

pub use audit::{Audit, Broken, CardAudit, Cut, NoJournal, Why};
pub use joulebook_core::{
    keeper::{self, Phases},
    receipt::{Receipt, Status, TokenSource, Usage},
};
pub use journal::{Balances, Journal, JournalFile, Line, Mended, Opened, What};
pub use live::Rate;
pub use pending::PendingReceipt;
pub use rho::{RhoFileError, Rhos};
pub use settings::{BooksError, Labels, Level, Settings};
pub use statement::{Post, Statement, StatementLine};
pub use ticket::Ticket;
pub use trial::{CardTrial, FloorFrom, IdleFloor, TrialBalance};

use crate::meter::Meter;
use cell::{Cell, Message};
use claim::{Claim, Notice};
pub(crate) use claim::{SHELVES, Shelf, Shelves};
use live::Live;

/// An owner that does not answer in this time is not waited for.
const ANSWER: Duration = Duration::from_millis(250);

/// The books of a node's cards. Cheap to clone; the owner ends when the last clone, ticket and
/// pending receipt is gone.
#[derive(Clone, Debug)]
pub struct Books {
    shared: Option<Arc<Shared>>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    sender: Sender<Message>,
    owner: Thread,
    /// The owner sleeps for long and wants to be woken.
    asleep: Arc<AtomicBool>,
    next: AtomicU64,
    open: Arc<AtomicUsize>,
    refused: Arc<AtomicU64>,
    most_open: usize,
    longest_wait_ns: u64,
    clock: fn() -> u64,
    live: Live,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Dropped with the last handle, before the owner has ended.
    _notice: Notice,
}

impl Books {
    /// Opens the books of a meter's cards. One card has one book: while these are open, others of
    /// the same card are refused.
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// use joulebook::{
    ///     Meter, Node,
    ///     books::{Books, Labels, Settings, Usage},
    /// };
    ///
    /// let meter = Meter::for_node(&Node::of("0").idle_watts(70.0))?;
    /// let books = Books::of(&meter, Settings::default())?;
    /// let mut ticket = books.open(&Labels { model: Some("m"), ..Labels::default() });
    /// ticket.prompt(120, Some(0));
    /// ticket.admitted();
    /// for _ in 0..50 {
    ///     ticket.tokens(1);
    /// }
    /// let receipt = ticket.close(Usage::default()).settle(Duration::from_secs(1));
    /// println!("{:?} J ± {:?}", receipt.joules, receipt.bound_joules);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of(meter: &Meter, settings: Settings) -> Result<Self, BooksError> {
        if settings.level == Level::Off {
            return Ok(Self::off());
        }
        let claim = Claim::of(meter.cards())?;
        let notice = claim.notice();
        let (sender, receiver) = mpsc::channel();
        let clock = settings.clock;
        let (most_open, keeping) = (settings.keeping.most_open, &settings.keeping);
        let longest_wait_ns = keeping
            .give_up_ns
            .saturating_add(keeping.abandon_after_ns)
            .saturating_add(2_000_000_000);
        let asleep = Arc::new(AtomicBool::new(false));
        let open = Arc::new(AtomicUsize::new(0));
        let refused = Arc::new(AtomicU64::new(0));
        let (live, tokens) = Live::of(meter, clock());
        let owner = owner::Owner::new(meter, settings, receiver, tokens, claim);
        let owner = owner.sharing(Arc::clone(&asleep), Arc::clone(&open), Arc::clone(&refused));
        let thread = thread::Builder::new()
            .name("joulebook-books".to_owned())
            .spawn(move || owner.run())
            .map_err(BooksError::NoThread)?;
        let shared = Shared {
            sender,
            owner: thread.thread().clone(),
            asleep,
            next: AtomicU64::new(1),
            open,
            refused,
            most_open,
            longest_wait_ns,
            clock,
            live,
            thread: Mutex::new(Some(thread)),
            _notice: notice,
        };
        Ok(Self { shared: Some(Arc::new(shared)) })
    }

    /// Books that keep nothing: every ticket is free, and every receipt unknown.
    pub const fn off() -> Self {
        Self { shared: None }
    }

    /// A request comes.
    pub fn open(&self, labels: &Labels<'_>) -> Ticket {
        let Some(shared) = &self.shared else { return Ticket::none() };
        if shared.open.fetch_add(1, Ordering::Relaxed) >= shared.most_open {
            shared.open.fetch_sub(1, Ordering::Relaxed);
            shared.refused.fetch_add(1, Ordering::Relaxed);
            return Ticket::none();
        }
        let id = shared.next.fetch_add(1, Ordering::Relaxed);
        let cell = Arc::new(Cell::new(id, (shared.clock)()));
        shared.send(Message::Opened(Arc::clone(&cell), Box::new(labels.opening(id))), false);
        Ticket::new(Arc::clone(shared), cell)
    }

    /// The receipt of a request by its number: how it stands, or its final figure; none when it is
    /// not known (any more).
    pub fn receipt(&self, id: u64) -> Option<Receipt> {
        self.shared.as_ref()?.receipt(id)
    }

    /// All accounts of all cards, their sum against the registers, and what was dropped.
    pub fn trial_balance(&self) -> Option<TrialBalance> {
        let shared = self.shared.as_ref()?;
        let (reply, answer) = mpsc::sync_channel(1);
        shared.send(Message::Trial(reply), true);
        answer.recv_timeout(ANSWER).ok()
    }

    /// What the cards drew, and the tokens that came of it, over the last second; absent while the
    /// cards have not shown so much.
    pub fn last_second(&self) -> Option<Rate> {
        self.shared.as_ref()?.live.last(1_000_000_000)
    }

    /// The same since the books were opened.
    pub fn since_start(&self) -> Option<Rate> {
        self.shared.as_ref()?.live.since_start()
    }

    /// The same between two instants of the [`crate::clock`].
    pub fn between(&self, from_ns: u64, to_ns: u64) -> Option<Rate> {
        self.shared.as_ref()?.live.between(from_ns, to_ns)
    }

    /// Closes the books: what is pending gets the receipt it has by now, the journal is flushed, and
    /// the owner ends. Tickets that are still open are charged nothing more.
    pub fn close(self) {
        let Some(shared) = &self.shared else { return };
        shared.send(Message::Stop, true);
        let thread = shared.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::warn!("the owner of the books had panicked");
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // So that the next books of these cards need not wait until it looks.
        self.send(Message::Stop, true);
    }
}

impl Shared {
    /// Sends; wakes the owner where that matters, or when it sleeps for long.
    fn send(&self, message: Message, urgent: bool) {
        // An owner that has ended hears nothing, and whoever waits for it does not wait for ever.
        let _ = self.sender.send(message);
        if urgent || self.asleep.load(Ordering::Relaxed) {
            self.owner.unpark();
        }
    }

    fn receipt(&self, id: u64) -> Option<Receipt> {
        let (reply, answer) = mpsc::sync_channel(1);
        self.send(Message::Ask(id, reply), true);
        answer.recv_timeout(ANSWER).ok().flatten()
    }
}
