//! Instants of logs: stamps without a zone, epoch seconds, and what joins them.
//!
//! A log's own clock is kept: local stamps are counted as if they were UTC, and a moment that is
//! given otherwise is brought to that clock. Fractions are read as decimals, never as floats.

use std::{fmt, str::FromStr};

use jiff::{
    civil::DateTime,
    tz::{Offset, TimeZone},
};

use super::{
    Clock, ReplayError,
    instant::{LEAST_EPOCH, instant},
};

const SECOND: u64 = 1_000_000_000;
/// A day without a change of the clocks, ns.
pub(super) const DAY: u64 = 86_400 * SECOND;

/// The zone that a log's stamps are in.
#[derive(Clone, Debug, PartialEq)]
pub struct Zone {
    zone: TimeZone,
    name: String,
}

impl Zone {
    /// How far the zone is ahead of UTC when its clocks show `local_ns`, s.
    pub fn ahead_s(&self, local_ns: u64) -> i64 {
        let seconds = i64::try_from(local_ns / SECOND).unwrap_or(i64::MAX);
        let Ok(stamp) = jiff::Timestamp::from_second(seconds) else { return 0 };
        let civil = Offset::UTC.to_datetime(stamp);
        let zoned = self.zone.to_ambiguous_zoned_datetime(civil).compatible();
        zoned.map_or(0, |zoned| i64::from(zoned.offset().seconds()))
    }
}

impl FromStr for Zone {
    type Err = String;

    /// `+01:00`, `-5`, `Z`, or a zone's name (`Europe/London`).
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let help = || format!("`{text}` is no zone: write +01:00, or a name as Europe/London");
        let zone = match text.as_bytes().first() {
            Some(b'+' | b'-') => TimeZone::fixed(offset(text).ok_or_else(help)?),
            _ if matches!(text, "Z" | "z") => TimeZone::UTC,
            _ => TimeZone::get(text).map_err(|_| help())?,
        };
        Ok(Self { zone, name: text.to_owned() })
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)
    }
}

pub(super) fn offset(text: &str) -> Option<Offset> {
    let digits: String = text.get(1..)?.chars().filter(|letter| *letter != ':').collect();
    let number: i32 =
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())??;
    let (hours, minutes) =
        if digits.len() <= 2 { (number, 0) } else { (number / 100, number % 100) };
    let sign = if text.starts_with('-') { -1 } else { 1 };
    (hours <= 25 && minutes < 60).then_some(())?;
    Offset::from_seconds(sign * (hours * 3600 + minutes * 60)).ok()
}

/// An instant, as a person or a file of marks gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Since 1970 in UTC, ns.
    Epoch(u64),
    /// A stamp without a zone, counted as if it were UTC, ns.
    Local(u64),
    /// Since the recording's first row, ns.
    FromStart(u64),
    /// On the clock of a recording that counts from its own beginning, ns.
    Elapsed(u64),
    /// Since midnight, the date left open, ns.
    TimeOfDay(u64),
}

impl Moment {
    /// The instant on the recording's own clock, ns.
    pub fn on(self, clock: Clock, zone: Option<&Zone>, first_ns: u64) -> Result<u64, ReplayError> {
        match (self, clock) {
            (Self::FromStart(ns), _) => Ok(first_ns.saturating_add(ns)),
            (Self::Local(ns), Clock::Local)
            | (Self::Epoch(ns), Clock::Epoch)
            | (Self::Elapsed(ns), Clock::Elapsed) => Ok(ns),
            (Self::TimeOfDay(ns), Clock::Day | Clock::Local) => Ok(on_day_of(first_ns, ns)),
            (Self::TimeOfDay(ns), Clock::Epoch) => {
                let zone = zone.ok_or(ReplayError::NeedsZone)?;
                let local_ns = on_day_of(shifted(first_ns, zone.ahead_s(first_ns)), ns);
                Ok(shifted(local_ns, -zone.ahead_s(local_ns)))
            }
            (Self::Elapsed(_), _) => Err(ReplayError::NoElapsedClock),
            (Self::Epoch(ns), Clock::Local) => {
                let zone = zone.ok_or(ReplayError::NeedsZone)?;
                Ok(shifted(ns, zone.ahead_s(first_ns)))
            }
            (Self::Local(ns), Clock::Epoch) => {
                let zone = zone.ok_or(ReplayError::NeedsZone)?;
                Ok(shifted(ns, -zone.ahead_s(ns)))
            }
            (Self::Epoch(ns), Clock::Elapsed) if ns < LEAST_EPOCH => Ok(ns),
            (_, Clock::Elapsed) => Err(ReplayError::NoAbsoluteClock),
            (_, Clock::Day) => Err(ReplayError::NoDate),
        }
    }
}

impl FromStr for Moment {
    type Err = String;

