//! Confidence intervals of a mean, by Student's distribution over repeats.
//!
//! Two samples are compared by the logarithm of their ratio, since costs differ by factors: paired
//! (repeat by repeat) where the repeats belong together, else by Welch's rule with its degrees of
//! freedom rounded down. Refused: an interval from one value.

/// Confidence of all intervals here.
pub const CONFIDENCE: f64 = 0.95;

/// A mean and the interval that holds it with [`CONFIDENCE`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// From here.
    pub low: f64,
    /// To here.
    pub high: f64,
}

/// Of the mean of these; none of fewer than two.
pub fn of_mean(values: &[f64]) -> Option<Interval> {
    let (mean, variance) = moments(values)?;
    let freedom = (values.len() - 1) as u32;
    let half = quantile(freedom) * (variance / values.len() as f64).sqrt();
    Some(Interval { mean, low: mean - half, high: mean + half })
}

/// Of the ratio `b / a` of two samples that belong together pair by pair; none of fewer than two.
pub fn of_paired_ratio(a: &[f64], b: &[f64]) -> Option<Interval> {
    if a.len() != b.len() {
        return None;
    }
    of_mean(&logarithms(b.iter().zip(a).map(|(b, a)| b / a))?).map(Interval::exponential)
}

/// Of the ratio `b / a` of two samples of their own; none where one has fewer than two.
pub fn of_ratio(a: &[f64], b: &[f64]) -> Option<Interval> {
    let of = |values: &[f64]| {
        let logarithms = logarithms(values.iter().copied())?;
        let (mean, variance) = moments(&logarithms)?;
        Some((mean, variance / values.len() as f64, values.len() as f64 - 1.0))
    };
    let ((a_mean, a, a_freedom), (b_mean, b, b_freedom)) = (of(a)?, of(b)?);
    let spread = a + b;
    let freedom = if spread > 0.0 {
        (spread * spread / (a * a / a_freedom + b * b / b_freedom)).floor().max(1.0)
    } else {
        a_freedom + b_freedom
    };
    let half = quantile(freedom as u32) * spread.sqrt();
    let mean = b_mean - a_mean;
    Some(Interval { mean, low: mean - half, high: mean + half }.exponential())
}

impl Interval {
    fn exponential(self) -> Self {
        Self { mean: self.mean.exp(), low: self.low.exp(), high: self.high.exp() }
    }
}

fn logarithms(values: impl Iterator<Item = f64>) -> Option<Vec<f64>> {
    let logarithm = |value: f64| (value > 0.0 && value.is_finite()).then(|| value.ln());
    values.map(logarithm).collect()
}

/// Mean and variance (of a sample); none of fewer than two.
fn moments(values: &[f64]) -> Option<(f64, f64)> {
    if values.len() < 2 {
        return None;
    }
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((mean, squares / (count - 1.0)))
}

/// Within so many standard errors on both sides a mean lies with [`CONFIDENCE`].
fn quantile(freedom: u32) -> f64 {
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    while inside(high, freedom) < CONFIDENCE {
        high *= 2.0;
    }
    for _ in 0..80 {
        let middle = f64::midpoint(low, high);
        if inside(middle, freedom) < CONFIDENCE {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

/// The probability that Student's variable lies within ±`t`: the finite series in the angle whose
/// tangent is t/√n, which differs for odd and even n.
fn inside(t: f64, freedom: u32) -> f64 {
    let angle = (t / f64::from(freedom).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    let is_odd = freedom % 2 == 1;
    let mut term = if is_odd { cosine } else { 1.0 };
    let mut sum = 0.0;
    let mut step = if is_odd { 2 } else { 1 };
    // Odd n: cos + 2/3 cos³ + 2·4/3·5 cos⁵ + …, (n − 1)/2 terms; even n: 1 + 1/2 cos² + …, n/2.
    for _ in 0..freedom / 2 {
        sum += term;
        term *= cosine * cosine * f64::from(step) / f64::from(step + 1);
        step += 2;
    }
    if is_odd { std::f64::consts::FRAC_2_PI * (angle + sine * sum) } else { sine * sum }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::sample;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (freedom, expected) in [
            (1, 12.706_205),
            (2, 4.302_653),
            (3, 3.182_446),
            (4, 2.776_445),
            (5, 2.570_582),
            (9, 2.262_157),
            (10, 2.228_139),
            (30, 2.042_272),
            (100, 1.983_972),
        ] {
            let found = quantile(freedom);
            assert!((found - expected).abs() < 1e-5, "{freedom}: {found}");
        }
    }

    #[test]
    fn an_interval_needs_two_values() {
        assert_eq!(of_mean(&[1.0]), None);
        assert_eq!(of_paired_ratio(&[1.0], &[2.0]), None);
        assert_eq!(of_paired_ratio(&[1.0, 2.0], &[2.0]), None);
        assert_eq!(of_ratio(&[1.0, 2.0], &[2.0]), None);
        assert_eq!(of_paired_ratio(&[1.0, 0.0], &[2.0, 1.0]), None, "no ratio of nothing");
        let of = of_mean(&[1.0, 3.0]).unwrap();
        assert!((of.mean - 2.0).abs() < 1e-12 && (of.high - of.mean - 12.706_205).abs() < 1e-5);
    }

    #[test]
    fn pairs_take_out_what_both_share() {
        let a = [1.0, 2.0, 4.0];
        let b = a.map(|it| it * 1.1);
        let paired = of_paired_ratio(&a, &b).unwrap();
        assert!((paired.low - 1.1).abs() < 1e-9 && (paired.high - 1.1).abs() < 1e-9);
        let apart = of_ratio(&a, &b).unwrap();
        assert!((apart.mean - 1.1).abs() < 1e-9);
        assert!(apart.low < 0.5 && apart.high > 2.0, "{apart:?}");
    }

    /// Of many samples from one distribution, about one in twenty lies outside.
    #[test]
    fn intervals_hold_as_often_as_they_say() {
        let mut place = 0;
        let mut sample = |median: f64| {
            [(); 4].map(|()| {
                place += 1;
                median * (0.05 * sample::normal(place)).exp()
            })
        };
        let rounds = 4000;
        let mut held = 0;
        for _ in 0..rounds {
            let of = of_ratio(&sample(1.0), &sample(1.25)).unwrap();
            held += u32::from(of.low <= 1.25 && 1.25 <= of.high);
        }
        let share = f64::from(held) / f64::from(rounds);
        assert!((0.94..0.975).contains(&share), "{share}");
    }
}
