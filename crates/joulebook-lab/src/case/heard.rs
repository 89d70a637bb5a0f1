//! What the log is told while something is done.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

use tracing::{
    Event, Level, Metadata, Subscriber,
    span::{Attributes, Id, Record},
};

/// Remembers the gravest word.
struct Gravest(Arc<AtomicU8>);

/// Does it; and the level of the gravest word of it in the log.
pub(super) fn while_doing<T>(does: impl FnOnce() -> T) -> (T, Option<&'static str>) {
    let gravest = Arc::new(AtomicU8::new(0));
    let done = tracing::subscriber::with_default(Gravest(Arc::clone(&gravest)), does);
    let word = match gravest.load(Ordering::Relaxed) {
        0 => None,
        1 => Some("debug"),
        2 => Some("info"),
        3 => Some("warning"),
        _ => Some("error"),
    };
    (done, word)
}

impl Subscriber for Gravest {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let grave = match *event.metadata().level() {
            Level::ERROR => 4,
            Level::WARN => 3,
            Level::INFO => 2,
            Level::DEBUG | Level::TRACE => 1,
        };
        self.0.fetch_max(grave, Ordering::Relaxed);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
