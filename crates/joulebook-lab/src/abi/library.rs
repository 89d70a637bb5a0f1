//! The library itself: starting, stopping, versions, words for errors, finding cards.

#![allow(unsafe_code, non_snake_case)]

use std::ffi::{c_char, c_int, c_uint};

use nvml_wrapper_sys::bindings as nvml;
use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlReturn_t};

use super::{
    give::{give, give_text, outcome, take_text},
    world::{Spent, World, handle, start, stop, world},
};
use crate::{card::Model, scenario::PciAddress};

const NOT_FOUND: nvmlReturn_t = nvml::nvmlReturn_enum_NVML_ERROR_NOT_FOUND;

#[unsafe(no_mangle)]
extern "C" fn nvmlInit_v2() -> nvmlReturn_t {
    outcome(start())
}

#[unsafe(no_mangle)]
extern "C" fn nvmlInit() -> nvmlReturn_t {
    outcome(start())
}

#[unsafe(no_mangle)]
extern "C" fn nvmlInitWithFlags(flags: c_uint) -> nvmlReturn_t {
    // Flag 1: no card is no failure. It is none here either way.
    let _ = flags;
    outcome(start())
}

#[unsafe(no_mangle)]
extern "C" fn nvmlShutdown() -> nvmlReturn_t {
    outcome(stop())
}

#[unsafe(no_mangle)]
extern "C" fn nvmlErrorString(result: nvmlReturn_t) -> *const c_char {
    let text = match result {
        nvml::nvmlReturn_enum_NVML_SUCCESS => c"The operation was successful",
        nvml::nvmlReturn_enum_NVML_ERROR_UNINITIALIZED => c"Uninitialized",
        nvml::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT => c"Invalid Argument",
        nvml::nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED => c"Not Supported",
        nvml::nvmlReturn_enum_NVML_ERROR_NO_PERMISSION => c"Insufficient Permissions",
        nvml::nvmlReturn_enum_NVML_ERROR_ALREADY_INITIALIZED => c"Already Initialized",
        nvml::nvmlReturn_enum_NVML_ERROR_NOT_FOUND => c"Not Found",
        nvml::nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE => c"Insufficient Size",
        nvml::nvmlReturn_enum_NVML_ERROR_DRIVER_NOT_LOADED => c"Driver Not Loaded",
        nvml::nvmlReturn_enum_NVML_ERROR_TIMEOUT => c"Timeout",
        nvml::nvmlReturn_enum_NVML_ERROR_LIBRARY_NOT_FOUND => c"NVML Shared Library Not Found",
        nvml::nvmlReturn_enum_NVML_ERROR_FUNCTION_NOT_FOUND => c"Function Not Found",
        nvml::nvmlReturn_enum_NVML_ERROR_GPU_IS_LOST => c"GPU is lost",
        nvml::nvmlReturn_enum_NVML_ERROR_RESET_REQUIRED => c"GPU requires reset",
        nvml::nvmlReturn_enum_NVML_ERROR_LIB_RM_VERSION_MISMATCH => {
            c"Driver/library version mismatch"
        }
        nvml::nvmlReturn_enum_NVML_ERROR_NO_DATA => c"No data",
        nvml::nvmlReturn_enum_NVML_ERROR_ARGUMENT_VERSION_MISMATCH => c"Argument version mismatch",
        _ => c"Unknown Error",
    };
    text.as_ptr()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlSystemGetDriverVersion(out: *mut c_char, length: c_uint) -> nvmlReturn_t {
    let answer = world().map(|world| world.scenario().driver.clone());
    // SAFETY: the C API's contract on `out` and `length`.
    unsafe { give_text(out, length, answer) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlSystemGetNVMLVersion(out: *mut c_char, length: c_uint) -> nvmlReturn_t {
    let answer = world().map(|world| format!("12.{}", world.scenario().driver));
    // SAFETY: the C API's contract on `out` and `length`.
    unsafe { give_text(out, length, answer) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlSystemGetCudaDriverVersion(out: *mut c_int) -> nvmlReturn_t {
    // SAFETY: the C API's contract on `out`.
    unsafe { give(out, world().map(|_| 12_080)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlSystemGetCudaDriverVersion_v2(out: *mut c_int) -> nvmlReturn_t {
    // SAFETY: the C API's contract on `out`.
    unsafe { give(out, world().map(|_| 12_080)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetCount_v2(out: *mut c_uint) -> nvmlReturn_t {
    // SAFETY: the C API's contract on `out`.
    unsafe { give(out, world().map(|world| world.models().len() as c_uint)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetCount(out: *mut c_uint) -> nvmlReturn_t {
    // SAFETY: the C API's contract on `out`.
    unsafe { nvmlDeviceGetCount_v2(out) }
}

/// The handle of the first card that is meant.
fn look_up(
    world: &'static World,
    missing: nvmlReturn_t,
    meant: impl Fn(&Model) -> bool,
) -> Result<nvmlDevice_t, nvmlReturn_t> {
    let model = world.models().iter().find(|model| meant(model)).ok_or(missing)?;
    world.ask(Spent::Nothing, |t_ns| model.handle(t_ns))?;
    Ok(handle(model.index()))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetHandleByIndex_v2(
    index: c_uint,
    out: *mut nvmlDevice_t,
) -> nvmlReturn_t {
    let invalid = nvml::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT;
    let answer = world().and_then(|world| look_up(world, invalid, |model| model.index() == index));
    // SAFETY: the C API's contract on `out`.
    unsafe { give(out, answer) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetHandleByIndex(
    index: c_uint,
    out: *mut nvmlDevice_t,
) -> nvmlReturn_t {
    // SAFETY: the C API's contract on `out`.
    unsafe { nvmlDeviceGetHandleByIndex_v2(index, out) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetHandleByUUID(
    uuid: *const c_char,
    out: *mut nvmlDevice_t,
) -> nvmlReturn_t {
    // SAFETY: the C API's contract on `uuid`.
    let uuid = unsafe { take_text(uuid) };
    let answer = world().and_then(|world| {
        let uuid = uuid?;
        look_up(world, NOT_FOUND, |model| model.card().uuid == uuid)
    });
    // SAFETY: the C API's contract on `out`.
    unsafe { give(out, answer) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetHandleByPciBusId_v2(
    address: *const c_char,
    out: *mut nvmlDevice_t,
) -> nvmlReturn_t {
    // SAFETY: the C API's contract on `address`.
    let address = unsafe { take_text(address) };
    let answer = world().and_then(|world| {
        let address: PciAddress =
            address?.parse().map_err(|()| nvml::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT)?;
        look_up(world, NOT_FOUND, |model| model.card().pci == address)
    });
    // SAFETY: the C API's contract on `out`.
    unsafe { give(out, answer) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetHandleByPciBusId(
    address: *const c_char,
    out: *mut nvmlDevice_t,
) -> nvmlReturn_t {
    // SAFETY: the C API's contract on both.
    unsafe { nvmlDeviceGetHandleByPciBusId_v2(address, out) }
}
