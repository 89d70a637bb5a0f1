//! Quantities as types: integers inside, prefixes only in the names of conversions.
//!
//! [`Energy`] counts microjoules and [`Power`] microwatts, both unsigned: a register only rises
//! and a card only draws. A difference that may be negative (energy above idle) is a float on the
//! page, in joules. Nothing here rounds silently: the float constructors refuse what is not a
//! finite, non-negative number.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An amount of energy, in whole microjoules.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Energy(u64);

/// A power, in whole microwatts.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Power(u64);

impl Energy {
    /// A measured nothing.
    pub const ZERO: Self = Self(0);

    /// From whole microjoules.
    pub const fn from_microjoules(microjoules: u64) -> Self {
        Self(microjoules)
    }

    /// From joules; `None` unless finite, non-negative and below 2^64 µJ.
    pub fn from_joules(joules: f64) -> Option<Self> {
        micro(joules).map(Self)
    }

    /// Whole microjoules.
    pub const fn microjoules(self) -> u64 {
        self.0
    }

    /// Joules, for the page.
    pub fn joules(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Sum, or `None` past 2^64 µJ.
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(sum) => Some(Self(sum)),
            None => None,
        }
    }

    /// Sum, held at 2^64 − 1 µJ (18 million MJ: no card gets there).
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Difference, or `None` where it would be negative.
    pub const fn checked_sub(self, other: Self) -> Option<Self> {
        match self.0.checked_sub(other.0) {
            Some(difference) => Some(Self(difference)),
            None => None,
        }
    }
}

impl Power {
    /// A measured nothing.
    pub const ZERO: Self = Self(0);

    /// From whole microwatts.
    pub const fn from_microwatts(microwatts: u64) -> Self {
        Self(microwatts)
    }

    /// From whole milliwatts, the driver's unit.
    pub const fn from_milliwatts(milliwatts: u32) -> Self {
        Self(milliwatts as u64 * 1000)
    }

    /// From watts; `None` unless finite, non-negative and below 2^64 µW.
    pub fn from_watts(watts: f64) -> Option<Self> {
        micro(watts).map(Self)
    }

    /// Whole microwatts.
    pub const fn microwatts(self) -> u64 {
        self.0
    }

    /// Watts, for the page.
    pub fn watts(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

/// The most energy a draw of `power` can move in `nanoseconds`, rounded up, held at 2^64 − 1 µJ.
pub fn energy_over(power: Power, nanoseconds: u64) -> Energy {
    let product = u128::from(power.0) * u128::from(nanoseconds);
    Energy(u64::try_from(product.div_ceil(1_000_000_000)).unwrap_or(u64::MAX))
}

/// Whole millionths of a finite, non-negative number.
fn micro(value: f64) -> Option<u64> {
    let scaled = (value * 1e6).round();
    // 2^64 is exact in f64; a cast above it would saturate without a word.
    (value.is_finite() && value >= 0.0 && scaled < 18_446_744_073_709_551_616.0)
        .then_some(scaled as u64)
}

impl fmt::Display for Energy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} J", significant(self.joules()))
    }
}

impl fmt::Display for Power {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} W", significant(self.watts()))
    }
}

/// A number for people: three decimals, but never fewer than three significant digits, so that a
/// small measured amount does not print as 0.
pub fn significant(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude == 0.0 || magnitude >= 0.1 {
        return format!("{value:.3}");
    }
    let digits = (2.0 - magnitude.log10().floor()).clamp(3.0, 12.0) as usize;
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_that_are_no_quantity_are_refused() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.001, 2e13] {
            assert_eq!(Energy::from_joules(bad), None, "{bad}");
            assert_eq!(Power::from_watts(bad), None, "{bad}");
        }
        assert_eq!(Energy::from_joules(1.5).map(Energy::microjoules), Some(1_500_000));
    }

    #[test]
    fn small_amounts_keep_three_significant_digits() {
        assert_eq!(significant(0.000_123_4), "0.000123");
        assert_eq!(significant(0.0123), "0.0123");
        assert_eq!(significant(12.345_67), "12.346");
        assert_eq!(significant(0.0), "0.000");
    }

    #[test]
    fn energy_over_rounds_up_and_does_not_overflow() {
        let watt = Power::from_microwatts(1_000_000);
        assert_eq!(energy_over(watt, 1).microjoules(), 1);
        assert_eq!(energy_over(watt, 2_000_000_000).microjoules(), 2_000_000);
        assert_eq!(energy_over(Power::from_microwatts(u64::MAX), u64::MAX).microjoules(), u64::MAX);
    }
}
