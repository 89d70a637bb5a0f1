//! Cards of other hosts, through the agents that run there: one connection and one thread a node,
//! however many cards and windows.
//!
//! An agent of ours streams each publish of its cards; they become points of ordinary series on our
//! clock, and windows on them settle by the rules of local ones. A giul-agent is asked for power
//! instead, which is integrated as a gauge. Which of the two it is the agent's answers tell.
//!
//! Invariants: nothing here is done on a caller's thread but to write down what is wanted, so a node
//! that is slow, gone or mad costs measurements and never requests; energy of two lives of an agent
//! is never subtracted; whatever is not known of the clocks is in each point's uncertainty.
//!
//! Refused: addresses that are none, before anything is asked of them.

mod client;
mod clock;
mod error;
mod events;
mod lane;
mod link;
mod offset;
mod power;
mod status;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use client::{Client, Endpoint};
pub use error::RemoteError;
use joulebook_core::{Fault, series::series};
use lane::Lane;
pub(crate) use offset::DRIFT;
pub use offset::{Offset, RoundTrip};
pub use status::{Now, Status};

use crate::{
    books::Shelf,
    card::{Card, Elsewhere, unknown_device},
    identity,
    node::Node,
    nvml::CardState,
    wire,
};

/// The nodes that are being read in this process.
pub(crate) static NODES: Mutex<Nodes> = Mutex::new(BTreeMap::new());

pub(crate) type Nodes = BTreeMap<Key, Arc<Remote>>;

type Key = (Endpoint, Option<PathBuf>);

/// A node that is being read. It is kept for a while after nobody wants its cards any more.
#[derive(Debug)]
pub(crate) struct Remote {
    key: Key,
    timeout: Duration,
    state: Mutex<State>,
    status: Arc<Status>,
}

#[derive(Debug)]
struct State {
    /// By what they were asked for.
    cards: Vec<(String, Arc<Card>)>,
    /// Asked for, and not taken over by the node's thread yet.
    fresh: Vec<Lane>,
    /// The cards of the node, once they are known.
    listed: Vec<identity::Card>,
    /// How often an agent without a stream is asked.
    interval: Duration,
}

/// The cards of a node whose endpoint is given, in its order, as they are being read or will be.
/// Asks nobody.
pub(crate) fn cards_of(node: &Node) -> Result<Vec<Arc<Card>>, RemoteError> {
    let key = (endpoint(node)?, node.token_file.clone());
    let mut nodes = NODES.lock().unwrap_or_else(PoisonError::into_inner);
    let remote = match nodes.get(&key) {
        Some(remote) => Arc::clone(remote),
        None => {
            let remote = Remote::new(&key, node);
            if remote.start() {
                nodes.insert(key, Arc::clone(&remote));
            }
            remote
        }
    };
    let mut state = remote.lock();
    state.interval = state.interval.min(node.interval);
    let mut cards: Vec<Arc<Card>> = Vec::new();
    for ask in &node.gpus {
        let card = state.card(ask, &remote.status);
        // The same card twice is one card.
        if !cards.iter().any(|known| Arc::ptr_eq(known, &card)) {
            cards.push(card);
        }
    }
    Ok(cards)
}

/// Whether that is an address that an agent can be asked at; asks nobody.
pub fn check(endpoint: &str) -> Result<(), RemoteError> {
    Endpoint::parse(endpoint).map(|_| ())
}

/// The cards that a node's agent lists. Waits for the answer, at most the node's timeout.
pub fn list(node: &Node) -> Result<wire::Cards, RemoteError> {
    client(node)?.get(CARDS)
}

/// The state of a node's first card, by its agent. Waits for the answer, at most twice the node's
/// timeout.
pub fn state(node: &Node) -> Result<CardState, RemoteError> {
    let client = client(node)?;
    let ask = node.gpus.first().map_or("0", String::as_str).trim();
    let gpu = match ask.parse::<u32>() {
        Ok(gpu) => gpu,
        Err(_) => {
            let cards: wire::Cards = client.get(CARDS)?;
            let listed: Vec<identity::Card> = cards.cards.iter().map(listed).collect();
            let none = |said: String| RemoteError::NotFound {
                endpoint: client.endpoint().to_owned(),
                path: format!("card {ask}"),
                said,
            };
            resolve(ask, &listed).map_err(|error| none(format!(": {error}")))?.index
        }
    };
    let mut state: CardState = client.get(&format!("{POWER}?gpu={gpu}"))?;
    // An agent lists nobody also where it cannot list.
    state.compute_apps = state.compute_apps.filter(|apps| !apps.is_empty());
    if state.gpu.is_some_and(|answered| answered != gpu) {
        return Err(client.garbage(&format!("another card than {gpu}")));
    }
    Ok(state)
}

