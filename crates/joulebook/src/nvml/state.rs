//! The state of a card at this moment, and whether something would fit on it.
//!
//! Each field stands for itself: one that cannot be read is absent and takes no other with it. What
//! is not known never counts as "fine": [`fits`] then says so.

use joulebook_core::Fault;
use nvml_wrapper::Device as Card;
use serde::{Deserialize, Serialize};

use super::{
    cards::GPU,
    driver::Driver,
    fault::{fault, named},
    gauge::{self, PowerField},
    raw,
    support::{Call, Support},
    tenants::{self, PidNamespace},
};
use crate::{reader::Process, tenancy};

const MEBIBYTE: u64 = 1 << 20;

/// A card now.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CardState {
    /// The driver's index.
    pub gpu: Option<u32>,
    /// The card's name.
    pub name: Option<String>,
    /// What it draws.
    pub watts: Option<f64>,
    /// Memory in use.
    pub memory_used_mib: Option<u64>,
    /// Memory there is.
    pub memory_total_mib: Option<u64>,
    /// Memory left.
    pub memory_free_mib: Option<u64>,
    /// Share of the last sampling period in which the card was at work.
    pub utilization_pct: Option<u32>,
    /// The processes that compute on it; absent where they cannot be listed.
    pub compute_apps: Option<Vec<Process>>,
}

/// What was asked of a card, each with its own answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Answers {
    /// The driver's index.
    pub gpu: Option<u32>,
    /// The card's name.
    pub name: Option<String>,
    /// Power, W.
    pub watts: Result<f64, Fault>,
    /// Memory.
    pub memory: Result<Memory, Fault>,
    /// Share of time at work, %.
    pub utilization_pct: Result<u32, Fault>,
    /// Who computes on it; absent where they cannot be listed.
    pub compute_apps: Option<Vec<Process>>,
}

/// Memory of a card, MiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// In use.
    pub used_mib: u64,
    /// All of it.
    pub total_mib: u64,
    /// Left.
    pub free_mib: u64,
}

impl CardState {
    /// The state that answers come to. `Err` when nothing of it could be read.
    pub fn of(answers: Answers) -> Result<Self, Fault> {
        let Answers { gpu, name, watts, memory, utilization_pct, compute_apps } = answers;
        let memory = memory.ok();
        let is_blank = memory.is_none() && utilization_pct.is_err() && compute_apps.is_none();
        if let Err(fault) = watts
            && is_blank
        {
            return Err(fault);
        }
        Ok(Self {
            gpu,
            name,
            watts: watts.ok(),
            memory_used_mib: memory.map(|memory| memory.used_mib),
            memory_total_mib: memory.map(|memory| memory.total_mib),
            memory_free_mib: memory.map(|memory| memory.free_mib),
            utilization_pct: utilization_pct.ok(),
            compute_apps,
        })
    }
}

/// Whether so much memory is free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fit {
    /// It is.
    Yes,
    /// It is not.
    No {
        /// How much is missing.
        short_by_mib: u64,
        /// Who holds the memory, `name (N MiB)`, as far as is known.
        held_by: Vec<String>,
    },
    /// That cannot be seen; which is not a yes.
    Unknown,
}

/// The state of the card of this UUID. `Err` when nothing of it can be read.
pub fn state(driver: &Driver, uuid: &str) -> Result<CardState, Fault> {
    let library = driver.library().map_err(|error| error.fault())?;
    let card = library.nvml.device_by_uuid(uuid).map_err(|error| named(&error))?;
    let support = driver.support(uuid);
    CardState::of(Answers {
        gpu: card.index().ok(),
        name: card.name().ok(),
        watts: milliwatts(&card, &support).map(|milliwatts| milliwatts as f64 / 1000.0),
        memory: memory(&card, &support),
        utilization_pct: utilization(&card, &support),
        compute_apps: tenants::listed(&card, &support, PidNamespace::of_this_process())
            .ok()
            .flatten(),
    })
}

