//! How the cards are read: through the driver's library where that answers, else through one child
//! of `nvidia-smi`; another host's through its agent.

use std::{env, sync::Arc, thread, time::Duration};

use joulebook::{
    Backend, Card, Meter, MeterError, Node, Scope,
    core::register::Kind,
    identity::{self, CudaEnvironment},
    nvml::{self, Driver, NvmlGauge, PowerField},
    profile::Profiles,
    record,
    remote::{self, RemoteError},
    smi::{Feed, Program, SmiCard, SmiCardInfo},
};
use joulebook_lab::scenario::UUID_STEM;

use super::{Asked, Energy, FIRST_READING, Gauge, Rails, tap::Tap};
use crate::{
    bench::record::{Place, Source},
    context::{Usage, is_usage},
    words,
};

/// How often the library's gauge is read.
const PERIOD: Duration = Duration::from_millis(100);
/// How often the child is asked for a row.
const SMI_PERIOD: Duration = Duration::from_millis(250);

impl Energy {
    /// Opens the cards: this machine's, or those of the agent that is named. Refused: a card that does
    /// not exist. Cards that cannot be read are no refusal: the run then goes on without energy, and
    /// says why.
    pub fn open_cards(asked: Asked, profiles: Option<&Profiles>) -> anyhow::Result<Self> {
        let gpus = if asked.gpus.is_empty() { vec!["0".to_owned()] } else { asked.gpus.clone() };
        let node = Node {
            gpus,
            is_local: asked.node.is_none(),
            power_endpoint: asked.node.clone(),
            token_file: asked.token_file.clone(),
            ..Node::default()
        };
        let found = match &asked.node {
            Some(_) => of_agent(&node),
            None => rails(&node, profiles),
        };
        match found {
            Ok(rails) => Ok(Self::of(rails, asked)),
            Err(error) if is_usage(&error) || is_no_card(&error) => {
                Err(Usage(one_line(&error.to_string())).into())
            }
            Err(error) => Ok(Self::none(one_line(&error.to_string()))),
        }
    }

    /// Waits for the first readings; what shows none is left out.
    fn of(mut rails: Rails, asked: Asked) -> Self {
        let mut warnings = rails.meter.warnings().to_vec();
        let began = std::time::Instant::now();
        let ready = |rails: &Rails| {
            rails.gauges.iter().all(Gauge::has_any)
                && rails.meter.cards().iter().all(|card| card.series().newest().is_some())
        };
        while !ready(&rails) && began.elapsed() < FIRST_READING {
            thread::sleep(Duration::from_millis(5));
        }
        if let Some(silent) = rails.gauges.iter().find(|gauge| !gauge.has_any()) {
            let why = silent.card.trouble().map_or("it is not known why", words::of_fault);
            warnings.push(format!(
                "no power reading within {FIRST_READING:?}, so the gauge is left out: {why}"
            ));
            rails.gauges.clear();
            rails.feed = None;
        }
        let silent = |meter: &Meter| {
            let card = meter.cards().first();
            card.is_none_or(|card| card.series().newest().is_none())
        };
        if rails.counters.iter().any(silent) {
            warnings.push(format!(
                "no counter reading within {FIRST_READING:?}, so the counter is left out"
            ));
            rails.counters.clear();
        }
        let unprobed = |meter: &Meter| {
            meter.cards().iter().any(|card| card.profile().probe.is_none()) && asked.node.is_none()
        };
        if rails.counters.iter().any(unprobed) {
            warnings.push(
                "how often the energy counter is renewed is not known, which widens the bounds of \
                 its windows (joulebook probe finds it, once)"
                    .to_owned(),
            );
        }
        if rails.gauges.is_empty() && rails.counters.is_empty() {
            return Self::none(format!("the rail is unreadable: {}", warnings.join("; ")));
        }
        let source = source(&rails, asked.node.clone());
        Self::with(Some(rails), source, asked, warnings)
    }
}

fn rails(node: &Node, profiles: Option<&Profiles>) -> Result<Rails, MeterError> {
    let driver = Driver::shared();
    // The library is asked first, so that no child is started where it answers.
    let library = nvml::cards(&driver);
    if library.as_ref().is_ok_and(|found| !found.cards.is_empty()) {
        let meter = match profiles {
            Some(profiles) => Meter::for_node_with(node, profiles)?,
            None => Meter::for_node(node)?,
        };
        let through_child =
            meter.cards().iter().any(|card| card.device().backend == Backend::SmiSampler);
        if !through_child {
            return Ok(of_library(&driver, meter));
        }
    }
    of_child(node).map_err(|smi| match library {
        // Both are told: without the first the second is no more than a stand-in.
        Err(nvml) if !is_usage(&smi) => {
            MeterError::Unreadable { nvml: Box::new(nvml.into()), smi: Box::new(smi) }
        }
        _ => smi,
    })
}

fn of_library(driver: &Arc<Driver>, meter: Meter) -> Rails {
    let inventory = nvml::cards(driver).map(|found| found.cards).unwrap_or_default();
    let gauges = meter.cards().iter().filter_map(|card| {
        let uuid = &card.device().uuid;
        let info = inventory.iter().find(|info| info.uuid == *uuid)?;
        let gauge = NvmlGauge::open(driver, info, PowerField::Average);
        let (tap, log) = Tap::new(gauge, |gauge| Some(gauge.field()));
        let settings =
            joulebook::Settings { gap_ns: Some(PERIOD.as_nanos() as u64), ..Default::default() };
        Some(Gauge { card: record(Box::new(tap), None, settings), log: Some(log) })
    });
    let gauges = gauges.collect();
    Rails { counters: counters(&meter), gauges, feed: None, period: PERIOD, meter }
}

