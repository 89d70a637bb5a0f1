//! What a card has said it cannot do: the only failure that is remembered.

use std::sync::atomic::{AtomicU32, Ordering};

use joulebook_core::Fault;

/// A call of the driver library that a card may not support.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Call {
    TotalEnergy,
    EnergyField,
    InstantPower,
    AveragePower,
    ModuleInstantPower,
    ModuleAveragePower,
    PowerUsage,
    EventReasons,
    ThrottleReasons,
    PowerLimit,
    Processes,
    SharedProcesses,
    Utilization,
    Memory,
    OldMemory,
    ProcessUtilization,
    PowerState,
}

/// The calls that one card does not support, as far as they have been asked.
#[derive(Debug, Default)]
pub(super) struct Support {
    denied: AtomicU32,
    answered: AtomicU32,
}

impl Support {
    /// Makes the call, unless the card is known not to support it. A call that has answered before
    /// is supported, whatever it says now: the card refuses it.
    pub(super) fn ask<T>(
        &self,
        call: Call,
        make: impl FnOnce() -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        if self.denies(call) {
            return Err(Fault::NotSupported);
        }
        match make() {
            Ok(value) => {
                if self.answered.load(Ordering::Relaxed) & call.bit() == 0 {
                    self.answered.fetch_or(call.bit(), Ordering::Relaxed);
                }
                Ok(value)
            }
            Err(Fault::NotSupported) if self.answered.load(Ordering::Relaxed) & call.bit() != 0 => {
                Err(Fault::AccessLost)
            }
            Err(fault) => {
                if fault == Fault::NotSupported {
                    self.denied.fetch_or(call.bit(), Ordering::Relaxed);
                }
                Err(fault)
            }
        }
    }

    /// True when the card is known not to support the call.
    pub(super) fn denies(&self, call: Call) -> bool {
        self.denied.load(Ordering::Relaxed) & call.bit() != 0
    }

    /// Forgets it all: after a driver reload, or when somebody asks to probe again.
    pub(super) fn forget(&self) {
        self.denied.store(0, Ordering::Relaxed);
        self.answered.store(0, Ordering::Relaxed);
    }
}

impl Call {
    const fn bit(self) -> u32 {
        1 << (self as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembers_not_supported_and_nothing_else() {
        let support = Support::default();
        let mut asked = 0;
        for answer in [Fault::Timeout, Fault::NotSupported, Fault::Timeout] {
            let got = support.ask(Call::TotalEnergy, || -> Result<(), Fault> {
                asked += 1;
                Err(answer)
            });
            assert_eq!(got, Err(if asked == 2 { Fault::NotSupported } else { answer }));
        }
        assert_eq!(asked, 2, "after NotSupported the card is not asked again");
        assert_eq!(support.ask(Call::PowerUsage, || Ok(7)), Ok(7), "each call on its own");
        support.forget();
        assert_eq!(support.ask(Call::TotalEnergy, || Ok(1)), Ok(1));
    }

    #[test]
    fn what_has_answered_is_supported() {
        let support = Support::default();
        assert_eq!(support.ask(Call::TotalEnergy, || Ok(1)), Ok(1));
        let refused =
            support.ask(Call::TotalEnergy, || -> Result<u64, Fault> { Err(Fault::NotSupported) });
        assert_eq!(refused, Err(Fault::AccessLost));
        assert_eq!(support.ask(Call::TotalEnergy, || Ok(2)), Ok(2));
    }
}
