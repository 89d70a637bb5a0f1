//! How a card is described now, a few times a second: the one place where it is decided that a card is
//! up, since when it is not, and who is on it. Requests and streams take what stands here.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use joulebook::{
    Card, Fault,
    core::register::Kind,
    wire::{CardSeen, Hole, Residents},
};
use serde::Serialize;

use super::roster::{Open, Seat, Why};
use crate::words;

/// A period that is seen, not probed, wavers; less than this is no news.
const WAVERS: f64 = 0.1;

/// A card, as it was last looked at.
#[derive(Clone, Debug, PartialEq)]
pub struct Described {
    /// The description.
    pub seen: CardSeen,
    /// What it cannot be read for, in a sentence; absent while it can.
    pub trouble: Option<Trouble>,
    /// The hole it is in.
    pub hole: Option<Hole>,
    /// Who is on it; absent while nobody has looked.
    pub residents: Option<Residents>,
    /// The same in the shape of old clients.
    pub apps: Vec<App>,
}

/// Why a card cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// The word.
    pub fault: Fault,
    /// The sentence.
    pub words: String,
}

/// A process, as `/power` lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct App {
    pid: u32,
    used_mib: u64,
    name: String,
}

impl Seat {
    /// How it was last described.
    pub fn described(&self) -> Arc<Described> {
        Arc::clone(&self.lock())
    }

    /// Looks at it; true when anything is new.
    pub fn look(&self) -> bool {
        let mut described = self.lock();
        let now = Described::of(self, Some(&described));
        let is_new = now != **described;
        if is_new {
            *described = Arc::new(now);
        }
        is_new
    }

    fn lock(&self) -> MutexGuard<'_, Arc<Described>> {
        let described =
            self.described.get_or_init(|| Mutex::new(Arc::new(Described::of(self, None))));
        described.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Described {
    fn of(seat: &Seat, before: Option<&Self>) -> Self {
        match &seat.state {
            Ok(open) => Self::of_open(open, before),
            Err(why) => Self::of_closed(seat, why),
        }
    }

    fn of_open(open: &Open, before: Option<&Self>) -> Self {
        let card = &open.card;
        let residents = card.residents_now();
        let fault = card.fresh().err();
        let hole = fault.map(|fault| {
            // As it began, with the word it has now.
            let began = before.and_then(|before| before.hole.as_ref()).map(|hole| hole.from_ns);
            let from_ns = began.unwrap_or_else(|| card.read_ns());
            Hole { gpu: card.device().index, from_ns, error: fault.word().to_owned() }
        });
        let mut seen = describe(open, fault);
        seen.processes = residents.as_ref().is_some_and(|residents| residents.processes.is_some());
        if let Some(before) = before.and_then(|before| before.seen.period_ms)
            && seen.period_ms.is_some_and(|now| (now - before).abs() <= WAVERS * before)
        {
            seen.period_ms = Some(before);
        }
        let apps = residents.as_ref().map(apps).unwrap_or_default();
        let trouble =
            fault.map(|fault| Trouble { fault, words: words::of_fault(fault).to_owned() });
        Self { seen, trouble, hole, residents, apps }
    }

    fn of_closed(seat: &Seat, why: &Why) -> Self {
        let found = &seat.found;
        let seen = CardSeen {
            gpu: found.index,
            uuid: found.uuid.clone(),
            pci: found.pci.clone(),
            name: found.name.clone(),
            driver: found.driver.clone(),
            backend: joulebook::Backend::None.word().to_owned(),
            scope: word(&joulebook::Scope::Gpu),
            counter: false,
            gauge: false,
            processes: false,
            period_ms: None,
            lag_ms: None,
            lag_uncertainty_ms: None,
            quantum_joules: None,
            averaging_s: None,
            limit_watts: None,
            idle_watts: None,
            deepest_watts: None,
            idle_from: None,
            up: false,
            error: Some(why.fault.word().to_owned()),
        };
        let trouble = Some(Trouble { fault: why.fault, words: why.words.clone() });
        Self { seen, trouble, hole: None, residents: None, apps: Vec::new() }
    }
}

/// All but who is on it.
fn describe(open: &Open, fault: Option<Fault>) -> CardSeen {
    let card: &Card = &open.card;
    let device = card.device();
    let counter = matches!(device.register, Kind::Counter { .. });
    let facts = card.facts();
    let floor = card.profile().resting(device.scope);
    // Told only where it was probed: whoever reads it fills in the rest by itself.
    let probe = card.profile().probe.as_ref().filter(|_| counter);
    let lag = probe.and_then(|probe| probe.lag_s);
    let ms = |seconds: f64| seconds * 1e3;
    CardSeen {
        gpu: device.index,
        uuid: device.uuid.clone(),
        pci: device.pci.clone(),
        name: device.name.clone(),
        driver: device.driver.clone(),
        backend: device.backend.word().to_owned(),
        scope: word(&device.scope),
        counter,
        gauge: open.gauge,
        processes: false,
        period_ms: card.seen_period_ns().map(|period_ns| (period_ns as f64 / 1e3).round() / 1e3),
        lag_ms: lag.map(|lag| ms(lag.value)),
        lag_uncertainty_ms: lag.map(|lag| ms(lag.uncertainty)),
        quantum_joules: Some(facts.quantum_j).filter(|joules| *joules > 0.0),
        averaging_s: facts.averaging_s,
        limit_watts: device.limit.map(joulebook::Power::watts),
        idle_watts: floor.map(|floor| floor.watts),
        deepest_watts: Some(facts.deepest_w).filter(|watts| *watts > 0.0),
        idle_from: floor.map(words::of_floor),
        up: fault.is_none(),
        error: fault.map(|fault| fault.word().to_owned()),
    }
}

/// Old clients know no process without memory, as `giul-agent` lists none.
fn apps(residents: &Residents) -> Vec<App> {
    let known = residents.processes.iter().flatten();
    known
        .filter_map(|it| Some(App { pid: it.pid, used_mib: it.used_mib?, name: it.name.clone() }))
        .collect()
}

/// The word of a scope.
fn word(scope: &joulebook::Scope) -> String {
    let word = serde_json::to_value(scope).ok();
    word.as_ref().and_then(serde_json::Value::as_str).unwrap_or_default().to_owned()
}
