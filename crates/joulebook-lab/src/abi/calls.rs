//! Calls that ask one card for one thing.

#![allow(unsafe_code, non_snake_case)]

use std::ffi::{c_char, c_int, c_uint, c_ulonglong};

use nvml_wrapper_sys::bindings as nvml;
use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlMemory_t, nvmlMemory_v2_t, nvmlPciInfo_t, nvmlReturn_t, nvmlUtilization_t,
};

use super::{
    give::{give, give_text, outcome},
    world::{Spent, ask},
};
use crate::{
    card::{Model, PowerRegister},
    scenario::PciAddress,
};

const NOT_SUPPORTED: nvmlReturn_t = nvml::nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED;
const MIB: u64 = 1 << 20;

/// What a scenario says of a card for good.
fn fixed<T>(device: nvmlDevice_t, of: impl Fn(&Model) -> T) -> Result<T, nvmlReturn_t> {
    ask(device, Spent::Nothing, |model, t_ns| model.other(t_ns).map(|()| of(model)))
}

/// Calls `name(device, out)` that give one value out.
macro_rules! getters {
    ($($name:ident: $type:ty = |$device:ident| $answer:expr;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($device: nvmlDevice_t, out: *mut $type) -> nvmlReturn_t {
            // SAFETY: the C API's contract on `out`.
            unsafe { give(out, $answer) }
        }
    )*};
}

getters! {
    nvmlDeviceGetTotalEnergyConsumption: c_ulonglong = |device|
        ask(device, Spent::Energy, |model, t_ns| model.energy_mj(t_ns, false));
    nvmlDeviceGetPowerUsage: c_uint = |device| ask(device, Spent::Power, |model, t_ns| {
        model.power_mw(PowerRegister::Average, t_ns, false)
    });
    nvmlDeviceGetIndex: c_uint = |device| fixed(device, Model::index);
    nvmlDeviceGetMinorNumber: c_uint = |device| fixed(device, Model::index);
    nvmlDeviceGetBrand: c_uint = |device| fixed(device, brand);
    nvmlDeviceGetArchitecture: c_uint = |device| fixed(device, |model| model.card().architecture);
    nvmlDeviceGetMemoryInfo: nvmlMemory_t = |device| {
        ask(device, Spent::Nothing, Model::memory).map(|memory| nvmlMemory_t {
            total: memory.total_mib * MIB,
            free: memory.total_mib.saturating_sub(memory.used_mib) * MIB,
            used: memory.used_mib * MIB,
        })
    };
    nvmlDeviceGetUtilizationRates: nvmlUtilization_t = |device| {
        ask(device, Spent::Nothing, Model::utilization)
            .map(|rates| nvmlUtilization_t { gpu: rates.gpu, memory: rates.mem })
    };
    nvmlDeviceGetPowerManagementLimit: c_uint = |device| fixed(device, limit_mw);
    nvmlDeviceGetEnforcedPowerLimit: c_uint = |device| fixed(device, limit_mw);
    nvmlDeviceGetPowerManagementDefaultLimit: c_uint = |device| fixed(device, |model| {
        milliwatts(model.card().limit.max_w)
    });
    nvmlDeviceGetPowerManagementMode: c_uint = |device| fixed(device, |_| 1);
    nvmlDeviceGetPersistenceMode: c_uint = |device| fixed(device, |_| 1);
    nvmlDeviceGetComputeMode: c_uint = |device| fixed(device, |_| 0);
    nvmlDeviceGetCurrentClocksThrottleReasons: c_ulonglong = |device| fixed(device, reasons);
    nvmlDeviceGetCurrentClocksEventReasons: c_ulonglong = |device| fixed(device, reasons);
    nvmlDeviceGetSupportedClocksThrottleReasons: c_ulonglong = |device| fixed(device, |_| 0x1ff);
    nvmlDeviceGetSupportedClocksEventReasons: c_ulonglong = |device| fixed(device, |_| 0x1ff);
    nvmlDeviceGetPowerState: c_uint = |device| fixed(device, |_| 0);
    nvmlDeviceGetPerformanceState: c_uint = |device| fixed(device, |_| 0);
    nvmlDeviceGetMaxMigDeviceCount: c_uint = |device| fixed(device, |_| 0);
    nvmlDeviceIsMigDeviceHandle: c_uint = |device| fixed(device, |_| 0);
    nvmlDeviceGetPciInfo_v3: nvmlPciInfo_t = |device| fixed(device, |model| pci(model.card().pci));
}

/// Calls `name(device, out, length)` that give a text out.
macro_rules! texts {
    ($($name:ident = |$device:ident| $answer:expr;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            $device: nvmlDevice_t,
            out: *mut c_char,
            length: c_uint,
        ) -> nvmlReturn_t {
            // SAFETY: the C API's contract on `out` and `length`.
            unsafe { give_text(out, length, $answer) }
        }
    )*};
}

