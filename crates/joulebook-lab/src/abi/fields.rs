//! Reads by field id: total energy, averaged and instant power, power limits.

#![allow(unsafe_code, non_snake_case)]

use std::ffi::{c_int, c_uint};

use nvml_wrapper_sys::bindings as nvml;
use nvml_wrapper_sys::bindings::{
    field_id, nvmlDevice_t, nvmlFieldValue_t, nvmlReturn_t, nvmlValue_t,
};

use super::{
    calls::milliwatts,
    give::{INVALID, SUCCESS},
    world::{Spent, World, world},
};
use crate::{
    card::{Model, PowerRegister},
    clock::system_ns,
    scenario::ClockKind,
};

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetFieldValues(
    device: nvmlDevice_t,
    count: c_int,
    values: *mut nvmlFieldValue_t,
) -> nvmlReturn_t {
    let (world, model) = match world().and_then(|world| Ok((world, world.model(device)?))) {
        Ok(found) => found,
        Err(code) => return code,
    };
    let Some(count) = usize::try_from(count).ok().filter(|_| !values.is_null()) else {
        return INVALID;
    };
    // SAFETY: not null, so by the C API's contract `count` structures that only this call touches.
    let values = unsafe { std::slice::from_raw_parts_mut(values, count) };
    // What fails or holds up every field does so for the call, once; the rest field by field.
    let (whole, mut held_ns) = world.ask_more(Spent::Nothing, 0, |t_ns| model.fields(t_ns));
    if let Err(code) = whole {
        return code;
    }
    for value in values {
        held_ns = fill(world, model, value, held_ns);
    }
    SUCCESS
}

/// Fills one field in; returns for how long the call was held up by now, ns.
fn fill(world: &World, model: &Model, value: &mut nvmlFieldValue_t, held_ns: i64) -> i64 {
    value.timestamp = system_ns(ClockKind::Realtime) / 1000;
    value.latencyUsec = 0;
    let limit = |watts: f64| (Ok(uint(milliwatts(watts))), held_ns);
    let power = |register| {
        let ask = |t_ns| model.power_mw(register, t_ns, true).map(uint);
        world.ask_more(Spent::Power, held_ns, ask)
    };
    let card = model.card();
    // Module and memory power, where cards have them, are not simulated.
    let gpu = value.scopeId == nvml::NVML_POWER_SCOPE_GPU;
    let (answer, held_ns) = match value.fieldId {
        field_id::NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION => {
            let ask = |t_ns| model.energy_mj(t_ns, true).map(ulonglong);
            world.ask_more(Spent::Energy, held_ns, ask)
        }
        field_id::NVML_FI_DEV_POWER_AVERAGE if gpu => power(PowerRegister::Average),
        field_id::NVML_FI_DEV_POWER_INSTANT if gpu => power(PowerRegister::Instant),
        field_id::NVML_FI_DEV_POWER_MIN_LIMIT if gpu => limit(card.limit.min_w),
        field_id::NVML_FI_DEV_POWER_MAX_LIMIT if gpu => limit(card.limit.max_w),
        field_id::NVML_FI_DEV_POWER_DEFAULT_LIMIT if gpu => limit(card.limit.max_w),
        field_id::NVML_FI_DEV_POWER_CURRENT_LIMIT if gpu => limit(card.limit.w),
        field_id::NVML_FI_DEV_POWER_REQUESTED_LIMIT if gpu => limit(card.limit.w),
        _ => (Err(nvml::nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED), held_ns),
    };
    match answer {
        Ok((kind, number)) => {
            value.valueType = kind;
            value.value = number;
            value.nvmlReturn = SUCCESS;
        }
        Err(code) => value.nvmlReturn = code,
    }
    held_ns
}

fn ulonglong(number: u64) -> (nvml::nvmlValueType_t, nvmlValue_t) {
    let value = nvmlValue_t { ullVal: number };
    (nvml::nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, value)
}

fn uint(number: c_uint) -> (nvml::nvmlValueType_t, nvmlValue_t) {
    // The whole union is written: a caller may read it as a wider number.
    let value = nvmlValue_t { ullVal: u64::from(number) };
    (nvml::nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_INT, value)
}
