//! Those who send: places of a closed loop, or one task for each request of an open one; and what
//! they share.
//!
//! A request's phase is decided when it is sent. After a failure the target is asked whether it
//! still answers; if it does not, everything is given up. Who fails pauses before he asks again.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use joulebook::{
    books::{Books, Labels, PendingReceipt, TokenSource, Usage},
    clock::now_ns,
};
use joulebook_lab::draw::Draw;
use tokio::sync::{Notify, watch};

use super::{Plan, Target, Until, call::Answer, prompt, repeat::Stage};
use crate::bench::record::{Outcome, Phase, Request, token_source};

/// A pause after a failure.
const PAUSE: Duration = Duration::from_millis(100);
/// So many failures without one success are no benchmark.
const FAILURES: u64 = 20;

/// A request that is over.
#[derive(Debug)]
pub struct Sent {
    /// Its line of the record; `due_ns` and `sent_ns` are those of the clock until the repeat is
    /// closed.
    pub request: Request,
    /// Its receipt.
    pub receipt: PendingReceipt,
}

/// What all who send share.
pub(super) struct Traffic {
    pub target: Arc<Target>,
    pub books: Books,
    pub plan: Plan,
    pub rung: String,
    pub repeat: u32,
    pub seed: u64,
    pub stage: watch::Sender<Stage>,
    pub give_up: watch::Sender<bool>,
    /// Something is over.
    pub news: Notify,
    /// Requests sent, of them measured ones, and of those the ones that are over.
    next: AtomicU64,
    measured: AtomicU64,
    measured_over: AtomicU64,
    pub done: AtomicU64,
    pub failed: AtomicU64,
    /// Pieces with content so far.
    pub pieces: AtomicU64,
    broken: Mutex<Option<String>>,
    /// One at a time asks whether the target still answers.
    doubt: tokio::sync::Mutex<()>,
    over: Mutex<Vec<Sent>>,
}

impl Traffic {
    pub fn new(target: Arc<Target>, books: Books, plan: Plan, (repeat, seed): (u32, u64)) -> Self {
        let stage = if plan.warm_up.is_zero() { Stage::Window } else { Stage::WarmUp };
        Self {
            target,
            books,
            rung: plan.kind.to_string(),
            plan,
            repeat,
            seed,
            stage: watch::Sender::new(stage),
            give_up: watch::Sender::new(false),
            news: Notify::new(),
            next: AtomicU64::new(1),
            measured: AtomicU64::new(0),
            measured_over: AtomicU64::new(0),
            done: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            pieces: AtomicU64::new(0),
            broken: Mutex::default(),
            doubt: tokio::sync::Mutex::default(),
            over: Mutex::default(),
        }
    }

    /// The phase of a request that is sent now; none when no more are sent.
    pub fn phase(&self) -> Option<Phase> {
        match *self.stage.borrow() {
            Stage::WarmUp => Some(Phase::WarmUp),
            Stage::Window => match self.plan.until {
                Until::Time(_) => Some(Phase::Measured),
                Until::Requests(most) if self.measured.fetch_add(1, Ordering::Relaxed) < most => {
                    Some(Phase::Measured)
                }
                Until::Requests(_) => (!self.plan.cool_down.is_zero()).then_some(Phase::CoolDown),
            },
            Stage::CoolDown => Some(Phase::CoolDown),
            Stage::Over => None,
        }
    }

    /// Measured requests that are over.
    pub fn measured_over(&self) -> u64 {
        self.measured_over.load(Ordering::Relaxed)
    }

    /// How long the longest request that is over took, ns.
    pub fn longest_ns(&self) -> u64 {
        lock(&self.over).iter().map(|sent| sent.request.ended_ns).max().unwrap_or(0)
    }

    /// Why nothing more is to be had of the target.
    pub fn broken(&self) -> Option<String> {
        lock(&self.broken).clone()
    }

    /// Gives everything up.
    pub fn break_off(&self, why: String) {
        lock(&self.broken).get_or_insert(why);
        self.stage.send_replace(Stage::Over);
        self.give_up.send_replace(true);
        self.news.notify_waiters();
    }

    pub fn take_over(&self) -> Vec<Sent> {
        std::mem::take(&mut *lock(&self.over))
    }

