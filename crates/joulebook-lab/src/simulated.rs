//! A simulated card, read in the process: as a counter or as a gauge, on a simulated clock or a
//! real one.
//!
//! A read shows what the card shows at the clock's time. A fault that holds a call up lets the
//! clock advance (a real clock: the caller sleeps). Every card calls itself `simulated`.

use std::sync::Arc;

use joulebook::{
    AtWork, Backend, Device, Process, Reader, Reading, Scope, Tenants, Throttle, Value,
    core::{
        Energy, Fault, Power,
        register::{Kind, Modulus, Scale},
    },
};

use crate::{
    card::{Answer, Model, PowerRegister},
    clock::Clock,
    load::{Live, LiveLoad},
    scenario::{Card, Scenario},
};

/// The driver's bit for the software power cap.
const SW_POWER_CAP: u64 = 0x4;
/// The driver's bit for the hardware power brake.
const HW_POWER_BRAKE: u64 = 0x80;
const SECOND_NS: i64 = 1_000_000_000;

/// One register of a simulated card, and its processes. Clones read the same card.
#[derive(Clone)]
pub struct SimulatedCard {
    model: Arc<Model>,
    clock: Clock,
    driver: String,
    shows: Shows,
    /// When it was last asked who was at work.
    asked_ns: Option<i64>,
}

/// Which register is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// The energy register.
    Counter,
    /// The averaged power register.
    Average,
    /// The instant power register.
    Instant,
}

impl SimulatedCard {
    /// A card, read by its counter.
    pub fn new(model: Arc<Model>, clock: Clock) -> Self {
        let driver = Scenario::default().driver;
        Self { model, clock, driver, shows: Shows::Counter, asked_ns: None }
    }

    /// All cards of a scenario, read by their counters. `live` says what a `dynamic` card follows.
    pub fn all(
        scenario: &Scenario,
        clock: &Clock,
        live: impl Fn(usize) -> Option<Arc<dyn Live>>,
    ) -> Vec<Self> {
        let card = |(index, card): (usize, &Card)| Self {
            model: Arc::new(Model::new(index as u32, card.clone(), live(index))),
            clock: clock.clone(),
            driver: scenario.driver.clone(),
            shows: Shows::Counter,
            asked_ns: None,
        };
        scenario.cards.iter().enumerate().map(card).collect()
    }

    /// A card whose load is set by hand while it is read, and the hand; its truth is the load's of
    /// its [`Model`].
    pub fn live(card: Card, clock: Clock) -> (Self, LiveLoad) {
        let load = LiveLoad::new(clock.clone());
        let card = Card { dynamic: true, ..card };
        let model = Model::new(0, card, Some(Arc::new(load.clone())));
        (Self::new(Arc::new(model), clock), load)
    }

    /// The same card, read by another register.
    pub fn shows(&self, shows: Shows) -> Self {
        Self { shows, ..self.clone() }
    }

    /// The card itself, and its truth.
    pub fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// The clock it is read on.
    pub const fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Asks the card at the clock's time; where a fault holds the call up, at the time after that.
    fn ask<'a, T>(&'a self, ask: impl Fn(&'a Model, i64) -> Answer<T>) -> Result<T, Fault> {
        let mut answer = ask(&self.model, self.clock.now_ns());
        if answer.hang_ns > 0 {
            self.clock.advance_ns(answer.hang_ns);
            answer = ask(&self.model, self.clock.now_ns());
        }
        answer.value.map_err(|refusal| refusal.fault())
    }
}

impl Reader for SimulatedCard {
    fn device(&self) -> Device {
        let card = self.model.card();
        let gauge = |averaging_ns: i64| Kind::Gauge {
            averaging_ns: Some(u64::try_from(averaging_ns).unwrap_or(0)),
        };
        let register = match self.shows {
            Shows::Counter => Kind::Counter {
                scale: Scale::MILLIJOULES,
                modulus: Modulus::None,
                quantum: Energy::from_microjoules((card.counter.res_mj * 1e3).max(1e3) as u64),
            },
            Shows::Average => gauge(card.sensor.window_ns),
            Shows::Instant => gauge(card.instant.window_ns),
        };
        Device {
            index: self.model.index(),
            uuid: card.uuid.clone(),
            pci: Some(card.pci.to_string()),
            name: card.name.clone(),
            driver: Some(self.driver.clone()),
            backend: Backend::Simulated,
            scope: Scope::Gpu,
            register,
            limit: Power::from_watts(card.limit.w),
            consumer: card.name.contains("GeForce"),
        }
    }

    fn power(&mut self) -> Result<Power, Fault> {
        let milliwatts =
            self.ask(|model, t_ns| model.power_mw(PowerRegister::Instant, t_ns, true))?;
        Ok(Power::from_milliwatts(milliwatts))
    }

    fn read(&mut self) -> Result<Reading, Fault> {
        let power = |register| {
            let milliwatts = self.ask(|model, t_ns| model.power_mw(register, t_ns, true))?;
            Ok(Value::Power(Power::from_milliwatts(milliwatts)))
        };
        let value = match self.shows {
            Shows::Counter => {
                self.ask(|model, t_ns| model.energy_mj(t_ns, false)).map(Value::Counter)
            }
            Shows::Average => power(PowerRegister::Average),
            Shows::Instant => power(PowerRegister::Instant),
        }?;
        let reasons = self.model.card().clocks.reasons;
        let throttle = Some(Throttle {
            power_capped: Some(reasons & SW_POWER_CAP != 0),
            power_braked: Some(reasons & HW_POWER_BRAKE != 0),
        });
        Ok(Reading { value, mean: None, throttle })
    }
}

impl Tenants for SimulatedCard {
    fn resident(&mut self) -> Result<Vec<Process>, Fault> {
        let residents = self.ask(|model, t_ns| model.residents(t_ns))?;
        let process = |resident: &&crate::scenario::Resident| Process {
            pid: resident.pid,
            used_mib: resident.used_mib,
            name: resident.name.clone(),
        };
        Ok(residents.iter().map(process).collect())
    }

    fn at_work(&mut self) -> Result<Vec<AtWork>, Fault> {
        // As in a driver that keeps samples of the last second.
        let from_ns = self.asked_ns.unwrap_or_else(|| self.clock.now_ns() - SECOND_NS);
        let work = self.ask(|model, t_ns| model.at_work(from_ns, t_ns))?;
        self.asked_ns = Some(self.clock.now_ns());
        Ok(work.into_iter().map(|(pid, percent)| AtWork { pid, percent }).collect())
    }
}

#[cfg(test)]
mod tests;
