//! The node's cards, and which of them are being read.
//!
//! Cards are listed and opened on threads of their own, each at most once at a time, so that a driver
//! that hangs holds up neither the service nor the other cards; what could not be opened is tried
//! again. A card that was opened once is its recorder's affair from then on.

mod inventory;

use std::{
    collections::BTreeSet,
    io,
    sync::{Arc, Condvar, Mutex, OnceLock, PoisonError, RwLock, mpsc},
    thread,
    time::{Duration, Instant},
};

use joulebook::{Backend, Card, Fault, Keep, Node, probe_node, profile::Profiles, watch};

use super::{seen::Described, stream::Newest};
pub use inventory::Found;
use inventory::{Inventory, list};

/// How long until what failed is tried again: at first, and at most.
const SOON: Duration = Duration::from_secs(1);
const SELDOM: Duration = Duration::from_secs(30);

/// All cards.
#[derive(Debug)]
pub struct Roster {
    profiles: Option<Profiles>,
    listing: RwLock<Arc<Listing>>,
    changed: Condvar,
    turn: Mutex<()>,
}

/// The cards at one moment.
#[derive(Debug, Default)]
pub struct Listing {
    /// By the driver's index.
    pub seats: Vec<Arc<Seat>>,
    /// Why it is not known which cards there are.
    pub unknown: Option<Why>,
    /// There is none, in words.
    pub nothing: Option<String>,
}

/// A word, and a sentence.
#[derive(Clone, Debug)]
pub struct Why {
    /// The word.
    pub fault: Fault,
    /// The sentence.
    pub words: String,
}

/// One card.
#[derive(Debug)]
pub struct Seat {
    /// What the inventory says of it.
    pub found: Found,
    /// The card once it is being read; until then why it is not.
    pub state: Result<Open, Why>,
    /// How it was last described.
    pub described: OnceLock<Mutex<Arc<Described>>>,
    /// Its newest publish as streams send it.
    pub newest: Newest,
}

/// A card that is being read.
#[derive(Debug)]
pub struct Open {
    /// The card.
    pub card: Arc<Card>,
    /// It has a power gauge.
    pub gauge: bool,
}

type Opened = (u32, Result<Open, Why>);
type Task = Box<dyn FnOnce() + Send>;

impl Roster {
    /// The cards of this host, which are looked for from now on.
    pub fn start(profiles: Option<Profiles>) -> io::Result<Arc<Self>> {
        let not_yet =
            Why { fault: Fault::NotReady, words: "the driver has not answered yet".to_owned() };
        let roster = Arc::new(Self {
            profiles,
            listing: RwLock::new(Arc::new(Listing {
                unknown: Some(not_yet),
                ..Listing::default()
            })),
            changed: Condvar::new(),
            turn: Mutex::default(),
        });
        let opener = Arc::clone(&roster);
        thread::Builder::new().name("joulebook-cards".into()).spawn(move || opener.open_all())?;
        Ok(roster)
    }

