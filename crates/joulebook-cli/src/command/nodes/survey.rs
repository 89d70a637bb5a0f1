//! All nodes at once, each within the time that is given.

use std::{
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use joulebook::{
    Card, Fault, Meter, Node, Tenancy,
    nodes::NodeEntry,
    nvml::{self, Driver},
    profile::Profiles,
    remote::{self, RemoteError},
};
use serde::Serialize;

use crate::words;

/// How often it is looked whether a card has shown itself.
const LOOK: Duration = Duration::from_millis(20);
/// What a thread may be late beyond the time that it was given.
const GRACE: Duration = Duration::from_millis(500);
/// Whoever is on a card is told with the first publish; a moment later it is not told at all.
const RESIDENTS: Duration = Duration::from_millis(300);
/// A period that nobody has probed takes a few updates to be seen.
const PERIOD: Duration = Duration::from_secs(1);

/// A card of a node, as it can be read now. Absent is null.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The node's name.
    pub node: String,
    /// Where its agent answers; null for this host.
    pub endpoint: Option<String>,
    /// The driver's index, or what was asked for.
    pub gpu: String,
    /// The card's name.
    pub name: Option<String>,
    /// Its UUID.
    pub uuid: Option<String>,
    /// What windows on it say that read it.
    pub backend: Option<&'static str>,
    /// What reads it on its own host.
    pub reads: Option<String>,
    /// The update period, ms.
    pub period_ms: Option<f64>,
    /// The idle floor, W.
    pub idle_watts: Option<f64>,
    /// How that was got.
    pub idle_from: Option<String>,
    /// What it draws now, W.
    pub watts: Option<f64>,
    /// Our clock less the agent's, ms.
    pub clock_offset_ms: Option<f64>,
    /// How far it may be from that, ms.
    pub clock_uncertainty_ms: Option<f64>,
    /// Who is on it: `alone`, `foreign`, `unknown`.
    pub tenancy: Option<Tenancy>,
    /// Who else, where the file says which process is ours.
    pub contended_by: Option<String>,
    /// Why it cannot be read, in one word.
    pub error: Option<Fault>,
    /// … and in a sentence.
    pub message: Option<String>,
}

/// The rows of all nodes, in their order.
pub fn all(nodes: Vec<NodeEntry>, profiles: Option<&Profiles>, timeout: Duration) -> Vec<Row> {
    let until = Instant::now() + timeout;
    let (sender, receiver) = mpsc::channel();
    for (number, entry) in nodes.iter().cloned().enumerate() {
        let (sender, profiles) = (sender.clone(), profiles.cloned());
        thread::spawn(move || {
            // Nobody waits any more for one that took too long.
            let _ = sender.send((number, of_node(&entry, profiles.as_ref(), until)));
        });
    }
    drop(sender);
    let mut found: Vec<Option<Vec<Row>>> = vec![None; nodes.len()];
    let patience = || (until + GRACE).saturating_duration_since(Instant::now());
    while let Ok((number, rows)) = receiver.recv_timeout(patience()) {
        if let Some(place) = found.get_mut(number) {
            *place = Some(rows);
        }
    }
    let rows =
        nodes.iter().zip(found).flat_map(|(entry, rows)| rows.unwrap_or_else(|| silent(entry)));
    rows.collect()
}

fn of_node(entry: &NodeEntry, profiles: Option<&Profiles>, until: Instant) -> Vec<Row> {
    let cards = if entry.cards.is_empty() {
        match list(entry, until) {
            Ok(cards) => cards,
            Err(row) => return vec![*row],
        }
    } else {
        entry.cards.clone()
    };
    // All cards of a node at once: one that is silent takes no time from the others.
    let meters: Vec<_> = cards
        .iter()
        .map(|node| {
            let node = Node { timeout: patience(until), ..node.clone() };
            match profiles {
                Some(profiles) => Meter::for_node_with(&node, profiles),
                None => Meter::for_node(&node),
            }
        })
        .collect();
    let row = |(node, meter): (&Node, Result<Meter, joulebook::MeterError>)| match meter {
        Ok(meter) => Row::of_meter(entry, node, &meter, until),
        Err(error) => Row::failed(entry, gpu(node), error.fault(), error.to_string()),
    };
    cards.iter().zip(meters).map(row).collect()
}

