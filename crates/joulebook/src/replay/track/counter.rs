//! A column of cumulative energy.
//!
//! A stamp is the instant that its value stands for. A value that stands still is an interval that
//! is still open, so the column ends with the last change that was seen.

use joulebook_core::{
    Energy, Fault, Flags,
    estimate::{Facts, Skew, Span},
    register::{DEFAULT_CEILING, Kind, Modulus, Register, Scale},
    series::{CounterTrack, Poll, series_of},
};

use super::{LEAST_LAG_S, SECOND, Told, Track, ceiling_w, median_s};
use crate::{
    reader::{Device, Reader, Reading, Value},
    replay::{Channel, Replay, Row},
};

/// Plays a column of a card's rows, which are in time order; `None` when it has no reading.
pub(super) fn play(
    channel: &Channel,
    column: usize,
    rows: &[Row],
    device: Device,
    told: Told,
    quantum: Energy,
) -> Option<Track> {
    let mut seen: Vec<(u64, u64)> = Vec::new();
    let mut lost = Vec::new();
    let mut readings = Vec::with_capacity(rows.len());
    for row in rows {
        let reading = match row.readings.get(column).copied() {
            Some(Ok(Value::Counter(raw))) => {
                seen.push((row.at_ns, raw));
                Ok(Reading { value: Value::Counter(raw), mean: None, throttle: row.throttle })
            }
            Some(Ok(Value::Power(_))) => Err(Fault::NotSupported),
            Some(Err(fault)) => Err(fault),
            None => Err(Fault::Absent),
        };
        if let Err(fault) = reading {
            lost.push((row.at_ns, row.line, fault));
        }
        readings.push((row.at_ns, reading));
    }
    let first_ns = seen.first()?.0;
    let polls_ns: Vec<u64> = rows.iter().map(|row| row.at_ns).collect();
    let poll_gap_s = median_s(&polls_ns).unwrap_or(0.0);
    // Changes, and the power of each since the one before.
    let mut changed_ns = Vec::new();
    let mut watts: Vec<f64> = Vec::new();
    let mut last = *seen.first()?;
    for (at_ns, raw) in &seen {
        if *raw != last.1 {
            let seconds = at_ns.saturating_sub(last.0) as f64 / SECOND;
            if let Some(grown) = raw.checked_sub(last.1).filter(|_| seconds > 0.0) {
                watts.push(grown as f64 / 1e6 / seconds);
            }
            changed_ns.push(*at_ns);
            last = (*at_ns, *raw);
        }
    }
    let update_s = (changed_ns.len() > 3).then(|| median_s(&changed_ns)).flatten();
    let period_s = update_s.unwrap_or(poll_gap_s).max(poll_gap_s);
    let most_w = watts.iter().copied().fold(0.0, f64::max);
    let least_w = watts.iter().copied().fold(f64::INFINITY, f64::min).min(most_w);
    let kind = Kind::Counter { scale: Scale::MICROJOULES, modulus: Modulus::None, quantum };
    let device = Device { register: kind, ..device };
    // A jump of the counter is no power that a card has had.
    let plausible_w = 3.0 * device.limit.unwrap_or(DEFAULT_CEILING).watts();
    let facts = Facts {
        ceiling_w: ceiling_w(&device, if most_w > plausible_w { 0.0 } else { most_w }),
        deepest_w: told.floor_w.min(least_w),
        poll_gap_s,
        period_s,
        lag_s: 0.0,
        lag_uncertainty_s: period_s.max(LEAST_LAG_S) + told.late_s,
        quantum_j: quantum.joules(),
        averaging_s: None,
        skew: Skew::default(),
    };
    let ceiling = joulebook_core::Power::from_watts(facts.ceiling_w).unwrap_or(DEFAULT_CEILING);
    let period_ns = (period_s * SECOND) as u64;
    let register = Register::new(Scale::MICROJOULES, Modulus::None, ceiling, period_ns);
    let mut track = CounterTrack::new(register, period_ns).stamped();
    let (mut writer, series) = series_of(rows.len().saturating_mul(2).saturating_add(2), 2);
    let mut replay = Replay::new(device.clone(), readings);
    while let Some(at_ns) = replay.next_ns() {
        let reading = replay.read().and_then(|reading| match reading.value {
            Value::Counter(raw) => Ok(raw),
            Value::Power(_) => Err(Fault::NotSupported),
        });
        track.reading(Poll::at(at_ns), reading, Flags::NONE, &mut writer);
    }
    let last_ns = series.newest().map_or(first_ns, |point| point.at_ns);
    Some(Track {
        channel: channel.clone(),
        device,
        facts,
        update_s,
        assumed: false,
        span: Span { open_ns: first_ns, close_ns: last_ns.max(first_ns) },
        readings: seen.len() as u64,
        updates: changed_ns.len() as u64 + 1,
        range_w: (least_w, most_w),
        lost,
        frozen: Vec::new(),
        series,
        polls_ns,
    })
}
