//! The forms in which logs write instants, told apart by what stands in the cell.

use super::{
    Clock, Moment,
    stamp::{DAY, civil_ns, decimal_ns, fraction_ns, offset, parts, shifted},
};

const SECOND: u64 = 1_000_000_000;
/// A plain number below this, ns, counts from the log's own beginning: as an epoch it would
/// be of 1973, before any card had a sensor.
pub(super) const LEAST_EPOCH: u64 = 100_000_000 * SECOND;
/// Epochs in ms, µs and ns have more digits than seconds ever will.
const SCALES: &[(u64, u64)] =
    &[(100_000_000_000_000_000, 1), (100_000_000_000_000, 1_000), (100_000_000_000, 1_000_000)];

/// An instant as a log writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Instant {
    /// What it counts.
    pub clock: Clock,
    /// On that clock, ns.
    pub at_ns: u64,
    /// False where it is written in whole seconds.
    pub fine: bool,
}

impl Instant {
    /// The same as a person gives it.
    pub(super) const fn moment(self) -> Moment {
        match self.clock {
            Clock::Local => Moment::Local(self.at_ns),
            Clock::Epoch => Moment::Epoch(self.at_ns),
            Clock::Elapsed => Moment::Elapsed(self.at_ns),
            Clock::Day => Moment::TimeOfDay(self.at_ns),
        }
    }
}

/// Reads a stamp with or without a zone, an epoch in s, ms, µs or ns, seconds since a beginning, or
/// a time of day.
pub(super) fn instant(text: &str) -> Option<Instant> {
    let text = text.trim();
    number(text)
        .or_else(|| of(Clock::Local, civil_ns(text), text))
        .or_else(|| zoned(text))
        .or_else(|| of(Clock::Local, american_ns(text), text))
        .or_else(|| of(Clock::Day, time_of_day_ns(text), text))
}

/// Seconds since a beginning, whatever their size.
pub(super) fn elapsed(text: &str) -> Option<Instant> {
    of(Clock::Elapsed, decimal_ns(text.trim()), text)
}

fn of(clock: Clock, at_ns: Option<u64>, text: &str) -> Option<Instant> {
    Some(Instant { clock, at_ns: at_ns?, fine: text.contains('.') })
}

fn number(text: &str) -> Option<Instant> {
    let whole: u64 = text.split('.').next()?.parse().ok()?;
    if let Some((_, scale)) = SCALES.iter().find(|(least, _)| whole >= *least) {
        let all_digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let at_ns = all_digits.then(|| whole.checked_mul(*scale)).flatten()?;
        return Some(Instant { clock: Clock::Epoch, at_ns, fine: true });
    }
    let clock = if whole < LEAST_EPOCH / SECOND { Clock::Elapsed } else { Clock::Epoch };
    of(clock, decimal_ns(text), text)
}

/// `2025-09-24T02:57:03.946Z`, `2025-09-08T17:26:50+08:00`.
fn zoned(text: &str) -> Option<Instant> {
    let (civil, ahead_s) = match text.strip_suffix(['Z', 'z']) {
        Some(civil) => (civil, 0),
        None => {
            // The date has dashes too.
            let time = text.find([' ', 'T'])?;
            let sign = time + text.get(time..)?.find(['+', '-'])?;
            (text.get(..sign)?, i64::from(offset(text.get(sign..)?)?.seconds()))
        }
    };
    let at_ns = civil_ns(civil.trim_end())?;
    of(Clock::Epoch, Some(shifted(at_ns, -ahead_s)), civil)
}

/// `07-17-2024 08:04:57.774`: month, day, year, as SPEC's power daemon writes it.
fn american_ns(text: &str) -> Option<u64> {
    let (date, time) = text.split_once(' ')?;
    let [month, day, year] = parts(date, ['-', '-'])?;
    (year >= 1970).then_some(())?;
    civil_ns(&format!("{year:04}-{month:02}-{day:02} {time}"))
}

/// `11:17:53`, `11:17:53.25`.
fn time_of_day_ns(text: &str) -> Option<u64> {
    let (time, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let [hour, minute, second] = parts(time, [':', ':'])?.map(u64::from);
    (hour < 24 && minute < 60 && second < 60).then_some(())?;
    let at_ns = (hour * 3600 + minute * 60 + second) * SECOND + fraction_ns(fraction)?;
    (at_ns < DAY).then_some(at_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_of_all_forms_are_told_apart() {
        let at = |text: &str| instant(text).map(|it| (it.clock, it.at_ns / 1_000_000, it.fine));
        let utc = Some((Clock::Epoch, 1_758_682_623_946, true));
        assert_eq!(at("2025-09-24T02:57:03.946Z"), utc);
        assert_eq!(at("2025-09-24 04:57:03.946 +02:00"), utc);
        assert_eq!(at("2025-09-23T21:57:03.946-0500"), utc);
        assert_eq!(at("1758682623946"), utc);
        assert_eq!(at("1758682623946000"), utc);
        assert_eq!(at("1758682623946000000"), utc);
        assert_eq!(at("1758682623.946"), utc);
        assert_eq!(at("2025-09-24T02:57:03"), Some((Clock::Local, 1_758_682_623_000, false)));
        assert_eq!(at("09-24-2025 02:57:03.946"), Some((Clock::Local, 1_758_682_623_946, true)));
        assert_eq!(at("02:57:03"), Some((Clock::Day, 10_623_000, false)));
        assert_eq!(at("42.5"), Some((Clock::Elapsed, 42_500, true)));
        assert_eq!(elapsed("1758682623").map(|it| it.clock), Some(Clock::Elapsed));
        for text in ["", "24:00:00", "now", "1758682623946.5", "2025-09-24", "13-41-2025 1:2:3"] {
            assert_eq!(instant(text), None, "{text}");
        }
    }
}
