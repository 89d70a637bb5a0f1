//! Process lists, in all the forms that the API has had.

#![allow(unsafe_code, non_snake_case)]

use std::ffi::{c_char, c_uint, c_ulonglong};

use nvml_wrapper_sys::bindings as nvml;
use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlProcessInfo_v1_t, nvmlProcessInfo_v2_t, nvmlProcessUtilizationSample_t,
    nvmlReturn_t,
};

use super::{
    give::{INVALID, SUCCESS, TOO_SMALL, give_text},
    world::{Spent, ask, world},
};
use crate::{
    card::Model,
    clock::system_ns,
    scenario::{ClockKind, Resident},
};

/// What the API says where a number is not known.
const NOT_AVAILABLE: c_ulonglong = c_ulonglong::MAX;
const SECOND_US: u64 = 1_000_000;

/// A process in one of the API's forms.
trait Row<Of> {
    fn of(what: &Of) -> Self;
}

impl Row<&Resident> for nvmlProcessInfo_v1_t {
    fn of(resident: &&Resident) -> Self {
        Self { pid: resident.pid, usedGpuMemory: used(resident) }
    }
}

impl Row<&Resident> for nvmlProcessInfo_v2_t {
    fn of(resident: &&Resident) -> Self {
        Self {
            pid: resident.pid,
            usedGpuMemory: used(resident),
            gpuInstanceId: c_uint::MAX,
            computeInstanceId: c_uint::MAX,
        }
    }
}

/// A process, its share of the multiprocessors, and when that was seen, µs.
struct Sample {
    pid: u32,
    percent: u32,
    at_us: u64,
}

impl Row<Sample> for nvmlProcessUtilizationSample_t {
    fn of(sample: &Sample) -> Self {
        Self {
            pid: sample.pid,
            timeStamp: sample.at_us,
            smUtil: sample.percent,
            memUtil: 0,
            encUtil: 0,
            decUtil: 0,
        }
    }
}

fn used(resident: &Resident) -> c_ulonglong {
    resident.used_mib.map_or(NOT_AVAILABLE, |mib| mib << 20)
}

/// Gives a list out: `count` says how many fit, and is told how many there are.
///
/// # Safety
/// `count` is null or points to a number; `rows` is null or points to that many rows.
unsafe fn list<Of, T: Row<Of>>(
    count: *mut c_uint,
    rows: *mut T,
    answer: Result<Vec<Of>, nvmlReturn_t>,
) -> nvmlReturn_t {
    let found = match answer {
        Ok(found) => found,
        Err(code) => return code,
    };
    // SAFETY: null or a number, by this function's contract.
    let Some(count) = (unsafe { count.as_mut() }) else {
        return INVALID;
    };
    let room = *count as usize;
    *count = found.len() as c_uint;
    if found.len() > room {
        return TOO_SMALL;
    }
    if rows.is_null() {
        return if found.is_empty() { SUCCESS } else { INVALID };
    }
    for (at, one) in found.iter().enumerate() {
        // SAFETY: `at` is below the number of rows that the caller said there are.
        unsafe { rows.add(at).write(T::of(one)) };
    }
    SUCCESS
}

/// Calls that list processes.
macro_rules! lists {
    ($($name:ident: $row:ty = $residents:expr;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            device: nvmlDevice_t,
            count: *mut c_uint,
            rows: *mut $row,
        ) -> nvmlReturn_t {
            let answer = ask(device, Spent::Nothing, $residents);
            // SAFETY: the C API's contract on `count` and `rows`.
            unsafe { list(count, rows, answer) }
        }
    )*};
}

/// No process draws pictures on a simulated card.
fn none(model: &Model, t_ns: i64) -> crate::card::Answer<Vec<&Resident>> {
    model.residents(t_ns).map(|_| Vec::new())
}

lists! {
    nvmlDeviceGetComputeRunningProcesses: nvmlProcessInfo_v1_t = Model::residents;
    nvmlDeviceGetComputeRunningProcesses_v2: nvmlProcessInfo_v2_t = Model::residents;
    nvmlDeviceGetComputeRunningProcesses_v3: nvmlProcessInfo_v2_t = Model::residents;
    nvmlDeviceGetGraphicsRunningProcesses: nvmlProcessInfo_v1_t = none;
    nvmlDeviceGetGraphicsRunningProcesses_v2: nvmlProcessInfo_v2_t = none;
    nvmlDeviceGetGraphicsRunningProcesses_v3: nvmlProcessInfo_v2_t = none;
    nvmlDeviceGetMPSComputeRunningProcesses: nvmlProcessInfo_v1_t = none;
    nvmlDeviceGetMPSComputeRunningProcesses_v2: nvmlProcessInfo_v2_t = none;
    nvmlDeviceGetMPSComputeRunningProcesses_v3: nvmlProcessInfo_v2_t = none;
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetProcessUtilization(
    device: nvmlDevice_t,
    rows: *mut nvmlProcessUtilizationSample_t,
    count: *mut c_uint,
    last_seen: c_ulonglong,
) -> nvmlReturn_t {
    // A sample is of now, and over the time since the caller's last one; over the last second where
    // there was none.
    let now_us = (system_ns(ClockKind::Realtime) / 1000).cast_unsigned();
    let since_us = if last_seen == 0 { SECOND_US } else { now_us.saturating_sub(last_seen) };
    let since_ns = i64::try_from(since_us.saturating_mul(1000)).unwrap_or(i64::MAX);
    let answer = ask(device, Spent::Nothing, |model, t_ns| {
        model.at_work(t_ns.saturating_sub(since_ns), t_ns)
    });
    let sample = |(pid, percent)| Sample { pid, percent, at_us: now_us };
    let answer =
        answer.map(|work| work.into_iter().map(sample).collect::<Vec<_>>()).map(|mut samples| {
            samples.retain(|sample| sample.at_us > last_seen);
            samples
        });
    if answer.as_ref().is_ok_and(Vec::is_empty) {
        return nvml::nvmlReturn_enum_NVML_ERROR_NOT_FOUND;
    }
    // SAFETY: the C API's contract on `count` and `rows`.
    unsafe { list(count, rows, answer) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlSystemGetProcessName(
    pid: c_uint,
    out: *mut c_char,
    length: c_uint,
) -> nvmlReturn_t {
    let answer = world().and_then(|world| {
        let mut residents = world.models().iter().flat_map(|model| &model.card().residents);
        let found = residents.find(|resident| resident.pid == pid);
        found
            .map(|resident| resident.name.clone())
            .ok_or(nvml::nvmlReturn_enum_NVML_ERROR_NOT_FOUND)
    });
    // SAFETY: the C API's contract on `out` and `length`.
    unsafe { give_text(out, length, answer) }
}
