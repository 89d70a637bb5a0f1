//! The engine on the wall clock: a thread that plans each step a little ahead and tells a [`Sink`]
//! what happens when it happens.
//!
//! Power is told as soon as it is planned, so that a card which is read at any instant shows what
//! it should, however late the thread is woken; all else is told at its time or just after.
//! Refused: nothing; a job that is submitted comes at the instant it is submitted, and jobs have
//! their numbers in the order of submission where nobody comes by himself.

use std::{
    sync::mpsc::{self, Receiver, Sender, TryRecvError},
    thread::{self, JoinHandle},
};

use super::{Engine, Event, Job, Kind, Run, Settings, Sink};
use crate::Clock;

/// How far ahead of the clock steps are planned, ns.
const AHEAD_NS: i64 = 5_000_000;
/// How long a submitted job may lie unseen, ns.
const PATIENCE_NS: i64 = 1_000_000;

/// An engine that runs.
pub struct LiveEngine {
    orders: Sender<Order>,
    thread: JoinHandle<Run>,
}

/// What is asked of a running engine.
enum Order {
    Serve(Job),
    Cancel(u64),
}

impl LiveEngine {
    /// Starts an engine whose instant 0 is the clock's; the clock is a system one.
    pub fn start(settings: Settings, clock: Clock, sink: impl Sink + 'static) -> Self {
        let (orders, inbox) = mpsc::channel();
        let thread = thread::spawn(move || follow(Engine::new(settings), &clock, &inbox, sink));
        Self { orders, thread }
    }

    /// Gives a job to the engine now.
    pub fn submit(&self, job: Job) {
        // The thread only ends after this end of the channel is gone, or by a panic that `finish`
        // passes on.
        let _ = self.orders.send(Order::Serve(job));
    }

    /// The client of a request leaves now; one that is over stays over.
    pub fn cancel(&self, request: u64) {
        let _ = self.orders.send(Order::Cancel(request));
    }