/// Whether `need_mib` of memory is free on a card in this state.
pub fn fits(state: &CardState, need_mib: u64) -> Fit {
    let free = state
        .memory_free_mib
        .or_else(|| state.memory_total_mib?.checked_sub(state.memory_used_mib?));
    match free {
        None => Fit::Unknown,
        Some(free) if free >= need_mib => Fit::Yes,
        Some(free) => {
            let mut held_by: Vec<String> =
                state.compute_apps.iter().flatten().map(tenancy::witness).collect();
            held_by.sort();
            Fit::No { short_by_mib: need_mib - free, held_by }
        }
    }
}

/// Power at an instant, else the mean, else the plain call's.
fn milliwatts(card: &Card<'_>, support: &Support) -> Result<u64, Fault> {
    gauge::field(card, support, PowerField::Instant, GPU)
        .or_else(|_| gauge::field(card, support, PowerField::Average, GPU))
        .or_else(|_| {
            support
                .ask(Call::PowerUsage, || card.power_usage().map_err(|error| fault(&error)))
                .map(u64::from)
        })
}

pub(super) fn memory(card: &Card<'_>, support: &Support) -> Result<Memory, Fault> {
    let new = support.ask(Call::Memory, || card.memory_info().map_err(|error| fault(&error)));
    let (used, total, free) = match new {
        Ok(memory) => (memory.used, memory.total, memory.free),
        Err(Fault::NotSupported | Fault::NvmlSymbolMissing) => {
            let memory = support
                .ask(Call::OldMemory, || raw::old_memory(card).map_err(|error| fault(&error)))?;
            (memory.used, memory.total, memory.free)
        }
        Err(fault) => return Err(fault),
    };
    Ok(Memory { used_mib: used / MEBIBYTE, total_mib: total / MEBIBYTE, free_mib: free / MEBIBYTE })
}

pub(super) fn utilization(card: &Card<'_>, support: &Support) -> Result<u32, Fault> {
    support.ask(Call::Utilization, || {
        card.utilization_rates().map(|rates| rates.gpu).map_err(|error| fault(&error))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failing_answer_takes_no_other_with_it() {
        let none = Err(Fault::Unknown);
        let answers = Answers {
            gpu: Some(0),
            name: None,
            watts: none,
            memory: Ok(Memory { used_mib: 40_000, total_mib: 80_000, free_mib: 40_000 }),
            utilization_pct: Ok(71),
            compute_apps: None,
        };
        let state = CardState::of(answers.clone()).unwrap();
        assert_eq!((state.watts, state.utilization_pct), (None, Some(71)));
        assert_eq!(state.memory_used_mib, Some(40_000));
        let blank =
            Answers { memory: Err(Fault::Lost), utilization_pct: Err(Fault::Lost), ..answers };
        assert_eq!(CardState::of(blank), Err(Fault::Unknown));
    }

    #[test]
    fn a_shortfall_is_named() {
        let state = CardState {
            memory_total_mib: Some(24_000),
            memory_used_mib: Some(20_000),
            memory_free_mib: Some(4_000),
            compute_apps: Some(vec![
                Process { pid: 2, used_mib: Some(12_000), name: "/opt/b".into() },
                Process { pid: 1, used_mib: None, name: "/opt/a".into() },
            ]),
            ..CardState::default()
        };
        assert_eq!(fits(&state, 4_000), Fit::Yes);
        assert_eq!(
            fits(&state, 9_000),
            Fit::No {
                short_by_mib: 5_000,
                held_by: vec!["/opt/a (N/A MiB)".into(), "/opt/b (12000 MiB)".into()]
            }
        );
    }

    #[test]
    fn what_cannot_be_seen_is_no_yes() {
        assert_eq!(fits(&CardState::default(), 0), Fit::Unknown);
        let total = CardState { memory_total_mib: Some(24_000), ..CardState::default() };
        assert_eq!(fits(&total, 1), Fit::Unknown);
        let used = CardState { memory_used_mib: Some(23_000), ..total };
        assert_eq!(fits(&used, 1_000), Fit::Yes);
    }
}
