//! What one more reading of a register means, decided here and nowhere else.
//!
//! A cumulative counter is read again and again; [`Register::advance`] says what each reading adds.
//! Invariants: accepted energy never falls; nothing is booked twice; a rise that no card can
//! supply is never booked; a fall, or such a rise, is provisional until the next reading tells a
//! glitch (back on the old line) from a restart or a set register (going on from the new line).
//! The modulus is a property of the register, never of the integer that carries it.
//!
//! Refused: a failed reading never becomes a number (it is a [`Step::Hole`]; the next good reading
//! spans it).

use crate::{
    fault::Fault,
    units::{Energy, Power, energy_over},
};

/// What a register is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A cumulative counter of energy.
    Counter {
        /// Microjoules per unit of the register.
        scale: Scale,
        /// Where it starts again.
        modulus: Modulus,
        /// The smallest step it shows.
        quantum: Energy,
    },
    /// A gauge of power.
    Gauge {
        /// The span that one reading is the mean over, ns; `None` where it is not known (its update
        /// period is taken, and results say `window_assumed`).
        averaging_ns: Option<u64>,
    },
}

/// Microjoules per unit of a register, as an exact ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Microjoules …
    pub numerator: u64,
    /// … per this many units; not 0.
    pub denominator: u64,
}

impl Scale {
    /// Millijoules (NVML).
    pub const MILLIJOULES: Self = Self { numerator: 1000, denominator: 1 };
    /// Microjoules (RAPL).
    pub const MICROJOULES: Self = Self { numerator: 1, denominator: 1 };
}

/// Where a register starts again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modulus {
    /// Nowhere: it can only restart or lose (NVML, Intel's hwmon).
    None,
    /// After this many units (RAPL: `max_energy_range_uj`).
    At(u64),
    /// Somewhere that is not known.
    Unknown,
}
