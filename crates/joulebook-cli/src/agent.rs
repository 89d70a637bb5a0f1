//! The agent: a node's cards over HTTP, for any number of clients.
//!
//! One recorder a card serves them all: no request asks the driver, so a thousand pollers cost what
//! one costs, and a driver that hangs costs a reading and no answer. All of HTTP is one thread, with
//! room for so many connections; it can take no more of the node than one processor, and no more
//! memory than that room. It reads and tells: it has no control surface and writes nothing.
//!
//! Refused: to serve a host without cards (it says so and ends), and to show a reading again that is
//! not fresh (503, or an absent series).

mod accept;
mod address;
mod answer;
mod connections;
mod dcgm;
mod gate;
mod guarded;
mod manager;
mod metrics;
mod news;
mod own;
mod power;
mod query;
mod rails;
mod roster;
mod routes;
mod seen;
mod stream;
mod token;

use std::{
    fs,
    net::SocketAddr,
    path::Path,
    process::ExitCode,
    sync::{Arc, Mutex, OnceLock, PoisonError, atomic::Ordering},
    time::Duration,
};

use anyhow::Context as _;
use joulebook::{clock, identity, profile::Profiles};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
    time::{Instant, MissedTickBehavior, interval},
};

pub use address::address;
use connections::Connections;
use news::News;
use own::Counts;
use rails::Rails;
use roster::{Listing, Roster};
pub use token::Token;

use crate::{
    context::Usage,
    words::{FAINT, STRONG, say_warning},
};

/// How often the cards are looked at.
const LOOK: Duration = Duration::from_millis(250);
/// How often connections are.
const SWEEP: Duration = Duration::from_secs(1);
/// How long cards may take to show themselves before the agent serves without them.
const FIRST_READINGS: Duration = Duration::from_secs(5);
/// How long what is being answered may take when the agent stops.
const DRAIN: Duration = Duration::from_secs(5);
/// Descriptors beside those of connections: listeners, the driver, files.
const OWN_DESCRIPTORS: usize = 64;

/// What the agent is told to be.
#[derive(Debug)]
pub struct Settings {
    /// Where it listens; empty: on this host's loopback addresses.
    pub bind: Vec<SocketAddr>,
    /// The card that is meant where none is named.
    pub gpu: String,
    /// What clients must show.
    pub token: Option<Token>,
    /// The node's name; absent: the host's.
    pub name: Option<String>,
    /// What is known of the cards.
    pub profiles: Option<Profiles>,
    /// Room for so many connections.
    pub connections: usize,
    /// Show dcgm-exporter's names on `/metrics`.
    pub dcgm: bool,
}

/// A running agent.
#[derive(Debug)]
struct Agent {
    node: String,
    boot_id: String,
    began_unix_s: f64,
    gpu: String,
    default_card: OnceLock<u32>,
    token: Option<Token>,
    dcgm: bool,
    roster: Arc<Roster>,
    news: Arc<News>,
    connections: Arc<Connections>,
    counts: Counts,
    rails: Mutex<Rails>,
    draining: watch::Sender<bool>,
}

/// Serves until a signal ends it.
pub fn serve(settings: Settings) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("no runtime")?.block_on(run(settings))
}

async fn run(settings: Settings) -> anyhow::Result<ExitCode> {
    // Before anything else, so that a second agent costs nothing; nobody is answered yet.
    let listeners = address::listen(&settings.bind)?;
    let signals = [SignalKind::terminate(), SignalKind::interrupt()].map(signal);
    let [mut terminate, mut interrupt] = signals;
    let (terminate, interrupt) = (terminate.as_mut(), interrupt.as_mut());
    let (Ok(terminate), Ok(interrupt)) = (terminate, interrupt) else {
        anyhow::bail!("signals cannot be waited for");
    };
    let agent = Arc::new(Agent::new(settings)?);
    let listing = agent.roster.settle(FIRST_READINGS);
    agent.check(&listing)?;
    let addresses = listeners.iter().map(tokio::net::TcpListener::local_addr);
    let addresses: Vec<SocketAddr> = addresses.collect::<Result<_, _>>().context("an address")?;
    agent.say(&addresses, &listing);

    let router = routes::routes(&agent);
    for listener in listeners {
        tokio::spawn(accept::accept(Arc::clone(&agent), listener, router.clone()));
    }
    tokio::spawn(Arc::clone(&agent.news).pass_on());
    tokio::spawn(Arc::clone(&agent).look());
    tokio::spawn(Arc::clone(&agent).keep_house());
    manager::ready(&match listing.seats.len() {
        1 => "serving 1 card".to_owned(),
        cards => format!("serving {cards} cards"),
    });
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    manager::stopping();
    agent.drain().await;
    Ok(ExitCode::SUCCESS)
}

impl Agent {
    fn new(settings: Settings) -> anyhow::Result<Self> {
        let read = |path: &str| fs::read_to_string(path).map(|text| text.trim().to_owned());
        let now_unix_s = clock::unix_ns(clock::now_ns()) as f64 / 1e9;
        let boot_id = read("/proc/sys/kernel/random/uuid")
            .unwrap_or_else(|_| format!("{}-{now_unix_s}", std::process::id()));
        let node = settings.name.or_else(|| read("/proc/sys/kernel/hostname").ok());
        let roster = Roster::start(settings.profiles).context("no thread to open the cards")?;
        Ok(Self {
            node: node.unwrap_or_else(|| "localhost".to_owned()),
            boot_id,
            began_unix_s: now_unix_s,
            gpu: settings.gpu,
            default_card: OnceLock::new(),
            token: settings.token,
            dcgm: settings.dcgm,
            roster,
            news: News::new(),
            connections: Connections::new(room(settings.connections)),
            counts: Counts::default(),
            rails: Mutex::new(Rails::of(Path::new(rails::FOLDER))),
            draining: watch::Sender::new(false),
        })
    }

