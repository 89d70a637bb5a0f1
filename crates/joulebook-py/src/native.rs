//! The meters of this process, one for each node that was asked for: found once, on a thread of
//! their own, so that nobody who asks for one waits for a driver.
//!
//! Invariants: the first that asks may wait for the first reading until [`PATIENCE`] after the search
//! began, and nobody after that; a search that failed is made again, ever more seldom, while windows
//! say why there is nothing; a fork's child knows nothing of its parent's.

use std::{
    sync::{
        Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::Waker,
    thread,
    time::{Duration, Instant},
};

use joulebook::{
    Backend, Fault, Idle, Meter, MeterError, Settings, record,
    smi::{Feed, Program, SmiCard, SmiError, SmiTenants},
};

use crate::{bridge::seconds, node::Said};

/// How long after the search began its first reading is worth waiting for. NVML shows one in tens of
/// milliseconds, `nvidia-smi` within a second.
pub const PATIENCE: Duration = Duration::from_secs(1);
const STEP: Duration = Duration::from_millis(20);
/// Nodes that are remembered; a service has a handful.
const MOST: usize = 64;
/// The longest pause between two searches for what was not there.
const LONGEST_PAUSE_S: u64 = 16;

static KNOWN: Mutex<Vec<Arc<Native>>> = Mutex::new(Vec::new());
/// Changes with a fork and when what was probed is to be forgotten.
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// What a meter is wanted for.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    pub said: Said,
    /// Through `nvidia-smi`, whatever else there is.
    pub by_program: bool,
    pub asking: Asking,
}

/// What goes with a node when a meter of it is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Asking {
    pub joules_per_1k_hint: f64,
    /// How long an agent may take to answer, s.
    pub timeout_s: f64,
    /// How often an agent without a stream is asked, s.
    pub interval_s: f64,
}

impl Asking {
    /// As giul has it.
    pub const fn usual(joules_per_1k_hint: f64) -> Self {
        Self { joules_per_1k_hint, timeout_s: 2.0, interval_s: 0.25 }
    }
}

/// A meter, or the search for one.
#[derive(Debug)]
pub struct Native {
    pub wanted: Wanted,
    generation: u64,
    attempt: u32,
    born: Instant,
    /// Stands in until the search is over.
    blank: Meter,
    found: OnceLock<Found>,
    ready: AtomicBool,
    wakers: Mutex<Vec<Waker>>,
    news: Condvar,
    /// Its warnings have been told.
    told: AtomicBool,
}

#[derive(Debug)]
struct Found {
    meter: Meter,
    /// Why there is nothing, in a sentence.
    trouble: Option<String>,
    /// From when on it is worth searching again.
    again: Option<Instant>,
}

impl Wanted {
    pub fn node(said: Said, asking: Asking) -> Self {
        // An agent's times are nothing to cards of this machine.
        let asking = match said.power_endpoint {
            Some(_) => asking,
            None => Asking::usual(asking.joules_per_1k_hint),
        };
        Self { said, by_program: false, asking }
    }

    /// No card at all.
    pub fn nothing(joules_per_1k_hint: f64) -> Self {
        Self::node(Said::default(), Asking::usual(joules_per_1k_hint))
    }

    /// It is the same that is asked now, of the same node.
    pub fn is_asked_so(&self, asking: &Asking) -> bool {
        let hint = self.asking.joules_per_1k_hint.total_cmp(&asking.joules_per_1k_hint);
        hint.is_eq() && (self.said.power_endpoint.is_none() || self.asking == *asking)
    }

    pub const fn is_remote(&self) -> bool {
        !self.said.is_local && self.said.power_endpoint.is_some()
    }

    const fn is_nothing(&self) -> bool {
        !self.said.is_local && self.said.power_endpoint.is_none()
    }

    pub fn node_of_cards(&self) -> joulebook::Node {
        let said = &self.said;
        joulebook::Node {
            name: said.name.clone(),
            gpus: said.gpus(),
            idle: said.idle(),
            serving_match: said.serving_match.clone(),
            serving_pid: said.serving_pid,
            serving_port: said.serving_port,
            contention_floor_mib: said.contention_floor_mib,
            contention_ignore: said.contention_ignore.clone(),
            is_local: said.is_local,
            power_endpoint: said.power_endpoint.clone(),
            token_file: said.token_file.clone(),
            timeout: seconds(self.asking.timeout_s),
            interval: seconds(self.asking.interval_s.max(0.01)),
            ..joulebook::Node::default()
        }
    }

