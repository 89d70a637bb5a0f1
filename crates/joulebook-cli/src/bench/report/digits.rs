//! Numbers with no more digits than a reader can use.

/// Digits of what is derived from two.
pub const RATIO: i32 = 4;
/// Digits of what stands behind a ±.
pub const BOUND: i32 = 2;

/// An amount: five digits, and three where it is below 1.
pub fn amount(value: f64) -> String {
    digits(value, if value.abs() < 1.0 { 3 } else { 5 })
}

/// A value with so many significant digits, and all that stand before the point.
pub fn digits(value: f64, count: i32) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let before = value.abs().log10().floor() as i32 + 1;
    let after = |before: i32| usize::try_from((count - before).clamp(0, 12)).unwrap_or(0);
    let text = format!("{value:.*}", after(before));
    // What is rounded up to the next power of ten has one digit more before the point.
    let grown = text.parse::<f64>().is_ok_and(|it| it.abs() >= 10f64.powi(before));
    if grown { format!("{value:.*}", after(before + 1)) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_counted_from_the_first() {
        for (value, count, text) in [
            (1_830.664, 5, "1830.7"),
            (125.487, 2, "125"),
            (2.976_6, 4, "2.977"),
            (0.268_04, 4, "0.2680"),
            (0.000_653, 2, "0.00065"),
            (99_999.96, 5, "100000"),
            (9.999_96, 4, "10.00"),
            (-12.345, 3, "-12.3"),
            (0.0, 4, "0"),
        ] {
            assert_eq!(digits(value, count), text, "{value} in {count}");
        }
        assert_eq!((amount(461.627), amount(0.02)), ("461.63".to_owned(), "0.0200".to_owned()));
    }
}