    /// The cards now.
    pub fn now(&self) -> Arc<Listing> {
        Arc::clone(&self.listing.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until it is known of all cards whether they can be read, or time is up.
    pub fn settle(&self, wait: Duration) -> Arc<Listing> {
        let until = Instant::now() + wait;
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let now = self.now();
            let left = until.saturating_duration_since(Instant::now());
            if now.is_settled() || left.is_zero() {
                return now;
            }
            // A first reading rings no bell here.
            let look_again = left.min(Duration::from_millis(20));
            let waited = self.changed.wait_timeout(turn, look_again);
            turn = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn replace(&self, listing: Listing) {
        *self.listing.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(listing);
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.changed.notify_all();
    }

    fn open_all(self: Arc<Self>) {
        let (sender, opened) = mpsc::channel();
        let mut opening: BTreeSet<u32> = BTreeSet::new();
        let mut wait = SOON;
        // The tool's own process, where it shows the cards; kept so that each try needs no other.
        let mut feed = None;
        loop {
            let seen = list(&mut feed);
            match seen {
                // Cards that were listed once are there, whatever is said now.
                _ if !self.now().seats.is_empty() && !matches!(seen, Inventory::Cards(_)) => {}
                Inventory::Nothing(words) => {
                    self.replace(Listing { nothing: Some(words), ..Listing::default() });
                }
                Inventory::Unknown(why) => {
                    self.replace(Listing { unknown: Some(why), ..Listing::default() });
                }
                Inventory::Cards(found) => {
                    self.replace(self.merged(found));
                    for seat in self.now().seats.iter().filter(|seat| seat.state.is_err()) {
                        if !seat.found.uuid.is_empty() && opening.insert(seat.found.index) {
                            self.open(seat, &sender);
                        }
                    }
                }
            }
            self.gather(&opened, &mut opening, wait);
            self.give_up(&opening);
            if opening.is_empty() && self.now().is_open() {
                return;
            }
            wait = (wait * 2).min(SELDOM);
        }
    }

    /// Takes what comes of the cards being opened, until none is, or for so long.
    fn gather(&self, opened: &mpsc::Receiver<Opened>, opening: &mut BTreeSet<u32>, wait: Duration) {
        let until = Instant::now() + wait;
        loop {
            if opening.is_empty() && self.now().is_open() {
                return;
            }
            let left = until.saturating_duration_since(Instant::now());
            let Ok((index, state)) = opened.recv_timeout(left) else { return };
            opening.remove(&index);
            let mut state = Some(state);
            let before = self.now();
            let seats = before.seats.iter().map(|seat| {
                if seat.found.index != index {
                    return Arc::clone(seat);
                }
                let taken = state.take();
                taken.map_or_else(
                    || Arc::clone(seat),
                    |state| Arc::new(Seat::new(seat.found.clone(), state)),
                )
            });
            let seats = seats.collect();
            self.replace(Listing { seats, ..Listing::default() });
        }
    }

    /// Those that are still being opened are not waited for any more; they may yet come.
    fn give_up(&self, opening: &BTreeSet<u32>) {
        let before = self.now();
        let waits = |seat: &Seat| {
            let not_ready = seat.state.as_ref().is_err_and(|why| why.fault == Fault::NotReady);
            not_ready && opening.contains(&seat.found.index)
        };
        if !before.seats.iter().any(|seat| waits(seat)) {
            return;
        }
        let words = "the driver does not answer; look for a hung one in the kernel's log (dmesg)";
        let late = |seat: &Arc<Seat>| {
            if !waits(seat) {
                return Arc::clone(seat);
            }
            let why = Why { fault: Fault::Timeout, words: words.to_owned() };
            Arc::new(Seat::new(seat.found.clone(), Err(why)))
        };
        self.replace(Listing {
            seats: before.seats.iter().map(late).collect(),
            ..Listing::default()
        });
    }

    /// The cards found, those that are open already as they are.
    fn merged(&self, found: Vec<Found>) -> Listing {
        let before = self.now();
        let seat = |found: Found| {
            let known = before.seats.iter().find(|seat| seat.found.index == found.index);
            match known {
                Some(seat) if seat.state.is_ok() || seat.found == found => Arc::clone(seat),
                _ => {
                    let why = found.refused.clone().unwrap_or(Why {
                        fault: Fault::NotReady,
                        words: "it is being opened".to_owned(),
                    });
                    Arc::new(Seat::new(found, Err(why)))
                }
            }
        };
        let mut seats: Vec<Arc<Seat>> = found.into_iter().map(seat).collect();
        let is_gone = |known: &&Arc<Seat>| {
            known.state.is_ok() && seats.iter().all(|seat| seat.found.index != known.found.index)
        };
        // One that fell off its bus is still the card it was.
        let gone: Vec<Arc<Seat>> = before.seats.iter().filter(is_gone).map(Arc::clone).collect();
        seats.extend(gone);
        Listing { seats, ..Listing::default() }
    }

    fn open(&self, seat: &Seat, sender: &mpsc::Sender<Opened>) {
        let (index, uuid) = (seat.found.index, seat.found.uuid.clone());
        let profiles = self.profiles.clone();
        let open = move || {
            let opened = watch(&uuid, profiles.as_ref(), Keep::Recent);
            opened.map(|card| Open::new(card, &uuid)).map_err(|error| Why {
                fault: error.fault(),
                words: crate::words::one_line(&error.to_string()),
            })
        };
        let name = format!("joulebook-open-{index}");
        let spawn = |task: Task| thread::Builder::new().name(name).spawn(task).map(drop);
        apart(index, sender, open, spawn);
    }
}

/// Opens a card on a thread of its own, which says what came of it. Where there is no thread, that
/// is what came of it, and it is tried again as anything that failed.
fn apart(
    index: u32,
    sender: &mpsc::Sender<Opened>,
    open: impl FnOnce() -> Result<Open, Why> + Send + 'static,
    spawn: impl FnOnce(Task) -> io::Result<()>,
) {
    let done = sender.clone();
    let task = move || {
        // Nobody listens any more once the agent stops.
        let _ = done.send((index, open()));
    };
    if let Err(error) = spawn(Box::new(task)) {
        let words = format!("there is no thread to open it on: {error}");
        tracing::warn!("card {index}: {words}");
        let _ = sender.send((index, Err(Why { fault: Fault::Unknown, words })));
    }
}

impl Open {
    fn new(card: Arc<Card>, uuid: &str) -> Self {
        card.want_usage();
        let gauge = match card.device().backend {
            Backend::NvmlCounter => {
                probe_node(&Node::of(uuid)).is_some_and(|it| it.watts.is_some())
            }
            _ => true,
        };
        Self { card, gauge }
    }
}

impl Seat {
    /// It has an energy counter whose updates nobody has looked for.
    pub fn is_unprobed(&self) -> bool {
        let card = self.state.as_ref().ok().map(|open| &open.card);
        card.is_some_and(|card| {
            card.profile().probe.is_none() && card.device().backend == Backend::NvmlCounter
        })
    }

    fn new(found: Found, state: Result<Open, Why>) -> Self {
        Self { found, state, described: OnceLock::new(), newest: Newest::default() }
    }
}

impl Listing {
    /// The card of this index.
    pub fn seat(&self, index: u32) -> Option<&Arc<Seat>> {
        self.seats.iter().find(|seat| seat.found.index == index)
    }

    fn is_open(&self) -> bool {
        self.unknown.is_none()
            && self.nothing.is_none()
            && self.seats.iter().all(|seat| seat.state.is_ok())
    }

    /// It is known of all cards whether they can be read.
    fn is_settled(&self) -> bool {
        let shown = |seat: &Arc<Seat>| match &seat.state {
            Ok(open) => !matches!(open.card.fresh(), Err(Fault::NotReady)),
            Err(why) => why.fault != Fault::NotReady,
        };
        let waits = |why: &Why| why.fault == Fault::NotReady;
        !self.unknown.as_ref().is_some_and(waits) && self.seats.iter().all(shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_that_there_was_no_thread_for_is_tried_again() {
        let found = Found { index: 3, uuid: "GPU-3".to_owned(), ..Found::default() };
        let waits = Why { fault: Fault::NotReady, words: "it is being opened".to_owned() };
        let seats = vec![Arc::new(Seat::new(found, Err(waits)))];
        let roster = Roster {
            profiles: None,
            listing: RwLock::new(Arc::new(Listing { seats, ..Listing::default() })),
            changed: Condvar::new(),
            turn: Mutex::default(),
        };
        let (sender, opened) = mpsc::channel();
        let mut opening = BTreeSet::from([3]);
        let refuse = |_: Task| Err(io::Error::from(io::ErrorKind::WouldBlock));
        apart(3, &sender, || panic!("it has no thread"), refuse);
        roster.gather(&opened, &mut opening, Duration::ZERO);
        assert!(opening.is_empty(), "nobody opens it now");
        let now = roster.now();
        let why = now.seat(3).unwrap().state.as_ref().unwrap_err();
        assert!(why.words.contains("no thread"), "{why:?}");
        assert!(now.is_settled(), "nobody waits for it");
    }
}
