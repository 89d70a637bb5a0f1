//! News of a card: whoever waits for its next publish, a thread or a task.

use std::{
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    task::Waker,
    time::Duration,
};

/// A bell that the recorder rings.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    waiting: AtomicUsize,
    state: Mutex<State>,
    condvar: Condvar,
}

#[derive(Debug, Default)]
struct State {
    rung: u64,
    wakers: Vec<Waker>,
}

impl Signal {
    /// Wakes all who wait. Free while nobody does.
    pub(crate) fn ring(&self) {
        if self.waiting.load(Ordering::SeqCst) == 0 {
            return;
        }
        let wakers = {
            let mut state = self.lock();
            state.rung = state.rung.wrapping_add(1);
            std::mem::take(&mut state.wakers)
        };
        self.waiting.fetch_sub(wakers.len(), Ordering::SeqCst);
        self.condvar.notify_all();
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Waits until `done` says so, asked at first and after each ring; false when time is up.
    pub(crate) fn wait(&self, timeout: Duration, mut done: impl FnMut() -> bool) -> bool {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let mut left = timeout;
        let outcome = loop {
            // Before the look, so that a ring after it is not missed.
            let seen = self.lock().rung;
            if done() {
                break true;
            }
            if left.is_zero() {
                break false;
            }
            let began = std::time::Instant::now();
            let state = self.lock();
            let waited = self.condvar.wait_timeout_while(state, left, |state| state.rung == seen);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
            left = left.saturating_sub(began.elapsed());
        };
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        outcome
    }

    /// Has `waker` woken at the next ring.
    pub(crate) fn register(&self, waker: &Waker) {
        let mut state = self.lock();
        if !state.wakers.iter().any(|known| known.will_wake(waker)) {
            self.waiting.fetch_add(1, Ordering::SeqCst);
            state.wakers.push(waker.clone());
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
