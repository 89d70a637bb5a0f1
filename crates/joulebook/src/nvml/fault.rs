//! The one place where the driver library's errors become ours.
//!
//! [`fault`] gives the word for a call that failed; [`LoadError`] the sentence for a driver that
//! cannot be used at all: what is missing and what to do. Only [`Fault::NotSupported`] may be
//! remembered by anybody.

use std::ffi::OsStr;

use joulebook_core::Fault;
use nvml_wrapper::error::NvmlError;

/// Why the driver library cannot be used now. Later it may: nothing here is for ever.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// There is no such library.
    #[error(
        "no NVIDIA driver library: {reason}\ninstall the driver, start the container with its \
         cards (--gpus all), or name the library in JOULEBOOK_NVML"
    )]
    Missing {
        /// What the loader said, with the names tried.
        reason: String,
    },
    /// There is a file of that name, and it cannot be loaded.
    #[error(
        "the driver library {path} cannot be loaded: {reason}\ncheck that it is the driver's own \
         library, of this machine's architecture (JOULEBOOK_NVML names another)"
    )]
    Broken {
        /// The file.
        path: String,
        /// What the loader said.
        reason: String,
    },
    /// It loads and is something else.
    #[error(
        "{path} is no NVML library: {reason}\nname the driver's libnvidia-ml.so.1 in JOULEBOOK_NVML"
    )]
    NotNvml {
        /// The file.
        path: String,
        /// What it lacks.
        reason: String,
    },
    /// It loads and refuses to work.
    #[error("the NVIDIA driver does not answer ({path}): {reason}\n{}", explain(*.fault))]
    Refused {
        /// The file.
        path: String,
        /// Our word for it.
        fault: Fault,
        /// The library's.
        reason: String,
    },
    /// Another thread has been loading it for so long that this one does not wait any more.
    #[error(
        "the NVIDIA driver library is still starting; if this stays, look for a hung driver in the \
         kernel's log (dmesg)"
    )]
    Busy,
}

impl LoadError {
    /// The word for it.
    pub const fn fault(&self) -> Fault {
        match self {
            Self::Missing { .. } | Self::Broken { .. } => Fault::DriverAbsent,
            Self::NotNvml { .. } => Fault::NvmlSymbolMissing,
            Self::Refused { fault, .. } => *fault,
            Self::Busy => Fault::Timeout,
        }
    }

    /// What a failed load of `path` means.
    pub(super) fn of(path: &OsStr, error: &NvmlError) -> Self {
        let shown = path.to_string_lossy().into_owned();
        let reason = error.to_string();
        match error {
            NvmlError::LibloadingError(cause) => {
                let reason = cause.to_string();
                // A name without a slash is searched by the loader: only its words tell whether
                // there was such a file.
                let absent = if shown.contains('/') {
                    !std::path::Path::new(path).exists()
                } else {
                    reason.contains("No such file")
                };
                if absent { Self::Missing { reason } } else { Self::Broken { path: shown, reason } }
            }
            NvmlError::FailedToLoadSymbol(_) => Self::NotNvml { path: shown, reason },
            other => Self::Refused { path: shown, fault: fault(other), reason },
        }
    }
}

/// The word for a call that failed.
pub(super) fn fault(error: &NvmlError) -> Fault {
    match error {
        NvmlError::NotSupported | NvmlError::VgpuEccNotSupported => Fault::NotSupported,
        NvmlError::NoPermission | NvmlError::OperatingSystem => Fault::Permission,
        NvmlError::NotFound => Fault::Absent,
        NvmlError::Uninitialized
        | NvmlError::DriverNotLoaded
        | NvmlError::LibraryNotFound
        | NvmlError::LibRmVersionMismatch
        | NvmlError::LibloadingError(_) => Fault::DriverAbsent,
        NvmlError::GpuLost | NvmlError::ResetRequired => Fault::Lost,
        NvmlError::Timeout => Fault::Timeout,
        NvmlError::NoData => Fault::NotReady,
        NvmlError::FailedToLoadSymbol(_) | NvmlError::FunctionNotFound => Fault::NvmlSymbolMissing,
        NvmlError::UnexpectedVariant(code) => unnamed(*code),
        _ => Fault::Unknown,
    }
}

