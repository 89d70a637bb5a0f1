//! An amount split by weights, exactly: every microjoule goes to somebody, once.
//!
//! Cumulative rounding: with prefix sums S of the weights, share i is
//! `⌊A·S_i/W⌋ − ⌊A·S_{i−1}/W⌋`. The shares add to A, and each lies within one microjoule of its
//! exact value. No sort, no allocation, one pass, and where W fits a word, as nearly always, no
//! division but one: by a reciprocal, where A·W fits one too; else by the two-word division of Möller
//! and Granlund ("Improved division by invariant integers", 2011, algorithm 4).

#![cfg_attr(not(test), deny(clippy::float_arithmetic, clippy::arithmetic_side_effects))]

/// An amount that is handed out weight by weight, in the order of the weights.
#[derive(Clone, Copy, Debug)]
pub struct Portions {
    amount: u64,
    whole: Whole,
    prefix: u128,
    given: u64,
}

/// The sum of the weights, and how to divide by it.
#[derive(Clone, Copy, Debug)]
enum Whole {
    /// Amount × whole fits a word; ⌊(2^64 − 1) / whole⌋.
    Narrow {
        whole: u64,
        reciprocal: u64,
    },
    /// The whole fits a word: shifted so that its highest bit is set; ⌊(2^128 − 1) / shifted⌋ − 2^64.
    Word {
        shifted: u64,
        shift: u32,
        reciprocal: u64,
    },
    Wide(u128),
}

impl Portions {
    /// Of an amount by weights with that sum; none when no weight is above zero.
    pub fn new(amount: u64, whole: u128) -> Option<Self> {
        let whole = match u64::try_from(whole) {
            Ok(whole) if whole.checked_mul(amount).is_some() => {
                Whole::Narrow { whole, reciprocal: u64::MAX.checked_div(whole)? }
            }
            Ok(whole) => {
                let shift = whole.leading_zeros();
                let shifted = whole << shift;
                let reciprocal = u128::MAX.checked_div(shifted.into())? as u64;
                Whole::Word { shifted, shift, reciprocal }
            }
            Err(_) => Whole::Wide(whole),
        };
        Some(Self { amount, whole, prefix: 0, given: 0 })
    }

    /// The share of the next weight.
    #[inline]
    pub fn next(&mut self, weight: u64) -> u64 {
        if weight == 0 {
            return 0;
        }
        self.prefix = self.prefix.saturating_add(u128::from(weight));
        let so_far = match self.whole {
            Whole::Narrow { whole, reciprocal } => self.narrow(whole, reciprocal),
            Whole::Word { shifted, shift, reciprocal } => {
                let prefix = self.prefix.min(u128::from(shifted >> shift));
                let product = u128::from(self.amount).wrapping_mul(prefix);
                quotient(product << shift, shifted, reciprocal)
            }
            Whole::Wide(whole) => portion(self.amount, self.prefix, whole),
        };
        let share = so_far.saturating_sub(self.given);
        self.given = so_far;
        share
    }

    /// ⌊amount · prefix / whole⌋ by a multiplication: the reciprocal is cut off by less than one, so
    /// the quotient comes out right or one too small, which the remainder tells.
    #[inline]
    fn narrow(&self, whole: u64, reciprocal: u64) -> u64 {
        let prefix = (self.prefix as u64).min(whole);
        let product = prefix.wrapping_mul(self.amount);
        let quotient = (u128::from(product).wrapping_mul(u128::from(reciprocal)) >> 64) as u64;
        let left = product.wrapping_sub(quotient.wrapping_mul(whole));
        quotient.wrapping_add(u64::from(left >= whole))
    }
}

/// ⌊two words / divisor⌋, which fits a word; the divisor's highest bit is set.
fn quotient(product: u128, divisor: u64, reciprocal: u64) -> u64 {
    let (high, low) = ((product >> 64) as u64, product as u64);
    let estimate = u128::from(reciprocal).wrapping_mul(u128::from(high)).wrapping_add(product);
    let mut quotient = ((estimate >> 64) as u64).wrapping_add(1);
    let mut left = low.wrapping_sub(quotient.wrapping_mul(divisor));
    if left > estimate as u64 {
        quotient = quotient.wrapping_sub(1);
        left = left.wrapping_add(divisor);
    }
    quotient.wrapping_add(u64::from(left >= divisor))
}

