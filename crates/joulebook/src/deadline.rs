//! Wakes tasks at an instant, for futures that must end though their recorder hangs.
//!
//! One thread, started by the first that waits; it sleeps until the next deadline. By hand because
//! the library does not choose an async runtime for its users, and std has no timer.

use std::{
    collections::BTreeMap,
    sync::{Condvar, Mutex, Once, PoisonError},
    task::Waker,
    thread,
    time::Duration,
};

use crate::clock::now_ns;

static WAITING: Mutex<BTreeMap<(u64, u64), Waker>> = Mutex::new(BTreeMap::new());
static NEWS: Condvar = Condvar::new();
static THREAD: Once = Once::new();

/// Has `waker` woken at `at_ns`, if not before.
pub(crate) fn wake_at(at_ns: u64, waker: &Waker) {
    THREAD.call_once(|| {
        let spawned = thread::Builder::new().name("joulebook-deadline".into()).spawn(run);
        if let Err(error) = spawned {
            tracing::warn!("no thread for deadlines: {error}");
        }
    });
    let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
    let known =
        waiting.range((at_ns, 0)..=(at_ns, u64::MAX)).any(|(_, other)| other.will_wake(waker));
    if !known {
        let number = waiting.range((at_ns, 0)..=(at_ns, u64::MAX)).count() as u64;
        waiting.insert((at_ns, number), waker.clone());
        NEWS.notify_one();
    }
}

fn run() {
    let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let now = now_ns();
        let later = waiting.split_off(&(now.saturating_add(1), 0));
        let due = std::mem::replace(&mut *waiting, later);
        if due.is_empty() {
            let next_ns = waiting.keys().next().map_or(u64::MAX, |(at_ns, _)| *at_ns);
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
