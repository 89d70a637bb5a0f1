//! One column of one card, played into a series.
//!
//! Decides what the column's readings are a mean over, what their update period is, and what is a
//! hole: the polls of a log are often denser than the sensor's updates, so a hole is measured by
//! the longer of the two.

use std::sync::Arc;

use joulebook_core::{
    Fault, Flags, Power,
    estimate::{self, Curve, Edges, Estimate, Estimated, Facts, Missing, Span},
    register::{DEFAULT_CEILING, Kind},
    ring::Point,
    series::{GaugeTrack, Series, SeriesWriter, plausible_power, series_of},
};

use super::{
    Channel, Replay, Row, Shows,
    frozen::{self, Run, Seen},
    model::Sensor,
};
use crate::{
    card::ceiling,
    reader::{Device, Reader, Reading, Value},
};

const SECOND: f64 = 1e9;
/// What averaged power is a mean over, and the most that any of these sensors averages.
const AVERAGED_S: f64 = 1.0;
/// The update period of the slower sensors: a reading that shows anew at each of rarer polls is
/// still a mean over no more than this.
const SLOWEST_S: f64 = 0.1;
/// What is allowed above the highest reading where no limit can be believed.
const OVER_HIGHEST: f64 = 1.5;
/// How late readings show, at least, when nothing is known of it.
const LEAST_LAG_S: f64 = 0.1;

/// A column of a card, with what is known of it.
#[derive(Debug)]
pub struct Track {
    /// The column.
    pub channel: Channel,
    /// The card, and what its register is.
    pub device: Device,
    /// What bounds rest on.
    pub facts: Facts,
    /// The sensor's update period, the median spacing of distinct values, s; none where it changed
    /// less than four times.
    pub update_s: Option<f64>,
    /// What the readings are a mean over is not known.
    pub assumed: bool,
    /// The first and the last reading, ns.
    pub span: Span,
    /// Good readings.
    pub readings: u64,
    /// Changes of the value, and the first one.
    pub updates: u64,
    /// The least and the most shown, W.
    pub range_w: (f64, f64),
    /// Cells without a usable number: when, where in the file, why.
    pub lost: Vec<(u64, usize, Fault)>,
    pub(super) frozen: Vec<Run>,
    series: Arc<Series>,
    polls_ns: Vec<u64>,
}

/// What a person has said of the card.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    pub sensor: Option<Sensor>,
    pub floor_w: f64,
}