/// Forgets the nodes that are being read, so that the next meter connects anew; meters that exist
/// keep theirs.
pub(crate) fn release() {
    NODES.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

const CARDS: &str = "/v1/cards";
const STREAM: &str = "/v1/cards/stream";
const CLOCK: &str = "/v1/clock";
const POWER: &str = "/power";

fn endpoint(node: &Node) -> Result<Endpoint, RemoteError> {
    Endpoint::parse(node.power_endpoint.as_deref().unwrap_or_default())
}

fn client(node: &Node) -> Result<Client, RemoteError> {
    Client::new(&endpoint(node)?, node.token_file.as_ref(), node.timeout)
}

fn listed(card: &wire::CardSeen) -> identity::Card {
    identity::Card {
        index: card.gpu,
        uuid: card.uuid.clone(),
        pci: card.pci.clone(),
        name: card.name.clone(),
        ..identity::Card::default()
    }
}

/// The card that is meant, without this host's CUDA, which says nothing of another's.
fn resolve(
    ask: &str,
    listed: &[identity::Card],
) -> Result<identity::Identity, identity::IdentityError> {
    identity::resolve(ask, listed, &identity::CudaEnvironment::default())
}

impl Remote {
    fn new(key: &Key, node: &Node) -> Arc<Self> {
        Arc::new(Self {
            key: key.clone(),
            timeout: node.timeout,
            state: Mutex::new(State {
                cards: Vec::new(),
                fresh: Vec::new(),
                listed: Vec::new(),
                interval: node.interval,
            }),
            status: Arc::new(Status::new(key.0.as_str())),
        })
    }

    /// Begins to read it; false where there is no thread to do so, and whoever asks next tries again.
    fn start(self: &Arc<Self>) -> bool {
        let link = link::Link::new(Arc::clone(self));
        let name = "joulebook-node".to_owned();
        let spawned = thread::Builder::new().name(name).spawn(move || link.run());
        if let Err(error) = &spawned {
            tracing::warn!("no thread to read {}: {error}", self.key.0.as_str());
        }
        spawned.is_ok()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets go of the node where nobody holds one of its cards but the node itself.
    fn let_go(self: &Arc<Self>) -> bool {
        let mut nodes = NODES.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_wanted() {
            return false;
        }
        if nodes.get(&self.key).is_some_and(|known| Arc::ptr_eq(known, self)) {
            nodes.remove(&self.key);
        }
        true
    }

    fn is_wanted(&self) -> bool {
        let state = self.lock();
        // Its own two: the list's and the lane's.
        state.cards.iter().any(|(_, card)| Arc::strong_count(card) > 2)
    }
}

impl State {
    fn card(&mut self, ask: &str, status: &Arc<Status>) -> Arc<Card> {
        let ask = ask.trim();
        if let Some((_, card)) = self.cards.iter().find(|(known, _)| known == ask) {
            return Arc::clone(card);
        }
        // Asked for in another way.
        let uuid = resolve(ask, &self.listed).ok().map(|card| card.uuid);
        let same = |(_, card): &&(String, Arc<Card>)| Some(&card.device().uuid) == uuid.as_ref();
        if let Some(card) = self.cards.iter().find(same).map(|(_, card)| Arc::clone(card)) {
            return card;
        }
        let (writer, series) = series();
        let elsewhere = Elsewhere::new(Arc::clone(status));
        let shelf = Shelf::of(format!("{} {ask}", status.endpoint()));
        let card = Arc::new(Card::remote(unknown_device(ask), series, elsewhere).on(shelf));
        card.health.set_fault(Some(Fault::NotReady));
        self.cards.push((ask.to_owned(), Arc::clone(&card)));
        self.fresh.push(Lane::new(ask, Arc::clone(&card), writer));
        card
    }
}