    /// Epoch seconds, `+3.5` (seconds from the first row), or a stamp as a log writes it.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let from_start = text.strip_prefix('+').and_then(decimal_ns).map(Self::FromStart);
        let stamp = || match instant(text)?.moment() {
            // A small number may be an epoch of an invented clock: the log decides.
            Self::Elapsed(ns) => Some(Self::Epoch(ns)),
            moment => Some(moment),
        };
        from_start.or_else(stamp).ok_or_else(|| {
            format!(
                "`{text}` is no time: write epoch seconds (1689325967.98), seconds from the \
                     first row (+3.5), or a stamp as in the log (2023/07/14 10:12:47.983)"
            )
        })
    }
}

/// An instant moved by whole seconds.
pub(super) fn shifted(ns: u64, seconds: i64) -> u64 {
    let by_ns = seconds.unsigned_abs().saturating_mul(SECOND);
    if seconds < 0 { ns.saturating_sub(by_ns) } else { ns.saturating_add(by_ns) }
}

/// The instant with this time of day that is nearest to a recording's beginning: on its day, or,
/// where that is most of a day earlier, on the next.
fn on_day_of(first_ns: u64, time_ns: u64) -> u64 {
    let at_ns = (first_ns - first_ns % DAY).saturating_add(time_ns);
    if at_ns.saturating_add(DAY / 2) < first_ns { at_ns.saturating_add(DAY) } else { at_ns }
}

/// Seconds as a plain decimal, in ns; digits beyond ns are dropped.
pub(super) fn decimal_ns(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    whole.checked_mul(SECOND)?.checked_add(fraction_ns(fraction)?)
}

/// `YYYY/MM/DD HH:MM:SS.mmm` (dashes and a `T` will do too), counted as if it were UTC, ns.
pub(crate) fn civil_ns(text: &str) -> Option<u64> {
    let (date, time) = text.trim().split_once([' ', 'T'])?;
    let [year, month, day] = parts(date, ['/', '-'])?;
    let (time, fraction) = time.trim().split_once('.').unwrap_or((time.trim(), "0"));
    let [hour, minute, second] = parts(time, [':', ':'])?;
    let nanosecond = i32::try_from(fraction_ns(fraction)?).ok()?;
    let small = |number: u16| i8::try_from(number).ok();
    let civil = DateTime::new(
        i16::try_from(year).ok()?,
        small(month)?,
        small(day)?,
        small(hour)?,
        small(minute)?,
        small(second)?,
        nanosecond,
    );
    let stamp = Offset::UTC.to_timestamp(civil.ok()?).ok()?;
    u64::try_from(stamp.as_nanosecond()).ok()
}

pub(super) fn parts(text: &str, between: [char; 2]) -> Option<[u16; 3]> {
    let mut parts = text.split(between).map(|part| {
        part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse::<u16>().ok()).flatten()
    });
    let all = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(all)
}

pub(super) fn fraction_ns(digits: &str) -> Option<u64> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let kept = digits.get(..digits.len().min(9))?;
    let value: u64 = kept.parse().ok()?;
    value.checked_mul(10u64.checked_pow(9 - u32::try_from(kept.len()).ok()?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_and_epoch_seconds_meet_by_the_zone() {
        let stamp = civil_ns("2023/07/14 10:12:47.982").unwrap();
        assert_eq!(Some(stamp), decimal_ns("1689329567.982"));
        let zone: Zone = "+01:00".parse().unwrap();
        let epoch: Moment = "1689325967.982".parse().unwrap();
        assert_eq!(epoch.on(Clock::Local, Some(&zone), stamp).unwrap(), stamp);
        // A system without the zones' rules knows no names.
        if let Ok(london) = "Europe/London".parse::<Zone>() {
            assert_eq!(epoch.on(Clock::Local, Some(&london), stamp).unwrap(), stamp);
        } else {
            println!("skipped: this system has no rules of zones");
        }
        assert!(matches!(epoch.on(Clock::Local, None, stamp), Err(ReplayError::NeedsZone)));
        let local: Moment = "2023-07-14T10:12:47.982".parse().unwrap();
        assert_eq!(local.on(Clock::Local, None, 0).unwrap(), stamp);
        let from_start: Moment = "+1.5".parse().unwrap();
        assert_eq!(from_start.on(Clock::Local, None, stamp).unwrap(), stamp + 1_500_000_000);
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in ["", "now", "1e9", "-5", "2023/13/01 00:00:00", "2023/07/14 25:00:00", "1."] {
            assert!(text.parse::<Moment>().is_err(), "{text}");
        }
        for text in ["1969/12/31 23:59:59.999", "9999/01/01 00:00:00", "2023/07/14 10:12:47.9z"] {
            assert_eq!(civil_ns(text), None, "{text}");
        }
        for text in ["", "+", "+1:2:3x", "+99", "Nowhere/At", "+0160", "+é1"] {
            assert!(text.parse::<Zone>().is_err(), "{text}");
        }
        for (text, seconds) in [("-5", -18000), ("+0530", 19800), ("Z", 0)] {
            assert_eq!(text.parse::<Zone>().unwrap().ahead_s(1 << 60), seconds, "{text}");
        }
    }
}
