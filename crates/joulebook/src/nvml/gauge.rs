//! The power gauge of a card, by field.
//!
//! The driver has three gauges: power at an instant (field 186), mean power (field 185), and the
//! plain call, which is the mean on most cards since Ampere and an instant on the others. One is
//! asked for, and the plain call stands in where the card or its driver lacks the field.
//! [`NvmlGauge::field`] says which one the readings come from; once one has answered it is kept to,
//! so that a series is never of two kinds.

use std::sync::Arc;

use joulebook_core::{Fault, Power, register::Kind};
use nvml_wrapper::Device as Card;

use super::{
    cards::{AVERAGE, CardInfo, GPU, INSTANT, MODULE},
    driver::Driver,
    fault::{fault, named},
    raw,
    session::Session,
    slow::{self, Slow},
    support::{Call, Support},
};
use crate::reader::{Backend, Device, Mean, Reader, Reading, Scope, Value};

/// Which gauge is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerField {
    /// Power at an instant, field 186.
    Instant,
    /// Mean power, field 185.
    Average,
}

/// Reads a power gauge.
#[derive(Debug)]
pub struct NvmlGauge {
    card: CardInfo,
    session: Session,
    slow: Slow,
    wanted: PowerField,
    module: bool,
    source: Source,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// Nothing has answered yet.
    Open,
    Field,
    Usage,
}

impl NvmlGauge {
    /// A gauge of this card. Makes no call: the first reading tells whether there is one.
    pub fn open(driver: &Arc<Driver>, card: &CardInfo, wanted: PowerField) -> Self {
        Self {
            session: Session::new(driver, &card.uuid),
            slow: Slow::new(card.limit),
            card: card.clone(),
            wanted,
            module: false,
            source: Source::Open,
        }
    }

    /// The plain power call of this card, whatever fields it has.
    pub fn open_usage(driver: &Arc<Driver>, card: &CardInfo) -> Self {
        Self { source: Source::Usage, ..Self::open(driver, card, PowerField::Average) }
    }

    /// The same of the whole module (CPU, memory, GPU); for it nothing stands in.
    pub fn open_module(driver: &Arc<Driver>, card: &CardInfo, wanted: PowerField) -> Self {
        Self { module: true, ..Self::open(driver, card, wanted) }
    }

    /// Where the readings come from: `instant`, `average` or `usage` (the plain call). Before the
    /// first reading: what is asked for.
    pub fn field(&self) -> &'static str {
        match (self.source, self.wanted) {
            (Source::Usage, _) => "usage",
            (_, PowerField::Instant) => "instant",
            (_, PowerField::Average) => "average",
        }
    }
}

impl Reader for NvmlGauge {
    fn device(&self) -> Device {
        let averages = self.source == Source::Usage || self.wanted == PowerField::Average;
        Device {
            backend: Backend::NvmlPower,
            scope: if self.module { Scope::Module } else { Scope::Gpu },
            register: Kind::Gauge { averaging_ns: self.card.averaging_ns.filter(|_| averages) },
            // The limit is the GPU's, not the module's.
            limit: self.slow.limit().filter(|_| !self.module),
            ..self.card.device()
        }
    }

    fn power_state(&mut self) -> Option<u8> {
        slow::power_state(&mut self.session)
    }

    fn read(&mut self) -> Result<Reading, Fault> {
        let Self { session, slow, source, wanted, module, card: info } = self;
        session.call(|card, support| {
            let milliwatts = power(card, support, source, *wanted, *module)?;
            let instant = *source == Source::Field && *wanted == PowerField::Instant && !*module;
            let over_ns = info.averaging_ns.filter(|_| instant);
            // It is an extra: without it the instant stands alone.
            let mean = over_ns.and_then(|over_ns| {
                let milliwatts = field(card, support, PowerField::Average, GPU).ok()?;
                Some(Mean { power: watts(milliwatts).ok()?, over_ns })
            });
            Ok(Reading {
                value: Value::Power(watts(milliwatts)?),
                mean,
                throttle: slow.look(card, support),
            })
        })
    }
}

fn watts(milliwatts: u64) -> Result<Power, Fault> {
    milliwatts.checked_mul(1000).map(Power::from_microwatts).ok_or(Fault::Implausible)
}

fn power(
    card: &Card<'_>,
    support: &Support,
    source: &mut Source,
    wanted: PowerField,
    module: bool,
) -> Result<u64, Fault> {
    if *source != Source::Usage {
        let answer = field(card, support, wanted, if module { MODULE } else { GPU });
        match answer {
            Ok(_) => {
                *source = Source::Field;
                return answer;
            }
            Err(Fault::NotSupported) if module => return answer,
            Err(Fault::NotSupported) => *source = Source::Open,
            // An old driver calls a field it does not know an invalid argument, or has no fields.
            Err(Fault::Absent | Fault::NvmlSymbolMissing) if *source == Source::Open && !module => {
            }
            Err(_) => return answer,
        }
    }
    let answer =
        support.ask(Call::PowerUsage, || card.power_usage().map_err(|error| fault(&error)));
    if answer.is_ok() {
        *source = Source::Usage;
    }
    answer.map(u64::from)
}

/// Power at an instant, for a reader of something else; by the plain call where that is no mean over
/// longer than its updates and there is no field.
pub(super) fn beside(
    card: &Card<'_>,
    support: &Support,
    module: bool,
    averages: bool,
) -> Result<Power, Fault> {
    let milliwatts =
        match field(card, support, PowerField::Instant, if module { MODULE } else { GPU }) {
            Err(Fault::NotSupported | Fault::Absent | Fault::NvmlSymbolMissing) => {
                if module || averages {
                    return Err(Fault::NotSupported);
                }
                let usage = || card.power_usage().map_err(|error| fault(&error));
                support.ask(Call::PowerUsage, usage).map(u64::from)
            }
            answer => answer,
        };
    watts(milliwatts?)
}

/// The gauge by its field, in milliwatts.
pub(super) fn field(
    card: &Card<'_>,
    support: &Support,
    wanted: PowerField,
    scope: u32,
) -> Result<u64, Fault> {
    let (id, call) = match (wanted, scope) {
        (PowerField::Instant, MODULE) => (INSTANT, Call::ModuleInstantPower),
        (PowerField::Instant, _) => (INSTANT, Call::InstantPower),
        (PowerField::Average, MODULE) => (AVERAGE, Call::ModuleAveragePower),
        (PowerField::Average, _) => (AVERAGE, Call::AveragePower),
    };
    support.ask(call, || {
        raw::field(card, id, scope)
            .map_err(|error| named(&error))
            .and_then(|value| value.ok_or(Fault::MalformedRow))
    })
}
