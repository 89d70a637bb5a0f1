//! A column of power, joined by the trapezoid.

use std::sync::Arc;

use joulebook_core::{
    Fault, Flags, Power,
    estimate::{Facts, Skew, Span},
    register::{DEFAULT_CEILING, Kind},
    series::{GaugeTrack, Series, SeriesWriter, plausible_power, series_of},
};

use super::{LEAST_LAG_S, SECOND, Told, Track, ceiling_w, median_s};
use crate::{
    reader::{Device, Reader, Reading, Value},
    replay::{
        Channel, Replay, Row, Shows,
        frozen::{self, Run, Seen},
        model::Sensor,
    },
};

/// What averaged power is a mean over, and the most that any of these sensors averages.
const AVERAGED_S: f64 = 1.0;
/// The update period of the slower sensors: a reading that shows anew at each of rarer polls is
/// still a mean over no more than this.
const SLOWEST_S: f64 = 0.1;

/// Plays a column of a card's rows, which are in time order; `None` when it has no reading.
pub(super) fn play(
    channel: &Channel,
    column: usize,
    rows: &[Row],
    device: Device,
    told: Told,
) -> Option<Track> {
    let limit = device.limit.unwrap_or_else(|| usual(column, rows).max(DEFAULT_CEILING));
    let mut seen = Vec::new();
    let mut lost = Vec::new();
    let mut readings = Vec::with_capacity(rows.len());
    for row in rows {
        let reading = row.readings.get(column).copied().unwrap_or(Err(Fault::Absent));
        let reading = reading.and_then(|value| usable(value, limit));
        match reading {
            Ok(power) => seen.push(Seen { at_ns: row.at_ns, power, activity: row.activity }),
            Err(fault) => lost.push((row.at_ns, row.line, fault)),
        }
        let value = reading.map(Value::Power);
        let reading = value.map(|value| Reading { value, mean: None, throttle: row.throttle });
        readings.push((row.at_ns, reading));
    }
    let (first, last) = (seen.first()?, seen.last()?);
    let span = Span { open_ns: first.at_ns, close_ns: last.at_ns };
    let polls_ns: Vec<u64> = rows.iter().map(|row| row.at_ns).collect();
    let poll_gap_s = median_s(&polls_ns).unwrap_or(0.0);
    let changed_ns: Vec<u64> = seen
        .windows(2)
        .filter_map(|pair| match pair {
            [from, to] if from.power != to.power => Some(to.at_ns),
            _ => None,
        })
        .collect();
    let update_s = (changed_ns.len() > 3).then(|| median_s(&changed_ns)).flatten();
    // A sensor that was hardly seen to change is not taken for faster than they are.
    let period_s = update_s.unwrap_or(SLOWEST_S).max(poll_gap_s);
    let shown_anew_s = update_s.filter(|update_s| *update_s > 1.5 * poll_gap_s);
    let (averaging_s, assumed) =
        averaging(channel.shows, told.sensor, period_s, shown_anew_s.is_some());
    let watts = || seen.iter().map(|seen| seen.power.watts());
    let range_w = (watts().fold(f64::INFINITY, f64::min), watts().fold(0.0, f64::max));
    let averaging_ns = averaging_s.map(|seconds| (seconds * SECOND) as u64);
    let device = Device { register: Kind::Gauge { averaging_ns }, ..device };
    let facts = Facts {
        ceiling_w: ceiling_w(&device, range_w.1),
        deepest_w: told.floor_w.min(range_w.0),
        poll_gap_s,
        period_s,
        lag_s: 0.0,
        lag_uncertainty_s: period_s.max(LEAST_LAG_S) + told.late_s,
        quantum_j: 0.0,
        averaging_s,
        skew: Skew::default(),
    };
    let frozen = frozen::runs(&seen, period_s);
    let readings_seen = seen.len() as u64;
    let updates = changed_ns.len() as u64 + 1;
    let replay = Replay::new(device.clone(), readings);
    let series = played(replay, (period_s * SECOND) as u64, &frozen, rows.len());
    Some(Track {
        channel: channel.clone(),
        device,
        facts,
        update_s,
        assumed,
        span,
        readings: readings_seen,
        updates,
        range_w,
        lost,
        frozen,
        series,
        polls_ns,
    })
}

/// What a column's readings are a mean over, s (none: not known, and its update period is taken),
/// and whether that is an assumption. Where every poll shows a new value the sensor's own period is
/// not seen (`seen` is false): it may be far shorter than the polls' spacing.
fn averaging(
    shows: Shows,
    sensor: Option<Sensor>,
    period_s: f64,
    seen: bool,
) -> (Option<f64>, bool) {
    let direct = Some(if seen || period_s < 1.5 * SLOWEST_S { period_s } else { SLOWEST_S });
    match (shows, sensor) {
        // The driver has this column only where it is a mean over a second.
        (Shows::Average, _) | (Shows::Draw, Some(Sensor::Averaged)) => (Some(AVERAGED_S), false),
        (Shows::Draw, Some(Sensor::Direct)) | (Shows::Instant, Some(_)) => (direct, false),
        (Shows::Draw | Shows::Instant | Shows::Counter { .. }, _) => {
            ((period_s > AVERAGED_S).then_some(AVERAGED_S), true)
        }
    }
}

/// The reading in the middle of them all: a machine that draws more than any card does so in most
/// of them, an uninitialised word stands in few.
fn usual(column: usize, rows: &[Row]) -> Power {
    let powers = rows.iter().filter_map(|row| match row.readings.get(column) {
        Some(Ok(Value::Power(power))) => Some(*power),
        _ => None,
    });
    let mut powers: Vec<Power> = powers.collect();
    powers.sort_unstable();
    powers.get(powers.len() / 2).copied().unwrap_or(Power::ZERO)
}

/// The power of a reading that a card can have.
fn usable(value: Value, limit: Power) -> Result<Power, Fault> {
    let Value::Power(power) = value else { return Err(Fault::NotSupported) };
    if plausible_power(power, Some(limit)) { Ok(power) } else { Err(Fault::Implausible) }
}

/// Plays a replay to its end.
fn played(mut replay: Replay, hole_ns: u64, frozen: &[Run], rows: usize) -> Arc<Series> {
    let (mut writer, series) = series_of(rows.saturating_add(2), 2);
    let mut track = GaugeTrack::new(hole_ns);
    while let Some(at_ns) = replay.next_ns() {
        if let Ok(reading) = replay.read() {
            let stood = |run: &Run| run.from_ns < at_ns && at_ns <= run.to_ns;
            let still = frozen.iter().any(|run| run.work.is_some() && stood(run));
            let marks = if still { Flags::COUNTER_FROZEN } else { Flags::NONE };
            push(&mut track, at_ns, reading, marks, &mut writer);
        }
    }
    series
}

fn push(
    track: &mut GaugeTrack,
    at_ns: u64,
    reading: Reading,
    mut marks: Flags,
    writer: &mut SeriesWriter,
) {
    let throttle = reading.throttle.unwrap_or_default();
    if throttle.power_capped == Some(true) {
        marks |= Flags::POWER_CAPPED;
    }
    if throttle.power_braked == Some(true) {
        marks |= Flags::POWER_BRAKED;
    }
    if let Value::Power(power) = reading.value {
        // Rows are in time order here, so none is refused.
        let _ = track.reading(at_ns, power, marks, writer);
    }
}
