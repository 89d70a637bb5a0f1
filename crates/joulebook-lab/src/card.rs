//! What a simulated card shows at any instant.
//!
//! Every answer is a function of the scenario and the instant alone: the same question gets the
//! same answer in any process, in any order, however often it is asked. Of a card under live
//! control that holds for instants past the last change. Faults act here, so that every way to read
//! the card meets them alike; how long a call takes is said in the answer, and the caller of the
//! model spends it.

use std::sync::Arc;

use crate::{
    load::{Live, Load},
    scenario::{Card, Effect, Refusal, Resident, Target, Utilization},
};

mod counter;
mod gauge;

use gauge::SensorSum;

/// A card that answers.
pub struct Model {
    index: u32,
    card: Card,
    load: Load,
    sensor_sum: SensorSum,
}

/// One answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer<T> {
    /// How long a fault holds the call up, ns.
    pub hang_ns: i64,
    /// What the call shows, or how it fails.
    pub value: Result<T, Refusal>,
}

/// Memory, MiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryUse {
    /// All of it.
    pub total_mib: u64,
    /// What is used.
    pub used_mib: u64,
}

/// Which power register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerRegister {
    /// The averaged one (`power.draw`, field 185).
    Average,
    /// The instant one (field 186).
    Instant,
}

impl Model {
    /// The card of a scenario at that index; `live` is what it follows when it is `dynamic`.
    pub fn new(index: u32, card: Card, live: Option<Arc<dyn Live>>) -> Self {
        let load = Load::new(&card, live);
        Self { index, card, load, sensor_sum: SensorSum::default() }
    }

    /// The driver's index.
    pub const fn index(&self) -> u32 {
        self.index
    }

    /// The card as described.
    pub const fn card(&self) -> &Card {
        &self.card
    }

    /// The truth.
    pub const fn load(&self) -> &Load {
        &self.load
    }

    /// What the energy register shows, mJ; with `field`, when it is read by field id.
    pub fn energy_mj(&self, t_ns: i64, field: bool) -> Answer<u64> {
        let targets =
            [Target::Energy, Target::All, if field { Target::Fields } else { Target::All }];
        self.answer(t_ns, &targets, self.shown_energy(t_ns, &targets, self.card.faults.len()))
    }

    /// What a power register shows, mW; with `field`, when it is read by field id.
    pub fn power_mw(&self, register: PowerRegister, t_ns: i64, field: bool) -> Answer<u32> {
        let (gauge, target) = match register {
            PowerRegister::Average => (self.card.sensor, Target::Power),
            PowerRegister::Instant => (self.card.instant, Target::Instant),
        };
        let targets = [target, Target::All, if field { Target::Fields } else { Target::All }];
        let honest = |t_ns| {
            if !gauge.supported {
                return Err(Refusal::NotSupported);
            }
            Ok((gauge::shown_w(&gauge, &self.load, t_ns) * 1e3).round() as u32)
        };
        self.answer(t_ns, &targets, self.shown(t_ns, &targets, &honest, |value| value as u32))
    }

    /// What memory reads.
    pub fn memory(&self, t_ns: i64) -> Answer<MemoryUse> {
        let total_mib = self.card.memory.total_mib;
        let honest = |t_ns| {
            let held: u64 = self.present(t_ns).filter_map(|resident| resident.used_mib).sum();
            let used_mib = (self.card.memory.base_mib + held).min(total_mib);
            Ok(MemoryUse { total_mib, used_mib })
        };
        let targets = [Target::Memory, Target::All];
        let forced = |value| MemoryUse { total_mib, used_mib: value as u64 };
        self.answer(t_ns, &targets, self.shown(t_ns, &targets, &honest, forced))
    }

    /// What utilisation reads.
    pub fn utilization(&self, t_ns: i64) -> Answer<Utilization> {
        let targets = [Target::Utilization, Target::All];
        let forced = |value| Utilization { gpu: value as u32, mem: self.card.utilization.mem };
        let honest = |_| Ok(self.card.utilization);
        self.answer(t_ns, &targets, self.shown(t_ns, &targets, &honest, forced))
    }

    /// The compute processes.
    pub fn residents(&self, t_ns: i64) -> Answer<Vec<&Resident>> {
        let targets = [Target::Processes, Target::All];
        let honest = |t_ns| Ok(self.present(t_ns).collect());
        let forced = |value| self.present(t_ns).take(value as usize).collect();
        self.answer(t_ns, &targets, self.shown(t_ns, &targets, &honest, forced))
    }

