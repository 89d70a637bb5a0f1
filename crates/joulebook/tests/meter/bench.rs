//! A simulated card whose load, register and processes are set by hand while it is recorded.

use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering},
        mpsc,
    },
    task::{Context, Poll, Wake, Waker},
    thread,
    time::Duration,
};

use joulebook::{
    AtWork, Card, Device, Fault, Measurement, Meter, Node, Power, Process, Reader, Reading,
    Settings, Tenants, Usage, Value,
    clock::now_ns,
    profile::{Lag, Probed, Profile, Trust},
};
use joulebook_lab::{Clock, LiveLoad, Shows, SimulatedCard};

pub const REST_W: f64 = 70.0;
/// How often its power gauge is updated at most.
const INSTANT_NS: i64 = 100_000_000;

/// What is wrong with a register.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Trouble {
    #[default]
    None,
    Fails(Fault),
    /// A call into the driver that does not come back.
    Hangs,
    /// The same, where the processes are listed.
    ListingHangs,
    /// It shows what it last showed.
    Frozen,
}

/// The hand that holds a card.
#[derive(Debug, Default)]
pub struct Hand {
    trouble: Mutex<Trouble>,
    /// What the counter started from again, mJ.
    base: AtomicU64,
    restarts: AtomicBool,
    tenants: Mutex<Vec<Process>>,
    /// Who was at work; none: that cannot be told.
    work: Mutex<Option<Vec<AtWork>>>,
    /// One more than the power state; 0: it has none.
    state: AtomicU8,
    /// Beside its counter there is nothing to read.
    has_no_gauge: AtomicBool,
    gone: AtomicBool,
}

struct HandReader {
    card: SimulatedCard,
    hand: Arc<Hand>,
    last: Option<Reading>,
}

struct HandTenants(Arc<Hand>);

/// A card that is being recorded.
pub struct Bench {
    pub card: Arc<Card>,
    pub hand: Arc<Hand>,
    load: LiveLoad,
    simulated: SimulatedCard,
}

impl Hand {
    pub fn is(&self, trouble: Trouble) {
        *self.trouble.lock().unwrap() = trouble;
    }

    /// The counter starts again from 0 at the next reading.
    pub fn restart(&self) {
        self.restarts.store(true, Ordering::Relaxed);
    }

    /// These are there from the next look on.
    pub fn lists(&self, tenants: Vec<Process>) {
        *self.tenants.lock().unwrap() = tenants;
    }

    /// The card's power state from now on.
    pub fn power_state(&self, state: u8) {
        self.state.store(state + 1, Ordering::Relaxed);
    }

    /// These shares of the time each process is at work from now on.
    pub fn works(&self, work: &[(u32, u32)]) {
        let work = work.iter().map(|(pid, percent)| AtWork { pid: *pid, percent: *percent });
        *self.work.lock().unwrap() = Some(work.collect());
    }

    pub fn has_let_go(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }

    fn hangs_while(&self, trouble: Trouble) {
        while self.trouble() == trouble {
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn trouble(&self) -> Trouble {
        *self.trouble.lock().unwrap()
    }
}

impl Reader for HandReader {
    fn device(&self) -> Device {
        self.card.device()
    }

    fn power(&mut self) -> Result<Power, Fault> {
        if self.hand.has_no_gauge.load(Ordering::Relaxed) {
            return Err(Fault::NotSupported);
        }
        self.card.power()
    }

    fn power_state(&mut self) -> Option<u8> {
        self.hand.state.load(Ordering::Relaxed).checked_sub(1)
    }

    fn read(&mut self) -> Result<Reading, Fault> {
        self.hand.hangs_while(Trouble::Hangs);
        match (self.hand.trouble(), self.last) {
            (Trouble::Fails(fault), _) => return Err(fault),
            (Trouble::Frozen, Some(last)) => return Ok(last),
            _ => {}
        }
        let mut reading = self.card.read()?;
        if let Value::Counter(raw) = &mut reading.value {
            if self.hand.restarts.swap(false, Ordering::Relaxed) {
                self.hand.base.store(*raw, Ordering::Relaxed);
            }
            *raw -= self.hand.base.load(Ordering::Relaxed);
        }
        self.last = Some(reading);
        Ok(reading)
    }
}

impl Drop for HandReader {
    fn drop(&mut self) {
        self.hand.gone.store(true, Ordering::Relaxed);
    }
}

impl Tenants for HandTenants {
    fn resident(&mut self) -> Result<Vec<Process>, Fault> {
        self.0.hangs_while(Trouble::ListingHangs);
        Ok(self.0.tenants.lock().unwrap().clone())
    }

    fn usage(&mut self) -> Usage {
        Usage { used_mib: Some(500), ..Usage::default() }
    }

    fn at_work(&mut self) -> Result<Vec<AtWork>, Fault> {
        self.0.work.lock().unwrap().clone().ok_or(Fault::NotSupported)
    }
}

/// How to set a card up.
pub struct Setup {
    pub shows: Shows,
    pub trouble: Trouble,
    pub tenants: Vec<Process>,
    pub period_ms: u32,
    /// Its gauge can be read beside its counter.
    pub gauge: bool,
    /// Its counter has been probed …
    pub probed: bool,
    /// … and shows less the more often it is read.
    pub poll_sensitive: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            shows: Shows::Counter,
            trouble: Trouble::None,
            tenants: Vec::new(),
            period_ms: 20,
            gauge: true,
            probed: true,
            poll_sensitive: false,
        }
    }
}

