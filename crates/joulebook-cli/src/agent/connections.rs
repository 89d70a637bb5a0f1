//! The connections that are open, and which of them is cut when: decided here alone.
//!
//! A connection waits for a request, is sending its header, or is busy: being answered, or a
//! stream. It is cut when a header takes too long, when it has waited for too long, and when what it
//! is sent is not taken. There is room for so many; when it is full the one that has waited longest
//! makes room, so that connections that only stand open shut nobody out; where all are busy the new
//! one is turned away. Nothing grows with what clients do.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
};

use joulebook::clock::now_ns;
use tokio::task::AbortHandle;

/// How long a request's header may take.
const HEADER_NS: u64 = 10_000_000_000;
/// How long a connection may wait for the next request.
const IDLE_NS: u64 = 75_000_000_000;
/// How long a client may take nothing of what it is sent.
const STALLED_NS: u64 = 20_000_000_000;

/// What a connection is doing.
#[derive(Debug)]
pub struct Presence {
    /// When it was let in, ns.
    entered_ns: u64,
    /// It has sent a whole request.
    was_of_use: AtomicBool,
    /// Since when it waits, ns; 0 while it does not.
    waiting_ns: AtomicU64,
    /// Since when it sends a header, ns; 0 while it does not.
    header_ns: AtomicU64,
    /// Since when it takes nothing, ns; 0 while it does or there is nothing.
    stalled_ns: AtomicU64,
    /// Requests being answered, streams among them.
    busy: AtomicU32,
}

/// Keeps a connection busy.
#[derive(Debug)]
pub struct Busy(Arc<Presence>);

/// All connections.
#[derive(Debug)]
pub struct Connections {
    most: usize,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    entries: BTreeMap<u64, Entry>,
}

#[derive(Debug)]
struct Entry {
    presence: Arc<Presence>,
    /// Absent for the moment between being let in and being served.
    task: Option<AbortHandle>,
}

/// A place among the connections, left when this is dropped.
#[derive(Debug)]
pub struct Place {
    connections: Arc<Connections>,
    number: u64,
    /// What the connection is doing.
    pub presence: Arc<Presence>,
}

impl Presence {
    fn new() -> Self {
        let entered_ns = now_ns();
        Self {
            entered_ns,
            was_of_use: AtomicBool::new(false),
            waiting_ns: AtomicU64::new(entered_ns),
            header_ns: AtomicU64::new(0),
            stalled_ns: AtomicU64::new(0),
            busy: AtomicU32::new(0),
        }
    }

    /// Bytes have come.
    pub fn heard(&self) {
        if self.waiting_ns.load(Ordering::Relaxed) > 0 {
            self.waiting_ns.store(0, Ordering::Relaxed);
            self.header_ns.store(now_ns(), Ordering::Relaxed);
        }
    }

    /// Bytes were taken, or not.
    pub fn sending(&self, taken: bool) {
        if taken {
            if self.stalled_ns.load(Ordering::Relaxed) > 0 {
                self.stalled_ns.store(0, Ordering::Relaxed);
            }
        } else if self.stalled_ns.load(Ordering::Relaxed) == 0 {
            self.stalled_ns.store(now_ns(), Ordering::Relaxed);
        }
    }

    /// A request is there whole.
    pub fn busy(self: &Arc<Self>) -> Busy {
        self.busy.fetch_add(1, Ordering::Relaxed);
        self.was_of_use.store(true, Ordering::Relaxed);
        self.waiting_ns.store(0, Ordering::Relaxed);
        self.header_ns.store(0, Ordering::Relaxed);
        Busy(Arc::clone(self))
    }

    /// Since when it does nothing that would be missed; one that was never of use, ever.
    fn idle_ns(&self) -> Option<u64> {
        let since = [&self.waiting_ns, &self.header_ns].map(|at| at.load(Ordering::Relaxed));
        let since_ns = since.into_iter().find(|since_ns| *since_ns > 0)?;
        Some(if self.was_of_use.load(Ordering::Relaxed) { since_ns } else { self.entered_ns })
    }

    /// Whether it is to be cut.
    fn is_over(&self, now_ns: u64) -> bool {
        [(&self.waiting_ns, IDLE_NS), (&self.header_ns, HEADER_NS), (&self.stalled_ns, STALLED_NS)]
            .into_iter()
            .any(|(since, most_ns)| {
                let since_ns = since.load(Ordering::Relaxed);
                since_ns > 0 && now_ns.saturating_sub(since_ns) > most_ns
            })
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if self.0.busy.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.waiting_ns.store(now_ns(), Ordering::Relaxed);
        }
    }
}

