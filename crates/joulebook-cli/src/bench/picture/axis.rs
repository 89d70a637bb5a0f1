//! Where a value lies along an axis, and where its marks are.
//!
//! An axis that spans a factor of four or more is logarithmic, others are linear and begin at 0.

/// From this factor between the greatest and the least value on, an axis is logarithmic.
const LOGARITHMIC_FROM: f64 = 4.0;

/// More marks than these are thinned.
const MOST_MARKS: usize = 9;

/// An axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Axis {
    low: f64,
    high: f64,
    is_logarithmic: bool,
}

impl Axis {
    /// That holds all of these, with some room beyond; none of no positive values.
    pub fn of(values: &[f64], begins_at_zero: bool) -> Option<Self> {
        let sound = || values.iter().copied().filter(|value| value.is_finite() && *value > 0.0);
        let least = sound().reduce(f64::min)?;
        let most = sound().reduce(f64::max)?;
        if most / least >= LOGARITHMIC_FROM {
            let room = (most / least).powf(0.08);
            return Some(Self { low: least / room, high: most * room, is_logarithmic: true });
        }
        if begins_at_zero {
            return Some(Self { low: 0.0, high: most * 1.15, is_logarithmic: false });
        }
        let room = ((most - least) * 0.1).max(most * 0.05);
        Some(Self { low: least - room, high: most + room, is_logarithmic: false })
    }

    /// Where a value lies, 0 at the beginning and 1 at the end; held at both.
    pub fn share(&self, value: f64) -> f64 {
        let share = if self.is_logarithmic {
            (value.max(f64::MIN_POSITIVE) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        share.clamp(0.0, 1.0)
    }

    /// Round values along it: 1, 2 and 5 times powers of ten, of which about four to eight fit.
    pub fn marks(&self) -> Vec<f64> {
        if self.is_logarithmic { self.powers() } else { self.steps() }
    }

    fn powers(&self) -> Vec<f64> {
        let decades = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
        let inside = |mark: &f64| (self.low..=self.high).contains(mark);
        let of = |each: &[f64], every: usize| -> Vec<f64> {
            let marks = decades
                .clone()
                .step_by(every)
                .flat_map(|decade| each.iter().map(move |it| it * 10f64.powi(decade)));
            marks.filter(inside).collect()
        };
        let full = of(&[1.0, 2.0, 5.0], 1);
        if full.len() <= MOST_MARKS {
            return full;
        }
        let whole = of(&[1.0], 1).len();
        of(&[1.0], whole.div_ceil(MOST_MARKS))
    }

    fn steps(&self) -> Vec<f64> {
        let rough = (self.high - self.low) / 5.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .map(|it| it * power)
            .find(|step| *step >= rough)
            .unwrap_or(rough);
        let first = (self.low / step).ceil() as i64;
        (first..).map(|it| it as f64 * step).take_while(|mark| *mark <= self.high).collect()
    }
}

/// A value in few words: three significant digits, thousands as `k`.
pub fn brief(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude >= 10_000.0 {
        return format!("{}k", trimmed(value / 1000.0));
    }
    trimmed(value)
}

fn trimmed(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let digits = (2.0 - value.abs().log10().floor()).clamp(0.0, 9.0) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wide_span_is_logarithmic_and_a_narrow_one_begins_at_zero() {
        let wide = Axis::of(&[1.0, 64.0], true).unwrap();
        let apart = wide.share(64.0) - wide.share(32.0);
        assert!((wide.share(2.0) - wide.share(1.0) - apart).abs() < 1e-12, "doublings are alike");
        assert!(wide.share(1.0) > 0.0 && wide.share(64.0) < 1.0, "room at both ends");
        let narrow = Axis::of(&[2.0, 3.0], true).unwrap();
        assert_eq!(narrow.share(0.0), 0.0);
        assert!(narrow.marks().contains(&0.0));
        assert_eq!(Axis::of(&[0.0, -1.0, f64::NAN], true), None);
    }

    #[test]
    fn marks_are_round_few_and_inside() {
        for (values, begins) in [
            (vec![0.072, 2.99], true),
            (vec![154.3, 9000.0], true),
            (vec![1e-4, 1e9], true),
            (vec![1.0, 3.0], true),
            (vec![7.0], true),
            (vec![10.0, 12.0], false),
        ] {
            let axis = Axis::of(&values, begins).unwrap();
            let marks = axis.marks();
            assert!((2..=MOST_MARKS).contains(&marks.len()), "{values:?}: {marks:?}");
            assert!(marks.iter().all(|mark| (0.0..=1.0).contains(&axis.share(*mark))));
            assert!(marks.windows(2).all(|pair| pair[0] < pair[1]));
        }
    }

    #[test]
    fn values_are_brief() {
        for (value, text) in [
            (0.0, "0"),
            (2.991_4, "2.99"),
            (0.072_34, "0.0723"),
            (0.5, "0.5"),
            (154.3, "154"),
            (1136.3, "1136"),
            (12_345.0, "12.3k"),
            (20_000.0, "20k"),
        ] {
            assert_eq!(brief(value), text);
        }
    }
}
