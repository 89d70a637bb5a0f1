//! What cards there are, and what each of them is.
//!
//! Each property stands for itself: one that cannot be asked is absent and takes no other with it.
//! A card that cannot even be named by a UUID is listed apart, with the reason.

use joulebook_core::{Fault, Power, register::Kind};
use nvml_wrapper::{Device, enum_wrappers::device::Brand, enums::device::DeviceArchitecture};

use super::{
    driver::Driver,
    fault::{LoadError, fault},
    raw,
};
use crate::{
    identity,
    reader::{self, Scope},
};

/// The cards of the driver.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Inventory {
    /// Those that can be named, by index.
    pub cards: Vec<CardInfo>,
    /// Those that cannot, by index, with the reason (no permission, lost).
    pub unreadable: Vec<(u32, Fault)>,
}

/// A card as the driver describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct CardInfo {
    /// The driver's index (not CUDA's).
    pub index: u32,
    /// The card's UUID.
    pub uuid: String,
    /// PCI address, `0000:65:00.0`.
    pub pci: Option<String>,
    /// The card's name.
    pub name: String,
    /// The driver's version.
    pub driver: Option<String>,
    /// The product line.
    pub brand: Option<String>,
    /// The architecture's name.
    pub architecture: Option<String>,
    /// CUDA compute capability.
    pub compute_capability: Option<(i32, i32)>,
    /// Whether the card is split into instances (MIG); `None` where it cannot be.
    pub mig: Option<bool>,
    /// The UUIDs of its instances, as far as we may see them.
    pub slices: Vec<String>,
    /// The power limit in force.
    pub limit: Option<Power>,
    /// The lowest and highest limit that can be set.
    pub limit_range: Option<(Power, Power)>,
    /// A consumer card (GeForce).
    pub consumer: bool,
    /// The span that field 185, `power.draw` and the plain power call are the mean over; `None`
    /// where they are not known to average longer than their update period.
    pub averaging_ns: Option<u64>,
    /// The driver has a power reading for the whole module (CPU, memory, GPU) beside the GPU's.
    pub module_power: bool,
    /// What the energy counter covers. A Hopper card with module power is a Grace Hopper chip,
    /// whose counter is reported to cover the module; every other is taken at the driver's word
    /// ("for this GPU"), which a probe can check where `module_power` is set.
    pub counter_scope: Scope,
}

impl CardInfo {
    /// The card as a reader's device; the reader puts in what its register is.
    pub(super) fn device(&self) -> reader::Device {
        reader::Device {
            index: self.index,
            uuid: self.uuid.clone(),
            pci: self.pci.clone(),
            name: self.name.clone(),
            driver: self.driver.clone(),
            backend: reader::Backend::None,
            scope: Scope::Gpu,
            register: Kind::Gauge { averaging_ns: None },
            limit: self.limit,
            consumer: self.consumer,
        }
    }
}

impl From<&CardInfo> for identity::Card {
    fn from(card: &CardInfo) -> Self {
        Self {
            index: card.index,
            uuid: card.uuid.clone(),
            pci: card.pci.clone(),
            name: card.name.clone(),
            mig: card.mig == Some(true),
            slices: card.slices.clone(),
        }
    }
}

/// Lists the cards now.
pub fn cards(driver: &Driver) -> Result<Inventory, LoadError> {
    let library = driver.library()?;
    let nvml = &library.nvml;
    let version = nvml.sys_driver_version().ok();
    let count = nvml.device_count().map_err(|error| {
        let fault = fault(&error);
        if fault == Fault::DriverAbsent {
            driver.discard(&library);
        }
        LoadError::Refused { path: library.path.clone(), fault, reason: error.to_string() }
    })?;
    let mut inventory = Inventory::default();
    for index in 0..count {
        let card = nvml.device_by_index(index).and_then(|device| {
            let uuid = device.uuid()?;
            Ok(describe(&device, index, uuid, version.clone()))
        });
        match card {
            Ok(card) => inventory.cards.push(card),
            Err(error) => inventory.unreadable.push((index, fault(&error))),
        }
    }
    Ok(inventory)
}

