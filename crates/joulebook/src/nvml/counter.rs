//! The energy counter of a card: millijoules since the driver was loaded.

use std::sync::Arc;

use joulebook_core::{
    Energy, Fault, Power,
    register::{Kind, Modulus, Scale},
};
use nvml_wrapper::Device as Card;

use super::{
    cards::{CardInfo, GPU},
    driver::Driver,
    fault::{fault, named},
    gauge, raw,
    session::Session,
    slow::{self, Slow},
    support::{Call, Support},
};
use crate::reader::{Backend, Device, Reader, Reading, Scope, Value};

/// Field 83: the same counter by its field id.
const TOTAL_ENERGY: u32 = 83;

/// Reads the energy counter: by its own call, else by field 83.
#[derive(Debug)]
pub struct NvmlCounter {
    card: CardInfo,
    session: Session,
    slow: Slow,
    source: Source,
}

/// The two calls that show the counter. Once one has answered it is kept to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Open,
    Call,
    Field,
}

impl NvmlCounter {
    /// The counter of this card. Makes no call: the first reading tells whether there is one.
    pub fn open(driver: &Arc<Driver>, card: &CardInfo) -> Self {
        Self {
            session: Session::new(driver, &card.uuid),
            slow: Slow::new(card.limit),
            card: card.clone(),
            source: Source::Open,
        }
    }
}

impl Reader for NvmlCounter {
    fn device(&self) -> Device {
        Device {
            backend: Backend::NvmlCounter,
            scope: self.card.counter_scope,
            register: Kind::Counter {
                scale: Scale::MILLIJOULES,
                modulus: Modulus::None,
                quantum: Energy::from_microjoules(1000),
            },
            limit: self.slow.limit(),
            ..self.card.device()
        }
    }

    fn power(&mut self) -> Result<Power, Fault> {
        let module = self.card.counter_scope == Scope::Module;
        let averages = self.card.averaging_ns.is_some();
        self.session.call(|card, support| gauge::beside(card, support, module, averages))
    }

    fn power_state(&mut self) -> Option<u8> {
        slow::power_state(&mut self.session)
    }

    fn read(&mut self) -> Result<Reading, Fault> {
        let Self { session, slow, source, card: described } = self;
        session.call(|card, support| {
            let known = support.denies(Call::TotalEnergy);
            let answer = energy(card, support, source);
            if answer == Err(Fault::NotSupported) && !known {
                tracing::warn!(card = %described.name, uuid = %described.uuid, "no energy counter");
            }
            let millijoules = answer?;
            Ok(Reading {
                value: Value::Counter(millijoules),
                mean: None,
                throttle: slow.look(card, support),
            })
        })
    }
}

fn energy(card: &Card<'_>, support: &Support, source: &mut Source) -> Result<u64, Fault> {
    if *source != Source::Field {
        let answer = support.ask(Call::TotalEnergy, || {
            card.total_energy_consumption().map_err(|error| fault(&error))
        });
        match answer {
            Err(Fault::NotSupported | Fault::NvmlSymbolMissing) => *source = Source::Open,
            Ok(_) => {
                *source = Source::Call;
                return answer;
            }
            Err(_) => return answer,
        }
    }
    let answer = support.ask(Call::EnergyField, || {
        raw::field(card, TOTAL_ENERGY, GPU)
            .map_err(|error| named(&error))
            .and_then(|value| value.ok_or(Fault::MalformedRow))
    });
    match answer {
        Ok(_) => *source = Source::Field,
        Err(Fault::NotSupported) => *source = Source::Open,
        // An old driver does not know the field.
        Err(Fault::Absent | Fault::NvmlSymbolMissing) if *source == Source::Open => {
            return Err(Fault::NotSupported);
        }
        Err(_) => {}
    }
    answer
}
