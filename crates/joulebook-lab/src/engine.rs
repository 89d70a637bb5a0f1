//! An engine that serves language-model requests in continuous batches and knows what each truly
//! cost.
//!
//! It lives in simulated time, step by step: each step computes a chunk of the prompts that wait,
//! first come, first served, and one token of every answer in progress. [`Hardware`] says how long
//! that takes and at which power, [`Settings`] what is asked of it. [`Engine::run`] plays a whole
//! load in milliseconds; [`live`] lets the same engine follow the wall clock.
//!
//! Invariants: the same settings give the same run; the true joules of all requests sum to what the
//! cards drew above idle and foreign power; events come in the order of time.
//! It measures nothing, and nobody who measures sees [`Truth`].

mod curve;
mod event;
mod hardware;
pub mod live;
mod request;
mod step;
mod workload;

use std::collections::VecDeque;

pub use curve::Curve;
pub use event::{Event, Kind, Sink, Status};
pub use hardware::Hardware;
use request::Seat;
pub use request::{Emission, Request, Truth};
use workload::Coming;
pub use workload::{Arrivals, Cancels, Foreign, Job, Mix, PrefixCache};

use crate::draw::Draw;

/// What an engine is and what is asked of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// What all that is random is drawn from.
    pub seed: u64,
    /// The engine itself.
    pub hardware: Hardware,
    /// When requests come.
    pub arrivals: Arrivals,
    /// How long they are.
    pub mix: Mix,
    /// What the cache holds.
    pub prefix_cache: Option<PrefixCache>,
    /// Who leaves.
    pub cancels: Option<Cancels>,
    /// The share of the engine's power that each card draws, with a sum of 1.
    pub cards: Vec<f64>,
    /// Who else is there.
    pub foreign: Vec<Foreign>,
    /// Requests come for so long at least, ns.
    pub at_least_ns: i64,
    /// And until so many have ended.
    pub ended: usize,
}

/// An engine at work.
#[derive(Clone, Debug)]
pub struct Engine {
    settings: Settings,
    draw: Draw,
    now_ns: i64,
    coming: Coming,
    /// Jobs whose time is known: those that come again, and those of a closed loop.
    due: Vec<(i64, Job)>,
    waiting: VecDeque<Seat>,
    prefilling: VecDeque<Seat>,
    decoding: Vec<Seat>,
    done: Vec<Request>,
    /// Those that finished or were cancelled, of all that came.
    ended: usize,
    next_id: u64,
    stopped_ns: Option<i64>,
    curves: Vec<Curve>,
}

/// What an engine did.
#[derive(Clone, Debug)]
pub struct Run {
    /// All requests, by their numbers.
    pub requests: Vec<Request>,
    /// The power of each card.
    pub curves: Vec<Curve>,
    /// When the last request had come and those that were asked for had ended, ns.
    pub stopped_ns: i64,
    /// When the engine had nothing more to do, ns.
    pub end_ns: i64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            seed: 1,
            hardware: Hardware::default(),
            arrivals: Arrivals::Poisson(1.0),
            mix: Mix::Chat,
            prefix_cache: None,
            cancels: None,
            cards: vec![1.0],
            foreign: Vec::new(),
            at_least_ns: 120_000_000_000,
            ended: 400,
        }
    }
}

impl Engine {
    /// An engine at rest at the instant 0.
    pub fn new(settings: Settings) -> Self {
        let mut draw = Draw::new(settings.seed);
        let coming = Coming::new(settings.arrivals, &mut draw);
        let curves = vec![Curve::default(); settings.cards.len()];
        let mut engine = Self {
            settings,
            draw,
            now_ns: 0,
            coming,
            due: Vec::new(),
            waiting: VecDeque::new(),
            prefilling: VecDeque::new(),
            decoding: Vec::new(),
            done: Vec::new(),
            ended: 0,
            next_id: 0,
            stopped_ns: None,
            curves,
        };
        if let Arrivals::Closed(count) = engine.settings.arrivals {
            for _ in 0..count {
                let job = engine.drawn_job();
                engine.due.push((0, job));
            }
        }
        engine
    }

