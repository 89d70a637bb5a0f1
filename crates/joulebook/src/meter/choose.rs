//! Which reader a card is read by, and one recorder a card however many meters ask.
//!
//! In this order: the driver library's energy counter, its power gauge, the program `nvidia-smi`, the
//! agent at the node's endpoint. The program is asked only where the library cannot read the cards
//! asked for, the agent where neither can; where nothing can, the reasons are told, and the word is
//! the library's. Cards that are not this host's are the agent's alone.

use std::{
    collections::BTreeMap,
    env, io,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use joulebook_core::Fault;

use super::{Meter, MeterError};
use crate::{
    books::Shelf,
    card::Card,
    identity::{self, CudaEnvironment},
    node::{Idle, Node},
    nvml::{CardInfo, Driver, Inventory, NvmlCounter, NvmlGauge, NvmlTenants, PowerField, cards},
    profile::{Profile, Profiles, Trust},
    reader::Reader,
    recorder::{Keep, Settings, record_keeping},
    remote,
    smi::{Feed, Program, SmiCard, SmiCardInfo, SmiError, SmiTenants},
    sources,
};

/// The cards being read in this process, by UUID.
pub(crate) static READ: Mutex<BTreeMap<String, Weak<Card>>> = Mutex::new(BTreeMap::new());

/// One card, read to be passed on: as a meter would read it, with no day behind it. Where a meter of
/// this process reads it already, that one's recorder serves.
pub fn watch(gpu: &str, profiles: Option<&Profiles>, keep: Keep) -> Result<Arc<Card>, MeterError> {
    let meter = meter(&Node::of(gpu), profiles, keep)?;
    meter.inner.cards.first().cloned().ok_or(MeterError::NoneAsked)
}

pub(super) fn meter(
    node: &Node,
    profiles: Option<&Profiles>,
    keep: Keep,
) -> Result<Meter, MeterError> {
    check_idle(node)?;
    if node.gpus.is_empty() {
        return Err(MeterError::NoneAsked);
    }
    if !node.is_local {
        return by_agent(node);
    }
    here(node, profiles, keep).or_else(|error| {
        if node.power_endpoint.is_none() || !error.is_of_this_host() {
            return Err(error);
        }
        tracing::warn!(
            "the cards are read through the node's agent, since this host cannot: {error}"
        );
        by_agent(node)
    })
}

/// On this host: through the driver's library, else through the program.
fn here(node: &Node, profiles: Option<&Profiles>, keep: Keep) -> Result<Meter, MeterError> {
    by_library(node, profiles, keep).or_else(|nvml| {
        if !nvml.is_of_the_reader() {
            return Err(nvml);
        }
        let meter = by_program(node, profiles, keep)
            .map_err(|smi| MeterError::Unreadable { nvml: Box::new(nvml), smi: Box::new(smi) })?;
        tracing::warn!("the cards are read through nvidia-smi, since the driver library cannot");
        Ok(meter)
    })
}

/// Through the driver's library: each card's counter, else its power gauge.
fn by_library(node: &Node, profiles: Option<&Profiles>, keep: Keep) -> Result<Meter, MeterError> {
    let driver = Driver::shared();
    let inventory = cards(&driver)?;
    if inventory.cards.is_empty() {
        return Err(MeterError::NoCards(unreadable(&inventory)));
    }
    let listed = inventory.cards.iter().map(Into::into).collect();
    let chosen = Chosen::of(node, listed)?;
    let cards = chosen
        .uuids
        .iter()
        .filter_map(|uuid| inventory.cards.iter().find(|card| card.uuid == *uuid))
        .map(|card| recorded(&driver, card, profiles, keep))
        .collect::<Result<_, _>>()?;
    Ok(Meter::assemble(node, cards, None, chosen.slice, chosen.warnings))
}

/// Through the program `nvidia-smi`.
fn by_program(node: &Node, profiles: Option<&Profiles>, keep: Keep) -> Result<Meter, MeterError> {
    let program = Program::default();
    let missing = |error: io::Error| SmiError::Missing {
        program: program.path().display().to_string(),
        reason: error.to_string(),
    };
    let feed = Feed::of(&program).map_err(missing)?;
    let inventory = feed.cards()?;
    let chosen = Chosen::of(node, inventory.iter().map(Into::into).collect())?;
    let cards = chosen
        .uuids
        .iter()
        .filter_map(|uuid| inventory.iter().find(|card| card.uuid == *uuid))
        .map(|card| recorded_by_program(&feed, card, profiles, keep))
        .collect::<Result<_, _>>()?;
    Ok(Meter::assemble(node, cards, None, chosen.slice, chosen.warnings))
}

/// Through the agent on the cards' own host. Asks nobody: what cannot be read there, its windows say.
fn by_agent(node: &Node) -> Result<Meter, MeterError> {
    if node.power_endpoint.as_deref().is_none_or(|endpoint| endpoint.trim().is_empty()) {
        return Err(MeterError::NoEndpoint);
    }
    Ok(Meter::assemble(node, remote::cards_of(node)?, None, false, Vec::new()))
}

/// The cards a node means.
pub(super) struct Chosen {
    /// Each once, in the node's order.
    pub(super) uuids: Vec<String>,
    /// Only a slice of one was asked for.
    slice: bool,
    warnings: Vec<String>,
}

impl Chosen {
    pub(super) fn of(node: &Node, listed: Vec<identity::Card>) -> Result<Self, MeterError> {
        let environment = CudaEnvironment {
            visible_devices: env::var("CUDA_VISIBLE_DEVICES").ok(),
            device_order: env::var("CUDA_DEVICE_ORDER").ok(),
        };
        let mut chosen = Self { uuids: Vec::new(), slice: false, warnings: Vec::new() };
        for ask in &node.gpus {
            let identity = identity::resolve(ask, &listed, &environment)?;
            chosen.slice |= identity.shared_device;
            chosen.warnings.extend(identity.warning);
            // The same card twice is one card.
            if !chosen.uuids.contains(&identity.uuid) {
                chosen.uuids.push(identity.uuid);
            }
        }
        Ok(chosen)
    }
}

/// Forgets which cards are being read, so that the next meter probes them anew; meters that exist
/// keep theirs, and a card's book stays the only one.
pub fn release() {
    READ.lock().unwrap_or_else(PoisonError::into_inner).clear();
    remote::release();
}

fn check_idle(node: &Node) -> Result<(), MeterError> {
    let good = |watts: f64| watts.is_finite() && watts >= 0.0;
    match &node.idle {
        Idle::Stored => Ok(()),
        Idle::Sum(watts) if good(*watts) => Ok(()),
        Idle::Each(each) if each.len() != node.gpus.len() => Err(MeterError::Idle(format!(
            "{} floors for {} cards; give one for each card, or their sum",
            each.len(),
            node.gpus.len()
        ))),
        Idle::Each(each) if each.iter().all(|watts| good(*watts)) => Ok(()),
        Idle::Sum(_) | Idle::Each(_) => {
            Err(MeterError::Idle("not a finite power of 0 W or more".to_owned()))
        }
    }
}

/// The card's one recorder.
fn recorded(
    driver: &Arc<Driver>,
    info: &CardInfo,
    profiles: Option<&Profiles>,
    keep: Keep,
) -> Result<Arc<Card>, MeterError> {
    let known = |read: &BTreeMap<String, Weak<Card>>| read.get(&info.uuid).and_then(Weak::upgrade);
    let lock = || READ.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(card) = known(&lock()) {
        return Ok(card);
    }
    let profile = profile_of(info, profiles);
    let scope = profile.counter_scope.unwrap_or(info.counter_scope);
    let described = CardInfo { counter_scope: scope, ..info.clone() };
    // The first reading may hang: not under the lock that other cards' meters need.
    let reader = reader(driver, &described, &profile)?;
    let tenants = Box::new(NvmlTenants::open(driver, &described));
    let mut read = lock();
    // Somebody else may have been faster.
    if let Some(card) = known(&read) {
        return Ok(card);
    }
    let settings = Settings { profile, gap_ns: None };
    let shelf = Shelf::of(info.uuid.clone());
    let card = record_keeping(reader, Some(tenants), settings, keep, shelf);
    read.insert(info.uuid.clone(), Arc::downgrade(&card));
    Ok(card)
}

/// The same through the program.
fn recorded_by_program(
    feed: &Arc<Feed>,
    info: &SmiCardInfo,
    profiles: Option<&Profiles>,
    keep: Keep,
) -> Result<Arc<Card>, MeterError> {
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(card) = read.get(&info.uuid).and_then(Weak::upgrade) {
        return Ok(card);
    }
    let reader = SmiCard::open(feed, info);
    if reader.check() == Err(Fault::NotSupported) {
        return Err(MeterError::NotSupported { index: info.index, name: info.name.clone() });
    }
    let profile = profile(&info.uuid, &info.name, info.driver.as_ref(), info.index, profiles);
    let tenants = Box::new(SmiTenants::open(feed, info));
    let settings = Settings { profile, gap_ns: None };
    let shelf = Shelf::of(info.uuid.clone());
    let card = record_keeping(Box::new(reader), Some(tenants), settings, keep, shelf);
    read.insert(info.uuid.clone(), Arc::downgrade(&card));
    Ok(card)
}

/// What is known of the card. A probe by another driver is void; a file that cannot be read is
/// said so and costs what it knew.
pub fn profile_of(info: &CardInfo, profiles: Option<&Profiles>) -> Profile {
    profile(&info.uuid, &info.name, info.driver.as_ref(), info.index, profiles)
}

fn profile(
    uuid: &str,
    name: &str,
    driver: Option<&String>,
    index: u32,
    profiles: Option<&Profiles>,
) -> Profile {
    let blank = || Profile {
        uuid: uuid.to_owned(),
        name: name.to_owned(),
        driver: driver.cloned(),
        ..Profile::default()
    };
    match profiles.map(|profiles| profiles.load(uuid)) {
        None | Some(Ok(None)) => blank(),
        Some(Ok(Some(profile))) if profile.driver.as_ref() == driver => profile,
        Some(Ok(Some(profile))) => Profile { floors: profile.floors, ..blank() },
        Some(Err(error)) => {
            tracing::warn!("what was learnt of card {index} is left aside: {error}");
            blank()
        }
    }
}

/// A working counter, else the gauge. Only "not supported" decides against one; any other failure
/// may pass, and the recorder tries again.
fn reader(
    driver: &Arc<Driver>,
    info: &CardInfo,
    profile: &Profile,
) -> Result<Box<dyn Reader>, MeterError> {
    let trust = profile.probe.as_ref().map(|probe| probe.trust);
    let counter = (trust != Some(Trust::Gauge)).then(|| {
        let counter: Box<dyn Reader> = Box::new(NvmlCounter::open(driver, info));
        counter
    });
    let asked = counter.is_some();
    let gauge = || {
        if asked {
            tracing::warn!(
                "card {} ({}) has no energy counter; its power gauge is read instead",
                info.index,
                info.name
            );
        }
        let gauge: Box<dyn Reader> = Box::new(NvmlGauge::open(driver, info, PowerField::Instant));
        gauge
    };
    let supported = sources::supported(counter.into_iter().chain(std::iter::once_with(gauge)));
    let none = || MeterError::NotSupported { index: info.index, name: info.name.clone() };
    supported.map(|(reader, _)| reader).ok_or_else(none)
}

fn unreadable(inventory: &Inventory) -> String {
    let each = inventory.unreadable.iter().map(|(index, fault)| format!("card {index}: {fault}"));
    let each: Vec<String> = each.collect();
    if each.is_empty() { String::new() } else { format!(" ({})", each.join(", ")) }
}