/// Splits `amount` by `weights` into `shares`, which are as many; false, and nothing written, when
/// no weight is above zero.
pub fn apportion(amount: u64, weights: &[u64], shares: &mut [u64]) -> bool {
    let whole = weights.iter().fold(0u128, |sum, weight| sum.saturating_add(u128::from(*weight)));
    let Some(mut portions) = Portions::new(amount, whole) else { return false };
    for (weight, share) in weights.iter().zip(shares) {
        *share = portions.next(*weight);
    }
    true
}

/// ⌊amount · part / whole⌋, for part ≤ whole, both sums of fewer than 2^64 weights.
fn portion(amount: u64, part: u128, whole: u128) -> u64 {
    if part >= whole {
        return amount;
    }
    let exact = match u128::from(amount).checked_mul(part) {
        Some(product) => product.checked_div(whole),
        // Beyond 2^64 of weights: fewer digits of both keep the ratio to a part in 2^63.
        None => {
            let shift = part
                .leading_zeros()
                .saturating_sub(64)
                .max(64_u32.saturating_sub(part.leading_zeros()));
            let part = part.checked_shr(shift).unwrap_or(0);
            let whole = whole.checked_shr(shift).unwrap_or(1).max(1);
            u128::from(amount).saturating_mul(part).checked_div(whole)
        }
    };
    exact.map_or(0, |share| u64::try_from(share).unwrap_or(amount)).min(amount)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100_000))]

        #[test]
        fn shares_add_up_and_each_is_within_one_of_its_exact_value(
            amount in 0u64..1 << 40,
            weights in proptest::collection::vec(prop_oneof![Just(0u64), 0u64..1 << 40], 1..12),
        ) {
            let mut shares = vec![0; weights.len()];
            let whole: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
            prop_assert_eq!(apportion(amount, &weights, &mut shares), whole > 0);
            if whole > 0 {
                prop_assert_eq!(shares.iter().sum::<u64>(), amount);
                for (weight, share) in weights.iter().zip(&shares) {
                    let exact = u128::from(amount) * u128::from(*weight);
                    let given = u128::from(*share) * whole;
                    prop_assert!(given.abs_diff(exact) < whole, "{weight}: {share}");
                    prop_assert!(*weight > 0 || *share == 0, "no weight, no share");
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(50_000))]

        /// Near the edges of what fits a word, against the plain division.
        #[test]
        fn the_reciprocal_divides_as_a_division_does(
            whole in 1u64..,
            bits in 0u32..64,
            part in 0.0..1.0f64,
            near in 0u64..3,
        ) {
            let whole = (whole >> bits).max(1);
            let near_whole = whole.saturating_sub(near);
            let firsts = [((whole as f64 * part) as u64).min(whole), near_whole, near.min(whole)];
            // The largest that fits, the next one, and far beyond.
            for amount in [u64::MAX / whole, (u64::MAX / whole).saturating_add(1), u64::MAX - near] {
                for first in firsts {
                    let mut portions = Portions::new(amount, whole.into()).unwrap();
                    let exact = u128::from(amount) * u128::from(first) / u128::from(whole);
                    prop_assert_eq!(u128::from(portions.next(first)), exact);
                    let rest = portions.next(whole - first);
                    prop_assert_eq!(u128::from(rest), u128::from(amount) - exact);
                }
            }
        }
    }

    #[test]
    fn the_largest_numbers_do_not_overflow() {
        let weights = [u64::MAX; 5];
        let mut shares = [0; 5];
        assert!(apportion(u64::MAX, &weights, &mut shares));
        assert_eq!(
            shares.iter().map(|share| u128::from(*share)).sum::<u128>(),
            u128::from(u64::MAX)
        );
        assert!(shares.iter().all(|share| share.abs_diff(u64::MAX / 5) <= 1 << 3));
    }
}