/// The word for a call that named something (a card, a field) which the driver does not know: it
/// calls that an invalid argument.
pub(super) fn named(error: &NvmlError) -> Fault {
    match error {
        NvmlError::InvalidArg => Fault::Absent,
        other => fault(other),
    }
}

/// Return codes younger than the wrapper.
const fn unnamed(code: u32) -> Fault {
    match code {
        // ARGUMENT_VERSION_MISMATCH: the driver knows an older form of the call than we ask for.
        25 => Fault::NvmlSymbolMissing,
        // DEPRECATED
        26 => Fault::NotSupported,
        // NOT_READY
        27 => Fault::NotReady,
        // GPU_NOT_FOUND
        28 => Fault::Absent,
        _ => Fault::Unknown,
    }
}

/// What a person can do about a card or driver that answers so.
pub const fn explain(fault: Fault) -> &'static str {
    match fault {
        Fault::NotSupported => "this card or its driver has no such reading",
        Fault::NotReady => "the driver has no reading yet; ask again",
        Fault::DriverAbsent => {
            "the kernel module is not loaded, or is of another version than the library: load it \
             (modprobe nvidia), or restart after a driver update"
        }
        Fault::Timeout => "the driver did not answer in time; ask again",
        Fault::Permission => {
            "this user or container may not read the card: check the rights of /dev/nvidia* and \
             the container's device rules"
        }
        Fault::Absent => "there is no such card; `nvidia-smi -L` lists those there are",
        Fault::AccessLost => "the card could be read before and is refused now: check its rights",
        Fault::Lost => {
            "the card fell off the bus or needs a reset: see the kernel's log (dmesg), reset it \
             (nvidia-smi -r) or restart the machine"
        }
        Fault::NvmlSymbolMissing => {
            "the driver library is too old for this call: update the driver"
        }
        _ => "the driver reports an internal error; see the kernel's log (dmesg)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_has_its_word() {
        for (error, expected) in [
            (NvmlError::NotSupported, Fault::NotSupported),
            (NvmlError::NoPermission, Fault::Permission),
            (NvmlError::NotFound, Fault::Absent),
            (NvmlError::DriverNotLoaded, Fault::DriverAbsent),
            (NvmlError::LibRmVersionMismatch, Fault::DriverAbsent),
            (NvmlError::Uninitialized, Fault::DriverAbsent),
            (NvmlError::GpuLost, Fault::Lost),
            (NvmlError::ResetRequired, Fault::Lost),
            (NvmlError::Timeout, Fault::Timeout),
            (NvmlError::NoData, Fault::NotReady),
            (NvmlError::FailedToLoadSymbol("nvmlX".into()), Fault::NvmlSymbolMissing),
            (NvmlError::UnexpectedVariant(27), Fault::NotReady),
            (NvmlError::UnexpectedVariant(28), Fault::Absent),
            (NvmlError::UnexpectedVariant(4711), Fault::Unknown),
            (NvmlError::Unknown, Fault::Unknown),
            (NvmlError::InvalidArg, Fault::Unknown),
        ] {
            assert_eq!(fault(&error), expected, "{error}");
        }
        assert_eq!(named(&NvmlError::InvalidArg), Fault::Absent);
        assert_eq!(named(&NvmlError::GpuLost), Fault::Lost);
    }

    #[test]
    fn a_driver_that_refuses_says_what_to_do() {
        let error = LoadError::of(OsStr::new("libnvidia-ml.so.1"), &NvmlError::DriverNotLoaded);
        assert_eq!(error.fault(), Fault::DriverAbsent);
        let text = error.to_string();
        assert!(text.contains("libnvidia-ml.so.1") && text.contains("modprobe"), "{text}");
        assert!(text.lines().count() <= 2, "{text}");
    }
}
