//! One repeat of a rung: load, the window in the middle of it, and the end of both.
//!
//! The window opens after the warm-up and closes when its time is over or its requests are; load
//! goes on through the cool-down, and what is in flight then is let end. So tokens and joules of the
//! window are those of a server at work, and neither has a part of the load's beginning or end.
//! Without warm-up and cool-down the window is the whole of the load, from the first request's
//! sending to the last one's end.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use joulebook::{books::Books, clock::now_ns};
use joulebook_lab::draw::Draw;
use tokio::{sync::watch, task::JoinSet, time::Instant};

use super::{Load, Plan, Sent, Target, Until, worker::Traffic};

/// How often whoever watches is told.
const LOOK: Duration = Duration::from_millis(100);
/// How long requests in flight may take to end after the load, beyond twice what the longest took.
const DRAIN: Duration = Duration::from_secs(5);

/// Where a repeat stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Load before the window.
    WarmUp,
    /// The window.
    Window,
    /// Load after it.
    CoolDown,
    /// No more requests are sent.
    Over,
}

/// What can be seen of a repeat while it runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sight {
    /// Where it stands.
    pub stage: Stage,
    /// How much of its window is over, 0 to 1.
    pub share: f64,
    /// Requests that ended well, all phases.
    pub done: u64,
    /// Requests that failed.
    pub failed: u64,
}

/// What a repeat is driven with.
pub struct Drive<'a> {
    /// Whom.
    pub target: &'a Arc<Target>,
    /// Where its requests are charged.
    pub books: &'a Books,
    /// Becomes true when the run is to end.
    pub stop: watch::Receiver<bool>,
    /// Called when the window opens and when it closes.
    pub edge: &'a mut dyn FnMut(),
    /// Told how it goes.
    pub watch: &'a dyn Fn(Sight),
}

/// What came of a repeat.
#[derive(Debug)]
pub struct Driven {
    /// When its window opened, ns of the clock; none when it never did.
    pub opened_ns: Option<u64>,
    /// When it closed.
    pub closed_ns: u64,
    /// All its requests.
    pub sent: Vec<Sent>,
    /// Why it did not end.
    pub broken: Option<String>,
}

impl Drive<'_> {
    /// Drives one.
    pub async fn repeat(mut self, plan: &Plan, (number, seed): (u32, u64)) -> Driven {
        let traffic = Arc::new(Traffic::new(
            Arc::clone(self.target),
            self.books.clone(),
            plan.clone(),
            (number, seed),
        ));
        let mut opened_ns = None;
        if plan.warm_up.is_zero() {
            opened_ns = Some(self.edge());
        }
        let mut senders = JoinSet::new();
        start(&traffic, &mut senders);
        if opened_ns.is_none() && self.wait(&traffic, Some(plan.warm_up), None).await {
            opened_ns = Some(self.edge());
            traffic.stage.send_replace(Stage::Window);
        }
        let mut closed_ns = now_ns();
        if opened_ns.is_some() {
            let (time, requests) = match plan.until {
                Until::Time(time) => (Some(time), None),
                Until::Requests(most) => (None, Some(most)),
            };
            self.wait(&traffic, time, requests).await;
            closed_ns = self.edge();
        }
        if traffic.broken().is_none() && !plan.cool_down.is_zero() {
            traffic.stage.send_replace(Stage::CoolDown);
            self.wait(&traffic, Some(plan.cool_down), None).await;
        }
        traffic.stage.send_replace(Stage::Over);
        self.drain(&traffic, &mut senders).await;
        self.target.pool.clear();
        let mut sent = traffic.take_over();
        sent.sort_by_key(|sent| sent.request.number);
        Driven { opened_ns, closed_ns, sent, broken: traffic.broken() }
    }

    fn edge(&mut self) -> u64 {
        (self.edge)();
        now_ns()
    }

    /// Waits for a time, or for so many measured requests; false when it is cut short.
    async fn wait(
        &mut self,
        traffic: &Traffic,
        time: Option<Duration>,
        requests: Option<u64>,
    ) -> bool {
        let begun = Instant::now();
        loop {
            // Registered before the looks, so that nothing between them is missed.
            let news = traffic.news.notified();
            if traffic.broken().is_some() {
                return false;
            }
            if *self.stop.borrow() {
                traffic.break_off("interrupted".to_owned());
                return false;
            }
            let of_time = time.map(|time| begun.elapsed().as_secs_f64() / time.as_secs_f64());
            let of_requests =
                requests.map(|most| traffic.measured_over() as f64 / most.max(1) as f64);
            let share = of_time.or(of_requests).unwrap_or(1.0);
            if share >= 1.0 {
                return true;
            }
            (self.watch)(Sight {
                stage: *traffic.stage.borrow(),
                share,
                done: traffic.done.load(Ordering::Relaxed),
                failed: traffic.failed.load(Ordering::Relaxed),
            });
            let left = time.map_or(LOOK, |time| time.saturating_sub(begun.elapsed()).min(LOOK));
            tokio::select! {
                () = tokio::time::sleep(left) => {}
                () = news, if requests.is_some() => {}
                _ = self.stop.wait_for(|stop| *stop) => {}
            }
        }
    }

    /// Lets end what is in flight; what takes too long is given up.
    async fn drain(&mut self, traffic: &Traffic, senders: &mut JoinSet<()>) {
        let longest_ns = traffic.longest_ns();
        let until = Instant::now() + DRAIN + Duration::from_nanos(longest_ns) * 2;
        loop {
            tokio::select! {
                next = senders.join_next() => if next.is_none() { return },
                () = tokio::time::sleep_until(until), if !*traffic.give_up.borrow() => {
                    traffic.give_up.send_replace(true);
                }
                _ = self.stop.wait_for(|stop| *stop), if !*traffic.give_up.borrow() => {
                    traffic.break_off("interrupted".to_owned());
                }
            }
        }
    }
}

/// Starts whoever sends.
fn start(traffic: &Arc<Traffic>, senders: &mut JoinSet<()>) {
    match traffic.plan.load() {
        Load::Closed(places) => {
            for place in 0..places {
                senders.spawn(Arc::clone(traffic).place(place, places));
            }
        }
        Load::Open(rate) => {
            senders.spawn(arrivals(Arc::clone(traffic), rate));
        }
    }
}

/// Sends at random times, however long answers take; ends when all are over.
async fn arrivals(traffic: Arc<Traffic>, rate: f64) {
    let mut draw = Draw::new(traffic.seed);
    draw.turn(u64::MAX);
    let mut requests = JoinSet::new();
    let begun = (Instant::now(), now_ns());
    let mut due_s = 0.0;
    let mut stage = traffic.stage.subscribe();
    loop {
        due_s += draw.exponential(1.0 / rate);
        let due = Duration::from_secs_f64(due_s);
        tokio::select! {
            () = tokio::time::sleep_until(begun.0 + due) => {}
            _ = stage.wait_for(|stage| *stage == Stage::Over) => break,
        }
        let Some(phase) = traffic.phase() else { break };
        let due_ns = begun.1 + u64::try_from(due.as_nanos()).unwrap_or(u64::MAX);
        let traffic = Arc::clone(&traffic);
        requests.spawn(async move { traffic.one(phase, due_ns, None).await });
        // Those that are over need no place.
        while requests.try_join_next().is_some() {}
    }
    while requests.join_next().await.is_some() {}
}
