//! Wakes tasks at an instant, for futures that must end though their recorder hangs.
//!
//! One thread, started by the first that waits; it sleeps until the next deadline. By hand because
//! the library does not choose an async runtime for its users, and std has no timer.

use std::{
    collections::BTreeMap,
    sync::{Condvar, Mutex, PoisonError},
    task::Waker,
    thread,
    time::Duration,
};

use crate::clock::now_ns;

pub(crate) static WAITING: Mutex<Waiting> =
    Mutex::new(Waiting { started: false, wakers: BTreeMap::new() });
static NEWS: Condvar = Condvar::new();

/// Who waits, by the instant and a number, and whether the thread is there that wakes them.
pub(crate) struct Waiting {
    started: bool,
    wakers: BTreeMap<(u64, u64), Waker>,
}

/// Has `waker` woken at `at_ns`, if not before.
pub(crate) fn wake_at(at_ns: u64, waker: &Waker) {
    let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
    if !waiting.started {
        waiting.started = true;
        let spawned = thread::Builder::new().name("joulebook-deadline".into()).spawn(run);
        if let Err(error) = spawned {
            tracing::warn!("no thread for deadlines: {error}");
        }
    }
    let known = waiting
        .wakers
        .range((at_ns, 0)..=(at_ns, u64::MAX))
        .any(|(_, other)| other.will_wake(waker));
    if !known {
        let number = waiting.wakers.range((at_ns, 0)..=(at_ns, u64::MAX)).count() as u64;
        waiting.wakers.insert((at_ns, number), waker.clone());
        NEWS.notify_one();
    }
}

impl Waiting {
    /// Forgets all of it, and that there was a thread.
    pub(crate) fn forget(&mut self) {
        self.started = false;
        // Wakers of tasks that are not here: they are not to run anything by being dropped.
        std::mem::forget(std::mem::take(&mut self.wakers));
    }
}

fn run() {
    let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let now = now_ns();
        let later = waiting.wakers.split_off(&(now.saturating_add(1), 0));
        let due = std::mem::replace(&mut waiting.wakers, later);
        if due.is_empty() {
            let next_ns = waiting.wakers.keys().next().map_or(u64::MAX, |(at_ns, _)| *at_ns);
            let wait = Duration::from_nanos(next_ns.saturating_sub(now).min(3_600_000_000_000));
            let woken = NEWS.wait_timeout(waiting, wait);
            waiting = woken.unwrap_or_else(PoisonError::into_inner).0;
        } else {
            drop(waiting);
            due.into_values().for_each(Waker::wake);
            waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
        }
    }
}
