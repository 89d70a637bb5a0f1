//! Why a number is missing: one word, the same in every outlet.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One word for why a reading or a result is not there, or is not what it looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Fault {
    /// The card or its driver has no such reading. The only failure that may be remembered.
    NotSupported,
    /// The source has not delivered its first reading yet.
    NotReady,
    /// No driver library, or one that finds no driver.
    DriverAbsent,
    /// The source did not answer in time.
    Timeout,
    /// The source exists and we may not read it.
    Permission,
    /// There is no such card, file or field.
    Absent,
    /// The source could be read before and refuses now.
    AccessLost,
    /// The card fell off the bus or needs a reset.
    Lost,
    /// A reading that no such card can have.
    Implausible,
    /// A line or cell that is not of the form its source promises.
    MalformedRow,
    /// The register started again from near zero.
    CounterReset,
    /// One reading off the register's line, and back on it at the next.
    CounterGlitch,
    /// The register did not move while power was drawn.
    CounterFrozen,
    /// The register never moves.
    CounterDead,
    /// Stamps of a recording that go back.
    NonMonotonic,
    /// A fall of a register whose modulus is not known.
    AmbiguousWrap,
    /// Two sources of one quantity that cannot both be right.
    RulersDisagree,
    /// The window is shorter than what its source can tell apart.
    WindowBelowResolution,
    /// The window measured no more than the card's idle draw.
    BelowIdle,
    /// No idle floor is known, so nothing can be charged above it.
    NoBaseline,
    /// Some of the cards asked for could not be read.
    PartialDevices,
    /// Somebody else's work was on the card.
    SharedDevice,
    /// The card asked for cannot be told from another one.
    IdentityAmbiguous,
    /// A clock was set while it was being used.
    ClockStep,
    /// A stretch without readings that is too long to bridge.
    Gap,
    /// The stretch asked for is older than what is kept.
    Expired,
    /// The upstream reported an error inside a stream it had begun.
    UpstreamErrorInStream,
    /// The driver library lacks a function that is needed.
    NvmlSymbolMissing,
    /// Anything else a source may answer.
    Unknown,
}

impl Fault {
    /// The word, as it stands in JSON and in messages.
    pub const fn word(self) -> &'static str {
        match self {
            Self::NotSupported => "not_supported",
            Self::NotReady => "not_ready",
            Self::DriverAbsent => "driver_absent",
            Self::Timeout => "timeout",
            Self::Permission => "permission",
            Self::Absent => "absent",
            Self::AccessLost => "access_lost",
            Self::Lost => "lost",
            Self::Implausible => "implausible",
            Self::MalformedRow => "malformed_row",
            Self::CounterReset => "counter_reset",
            Self::CounterGlitch => "counter_glitch",
            Self::CounterFrozen => "counter_frozen",
            Self::CounterDead => "counter_dead",
            Self::NonMonotonic => "non_monotonic",
            Self::AmbiguousWrap => "ambiguous_wrap",
            Self::RulersDisagree => "rulers_disagree",
            Self::WindowBelowResolution => "window_below_resolution",
            Self::BelowIdle => "below_idle",
            Self::NoBaseline => "no_baseline",
            Self::PartialDevices => "partial_devices",
            Self::SharedDevice => "shared_device",
            Self::IdentityAmbiguous => "identity_ambiguous",
            Self::ClockStep => "clock_step",
            Self::Gap => "gap",
            Self::Expired => "expired",
            Self::UpstreamErrorInStream => "upstream_error_in_stream",
            Self::NvmlSymbolMissing => "nvml_symbol_missing",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.word())
    }
}

impl std::error::Error for Fault {}