    /// A host without cards needs no agent, and a default card that is not there is a mistake.
    fn check(&self, listing: &Listing) -> anyhow::Result<()> {
        if let Some(nothing) = &listing.nothing {
            return Err(Usage(format!("there is no card here to serve: {nothing}")).into());
        }
        if listing.unknown.is_none() && self.default_card(listing).is_none() {
            let gpu = &self.gpu;
            let words = format!("--gpu {gpu} is none of this host's cards: {}", listing.words());
            return Err(Usage(words).into());
        }
        Ok(())
    }

    /// The index of the card that is meant where none is named; `None` while it is not known.
    fn default_card(&self, listing: &Listing) -> Option<u32> {
        if let Some(index) = self.default_card.get() {
            return Some(*index);
        }
        let card = |seat: &Arc<roster::Seat>| identity::Card {
            index: seat.found.index,
            uuid: seat.found.uuid.clone(),
            pci: seat.found.pci.clone(),
            name: seat.found.name.clone(),
            ..identity::Card::default()
        };
        let cards: Vec<identity::Card> = listing.seats.iter().map(card).collect();
        let environment = identity::CudaEnvironment {
            visible_devices: std::env::var("CUDA_VISIBLE_DEVICES").ok(),
            device_order: std::env::var("CUDA_DEVICE_ORDER").ok(),
        };
        let found = identity::resolve(&self.gpu, &cards, &environment).ok()?;
        Some(*self.default_card.get_or_init(|| found.index))
    }

    /// `joulebook/` and the version.
    fn words(&self) -> String {
        concat!("joulebook/", env!("CARGO_PKG_VERSION")).to_owned()
    }

    /// Where it serves, and what.
    fn say(&self, addresses: &[SocketAddr], listing: &Listing) {
        let where_to = address::words(addresses, self.token.is_some());
        anstream::println!("{STRONG}joulebook agent{STRONG:#} on {where_to}");
        for seat in &listing.seats {
            let described = seat.described();
            let seen = &described.seen;
            let how = match (&described.trouble, seen.counter) {
                (Some(trouble), _) => format!("cannot be read now: {}", trouble.words),
                (None, true) => "energy counter".to_owned(),
                (None, false) => format!("power gauge ({})", seen.backend),
            };
            let floor = seen.idle_watts.map(|watts| format!(", {watts:.1} W at rest"));
            let floor = floor.unwrap_or_default();
            anstream::println!("  card {}: {}, {how}{floor}", seen.gpu, seen.name);
        }
        if listing.seats.iter().any(|seat| seat.is_unprobed()) {
            anstream::println!(
                "{FAINT}  cards that were not probed are read at a pace of our own; `joulebook probe` \
                 lets them be followed{FAINT:#}"
            );
        }
        if let Some(why) = &listing.unknown {
            anstream::println!("  its cards cannot be listed now: {}", why.words);
        }
        if address::is_open(addresses, self.token.is_some()) {
            say_warning(
                "whoever reaches this address can read it, names of processes among it; \
                 --token-file FILE asks for a token",
            );
        }
        anstream::println!(
            "{FAINT}  /power, /v1/cards, /metrics; SIGTERM or Ctrl-C ends it{FAINT:#}"
        );
    }

    /// Describes the cards anew, a few times a second, and follows those that are new.
    async fn look(self: Arc<Self>) {
        let mut followed = std::collections::BTreeSet::new();
        let mut ticks = interval(LOOK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            for seat in &self.roster.now().seats {
                if seat.look() {
                    self.news.ring();
                }
                if let Ok(open) = &seat.state
                    && followed.insert(seat.found.index)
                {
                    tokio::spawn(Arc::clone(&self.news).follow(Arc::clone(&open.card)));
                    self.news.ring();
                }
            }
        }
    }

    /// Cuts connections that make no progress, and reads the rails.
    async fn keep_house(self: Arc<Self>) {
        let mut ticks = interval(SWEEP);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut rails_due = Instant::now();
        loop {
            ticks.tick().await;
            self.counts.cut.fetch_add(self.connections.sweep(), Ordering::Relaxed);
            if Instant::now() >= rails_due {
                rails_due += rails::EVERY;
                let mut rails = self.rails.lock().unwrap_or_else(PoisonError::into_inner);
                rails.read(clock::now_ns());
            }
        }
    }

    /// Lets what is being answered be answered, for a while.
    async fn drain(&self) {
        self.draining.send_replace(true);
        let until = Instant::now() + DRAIN;
        while self.connections.count() > 0 && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Room for so many connections, or for as many as this process may have descriptors.
fn room(wanted: usize) -> usize {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let needed = u64::try_from(wanted.saturating_add(OWN_DESCRIPTORS)).unwrap_or(u64::MAX);
    let is_enough = |limit: Option<u64>| limit.is_none_or(|limit| limit >= needed);
    if is_enough(limit.current) {
        return wanted;
    }
    let raised = if is_enough(limit.maximum) { Some(needed) } else { limit.maximum };
    let has =
        match setrlimit(Resource::Nofile, rustix::process::Rlimit { current: raised, ..limit }) {
            Ok(()) => raised,
            Err(_) => limit.current,
        };
    let room = usize::try_from(has.unwrap_or(needed)).unwrap_or(wanted);
    let room = room.saturating_sub(OWN_DESCRIPTORS).clamp(1, wanted);
    if room < wanted {
        tracing::warn!("room for {room} connections: this process may open no more (ulimit -n)");
    }
    room
}