    /// A place of a closed loop: one request after the other. With a warm-up, the first answer of
    /// each place is of another length, so that the places do not march in step.
    pub async fn place(self: Arc<Self>, place: u32, places: u32) {
        let mut share = (!self.plan.warm_up.is_zero() && places > 1)
            .then(|| f64::from(place + 1) / f64::from(places));
        while let Some(phase) = self.phase() {
            if !self.one(phase, now_ns(), share.take()).await {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    /// One request, to its end; false when it failed. `share` is the part of its answer that is
    /// asked for.
    pub async fn one(&self, phase: Phase, due_ns: u64, share: Option<f64>) -> bool {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut draw = Draw::new(self.seed);
        self.rung.bytes().for_each(|byte| draw.turn(byte.into()));
        draw.turn(number);
        let (prompt_tokens, whole) = self.plan.sizes.draw(&mut draw);
        let answer_tokens = share.map_or(whole, |share| (whole as f64 * share).ceil() as u64);
        let words = self.target.counting.words(prompt_tokens);
        let text = prompt::text(&mut draw, words);
        let name = format!("{}-{}-{number}", self.rung, self.repeat);
        let call = self.target.call(name, &text, answer_tokens.max(1));

        let labels = Labels {
            model: Some(&self.target.model),
            prompt_bytes: text.len() as u64,
            ..Labels::default()
        };
        let mut give_up = self.give_up.subscribe();
        let mut ticket = self.books.open(&labels);
        ticket.prompt(self.target.counting.tokens(words), None);
        let answer = call.make(&self.target.pool, &mut ticket, &mut give_up).await;
        let usage = answer.used();
        let receipt = match answer.outcome {
            Outcome::Done => ticket.close(usage),
            Outcome::Failed => ticket.fail(usage),
            Outcome::Cancelled => ticket.cancel(usage),
        };
        self.ended(&answer, phase).await;
        let done = answer.outcome == Outcome::Done;
        let request = Request {
            rung: self.rung.clone(),
            repeat: self.repeat,
            number,
            phase,
            outcome: answer.outcome,
            error: answer.error,
            http_status: answer.status,
            due_ns,
            sent_ns: answer.sent_ns,
            first_piece_ns: answer.first_piece_ns,
            content_ns: answer.content_ns,
            last_piece_ns: answer.last_piece_ns,
            ended_ns: answer.ended_ns,
            prompt_tokens: usage.prompt,
            cached_tokens: usage.cached,
            completion_tokens: usage.completion,
            reasoning_tokens: usage.reasoning,
            token_source: token_source(usage.source),
            window_tokens: None,
            receipt: None,
        };
        lock(&self.over).push(Sent { request, receipt });
        if phase == Phase::Measured {
            self.measured_over.fetch_add(1, Ordering::Relaxed);
        }
        self.news.notify_waiters();
        done
    }

    /// Counts how it ended, and looks after the target if it ended badly.
    async fn ended(&self, answer: &Answer, phase: Phase) {
        if answer.outcome == Outcome::Done {
            self.done.fetch_add(1, Ordering::Relaxed);
            self.pieces.fetch_add(answer.content_ns.len() as u64, Ordering::Relaxed);
            return;
        }
        if answer.outcome == Outcome::Cancelled {
            return;
        }
        let why = answer.error.clone().unwrap_or_default();
        tracing::debug!("a request of {} ({phase:?}) failed: {why}", self.rung);
        let failed = self.failed.fetch_add(1, Ordering::Relaxed) + 1;
        if answer.lost {
            let _one = self.doubt.lock().await;
            if self.broken().is_none() && !self.target.is_alive().await {
                self.break_off(format!("the target no longer answers: {why}"));
            }
        } else if failed >= FAILURES && self.done.load(Ordering::Relaxed) == 0 {
            self.break_off(format!("all of {failed} requests failed: {why}"));
        }
    }
}

impl Answer {
    /// What it used: by its usage, else counted by its pieces.
    fn used(&self) -> Usage {
        match self.usage {
            Some(usage) if usage.completion.is_some() => usage,
            other => Usage {
                completion: Some(self.content_ns.len() as u64),
                source: TokenSource::Counted,
                ..other.unwrap_or_default()
            },
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