    /// The share of the time from `from_ns` on (and from the epoch on) in which each process that is
    /// there was at work, in whole per cent; those that did none are left out.
    pub fn at_work(&self, from_ns: i64, t_ns: i64) -> Answer<Vec<(u32, u32)>> {
        let targets = [Target::Utilization, Target::Processes, Target::All];
        let from_ns = from_ns.max(0);
        let share = |resident: &Resident, t_ns: i64| {
            let there_ns = t_ns.saturating_sub(from_ns.max(resident.span.start_ns));
            let there = there_ns.max(0) as f64 / t_ns.saturating_sub(from_ns).max(1) as f64;
            (f64::from(resident.sm_percent.unwrap_or(0)) * there).round() as u32
        };
        let honest = |t_ns| {
            let present = self.present(t_ns).map(|resident| (resident.pid, share(resident, t_ns)));
            Ok(present.filter(|(_, percent)| *percent > 0).collect())
        };
        let forced = |value| self.present(t_ns).map(|it| (it.pid, value as u32)).collect();
        self.answer(t_ns, &targets, self.shown(t_ns, &targets, &honest, forced))
    }

    /// The name.
    pub fn name(&self, t_ns: i64) -> Answer<String> {
        let targets = [Target::Name, Target::All];
        let honest = |_| Ok(self.card.name.clone());
        self.answer(t_ns, &targets, self.shown(t_ns, &targets, &honest, |value| value.to_string()))
    }

    /// Whether the card can be looked up.
    pub fn handle(&self, t_ns: i64) -> Answer<()> {
        self.call(t_ns, &[Target::Handle, Target::All])
    }

    /// Whether the library starts, as far as this card has a say.
    pub fn start(&self, t_ns: i64) -> Answer<()> {
        self.call(t_ns, &[Target::Init])
    }

    /// Whether reading by field id works at all.
    pub fn fields(&self, t_ns: i64) -> Answer<()> {
        self.call(t_ns, &[Target::Fields, Target::All])
    }

    /// Whether any other call about the card succeeds.
    pub fn other(&self, t_ns: i64) -> Answer<()> {
        self.call(t_ns, &[Target::All])
    }

    fn call(&self, t_ns: i64, targets: &[Target]) -> Answer<()> {
        self.answer(t_ns, targets, self.shown(t_ns, targets, &|_| Ok(()), |_| ()))
    }

    fn present(&self, t_ns: i64) -> impl Iterator<Item = &Resident> {
        self.card.residents.iter().filter(move |resident| resident.span.contains(t_ns))
    }

    /// What a read shows through the faults. The latest line in force decides; what it leaves to
    /// the lines before, they decide.
    fn shown<T>(
        &self,
        t_ns: i64,
        targets: &[Target],
        honest: &dyn Fn(i64) -> Result<T, Refusal>,
        forced: impl Fn(f64) -> T,
    ) -> Result<T, Refusal> {
        let mut t_ns = t_ns;
        for fault in self.card.faults.iter().rev() {
            if !(targets.contains(&fault.target) && fault.span.contains(t_ns)) {
                continue;
            }
            match fault.effect {
                Effect::Refuse(refusal) => return Err(refusal),
                Effect::Value(value) => return Ok(forced(value)),
                Effect::Stuck => t_ns = fault.span.start_ns,
                Effect::Set(_) | Effect::Jump(_) | Effect::Hang(_) => {}
            }
        }
        honest(t_ns)
    }

    fn answer<T>(&self, t_ns: i64, targets: &[Target], value: Result<T, Refusal>) -> Answer<T> {
        let hang_ns = self
            .card
            .faults
            .iter()
            .filter(|fault| targets.contains(&fault.target) && fault.span.contains(t_ns))
            .filter_map(|fault| match fault.effect {
                Effect::Hang(ns) => Some(ns),
                _ => None,
            })
            .max();
        Answer { hang_ns: hang_ns.unwrap_or(0), value }
    }
}

impl<T> Answer<T> {
    /// The answer with another value in it.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Answer<U> {
        Answer { hang_ns: self.hang_ns, value: self.value.map(change) }
    }
}

#[cfg(test)]
mod tests;