    /// Waits until all that came is served; what it did.
    ///
    /// # Panics
    /// When the sink panicked.
    pub fn finish(self) -> Run {
        drop(self.orders);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Plans ahead and tells what is due, until the load is over and nobody can submit any more.
fn follow(mut engine: Engine, clock: &Clock, inbox: &Receiver<Order>, mut sink: impl Sink) -> Run {
    let mut told: Vec<Event> = Vec::new();
    let mut leaving: Vec<u64> = Vec::new();
    let mut open = true;
    loop {
        loop {
            match inbox.try_recv() {
                Ok(Order::Serve(job)) => engine.submit(clock.now_ns(), job),
                Ok(Order::Cancel(request)) => leaving.push(request),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    open = false;
                    break;
                }
            }
        }
        // Whoever leaves before the engine has seen him come waits for that.
        leaving.retain(|request| !engine.cancel(clock.now_ns(), *request));
        let planned = told.len();
        let horizon_ns = clock.now_ns() + AHEAD_NS;
        let near = engine.next_arrival_ns().is_some_and(|t_ns| t_ns <= horizon_ns);
        let busy = engine.in_flight() > 0;
        if engine.now_ns() <= horizon_ns && (busy || near) {
            engine.step(&mut told);
        } else if !busy {
            engine.rest_until(horizon_ns, &mut told);
        }
        for event in told.get(planned..).unwrap_or_default() {
            if let Kind::Power { card, watts } = event.kind {
                sink.power(event.t_ns, card, watts);
            }
        }
        told.retain(|event| !matches!(event.kind, Kind::Power { .. }));
        told.sort_by_key(|event| event.t_ns);
        let now_ns = clock.now_ns();
        for event in told.extract_if(.., |event| event.t_ns <= now_ns) {
            sink.event(&event);
            if let Kind::Ended { request, .. } = event.kind
                && let Some(request) = engine.done(request)
            {
                sink.over(request);
            }
        }
        let idle = engine.in_flight() == 0 && engine.next_arrival_ns().is_none();
        if idle && !open && told.is_empty() {
            return engine.finish();
        }
        let next_told_ns = told.first().map_or(i64::MAX, |event| event.t_ns);
        let next_plan_ns =
            if engine.in_flight() > 0 { engine.now_ns() - AHEAD_NS } else { i64::MAX };
        wait_until(clock, next_told_ns.min(next_plan_ns).min(now_ns + PATIENCE_NS));
    }
}

fn wait_until(clock: &Clock, t_ns: i64) {
    let left_ns = t_ns.saturating_sub(clock.now_ns());
    if left_ns > 0 {
        clock.advance_ns(left_ns);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::{
        engine::{Arrivals, Request, Status},
        load::{Live, LiveLoad},
    };

    /// Keeps what it is told, sets the load, and notes whether it was told early.
    struct Notes {
        clock: Clock,
        load: LiveLoad,
        events: Arc<Mutex<Vec<Event>>>,
    }

    impl Sink for Notes {
        fn power(&mut self, t_ns: i64, _: usize, watts: f64) {
            self.load.set_watts_at(t_ns, watts).expect("changes come in the order of time");
        }

        fn event(&mut self, event: &Event) {
            assert!(self.clock.now_ns() >= event.t_ns, "told before it happened");
            self.events.lock().expect("nobody panicked").push(*event);
        }
    }

    #[test]
    fn a_client_who_leaves_is_let_go_and_his_truth_is_told() {
        struct Ends(Arc<Mutex<Vec<(u64, Status, f64)>>>);
        impl Sink for Ends {
            fn power(&mut self, _: i64, _: usize, _: f64) {}
            fn event(&mut self, _: &Event) {}
            fn over(&mut self, request: &Request) {
                let told = (request.id, request.status, request.truth.joules());
                self.0.lock().expect("nobody panicked").push(told);
            }
        }
        let ends = Arc::<Mutex<Vec<_>>>::default();
        let settings = Settings { arrivals: Arrivals::None, ..Settings::default() };
        let sink = Ends(Arc::clone(&ends));
        let engine = LiveEngine::start(settings, Clock::monotonic(), sink);
        let job = |answer_tokens| Job {
            prompt_tokens: 50,
            cached_tokens: 0,
            answer_tokens,
            patience_ns: None,
            parent: None,
        };
        // The first would take a minute.
        engine.submit(job(10_000));
        engine.submit(job(3));
        engine.cancel(0);
        // To leave twice is to leave once.
        engine.cancel(0);
        let run = engine.finish();
        let status: Vec<Status> = run.requests.iter().map(|request| request.status).collect();
        assert_eq!(status, [Status::Cancelled, Status::Finished]);
        let told = ends.lock().expect("nobody panicked");
        assert_eq!(told.len(), 2);
        for request in &run.requests {
            let whole = (request.id, request.status, request.truth.joules());
            assert!(told.contains(&whole), "{whole:?} {told:?}");
        }
    }

    #[test]
    fn it_follows_the_clock_and_takes_jobs() {
        let clock = Clock::monotonic();
        let load = LiveLoad::new(clock.clone());
        let events = Arc::<Mutex<Vec<Event>>>::default();
        let sink = Notes { clock: clock.clone(), load: load.clone(), events: Arc::clone(&events) };
        let settings = Settings {
            arrivals: Arrivals::Steady(50.0),
            at_least_ns: 100_000_000,
            ended: 0,
            ..Settings::default()
        };
        let engine = LiveEngine::start(settings, clock, sink);
        let job = Job {
            prompt_tokens: 20_000,
            cached_tokens: 19_000,
            answer_tokens: 5,
            patience_ns: None,
            parent: Some(900),
        };
        engine.submit(job);
        let run = engine.finish();
        assert!(run.requests.len() >= 4, "{}", run.requests.len());
        assert!(run.requests.iter().all(|request| request.status == Status::Finished));
        assert!(run.requests.iter().any(|request| request.parent == Some(900)));
        let events = events.lock().expect("nobody panicked");
        assert!(events.iter().all(|event| !matches!(event.kind, Kind::Power { .. })));
        let tokens = events.iter().filter(|it| matches!(it.kind, Kind::Tokens { .. })).count();
        let answers: u64 = run.requests.iter().map(super::super::Request::answer_tokens).sum();
        assert_eq!(tokens as u64, answers);
        // The card was told the very curve.
        for change in run.curves[0].changes() {
            assert_eq!(load.last_at(change.t_ns).map(|it| it.watts), Some(change.watts));
        }
    }
}
