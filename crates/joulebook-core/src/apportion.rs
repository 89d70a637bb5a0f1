//! An amount split by weights, exactly: every microjoule goes to somebody, once.
//!
//! Cumulative rounding: with prefix sums S of the weights, share i is
//! `⌊A·S_i/W⌋ − ⌊A·S_{i−1}/W⌋`. The shares add to A, and each lies within one microjoule of its
//! exact value. No sort, no allocation, one pass.

#![cfg_attr(not(test), deny(clippy::float_arithmetic, clippy::arithmetic_side_effects))]

/// Splits `amount` by `weights` into `shares`, which are as many; false, and nothing written, when
/// no weight is above zero.
pub fn apportion(amount: u64, weights: &[u64], shares: &mut [u64]) -> bool {
    let whole = weights.iter().fold(0u128, |sum, weight| sum.saturating_add(u128::from(*weight)));
    if whole == 0 {
        return false;
    }
    if let Some(whole) =
        u64::try_from(whole).ok().filter(|whole| whole.checked_mul(amount).is_some())
    {
        narrow(amount, whole, weights, shares);
        return true;
    }
    let mut prefix = 0u128;
    let mut given = 0u64;
    for (weight, share) in weights.iter().zip(shares) {
        prefix = prefix.saturating_add(u128::from(*weight));
        let so_far = portion(amount, prefix, whole);
        *share = so_far.saturating_sub(given);
        given = so_far;
    }
    true
}

/// The same where amount × whole fits a word, as nearly always: a division of words is several times
/// faster.
fn narrow(amount: u64, whole: u64, weights: &[u64], shares: &mut [u64]) {
    let (mut prefix, mut given) = (0u64, 0u64);
    for (weight, share) in weights.iter().zip(shares) {
        if *weight == 0 {
            *share = 0;
            continue;
        }
        prefix = prefix.saturating_add(*weight);
        let so_far = prefix.saturating_mul(amount).checked_div(whole).unwrap_or(0);
        *share = so_far.saturating_sub(given);
        given = so_far;
    }
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
