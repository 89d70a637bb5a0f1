//! A scenario's machine on a system clock: what the driver library and the `nvidia-smi` program
//! share.
//!
//! The environment goes before the scenario: `FAKEGPU_EPOCH_NS` is time zero on its clock,
//! `FAKEGPU_CONTROL` the file of live watts. Without either epoch, time zero is now, so programs
//! that are started anew each start anew.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    card::{Answer, Model},
    clock::{Clock, system_ns},
    control::ControlledCard,
    load::Live,
    scenario::{Refusal, Scenario, Spend},
};

/// A machine.
pub struct Machine {
    scenario: Scenario,
    models: Vec<Model>,
    clock: Clock,
}

/// What a call spends its time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spent {
    /// Reading an energy register.
    Energy,
    /// Reading a power register.
    Power,
    /// Nothing to speak of.
    Nothing,
}

impl Machine {
    /// The machine of a scenario.
    pub fn new(scenario: Scenario) -> Self {
        let now_ns = system_ns(scenario.clock);
        let epoch =
            std::env::var("FAKEGPU_EPOCH_NS").ok().and_then(|text| text.trim().parse().ok());
        let epoch_ns = epoch.or(scenario.epoch_ns).unwrap_or(now_ns);
        let control = std::env::var_os("FAKEGPU_CONTROL").filter(|path| !path.is_empty());
        let control = control.map(PathBuf::from).or_else(|| scenario.control.clone());
        let models = (0..)
            .zip(&scenario.cards)
            .map(|(index, card)| {
                let live = control.as_ref().filter(|_| card.dynamic).map(|path| {
                    let (path, clock) = (path.clone(), scenario.clock);
                    let card = ControlledCard::new(path, clock, epoch_ns, index as usize);
                    Arc::new(card) as Arc<dyn Live>
                });
                Model::new(index, card.clone(), live)
            })
            .collect();
        let clock = Clock::system(scenario.clock, epoch_ns);
        Self { scenario, models, clock }
    }

    /// The file that the environment names as the scenario.
    pub fn scenario_file() -> Option<PathBuf> {
        std::env::var_os("FAKEGPU_SCENARIO").filter(|path| !path.is_empty()).map(PathBuf::from)
    }

    /// What it was made of.
    pub const fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// Its cards, in the driver's order.
    pub fn models(&self) -> &[Model] {
        &self.models
    }

    /// Now, ns from the epoch.
    pub fn now_ns(&self) -> i64 {
        self.clock.now_ns()
    }

    /// Asks, in the middle of the time the call takes; after what a fault holds it up.
    pub fn ask<'a, T>(
        &'a self,
        spent: Spent,
        ask: impl Fn(i64) -> Answer<T> + 'a,
    ) -> Result<T, Refusal> {
        self.ask_more(spent, 0, ask).0
    }

    /// The same, when the call was held up for `held_ns` already; and for how long it was in all.
    pub fn ask_more<'a, T>(
        &'a self,
        spent: Spent,
        held_ns: i64,
        ask: impl Fn(i64) -> Answer<T> + 'a,
    ) -> (Result<T, Refusal>, i64) {
        let cost = self.scenario.cost;
        let cost_ns = match spent {
            Spent::Energy => cost.energy_ns,
            Spent::Power => cost.power_ns,
            Spent::Nothing => 0,
        };
        spend(cost.spend, cost_ns / 2);
        let mut answer = ask(self.clock.now_ns());
        let hang_ns = answer.hang_ns;
        if hang_ns > held_ns {
            spend(Spend::Sleep, hang_ns - held_ns);
            answer = ask(self.clock.now_ns());
        }
        spend(cost.spend, cost_ns - cost_ns / 2);
        (answer.value, hang_ns.max(held_ns))
    }
}

/// Lets time pass.
pub fn spend(how: Spend, ns: i64) {
    let Some(time) = u64::try_from(ns).ok().filter(|ns| *ns > 0).map(Duration::from_nanos) else {
        return;
    };
    match how {
        Spend::Sleep => std::thread::sleep(time),
        Spend::Spin => {
            let begun = Instant::now();
            while begun.elapsed() < time {
                std::hint::spin_loop();
            }
        }
    }
}