    /// A meter that reads nothing.
    fn blank(&self, fault: Fault) -> Meter {
        let idle = self.said.idle();
        let node = joulebook::Node { idle, ..joulebook::Node::default() };
        Meter::none(&node, fault).with_hint(self.asking.joules_per_1k_hint)
    }

    /// Asks the driver; may take long.
    fn search(&self) -> Result<Meter, MeterError> {
        let node = self.node_of_cards();
        if self.by_program { by_program(&node) } else { Meter::for_node(&node) }
    }
}

/// A meter of one card through the program, even where the library could read it.
fn by_program(node: &joulebook::Node) -> Result<Meter, MeterError> {
    let program = Program::default();
    let missing = |error: std::io::Error| SmiError::Missing {
        program: program.path().display().to_string(),
        reason: error.to_string(),
    };
    let feed = Feed::of(&program).map_err(missing)?;
    let cards = feed.cards()?;
    let asked = node.gpus.first().map_or("0", String::as_str);
    let Some(info) = cards.iter().find(|it| it.index.to_string() == asked || it.uuid == asked)
    else {
        return Err(MeterError::NoCards(format!(" of number {asked}")));
    };
    let tenants = Box::new(SmiTenants::open(&feed, info));
    let card = record(Box::new(SmiCard::open(&feed, info)), Some(tenants), Settings::default());
    Ok(Meter::of_cards(node, vec![card]))
}

impl Native {
    /// The meter of what is wanted; the search for it begins now, if it must.
    pub fn of(wanted: &Wanted) -> Arc<Self> {
        let generation = GENERATION.load(Ordering::Acquire);
        let mut known = lock(&KNOWN);
        let place = known.iter().position(|it| it.wanted == *wanted);
        let old = place.and_then(|place| known.get(place)).cloned();
        let attempt = match old {
            Some(old) if !old.is_due() => return old,
            Some(old) => old.attempt.saturating_add(1),
            None => 0,
        };
        let native = Arc::new(Self {
            wanted: wanted.clone(),
            generation,
            attempt,
            born: Instant::now(),
            blank: wanted.blank(if wanted.is_nothing() { Fault::Absent } else { Fault::NotReady }),
            found: OnceLock::new(),
            ready: AtomicBool::new(wanted.is_nothing()),
            wakers: Mutex::default(),
            news: Condvar::new(),
            told: AtomicBool::new(false),
        });
        match place {
            Some(place) => drop(known.remove(place)),
            None if known.len() == MOST => drop(known.remove(0)),
            None => {}
        }
        known.push(Arc::clone(&native));
        drop(known);
        if !wanted.is_nothing() {
            let searching = Arc::clone(&native);
            let thread = thread::Builder::new().name("joulebook-search".to_owned());
            if let Err(error) = thread.spawn(move || searching.search()) {
                native.found(native.blank.clone(), Some(format!("no thread to look: {error}")));
                native.announce();
            }
        }
        native
    }

    fn search(&self) {
        match self.wanted.search() {
            Ok(meter) => {
                let meter = meter.with_hint(self.wanted.asking.joules_per_1k_hint);
                self.found(meter.clone(), None);
                // Until the first reading, or until it is known why there is none.
                let is_hopeless = || {
                    meter
                        .cards()
                        .iter()
                        .any(|it| !matches!(it.trouble(), None | Some(Fault::NotReady)))
                };
                while !self.patience().is_zero() && !is_hopeless() && !meter.wait_ready(STEP) {}
            }
            Err(error) => self.found(self.wanted.blank(error.fault()), Some(error.to_string())),
        }
        self.announce();
    }

    fn found(&self, meter: Meter, trouble: Option<String>) {
        let pause = Duration::from_secs((1 << self.attempt.min(4)).min(LONGEST_PAUSE_S));
        let again = trouble.is_some().then(|| Instant::now() + pause);
        // One search, one outcome.
        let _ = self.found.set(Found { meter, trouble, again });
    }

