//! The calls the wrapper does not make for us, and the only unsafe code of the driver's reader.
//!
//! A [`Handle`] is a card's handle together with the load of the library it belongs to; it is only
//! ever used with that load. Each function here makes one call and returns what it said.

#![allow(unsafe_code)]

use std::{mem, os::raw::c_uint};

use nvml_wrapper::{
    Device, Nvml,
    error::{NvmlError, nvml_sym, nvml_try},
};
use nvml_wrapper_sys::bindings as sys;

/// A card's handle, good for one load of the library.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handle {
    device: sys::nvmlDevice_t,
    generation: u64,
}

// SAFETY: the pointer is an opaque token that the driver library hands out and takes back; NVML
// documents itself as thread-safe, and nothing here looks behind the pointer.
unsafe impl Send for Handle {}

impl Handle {
    /// The handle of a card, to be kept.
    pub(super) fn keep(device: &Device<'_>, generation: u64) -> Self {
        // SAFETY: the handle is only stored; `attach` gives it back to the load it came from.
        let device = unsafe { device.handle() };
        Self { device, generation }
    }

    /// The card, where the handle belongs to this load of the library.
    pub(super) fn attach<'nvml>(self, nvml: &'nvml Nvml, generation: u64) -> Option<Device<'nvml>> {
        // SAFETY: the generation says that the handle came from this very load, which is alive as
        // long as the borrow.
        (self.generation == generation).then(|| unsafe { Device::new(self.device, nvml) })
    }
}

/// One field of a card within a scope, which the wrapper cannot ask for; `None` where the value has
/// no sensible form (negative, or of an unknown type).
pub(super) fn field(device: &Device<'_>, id: u32, scope: u32) -> Result<Option<u64>, NvmlError> {
    let call = nvml_sym(device.nvml().lib().nvmlDeviceGetFieldValues.as_ref())?;
    // SAFETY: a structure of integers and a union of numbers, for which all zeros is a value.
    let mut value: sys::nvmlFieldValue_t = unsafe { mem::zeroed() };
    value.fieldId = id;
    value.scopeId = scope;
    // SAFETY: the handle belongs to this library, and one writable value is passed and counted.
    nvml_try(unsafe { call(device.handle(), 1, &mut value) })?;
    nvml_try(value.nvmlReturn)?;
    // SAFETY: the library says which member of the union it wrote.
    Ok(unsafe { number(value.valueType, value.value) })
}

/// The member of the union that its tag names, as a whole number.
///
/// # Safety
/// The tag must name a member that was written.
unsafe fn number(tag: sys::nvmlValueType_t, value: sys::nvmlValue_t) -> Option<u64> {
    use sys::{
        nvmlValueType_enum_NVML_VALUE_TYPE_DOUBLE as DOUBLE,
        nvmlValueType_enum_NVML_VALUE_TYPE_SIGNED_INT as INT,
        nvmlValueType_enum_NVML_VALUE_TYPE_SIGNED_LONG_LONG as LONG_LONG,
        nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_INT as UINT,
        nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_LONG as ULONG,
        nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_LONG_LONG as ULONG_LONG,
        nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_SHORT as USHORT,
    };
    // SAFETY: the caller's promise; every bit pattern is a value of every member.
    unsafe {
        match tag {
            DOUBLE => {
                let float = value.dVal;
                (float.is_finite() && (0.0..1.8e19).contains(&float)).then_some(float as u64)
            }
            INT => u64::try_from(value.siVal).ok(),
            LONG_LONG => u64::try_from(value.sllVal).ok(),
            UINT => Some(u64::from(value.uiVal)),
            #[allow(clippy::useless_conversion)] // 32 bits wide on some systems
            ULONG => Some(u64::from(value.ulVal)),
            ULONG_LONG => Some(value.ullVal),
            USHORT => Some(u64::from(value.usVal)),
            _ => None,
        }
    }
}

/// What holds the clocks down, as a set of bits: the call's present name, which the wrapper lacks.
pub(super) fn clocks_event_reasons(device: &Device<'_>) -> Result<u64, NvmlError> {
    let call = nvml_sym(device.nvml().lib().nvmlDeviceGetCurrentClocksEventReasons.as_ref())?;
    let mut reasons = 0;
    // SAFETY: the handle belongs to this library; one writable number is passed.
    nvml_try(unsafe { call(device.handle(), &mut reasons) })?;
    Ok(reasons)
}

/// The same by its old name.
pub(super) fn clocks_throttle_reasons(device: &Device<'_>) -> Result<u64, NvmlError> {
    let call = nvml_sym(device.nvml().lib().nvmlDeviceGetCurrentClocksThrottleReasons.as_ref())?;
    let mut reasons = 0;
    // SAFETY: the handle belongs to this library; one writable number is passed.
    nvml_try(unsafe { call(device.handle(), &mut reasons) })?;
    Ok(reasons)
}

/// Used, total and free bytes, by the call of old drivers (used includes what the driver keeps).
pub(super) fn old_memory(device: &Device<'_>) -> Result<sys::nvmlMemory_t, NvmlError> {
    let call = nvml_sym(device.nvml().lib().nvmlDeviceGetMemoryInfo.as_ref())?;
    let mut memory = sys::nvmlMemory_t { total: 0, free: 0, used: 0 };
    // SAFETY: the handle belongs to this library; one writable structure is passed.
    nvml_try(unsafe { call(device.handle(), &mut memory) })?;
    Ok(memory)
}

/// A process and the bytes it holds (all ones: not known), by the call of the oldest drivers.
pub(super) fn oldest_processes(device: &Device<'_>) -> Result<Vec<(u32, u64)>, NvmlError> {
    let call = nvml_sym(device.nvml().lib().nvmlDeviceGetComputeRunningProcesses.as_ref())?;
    let mut count: c_uint = 256;
    let mut list = vec![sys::nvmlProcessInfo_v1_t { pid: 0, usedGpuMemory: 0 }; 256];
    // SAFETY: the handle belongs to this library; `count` is the room behind the pointer.
    nvml_try(unsafe { call(device.handle(), &mut count, list.as_mut_ptr()) })?;
    list.truncate(count as usize);
    Ok(list.into_iter().map(|process| (process.pid, process.usedGpuMemory)).collect())
}