impl Connections {
    /// With room for so many.
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, open: Mutex::default() })
    }

    /// How many are open.
    pub fn count(&self) -> usize {
        self.lock().entries.len()
    }

    /// Room for one more, and whether another was cut for it; `None` where all are busy.
    pub fn enter(self: &Arc<Self>) -> Option<(Place, bool)> {
        let mut open = self.lock();
        let is_full = open.entries.len() >= self.most;
        if is_full {
            let longest = open.longest_idle()?;
            open.cut(longest);
        }
        let number = open.next;
        open.next += 1;
        let presence = Arc::new(Presence::new());
        open.entries.insert(number, Entry { presence: Arc::clone(&presence), task: None });
        drop(open);
        Some((Place { connections: Arc::clone(self), number, presence }, is_full))
    }

    /// The task that serves a connection.
    pub fn served_by(&self, number: u64, task: AbortHandle) {
        // One that is not there is over already.
        if let Some(entry) = self.lock().entries.get_mut(&number) {
            entry.task = Some(task);
        }
    }

    /// Cuts those that make no progress; how many.
    pub fn sweep(&self) -> u64 {
        let now_ns = now_ns();
        let mut open = self.lock();
        let over: Vec<u64> = open
            .entries
            .iter()
            .filter(|(_, entry)| entry.presence.is_over(now_ns))
            .map(|(number, _)| *number)
            .collect();
        over.iter().for_each(|number| open.cut(*number));
        over.len() as u64
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// The one that has waited longest. In the order they were let in: behind one that was never of
    /// use all others have waited for less, so that a flood of such ones is looked through no further
    /// than its first.
    fn longest_idle(&self) -> Option<u64> {
        let mut longest: Option<(u64, u64)> = None;
        for (number, Entry { presence, task }) in &self.entries {
            let Some(idle_ns) = presence.idle_ns().filter(|_| task.is_some()) else { continue };
            longest = longest.into_iter().chain([(idle_ns, *number)]).min();
            if !presence.was_of_use.load(Ordering::Relaxed) {
                break;
            }
        }
        longest.map(|(_, number)| number)
    }

    fn cut(&mut self, number: u64) {
        if let Some(task) = self.entries.remove(&number).and_then(|entry| entry.task) {
            task.abort();
        }
    }
}

impl Place {
    /// Its number.
    pub const fn number(&self) -> u64 {
        self.number
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.lock().entries.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(connections: &Arc<Connections>, place: &Place) {
        // On a runtime that never runs: only its handle is of use.
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let task = runtime.spawn(std::future::pending::<()>());
        connections.served_by(place.number(), task.abort_handle());
    }

    #[test]
    fn the_one_that_waits_longest_makes_room_and_busy_ones_do_not() {
        let connections = Connections::new(2);
        let enter = || {
            let (place, cut) = connections.enter()?;
            served(&connections, &place);
            Some((place, cut))
        };
        let (first, _) = enter().unwrap();
        let (second, cut) = enter().unwrap();
        assert!(!cut);
        let busy = first.presence.busy();
        let (third, cut) = enter().unwrap();
        assert!(cut && connections.count() == 2, "the second made room");
        let busy_too = third.presence.busy();
        assert!(enter().is_none(), "all are busy");
        drop(busy);
        assert!(enter().is_some());
        drop((second, busy_too));
    }

    #[test]
    fn one_that_was_of_use_lately_outlives_those_that_never_were() {
        let connections = Connections::new(4);
        let enter = || {
            let (place, _) = connections.enter().unwrap();
            served(&connections, &place);
            place
        };
        let is_there = |place: &Place| connections.lock().entries.contains_key(&place.number());
        let places = [enter(), enter(), enter(), enter()];
        let [long_ago, lately, never, header] = &places;
        drop(long_ago.presence.busy());
        header.presence.heard();
        std::thread::sleep(std::time::Duration::from_millis(2));
        drop(lately.presence.busy());
        let mut later = Vec::new();
        for expected in [never, header, long_ago, lately] {
            assert!(is_there(expected));
            later.push(enter());
            // So that the newcomers are not the ones that go.
            later.iter().for_each(|place| drop(place.presence.busy()));
            assert!(!is_there(expected), "{}", expected.number());
        }
    }

    #[test]
    fn what_makes_no_progress_is_over() {
        let presence = Arc::new(Presence::new());
        let begun_ns = now_ns();
        let over = |after_ns: u64| presence.is_over(begun_ns + after_ns);
        assert!(!over(IDLE_NS - 1_000_000_000) && over(IDLE_NS + 1_000_000_000));
        presence.heard();
        presence.heard();
        assert!(!over(HEADER_NS - 1_000_000_000) && over(HEADER_NS + 1_000_000_000));
        let busy = presence.busy();
        presence.heard();
        assert!(!over(10 * IDLE_NS), "an answer takes what it takes");
        presence.sending(false);
        presence.sending(false);
        assert!(over(STALLED_NS + 1_000_000_000));
        presence.sending(true);
        assert!(!over(10 * IDLE_NS));
        drop(busy);
        assert!(over(IDLE_NS + 1_000_000_000));
    }
}