impl Track {
    /// Plays a column of a card's rows, which are in time order; `None` when it has no reading.
    pub(super) fn play(
        channel: &Channel,
        column: usize,
        rows: &[Row],
        device: Device,
        told: Told,
    ) -> Option<Self> {
        let mut seen = Vec::new();
        let mut lost = Vec::new();
        let mut readings = Vec::with_capacity(rows.len());
        for row in rows {
            let reading = row.readings.get(column).copied().unwrap_or(Err(Fault::Absent));
            let reading = reading.and_then(|value| usable(value, &device));
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
        let period_s = update_s.unwrap_or(poll_gap_s).max(poll_gap_s);
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
            lag_uncertainty_s: period_s.max(LEAST_LAG_S),
            quantum_j: 0.0,
            averaging_s,
        };
        let frozen = frozen::runs(&seen, period_s);
        let readings_seen = seen.len() as u64;
        let updates = changed_ns.len() as u64 + 1;
        let replay = Replay::new(device.clone(), readings);
        let series = played(replay, (period_s * SECOND) as u64, &frozen, rows.len());
        Some(Self {
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

    /// Its series.
    pub fn series(&self) -> &Series {
        &self.series
    }

    /// The shortest window it can tell apart, s.
    pub fn resolution_s(&self) -> f64 {
        self.facts.averaging_s.unwrap_or(self.facts.period_s)
    }

    /// Rows between two instants, and how many of them had no usable number.
    pub fn polls(&self, span: Span) -> (u64, u64) {
        let inside = |at_ns: &u64| (span.open_ns..=span.close_ns).contains(at_ns);
        let lost = self.lost.iter().filter(|(at_ns, ..)| inside(at_ns)).count();
        let polls = self.polls_ns.iter().filter(|at_ns| inside(at_ns)).count();
        (polls as u64, lost as u64)
    }

    /// True when it showed one value all along while the card worked.
    pub fn is_frozen(&self) -> bool {
        let all = |run: &Run| run.rows as u64 == self.readings && run.work.is_some();
        self.frozen.iter().any(all)
    }

    /// Stretches that end in a point with one of these marks: when and how long, s, and the joules
    /// booked for them.
    pub(super) fn stretches(&self, marks: Flags) -> Vec<(u64, f64, f64)> {
        let points = self.series.span(self.span.open_ns, self.span.close_ns, 1, 1);
        let pairs = points.windows(2).filter_map(|pair| match pair {
            [from, to] if to.flags.intersects(marks) => Some((*from, *to)),
            _ => None,
        });
        let stretch = |(from, to): (Point, Point)| {
            let seconds = to.at_ns.saturating_sub(from.at_ns) as f64 / SECOND;
            (from.at_ns, seconds, to.energy_uj.saturating_sub(from.energy_uj) as f64 / 1e6)
        };
        pairs.map(stretch).collect()
    }

    /// The energy of a window.
    pub fn estimate(&self, span: Span) -> Estimated {
        let points = self.series.span(span.open_ns, span.close_ns, 1, 1);
        let curve = Curve::new(&points, &self.facts);
        let estimated = estimate::gauge(&curve, span, self.facts.period_s, Edges::Plain);
        if !self.is_frozen() {
            return estimated;
        }
        // A sensor that does not follow the card bounds nothing: only physics does.
        let range_j =
            (self.facts.deepest_w * span.seconds(), self.facts.ceiling_w * span.seconds());
        let unbounded = |seen: Estimate| {
            let bound_j = (seen.gross_j - range_j.0).max(range_j.1 - seen.gross_j);
            Estimate { bound_j, range_j, ..seen }
        };
        let missing = match estimated {
            Ok(seen) => Missing { seen: Some(seen), ..Missing::of(Fault::CounterFrozen) },
            Err(missing) => missing,
        };
        Err(Missing {
            fault: Fault::CounterFrozen,
            lower_bound_j: None,
            seen: missing.seen.map(unbounded),
            flags: missing.flags | Flags::COUNTER_FROZEN,
            ..missing
        })
    }
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
        (Shows::Draw | Shows::Instant, None) => {
            ((period_s > AVERAGED_S).then_some(AVERAGED_S), true)
        }
    }
}

/// The most the card can draw, W. A limit that its own readings contradict is none.
fn ceiling_w(device: &Device, most_w: f64) -> f64 {
    let limited_w = ceiling(device).watts();
    if most_w <= limited_w { limited_w } else { OVER_HIGHEST * most_w }
}

/// The power of a reading that a card can have.
fn usable(value: Value, device: &Device) -> Result<Power, Fault> {
    let Value::Power(power) = value else { return Err(Fault::NotSupported) };
    let limit = device.limit.unwrap_or(DEFAULT_CEILING);
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
    if throttle.power_capped {
        marks |= Flags::POWER_CAPPED;
    }
    if throttle.power_braked {
        marks |= Flags::POWER_BRAKED;
    }
    if let Value::Power(power) = reading.value {
        // Rows are in time order here, so none is refused.
        let _ = track.reading(at_ns, power, marks, writer);
    }
}

/// The median spacing of instants in order, s.
fn median_s(instants_ns: &[u64]) -> Option<f64> {
    let mut spacings: Vec<u64> = instants_ns
        .windows(2)
        .filter_map(|pair| match pair {
            [from, to] => Some(to.saturating_sub(*from)),
            _ => None,
        })
        .collect();
    spacings.sort_unstable();
    spacings.get(spacings.len() / 2).map(|ns| *ns as f64 / SECOND)
}