/// Through the agent on the cards' own host: what it passes on is a counter or a gauge.
fn of_agent(node: &Node) -> Result<Rails, MeterError> {
    // Asked once, so that what is wrong with it is said as it is.
    for gpu in &node.gpus {
        remote::state(&Node { gpus: vec![gpu.clone()], ..node.clone() })?;
    }
    let meter = Meter::for_node(node)?;
    // Which of the two it is shows with the first reading.
    meter.wait_ready(FIRST_READING);
    let counters = counters(&meter);
    let gauge = |card: &Arc<Card>| Gauge { card: Arc::clone(card), log: None };
    let is_gauge = counters.is_empty();
    let gauges = meter.cards().iter().filter(|_| is_gauge).map(gauge).collect();
    Ok(Rails { counters, gauges, feed: None, period: node.interval, meter })
}

/// A meter of each card alone, where all of them have a counter. Windows of it are gross: nothing is
/// subtracted.
fn counters(meter: &Meter) -> Vec<Meter> {
    let is_counter = |card: &Arc<Card>| matches!(card.device().register, Kind::Counter { .. });
    if !meter.cards().iter().all(is_counter) {
        return Vec::new();
    }
    let node = Node::default().idle_watts(0.0);
    let alone = |card: &Arc<Card>| Meter::of_cards(&node, vec![Arc::clone(card)]);
    meter.cards().iter().map(alone).collect()
}

fn of_child(node: &Node) -> Result<Rails, MeterError> {
    let program = Program::default();
    let feed =
        Feed::start(&program, SMI_PERIOD).map_err(|error| joulebook::smi::SmiError::Missing {
            program: program.path().display().to_string(),
            reason: error.to_string(),
        })?;
    let inventory = feed.cards()?;
    let chosen = chosen(node, &inventory)?;
    let gauges: Vec<Gauge> = chosen
        .iter()
        .map(|info| {
            let (tap, log) = Tap::new(SmiCard::open(&feed, info), SmiCard::field);
            // To list the processes would take a call of the program each time: one child it is.
            Gauge { card: record(Box::new(tap), None, Default::default()), log: Some(log) }
        })
        .collect();
    let cards = gauges.iter().map(|gauge| Arc::clone(&gauge.card)).collect();
    let meter = Meter::of_cards(node, cards);
    Ok(Rails { meter, counters: Vec::new(), gauges, feed: Some(feed), period: SMI_PERIOD })
}

fn chosen(node: &Node, inventory: &[SmiCardInfo]) -> Result<Vec<SmiCardInfo>, MeterError> {
    let listed: Vec<identity::Card> = inventory.iter().map(Into::into).collect();
    let environment = CudaEnvironment {
        visible_devices: env::var("CUDA_VISIBLE_DEVICES").ok(),
        device_order: env::var("CUDA_DEVICE_ORDER").ok(),
    };
    let mut chosen: Vec<SmiCardInfo> = Vec::new();
    for ask in &node.gpus {
        let found = identity::resolve(ask, &listed, &environment)?;
        let card = inventory.iter().find(|card| card.uuid == found.uuid);
        // The same card twice is one card.
        chosen.extend(card.filter(|card| !chosen.contains(card)).cloned());
    }
    Ok(chosen)
}

/// What is said of it on the record.
fn source(rails: &Rails, node: Option<String>) -> Source {
    let cards = rails.meter.cards();
    let device = |card: &Arc<Card>| card.device();
    let field = rails.gauges.first().and_then(|gauge| gauge.log.as_ref()?.field());
    let gauge = (!rails.gauges.is_empty()).then(|| {
        let through = match (&node, &rails.feed) {
            (Some(_), _) => "agent",
            (None, Some(_)) => "nvidia-smi",
            (None, None) => "nvml",
        };
        let field = field.map_or("power.draw", |field| match field {
            "average" => "power.draw.average",
            "instant" => "power.draw.instant",
            "usage" => "power.draw",
            other => other,
        });
        format!("{through} {field}")
    });
    let counter = (!rails.counters.is_empty())
        .then(|| if node.is_some() { "agent" } else { "nvml" }.to_owned());
    let scope = cards.first().map(|card| card.device().scope).unwrap_or_default();
    let rail = match scope {
        Scope::Gpu => {
            "the GPU board's alone; the machine's processors, memory, fans and supplies are not in it"
        }
        Scope::Module => {
            "a module's, GPU, processor and memory together; it does not stand beside a board's"
        }
        Scope::Package => "the processor package's",
        Scope::Machine => "the whole machine's, at its supply",
    };
    Source {
        place: if node.is_some() { Place::Node } else { Place::Local },
        node,
        gauge,
        counter,
        cards: cards.iter().map(|card| device(card).uuid.clone()).collect(),
        card_names: cards.iter().map(|card| device(card).name.clone()).collect(),
        rail: Some(rail.to_owned()),
        simulated: cards.iter().any(|card| {
            let device = device(card);
            // Those of the lab's driver look real but for their UUIDs, also through an agent.
            device.backend == Backend::Simulated || device.uuid.starts_with(UUID_STEM)
        }),
        why_none: None,
    }
}

/// The agent has no such card.
const fn is_no_card(error: &MeterError) -> bool {
    matches!(error, MeterError::Remote(RemoteError::NotFound { .. }))
}

fn one_line(text: &str) -> String {
    text.lines().collect::<Vec<_>>().join("; ")
}
