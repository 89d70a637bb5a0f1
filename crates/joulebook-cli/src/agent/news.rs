//! Who waits for the next publish of any card: the streams.
//!
//! Recorders ring only while somebody listens, and however many listen there is one waiter a card.
//! Rings that follow each other closely are one piece of news, so that eight cards of 20 ms cost a
//! stream no more wake-ups than one.

use std::{sync::Arc, time::Duration};

use joulebook::Card;
use tokio::sync::{Notify, watch};

/// News come no closer than this.
const APART: Duration = Duration::from_millis(10);

/// The bell of all streams.
#[derive(Debug)]
pub struct News {
    count: watch::Sender<u64>,
    listens: Notify,
    rung: Notify,
}

impl News {
    /// One that nobody listens to yet.
    pub fn new() -> Arc<Self> {
        let count = watch::Sender::new(0);
        Arc::new(Self { count, listens: Notify::new(), rung: Notify::new() })
    }

    /// Whoever holds this listens.
    pub fn listen(&self) -> watch::Receiver<u64> {
        let receiver = self.count.subscribe();
        self.listens.notify_waiters();
        receiver
    }

    /// How many listen.
    pub fn listeners(&self) -> usize {
        self.count.receiver_count()
    }

    /// There is something new.
    pub fn ring(&self) {
        self.rung.notify_one();
    }

    /// Passes what is rung on to all who listen, for ever.
    pub async fn pass_on(self: Arc<Self>) {
        loop {
            self.rung.notified().await;
            self.count.send_modify(|count| *count = count.wrapping_add(1));
            tokio::time::sleep(APART).await;
        }
    }

    /// Rings at each publish of a card while somebody listens, for ever.
    pub async fn follow(self: Arc<Self>, card: Arc<Card>) {
        let mut seen = card.series().pushed();
        loop {
            let listens = self.listens.notified();
            if self.listeners() == 0 {
                listens.await;
                continue;
            }
            // What came meanwhile is news too.
            seen = card.published(seen).await;
            self.ring();
        }
    }
}