/// The cards of a node that lists none in the file.
fn list(entry: &NodeEntry, until: Instant) -> Result<Vec<Node>, Box<Row>> {
    let failed = |fault: Fault, message: String| {
        Box::new(Row::failed(entry, "-".to_owned(), fault, message))
    };
    if entry.endpoint.is_none() {
        let inventory = match nvml::cards(&Driver::shared()) {
            Ok(inventory) => inventory,
            // Whatever else can read the card says so.
            Err(_) => return Ok(vec![entry.card("0")]),
        };
        // One that cannot be named is tried all the same, so that it says why.
        let named = inventory.cards.iter().map(|card| card.index);
        let unnamed = inventory.unreadable.iter().map(|(index, _)| *index);
        let mut indices: Vec<u32> = named.chain(unnamed).collect();
        indices.sort_unstable();
        if indices.is_empty() {
            let message = "the NVIDIA driver is loaded and lists no card".to_owned();
            return Err(failed(Fault::Absent, message));
        }
        return Ok(indices.iter().map(|index| entry.card(index.to_string())).collect());
    }
    let node = Node { timeout: patience(until), ..entry.card("0") };
    match remote::list(&node) {
        Ok(cards) if cards.cards.is_empty() => {
            Err(failed(Fault::Absent, "its agent lists no card".to_owned()))
        }
        Ok(cards) => Ok(cards.cards.iter().map(|card| entry.card(card.gpu.to_string())).collect()),
        // A giul-agent cannot say which cards it has.
        Err(RemoteError::NotFound { .. }) => Ok(vec![entry.card("0")]),
        Err(error) => Err(failed(error.fault(), error.to_string())),
    }
}

/// How long one answer may take: less than what is left, so that why it did not come is known too.
fn patience(until: Instant) -> Duration {
    let left = until.saturating_duration_since(Instant::now());
    (left * 3 / 5).max(Duration::from_millis(100))
}

fn gpu(node: &Node) -> String {
    node.gpus.first().cloned().unwrap_or_default()
}

/// A node that did not answer.
fn silent(entry: &NodeEntry) -> Vec<Row> {
    let row = |gpu: String| {
        let message = "it did not answer in time (--timeout)".to_owned();
        Row::failed(entry, gpu, Fault::Timeout, message)
    };
    if entry.cards.is_empty() {
        return vec![row("-".to_owned())];
    }
    entry.cards.iter().map(|node| row(gpu(node))).collect()
}

impl Row {
    fn failed(entry: &NodeEntry, gpu: String, fault: Fault, message: String) -> Self {
        Self {
            node: entry.name.clone(),
            endpoint: entry.endpoint.clone(),
            gpu,
            name: None,
            uuid: None,
            backend: None,
            reads: None,
            period_ms: None,
            idle_watts: None,
            idle_from: None,
            watts: None,
            clock_offset_ms: None,
            clock_uncertainty_ms: None,
            tenancy: None,
            contended_by: None,
            error: Some(fault),
            message: Some(message),
        }
    }

    fn of_meter(entry: &NodeEntry, node: &Node, meter: &Meter, until: Instant) -> Self {
        let Some(card) = meter.cards().first() else {
            return Self::failed(entry, gpu(node), Fault::Absent, "no card".to_owned());
        };
        let shows = || card.power().is_some() && card.trouble().is_none();
        // What certainly will not come is not waited for.
        let hopeless = || matches!(card.trouble(), Some(Fault::Permission | Fault::NotSupported));
        wait(until, || shows() || hopeless());
        let residents_by = until.min(Instant::now() + RESIDENTS);
        wait(residents_by, || card.residents_now().is_some() || !shows());
        wait(until.min(Instant::now() + PERIOD), || period_ms(card).is_some() || !shows());
        let device = card.device();
        let told = card.told();
        let seen = meter.open().close().now();
        let known = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        let connection = card.connection().map(remote::Status::now);
        let offset = connection.as_ref().and_then(|now| now.offset);
        let error = if shows() { None } else { Some(card.trouble().unwrap_or(Fault::NotReady)) };
        let why = connection.as_ref().and_then(|now| now.error.as_ref()).map(ToString::to_string);
        let declared = !matches!(node.idle, joulebook::Idle::Stored);
        Self {
            gpu: if device.uuid.is_empty() { gpu(node) } else { device.index.to_string() },
            name: known(&device.name),
            uuid: known(&device.uuid),
            backend: Some(device.backend.word()),
            reads: match &told {
                Some(told) => told.reads.clone(),
                None => Some(device.backend.word().to_owned()),
            },
            period_ms: period_ms(card),
            idle_watts: meter.idle_watts(),
            idle_from: if declared {
                Some("declared".to_owned())
            } else {
                let stored = || card.profile().resting(device.scope).map(words::of_floor);
                told.and_then(|told| told.idle_from.clone()).or_else(stored)
            },
            watts: card.power().map(|(power, _)| power.watts()),
            clock_offset_ms: offset.map(|offset| offset.offset_ns as f64 / 1e6),
            clock_uncertainty_ms: offset.map(|offset| offset.uncertainty_ns as f64 / 1e6),
            tenancy: Some(seen.tenancy),
            contended_by: seen.contended_by,
            error,
            message: error.map(|fault| why.unwrap_or_else(|| words::of_fault(fault).to_owned())),
            ..Self::failed(entry, String::new(), Fault::NotReady, String::new())
        }
    }
}

fn period_ms(card: &Card) -> Option<f64> {
    let told = card.told().and_then(|told| told.period_ns);
    told.or_else(|| card.seen_period_ns()).map(|period_ns| period_ns as f64 / 1e6)
}

fn wait(until: Instant, mut done: impl FnMut() -> bool) {
    while !done() && Instant::now() < until {
        thread::sleep(LOOK);
    }
}
