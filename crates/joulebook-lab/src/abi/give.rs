//! How an answer goes out through a caller's pointer.
//!
//! Every function here is unsafe for one reason: the caller of the C API promises that an out
//! pointer is null or points to memory of the type (and the length) that the API names. Null is
//! answered with INVALID_ARGUMENT.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_uint};

use nvml_wrapper_sys::bindings as nvml;
use nvml_wrapper_sys::bindings::nvmlReturn_t;

/// It went well.
pub(super) const SUCCESS: nvmlReturn_t = nvml::nvmlReturn_enum_NVML_SUCCESS;
/// The arguments are wrong.
pub(super) const INVALID: nvmlReturn_t = nvml::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT;
/// What the caller gave is too small.
pub(super) const TOO_SMALL: nvmlReturn_t = nvml::nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE;

/// The number of an outcome that gives nothing out.
pub(super) fn outcome(result: Result<(), nvmlReturn_t>) -> nvmlReturn_t {
    result.err().unwrap_or(SUCCESS)
}

/// Gives a value out.
///
/// # Safety
/// `out` is null or points to memory for a `T`.
pub(super) unsafe fn give<T>(out: *mut T, answer: Result<T, nvmlReturn_t>) -> nvmlReturn_t {
    if out.is_null() {
        return INVALID;
    }
    match answer {
        Ok(value) => {
            // SAFETY: not null, so by this function's contract memory for a `T`.
            unsafe { out.write(value) };
            SUCCESS
        }
        Err(code) => code,
    }
}

/// Gives a text out, with its final NUL.
///
/// # Safety
/// `out` is null or points to `length` bytes.
pub(super) unsafe fn give_text(
    out: *mut c_char,
    length: c_uint,
    answer: Result<String, nvmlReturn_t>,
) -> nvmlReturn_t {
    if out.is_null() {
        return INVALID;
    }
    match answer {
        Ok(text) if text.len() < length as usize => {
            // SAFETY: the text and one byte fit into `length`, which by this function's contract
            // is there; the text is not in the caller's memory.
            unsafe {
                out.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), text.len());
                out.add(text.len()).write(0);
            }
            SUCCESS
        }
        Ok(_) => TOO_SMALL,
        Err(code) => code,
    }
}

/// Takes a text in.
///
/// # Safety
/// `text` is null or a NUL-terminated string that lives past the call.
pub(super) unsafe fn take_text<'a>(text: *const c_char) -> Result<&'a str, nvmlReturn_t> {
    if text.is_null() {
        return Err(INVALID);
    }
    // SAFETY: not null, so by this function's contract a string.
    unsafe { CStr::from_ptr(text) }.to_str().map_err(|_| INVALID)
}