fn describe(device: &Device<'_>, index: u32, uuid: String, driver: Option<String>) -> CardInfo {
    let name = device.name().ok();
    let brand = device.brand().ok();
    let architecture = device.architecture().ok();
    let capability = device.cuda_compute_capability().ok().map(|cuda| (cuda.major, cuda.minor));
    let mig = device.mig_mode().ok().map(|mode| mode.current == 1);
    let module_power =
        has_module_power(|scope| matches!(raw::field(device, AVERAGE, scope), Ok(Some(_))));
    CardInfo {
        index,
        uuid,
        pci: device.pci_info().ok().map(|pci| {
            identity::normal_pci(&pci.bus_id).unwrap_or_else(|| pci.bus_id.to_lowercase())
        }),
        driver,
        architecture: architecture.as_ref().map(ToString::to_string),
        compute_capability: capability,
        mig,
        slices: if mig == Some(true) { slices(device) } else { Vec::new() },
        limit: limit_of(device).ok(),
        limit_range: device.power_management_limit_constraints().ok().map(|range| {
            (Power::from_milliwatts(range.min_limit), Power::from_milliwatts(range.max_limit))
        }),
        consumer: match &brand {
            Some(Brand::GeForce | Brand::GeForceRTX) => true,
            Some(Brand::Unknown) | None => name.as_ref().is_some_and(|name| is_geforce(name)),
            Some(_) => false,
        },
        averaging_ns: averaging_ns(capability, architecture.as_ref()),
        module_power,
        counter_scope: counter_scope(capability, module_power),
        brand: brand.map(|brand| format!("{brand:?}")),
        name: name.unwrap_or_else(|| "NVIDIA card of unknown name".to_owned()),
    }
}

fn is_geforce(name: &str) -> bool {
    name.to_lowercase().contains("geforce")
}

/// One second on Ampere and later, save GA100 (compute capability 8.0).
pub(crate) fn averaging_ns(
    capability: Option<(i32, i32)>,
    known: Option<&DeviceArchitecture>,
) -> Option<u64> {
    let averages = match (capability, known) {
        (Some(capability), _) => capability > (8, 0),
        (
            None,
            Some(
                DeviceArchitecture::Ada
                | DeviceArchitecture::Hopper
                | DeviceArchitecture::Blackwell,
            ),
        ) => true,
        // An Ampere card of unknown capability may be a GA100: not known.
        (None, _) => false,
    };
    averages.then_some(1_000_000_000)
}

/// The power limit in force: the one all limiters together enforce, else the one that was set.
pub(super) fn limit_of(device: &Device<'_>) -> Result<Power, Fault> {
    device
        .enforced_power_limit()
        .or_else(|_| device.power_management_limit())
        .map(Power::from_milliwatts)
        .map_err(|error| fault(&error))
}

fn slices(device: &Device<'_>) -> Vec<String> {
    let count = device.mig_device_count().unwrap_or(0);
    (0..count).filter_map(|index| device.mig_device_by_index(index).ok()?.uuid().ok()).collect()
}

/// True when the driver tells scopes apart and answers for the module. Drivers from before there
/// were scopes take no notice of the number: they also answer for a scope that does not exist.
fn has_module_power(answers: impl Fn(u32) -> bool) -> bool {
    answers(MODULE) && !answers(NO_SUCH_SCOPE)
}

/// A Hopper card with module power is a Grace Hopper chip.
const fn counter_scope(capability: Option<(i32, i32)>, module_power: bool) -> Scope {
    match capability {
        Some((9, _)) if module_power => Scope::Module,
        _ => Scope::Gpu,
    }
}

/// Field 185: mean power.
pub(super) const AVERAGE: u32 = 185;
/// Field 186: power at an instant.
pub(super) const INSTANT: u32 = 186;
/// The GPU's own scope.
pub(super) const GPU: u32 = 0;
/// The whole module's.
pub(super) const MODULE: u32 = 1;
const NO_SUCH_SCOPE: u32 = 255;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn power_draw_averages_a_second_from_ampere_on_save_ga100() {
        let second = Some(1_000_000_000);
        for (capability, expected) in [
            ((6, 1), None),
            ((7, 0), None),
            ((7, 5), None),
            ((8, 0), None),
            ((8, 6), second),
            ((8, 9), second),
            ((9, 0), second),
            ((10, 0), second),
            ((12, 0), second),
        ] {
            assert_eq!(averaging_ns(Some(capability), None), expected, "{capability:?}");
        }
        assert_eq!(averaging_ns(None, None), None);
        assert_eq!(averaging_ns(None, Some(&DeviceArchitecture::Hopper)), second);
        assert_eq!(averaging_ns(None, Some(&DeviceArchitecture::Ampere)), None);
    }

    #[test]
    fn module_power_is_believed_only_of_a_driver_that_tells_scopes_apart() {
        assert!(has_module_power(|scope| scope == GPU || scope == MODULE));
        assert!(!has_module_power(|scope| scope == GPU));
        assert!(!has_module_power(|_| true), "an old driver answers whatever the scope");
        assert!(!has_module_power(|_| false));
        assert_eq!(counter_scope(Some((9, 0)), true), Scope::Module);
        assert_eq!(counter_scope(Some((9, 0)), false), Scope::Gpu);
        assert_eq!(counter_scope(Some((10, 0)), true), Scope::Gpu, "for the probe to check");
        assert_eq!(counter_scope(None, true), Scope::Gpu);
    }
}
