//! A process that forks: its child has none of its threads, so nothing is read there until it is
//! asked for anew.
//!
//! Whoever forks without running another program holds the registries still meanwhile ([`hold`]),
//! so that no lock is copied while somebody has it; the child then begins with empty ones
//! ([`Held::in_child`]). Meters of before are of no use in the child, and harmless: they find no
//! fresh reading, and what they drop stops nothing of the parent's.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    process::Child,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use crate::{
    books::{SHELVES, Shelves},
    card::Card,
    deadline::{WAITING, Waiting},
    meter::READ,
    nvml::{DRIVERS, Driver},
    remote::{self, NODES},
    smi::{FEEDS, Feed, Program, STUCK},
};

/// The registries, held still.
pub struct Held {
    read: Guard<BTreeMap<String, Weak<Card>>>,
    feeds: Guard<BTreeMap<Program, Weak<Feed>>>,
    drivers: Guard<BTreeMap<Vec<OsString>, Arc<Driver>>>,
    nodes: Guard<remote::Nodes>,
    stuck: Guard<Vec<Child>>,
    waiting: Guard<Waiting>,
    shelves: Guard<Shelves>,
}

type Guard<T> = MutexGuard<'static, T>;

/// Holds the registries until the result is dropped: just before a fork.
pub fn hold() -> Held {
    fn held<T>(of: &'static Mutex<T>) -> Guard<T> {
        of.lock().unwrap_or_else(PoisonError::into_inner)
    }
    Held {
        read: held(&READ),
        feeds: held(&FEEDS),
        drivers: held(&DRIVERS),
        nodes: held(&NODES),
        stuck: held(&STUCK),
        waiting: held(&WAITING),
        // Cards are made under the locks above.
        shelves: held(&SHELVES),
    }
}

impl Held {
    /// Begins anew: just after a fork, in the child.
    pub fn in_child(mut self) {
        self.read.clear();
        self.feeds.clear();
        // A driver may be in the middle of a call that nobody here will end.
        std::mem::forget(std::mem::take(&mut *self.drivers));
        // Nor is a node's connection ours to end.
        std::mem::forget(std::mem::take(&mut *self.nodes));
        // The parent's children are not ours to wait for.
        std::mem::forget(std::mem::take(&mut *self.stuck));
        self.waiting.forget();
        // Nor are its books kept here.
        self.shelves.clear();
    }
}