impl Bench {
    /// A card at rest with a counter of 20 ms that has been probed, and read for a little while.
    pub fn new() -> Self {
        let bench = Self::with(Setup::default());
        bench.pass(20);
        bench
    }

    pub fn with(setup: Setup) -> Self {
        let clock = Clock::monotonic();
        let mut described = joulebook_lab::Card { idle_w: REST_W, ..Default::default() };
        described.counter.period_ns = i64::from(setup.period_ms) * 1_000_000;
        described.instant.period_ns = INSTANT_NS.min(i64::from(setup.period_ms) * 1_000_000);
        let (simulated, load) = SimulatedCard::live(described, clock);
        load.set_watts(REST_W).unwrap();
        let hand = Arc::new(Hand::default());
        hand.is(setup.trouble);
        hand.has_no_gauge.store(!setup.gauge, Ordering::Relaxed);
        *hand.tenants.lock().unwrap() = setup.tenants;
        let card = simulated.shows(setup.shows);
        let reader = HandReader { card, hand: Arc::clone(&hand), last: None };
        let probe = Probed {
            unix_s: 0,
            period_s: f64::from(setup.period_ms) / 1e3,
            jitter_s: 0.0,
            lag_s: Some(Lag { value: 0.0, uncertainty: 0.001 }),
            trust: Trust::Counter,
            ratio: None,
            mismatch: false,
            poll_sensitive: setup.poll_sensitive,
        };
        let gap_ns = (setup.shows != Shows::Counter).then_some(10_000_000);
        let profile = Profile { probe: setup.probed.then_some(probe), ..Profile::default() };
        let tenants = Box::new(HandTenants(Arc::clone(&hand)));
        let card = joulebook::record(Box::new(reader), Some(tenants), Settings { profile, gap_ns });
        Self { card, hand, load, simulated }
    }

    /// A meter of this card alone, at rest at its true floor.
    pub fn meter(&self) -> Meter {
        self.meter_of(&Node::of("0").idle_watts(REST_W))
    }

    pub fn meter_of(&self, node: &Node) -> Meter {
        Meter::of_cards(node, vec![Arc::clone(&self.card)])
    }

    /// Lets so many publishes pass.
    pub fn pass(&self, publishes: u64) {
        let until = self.card.series().pushed() + publishes;
        eventually(|| self.card.series().pushed() >= until);
    }

    pub fn draws(&self, watts: f64) {
        self.load.set_watts(watts).unwrap();
    }

    /// Draws so much for so long, then rests.
    pub fn works(&self, watts: f64, milliseconds: u64) {
        self.draws(watts);
        thread::sleep(Duration::from_millis(milliseconds));
        self.draws(REST_W);
    }

    /// What it really drew between two instants, J.
    pub fn truth_j(&self, from_ns: u64, to_ns: u64) -> f64 {
        let clock = self.simulated.clock();
        let before_ns = now_ns();
        let ahead_ns = clock.now_ns() - before_ns.midpoint(now_ns()) as i64;
        let load = self.simulated.model().load();
        load.energy(from_ns as i64 + ahead_ns, to_ns as i64 + ahead_ns)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // So that its recorder can end.
        self.hand.is(Trouble::None);
    }
}

/// Between two instants a step was taken; where exactly is not known.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    pub before_ns: u64,
    pub after_ns: u64,
}

impl Moment {
    pub fn of<T>(step: impl FnOnce() -> T) -> (Self, T) {
        let before_ns = now_ns();
        let done = step();
        (Self { before_ns, after_ns: now_ns() }, done)
    }

    fn open_s(self) -> f64 {
        (self.after_ns - self.before_ns) as f64 / 1e9
    }
}

/// The figure's gross energy lies within its own bound of the truth between two steps.
pub fn holds(bench: &Bench, measured: &Measurement, from: Moment, to: Moment) {
    let gross_j = measured.gross_joules.unwrap_or_else(|| panic!("no figure: {measured:?}"));
    let bound_j = measured.bound_joules.unwrap_or_else(|| panic!("no bound: {measured:?}"));
    let truth_j = bench.truth_j(from.after_ns, to.before_ns);
    // What the test itself cannot tell.
    let open_j = 700.0 * (from.open_s() + to.open_s()) + 0.01;
    assert!((gross_j - truth_j).abs() <= bound_j + open_j, "{truth_j} J is not {measured:?}");
}

/// Waits for a good while until it holds.
pub fn eventually(mut holds: impl FnMut() -> bool) {
    for _ in 0..3000 {
        if holds() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("it did not come about");
}

/// What `ask` answers, which must not take for ever.
pub fn in_time<T: Send + 'static>(ask: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || tell.send(ask()));
    told.recv_timeout(Duration::from_secs(30)).expect("an answer, and no wait for ever")
}

struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The smallest of all executors.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