texts! {
    nvmlDeviceGetName = |device| ask(device, Spent::Nothing, Model::name);
    nvmlDeviceGetUUID = |device| fixed(device, |model| model.card().uuid.clone());
    nvmlDeviceGetSerial = |device| fixed(device, |model| format!("{:013}", 1 + model.index()));
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetMemoryInfo_v2(
    device: nvmlDevice_t,
    out: *mut nvmlMemory_v2_t,
) -> nvmlReturn_t {
    // The caller says in the structure which structure it is.
    let wanted = size_of::<nvmlMemory_v2_t>() as c_uint | (2 << 24);
    // SAFETY: the C API's contract on `out`: null or a structure that begins with its version.
    let version = unsafe { out.as_ref() }.map(|memory| memory.version);
    if version.is_some_and(|version| version != wanted) {
        return nvml::nvmlReturn_enum_NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    }
    let answer = ask(device, Spent::Nothing, Model::memory).map(|memory| nvmlMemory_v2_t {
        version: wanted,
        total: memory.total_mib * MIB,
        reserved: 0,
        free: memory.total_mib.saturating_sub(memory.used_mib) * MIB,
        used: memory.used_mib * MIB,
    });
    // SAFETY: the C API's contract on `out`.
    unsafe { give(out, answer) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetPowerManagementLimitConstraints(
    device: nvmlDevice_t,
    min: *mut c_uint,
    max: *mut c_uint,
) -> nvmlReturn_t {
    let limit = fixed(device, |model| model.card().limit);
    // SAFETY: the C API's contract on both.
    unsafe { pair(min, max, limit.map(|limit| (milliwatts(limit.min_w), milliwatts(limit.max_w)))) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetCudaComputeCapability(
    device: nvmlDevice_t,
    major: *mut c_int,
    minor: *mut c_int,
) -> nvmlReturn_t {
    // SAFETY: the C API's contract on both.
    unsafe { pair(major, minor, fixed(device, |model| model.card().compute_capability)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetMigMode(
    device: nvmlDevice_t,
    current: *mut c_uint,
    pending: *mut c_uint,
) -> nvmlReturn_t {
    let mode = fixed(device, |model| model.card().mig).and_then(|mig| mig.ok_or(NOT_SUPPORTED));
    // SAFETY: the C API's contract on both.
    unsafe { pair(current, pending, mode.map(|on| (u32::from(on), u32::from(on)))) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetClockInfo(
    device: nvmlDevice_t,
    kind: c_uint,
    out: *mut c_uint,
) -> nvmlReturn_t {
    let answer = fixed(device, |model| model.card().clocks).and_then(|clocks| match kind {
        nvml::nvmlClockType_enum_NVML_CLOCK_MEM => Ok(clocks.mem_mhz),
        kind if kind < nvml::nvmlClockType_enum_NVML_CLOCK_COUNT => Ok(clocks.sm_mhz),
        _ => Err(nvml::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT),
    });
    // SAFETY: the C API's contract on `out`.
    unsafe { give(out, answer) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetTemperature(
    device: nvmlDevice_t,
    sensor: c_uint,
    out: *mut c_uint,
) -> nvmlReturn_t {
    let answer = fixed(device, |model| model.card().clocks.temperature_c);
    let answer = answer.and_then(|temperature| match sensor {
        nvml::nvmlTemperatureSensors_enum_NVML_TEMPERATURE_GPU => Ok(temperature),
        _ => Err(nvml::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT),
    });
    // SAFETY: the C API's contract on `out`.
    unsafe { give(out, answer) }
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceValidateInforom(device: nvmlDevice_t) -> nvmlReturn_t {
    outcome(fixed(device, |_| ()))
}

/// Gives two values out.
///
/// # Safety
/// Each pointer is null or points to memory for its value.
unsafe fn pair<A, B>(
    first: *mut A,
    second: *mut B,
    answer: Result<(A, B), nvmlReturn_t>,
) -> nvmlReturn_t {
    let (one, other) = match answer {
        Ok((one, other)) => (Ok(one), Ok(other)),
        Err(code) => return code,
    };
    // SAFETY: this function's contract is that of both calls.
    unsafe {
        match give(first, one) {
            nvml::nvmlReturn_enum_NVML_SUCCESS => give(second, other),
            code => code,
        }
    }
}

fn limit_mw(model: &Model) -> c_uint {
    milliwatts(model.card().limit.w)
}

fn reasons(model: &Model) -> c_ulonglong {
    model.card().clocks.reasons
}

/// Whole milliwatts.
pub(super) fn milliwatts(watts: f64) -> c_uint {
    (watts * 1e3).round() as c_uint
}

/// The brand that a card of that name has.
fn brand(model: &Model) -> c_uint {
    const BRANDS: &[(&str, c_uint)] = &[
        ("GeForce RTX", nvml::nvmlBrandType_enum_NVML_BRAND_GEFORCE_RTX),
        ("GeForce", nvml::nvmlBrandType_enum_NVML_BRAND_GEFORCE),
        ("TITAN RTX", nvml::nvmlBrandType_enum_NVML_BRAND_TITAN_RTX),
        ("TITAN", nvml::nvmlBrandType_enum_NVML_BRAND_TITAN),
        ("Quadro RTX", nvml::nvmlBrandType_enum_NVML_BRAND_QUADRO_RTX),
        ("Quadro", nvml::nvmlBrandType_enum_NVML_BRAND_QUADRO),
        ("RTX", nvml::nvmlBrandType_enum_NVML_BRAND_NVIDIA_RTX),
        ("Tesla", nvml::nvmlBrandType_enum_NVML_BRAND_TESLA),
    ];
    let named = BRANDS.iter().find(|(word, _)| model.card().name.contains(word));
    named.map_or(nvml::nvmlBrandType_enum_NVML_BRAND_NVIDIA, |(_, brand)| *brand)
}

/// A PCI address in the C API's form.
fn pci(address: PciAddress) -> nvmlPciInfo_t {
    fn fill<const N: usize>(text: &str) -> [c_char; N] {
        let mut field = [0; N];
        // The last byte stays the NUL.
        for (slot, byte) in field.iter_mut().take(N - 1).zip(text.bytes()) {
            *slot = byte.cast_signed();
        }
        field
    }
    let PciAddress { domain, bus, device, function } = address;
    nvmlPciInfo_t {
        busIdLegacy: fill(&format!("{domain:04X}:{bus:02X}:{device:02X}.{function:X}")),
        domain,
        bus,
        device,
        pciDeviceId: 0x2330_10de,
        pciSubSystemId: 0,
        busId: fill(&address.to_string()),
    }
}