    fn announce(&self) {
        let wakers = {
            let mut wakers = lock(&self.wakers);
            self.ready.store(true, Ordering::Release);
            std::mem::take(&mut *wakers)
        };
        self.news.notify_all();
        wakers.into_iter().for_each(Waker::wake);
    }

    /// The meter, or what stands in for it while the search goes on.
    pub fn meter(&self) -> &Meter {
        self.found.get().map_or(&self.blank, |found| &found.meter)
    }

    /// A meter that reads nothing.
    pub const fn blank(&self) -> &Meter {
        &self.blank
    }

    /// The search is over, and there are cards.
    pub fn is_found(&self) -> bool {
        self.found.get().is_some_and(|found| found.trouble.is_none())
    }

    /// It may be used again without asking [`Native::of`].
    pub fn is_current(&self) -> bool {
        self.generation == GENERATION.load(Ordering::Acquire)
            && self.found.get().is_some_and(|found| found.again.is_none())
    }

    /// It belongs to this process, and not to the one it was forked from.
    pub fn is_ours(&self) -> bool {
        self.generation >= FORKED_AT.load(Ordering::Acquire)
    }

    /// A new search is due.
    fn is_due(&self) -> bool {
        let again = self.found.get().and_then(|found| found.again);
        again.is_some_and(|again| Instant::now() >= again)
    }

    /// Waits for the first reading while that is worth waiting for.
    pub fn wait(&self) {
        let mut wakers = lock(&self.wakers);
        while !self.is_ready() {
            let left = self.patience();
            wakers = self.news.wait_timeout(wakers, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Nothing is left to wait for.
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire) || self.patience().is_zero()
    }

    /// How long it is still worth waiting: a search that is made again keeps nobody.
    pub fn patience(&self) -> Duration {
        if self.attempt > 0 { Duration::ZERO } else { PATIENCE.saturating_sub(self.born.elapsed()) }
    }

    /// Has `waker` woken when the first reading is there.
    pub fn register(&self, waker: &Waker) {
        lock(&self.wakers).push(waker.clone());
    }

    /// What a person should know of the choice of cards, or why there is none.
    pub fn warnings(&self) -> Vec<String> {
        let found = self.found.get();
        let trouble = found.and_then(|found| found.trouble.clone());
        trouble.into_iter().chain(self.meter().warnings().iter().cloned()).collect()
    }

    /// The same, the first time it is asked and where the search is over.
    pub fn untold(&self) -> Vec<String> {
        if self.found.get().is_none() || self.told.swap(true, Ordering::Relaxed) {
            return Vec::new();
        }
        self.warnings()
    }

    /// What reads the cards, or is to.
    pub fn backend(&self) -> &'static str {
        let first = self.meter().cards().first();
        let backend = first.map_or(Backend::None, |card| card.device().backend);
        match backend {
            Backend::None if self.wanted.is_remote() => Backend::RemoteAgent.word(),
            backend => backend.word(),
        }
    }

    /// Whose readings these are.
    pub fn source(&self) -> &'static str {
        match self.backend() {
            "none" => "none",
            "remote_agent" => "remote",
            _ => "local",
        }
    }

    /// The floor in force, W.
    pub fn idle_watts(&self) -> Option<f64> {
        match self.wanted.said.idle() {
            Idle::Sum(watts) => Some(watts),
            Idle::Stored | Idle::Each(_) => self.meter().idle_watts(),
        }
    }
}

/// The generation in which this process began.
static FORKED_AT: AtomicU64 = AtomicU64::new(0);

/// Forgets what was probed; meters in use keep theirs.
pub fn forget() {
    GENERATION.fetch_add(1, Ordering::AcqRel);
    drop(std::mem::take(&mut *lock(&KNOWN)));
    joulebook::release();
    joulebook::nvml::Driver::shared().forget();
}

/// This process is a fork's child: its parent's recorders are not here.
pub fn forked() {
    let now = GENERATION.fetch_add(1, Ordering::AcqRel) + 1;
    FORKED_AT.store(now, Ordering::Release);
    // Only ever locked by threads that hold the interpreter, as the one that forked did.
    drop(std::mem::take(&mut *lock(&KNOWN)));
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
