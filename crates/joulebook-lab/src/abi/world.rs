//! The process's one simulated machine, as the driver library sees it.

use std::sync::{
    OnceLock,
    atomic::{AtomicBool, AtomicU32, Ordering},
};

use nvml_wrapper_sys::bindings as nvml;
use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlReturn_t};

pub(super) use crate::machine::Spent;
use crate::{
    card::{Answer, Model},
    machine::Machine,
    scenario::{Refusal, Scenario},
};

/// The machine, once a scenario was read.
static WORLD: OnceLock<World> = OnceLock::new();
/// How many starts have no stop yet.
static STARTED: AtomicU32 = AtomicU32::new(0);
/// Whether the person was told that the scenario cannot be read.
static TOLD: AtomicBool = AtomicBool::new(false);

/// A machine whose refusals are the driver's numbers.
pub(super) struct World {
    pub(super) machine: Machine,
}

impl World {
    pub(super) fn scenario(&self) -> &Scenario {
        self.machine.scenario()
    }

    pub(super) fn models(&self) -> &[Model] {
        self.machine.models()
    }

    /// The card of a handle.
    pub(super) fn model(&self, device: nvmlDevice_t) -> Result<&Model, nvmlReturn_t> {
        let index = device.addr().checked_sub(1);
        let model = index.and_then(|index| self.models().get(index));
        model.ok_or(nvml::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT)
    }

    /// Asks, in the middle of the time the call takes; after what a fault holds it up.
    pub(super) fn ask<'a, T>(
        &'a self,
        spent: Spent,
        ask: impl Fn(i64) -> Answer<T> + 'a,
    ) -> Result<T, nvmlReturn_t> {
        self.ask_more(spent, 0, ask).0
    }

    /// The same, when the call was held up for `held_ns` already; and for how long it was in all.
    pub(super) fn ask_more<'a, T>(
        &'a self,
        spent: Spent,
        held_ns: i64,
        ask: impl Fn(i64) -> Answer<T> + 'a,
    ) -> (Result<T, nvmlReturn_t>, i64) {
        let (answer, held_ns) = self.machine.ask_more(spent, held_ns, ask);
        (answer.map_err(code), held_ns)
    }
}

/// The handle of the card at that index. It is a number, never an address of anything.
pub(super) const fn handle(index: u32) -> nvmlDevice_t {
    std::ptr::without_provenance_mut(index as usize + 1)
}

/// The machine, between start and stop.
pub(super) fn world() -> Result<&'static World, nvmlReturn_t> {
    let started = STARTED.load(Ordering::Acquire) > 0;
    let world = WORLD.get().filter(|_| started);
    world.ok_or(nvml::nvmlReturn_enum_NVML_ERROR_UNINITIALIZED)
}

/// Asks a card about something.
pub(super) fn ask<T>(
    device: nvmlDevice_t,
    spent: Spent,
    ask: impl Fn(&'static Model, i64) -> Answer<T>,
) -> Result<T, nvmlReturn_t> {
    let world = world()?;
    let model = world.model(device)?;
    world.ask(spent, |t_ns| ask(model, t_ns))
}

/// Starts the library.
pub(super) fn start() -> Result<(), nvmlReturn_t> {
    let no_driver = nvml::nvmlReturn_enum_NVML_ERROR_DRIVER_NOT_LOADED;
    let world = match WORLD.get() {
        Some(world) => world,
        None => {
            let scenario = Scenario::read(&Machine::scenario_file().ok_or(no_driver)?);
            let scenario = scenario.map_err(|error| {
                if !TOLD.swap(true, Ordering::Relaxed) {
                    eprintln!("libnvidia-ml.so.1 of joulebook-lab: {error}");
                }
                no_driver
            })?;
            WORLD.get_or_init(|| World { machine: Machine::new(scenario) })
        }
    };
    for model in world.models() {
        world.ask(Spent::Nothing, |t_ns| model.start(t_ns))?;
    }
    STARTED.fetch_add(1, Ordering::AcqRel);
    Ok(())
}

/// Stops the library, when it was stopped as often as it was started.
pub(super) fn stop() -> Result<(), nvmlReturn_t> {
    STARTED
        .fetch_update(Ordering::AcqRel, Ordering::Acquire, |started| started.checked_sub(1))
        .map(|_| ())
        .map_err(|_| nvml::nvmlReturn_enum_NVML_ERROR_UNINITIALIZED)
}

/// The driver's number for a failure.
const fn code(refusal: Refusal) -> nvmlReturn_t {
    match refusal {
        Refusal::NotSupported => nvml::nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED,
        Refusal::Lost => nvml::nvmlReturn_enum_NVML_ERROR_GPU_IS_LOST,
        Refusal::Unknown => nvml::nvmlReturn_enum_NVML_ERROR_UNKNOWN,
        Refusal::Timeout => nvml::nvmlReturn_enum_NVML_ERROR_TIMEOUT,
        Refusal::NoData => nvml::nvmlReturn_enum_NVML_ERROR_NO_DATA,
        Refusal::NoPermission => nvml::nvmlReturn_enum_NVML_ERROR_NO_PERMISSION,
        Refusal::NotFound => nvml::nvmlReturn_enum_NVML_ERROR_NOT_FOUND,
        Refusal::Uninitialized => nvml::nvmlReturn_enum_NVML_ERROR_UNINITIALIZED,
        Refusal::Invalid => nvml::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT,
        Refusal::NoDriver => nvml::nvmlReturn_enum_NVML_ERROR_DRIVER_NOT_LOADED,
        Refusal::Mismatch => nvml::nvmlReturn_enum_NVML_ERROR_LIB_RM_VERSION_MISMATCH,
        Refusal::ResetRequired => nvml::nvmlReturn_enum_NVML_ERROR_RESET_REQUIRED,
    }
}
