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
}

/// The calls that one card does not support, as far as they have been asked.
#[derive(Debug, Default)]
pub(super) struct Support(AtomicU32);

impl Support {
    /// Makes the call, unless the card is known not to support it.
    pub(super) fn ask<T>(
        &self,
        call: Call,
        make: impl FnOnce() -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let bit = 1_u32 << (call as u8);
        if self.0.load(Ordering::Relaxed) & bit != 0 {
            return Err(Fault::NotSupported);
        }
        let answer = make();
        if matches!(answer, Err(Fault::NotSupported)) {
            self.0.fetch_or(bit, Ordering::Relaxed);
        }
        answer
    }

    /// Forgets it all: after a driver reload, or when somebody asks to probe again.
    pub(super) fn forget(&self) {
        self.0.store(0, Ordering::Relaxed);
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
}
