//! Between the engine's thread and those who wait for answers.
//!
//! A request's number is the engine's; it is given out under one lock with the submission, so both
//! count alike. Each piece of an answer goes to whoever waits for it; nobody who waits can hold the
//! engine up.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::{CardTruth, Home, RequestTruth, Settings, Truth};
use crate::{
    clock::system_ns,
    control::{Control, ControlledCard},
    engine::{Event, Job, Kind, Request, Sink, Status, live::LiveEngine},
    load::Load,
    scenario::{Card, ClockKind},
};

/// What comes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Tokens.
    Tokens(u32),
    /// It is over.
    End,
}

/// What all who answer share.
pub(super) struct Shared {
    pub settings: Settings,
    pub engine: Mutex<Option<LiveEngine>>,
    desk: Mutex<Open>,
    load: Load,
    epoch_ns: i64,
}

#[derive(Default)]
struct Open {
    next: u64,
    waiting: HashMap<u64, UnboundedSender<Piece>>,
    names: HashMap<u64, String>,
    over: Vec<RequestTruth>,
}

/// A request that is waited for. Dropped before its end, its client has left.
pub(super) struct Answer {
    pub id: u64,
    pub pieces: UnboundedReceiver<Piece>,
    shared: Arc<Shared>,
}

/// The engine's sink: drives the card, and hands out what is emitted.
pub(super) struct Desk {
    shared: Arc<Shared>,
    control: Control,
}

impl Shared {
    pub fn new(settings: Settings, home: &Home) -> Self {
        let card = Card { idle_w: settings.hardware.idle_w, dynamic: true, ..Card::default() };
        let follows =
            ControlledCard::new(home.control_file(), ClockKind::Monotonic, home.epoch_ns(), 0);
        let load = Load::new(&card, Some(Arc::new(follows)));
        let epoch_ns = home.epoch_ns();
        Self { settings, engine: Mutex::default(), desk: Mutex::default(), load, epoch_ns }
    }

    /// Gives a job to the engine; none when there is no engine any more.
    pub fn submit(self: &Arc<Self>, job: Job, name: Option<String>) -> Option<Answer> {
        let (sender, pieces) = unbounded_channel();
        let engine = lock(&self.engine);
        let engine = engine.as_ref()?;
        let id = {
            let mut desk = lock(&self.desk);
            let id = desk.next;
            desk.next += 1;
            desk.waiting.insert(id, sender);
            desk.names.extend(name.map(|name| (id, name)));
            id
        };
        engine.submit(job);
        Some(Answer { id, pieces, shared: Arc::clone(self) })
    }

    /// All clients leave.
    pub fn leave_all(&self) {
        let waiting = std::mem::take(&mut lock(&self.desk).waiting);
        if let Some(engine) = lock(&self.engine).as_ref() {
            waiting.keys().for_each(|id| engine.cancel(*id));
        }
    }

    /// True for an answer that breaks off.
    pub fn breaks(&self, id: u64) -> bool {
        let every = self.settings.break_every;
        every > 0 && id % every == every - 1
    }

    pub fn truth(&self) -> Truth {
        Truth {
            simulated: true,
            idle_watts: self.settings.hardware.idle_w,
            now_ns: system_ns(ClockKind::Monotonic),
            requests: lock(&self.desk).over.clone(),
            card: None,
        }
    }

    /// What the card drew between two instants of the system's monotonic clock.
    pub fn card(&self, from_ns: i64, to_ns: i64) -> CardTruth {
        let idle_w = self.settings.hardware.idle_w;
        CardTruth::of(&self.load, idle_w, self.epoch_ns, from_ns, to_ns)
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        let left = lock(&self.shared.desk).waiting.remove(&self.id).is_some();
        if left && let Some(engine) = lock(&self.shared.engine).as_ref() {
            engine.cancel(self.id);
        }
    }
}

impl Desk {
    pub fn new(shared: Arc<Shared>, control: Control) -> Self {
        Self { shared, control }
    }

    fn hand(&self, request: u64, piece: Piece) {
        let mut desk = lock(&self.shared.desk);
        let gone = desk.waiting.get(&request).is_none_or(|to| to.send(piece).is_err());
        if gone || piece == Piece::End {
            desk.waiting.remove(&request);
        }
    }
}

impl Sink for Desk {
    fn power(&mut self, t_ns: i64, card: usize, watts: f64) {
        let t_ns = t_ns.saturating_add(self.shared.epoch_ns);
        if let Err(error) = self.control.set_watts_at(card, t_ns, watts) {
            tracing::error!("the card no longer follows the engine: {error}");
        }
    }

    fn event(&mut self, event: &Event) {
        if let Kind::Tokens { request, count } = event.kind {
            self.hand(request, Piece::Tokens(count));
        }
    }

    fn over(&mut self, request: &Request) {
        {
            let mut desk = lock(&self.shared.desk);
            let name = desk.names.remove(&request.id);
            let truth = RequestTruth::of(request, name, self.shared.epoch_ns);
            desk.over.push(truth);
        }
        // The truth is there before whoever waits hears of the end.
        if request.status != Status::Cancelled {
            self.hand(request.id, Piece::End);
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