    /// Plays a whole load; what is in flight when the last request has come is served to its end.
    pub fn run(settings: Settings) -> Run {
        let mut engine = Self::new(settings);
        let mut events = Vec::new();
        while engine.step(&mut events) {
            events.clear();
        }
        engine.finish()
    }

    /// Up to when all is planned, ns.
    pub const fn now_ns(&self) -> i64 {
        self.now_ns
    }

    /// How many requests are in the engine.
    pub fn in_flight(&self) -> usize {
        self.waiting.len() + self.prefilling.len() + self.decoding.len()
    }

    /// Gives a job to the engine, to come at an instant; it is served from the next step on.
    pub fn submit(&mut self, t_ns: i64, job: Job) {
        self.due.push((t_ns, job));
    }

    /// The client of a request leaves at an instant; false when the request has not come yet. One
    /// that is over stays over.
    pub fn cancel(&mut self, t_ns: i64, request: u64) -> bool {
        let prefilling = self.prefilling.iter_mut().chain(&mut self.decoding);
        let mut seats = self.waiting.iter_mut().chain(prefilling);
        if let Some(seat) = seats.find(|seat| seat.request.id == request) {
            seat.job.patience_ns = Some(t_ns.saturating_sub(seat.request.arrived_ns).max(0));
        }
        request < self.next_id
    }

    /// A request that is over.
    pub fn done(&self, request: u64) -> Option<&Request> {
        // Those that ended last are asked for most.
        self.done.iter().rev().find(|done| done.id == request)
    }

    /// Lets nobody come by himself any more.
    pub fn stop(&mut self) {
        self.stopped_ns.get_or_insert(self.now_ns);
    }

    /// What it did, whether or not it is done.
    pub fn finish(self) -> Run {
        let open = self.waiting.into_iter().chain(self.prefilling).chain(self.decoding);
        let mut requests = self.done;
        requests.extend(open.map(|seat| seat.request));
        requests.sort_by_key(|request| request.id);
        Run {
            requests,
            curves: self.curves,
            stopped_ns: self.stopped_ns.unwrap_or(self.now_ns),
            end_ns: self.now_ns,
        }
    }

    /// A job as the settings have them.
    fn drawn_job(&mut self) -> Job {
        let (prompt_tokens, answer_tokens) = self.settings.mix.lengths(&mut self.draw);
        let cached_tokens = match self.settings.prefix_cache {
            Some(cache) if self.draw.share() <= cache.hits => {
                (f64::from(prompt_tokens) * cache.share) as u32
            }
            _ => 0,
        };
        let patience_ns = match self.settings.cancels {
            Some(cancels) if self.draw.share() <= cancels.share => {
                Some((self.draw.exponential(cancels.patience_s) * 1e9) as i64)
            }
            _ => None,
        };
        Job { prompt_tokens, cached_tokens, answer_tokens, patience_ns, parent: None }
    }
}

impl Run {
    /// The requests that ended while others still came: those a load is judged by.
    pub fn judged(&self) -> impl Iterator<Item = &Request> {
        let in_time = |request: &&Request| {
            request.ended_ns.is_some_and(|ended_ns| ended_ns <= self.stopped_ns)
        };
        self.requests.iter().filter(in_time)
    }

    /// The mean number of requests in flight until the last one came.
    pub fn mean_in_flight(&self) -> f64 {
        let stay = |request: &Request| {
            let ended_ns = request.ended_ns.map_or(self.stopped_ns, |ns| ns.min(self.stopped_ns));
            ended_ns.saturating_sub(request.arrived_ns).max(0) as f64
        };
        self.requests.iter().map(stay).sum::<f64>() / self.stopped_ns.max(1) as f64
    }
}

#[cfg(test)]
mod tests;
