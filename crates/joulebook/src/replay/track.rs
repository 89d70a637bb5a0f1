//! One column of one card, played into a series.
//!
//! Decides what the column's readings are a mean over, what their update period is, and what is a
//! hole: the polls of a log are often denser than the sensor's updates, so a hole is measured by
//! the longer of the two.

mod counter;
mod gauge;

use std::sync::Arc;

use joulebook_core::{
    Fault, Flags,
    estimate::{self, Curve, Edges, Estimate, Estimated, Facts, Missing, Span},
    ring::Point,
    series::Series,
};

use super::{Channel, Row, Shows, frozen::Run, model::Sensor};
use crate::{card::ceiling, reader::Device};

const SECOND: f64 = 1e9;
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

/// What a person has said of the card, and the log of its stamps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    pub sensor: Option<Sensor>,
    pub floor_w: f64,
    /// How far from its stamp a reading may have been taken, s.
    pub late_s: f64,
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
        match channel.shows {
            Shows::Counter { quantum } => {
                counter::play(channel, column, rows, device, told, quantum)
            }
            _ => gauge::play(channel, column, rows, device, told),
        }
    }

    /// Its series.
    pub fn series(&self) -> &Series {
        &self.series
    }

    /// What its readings are taken to be a mean over, s.
    pub fn averaging_s(&self) -> f64 {
        self.facts.averaging_s.unwrap_or(self.facts.period_s)
    }

    /// The shortest window it can tell apart, s.
    pub fn resolution_s(&self) -> f64 {
        self.averaging_s().max(self.facts.period_s)
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

    /// True for a counter of energy.
    pub const fn is_counter(&self) -> bool {
        matches!(self.channel.shows, Shows::Counter { .. })
    }

    /// True when it can tell an energy: a power that was read more than once, or a counter that was
    /// seen to move.
    pub const fn has_energy(&self) -> bool {
        self.readings > 1 && (!self.is_counter() || self.updates > 1)
    }

    /// The energy of a window.
    pub fn estimate(&self, span: Span) -> Estimated {
        self.estimate_within(span, 0.0)
    }

    /// The energy of a window of which it is known only so well where it lies, s.
    pub fn estimate_within(&self, span: Span, uncertainty_s: f64) -> Estimated {
        // One reading is a power, and its own instant no window.
        let is_instant = self.readings < 2 && span.close_ns <= span.open_ns;
        if is_instant || (self.is_counter() && !self.has_energy()) {
            let stands = self.readings > 1;
            return Err(Missing::of(if stands { Fault::CounterDead } else { Fault::NotReady }));
        }
        let points = self.series.span(span.open_ns, span.close_ns, 2, 2);
        let lag_uncertainty_s = self.facts.lag_uncertainty_s + uncertainty_s;
        let facts = Facts { lag_uncertainty_s, ..self.facts };
        let curve = Curve::new(&points, &facts);
        if self.is_counter() {
            return estimate::shared(&curve, span);
        }
        let estimated = match estimate::gauge(&curve, span, self.facts.period_s, Edges::Plain) {
            Ok(_) if self.readings < 2 => Err(Missing::of(Fault::NotReady)),
            // Polls further apart than the window is long have not seen it.
            Ok(seen) if span.seconds() < self.facts.period_s * 0.999 => {
                let fault = Fault::WindowBelowResolution;
                let (samples, flags) = (seen.samples, seen.flags);
                Err(Missing { seen: Some(seen), samples, flags, ..Missing::of(fault) })
            }
            estimated => estimated,
        };
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

/// The most the card can draw, W. A limit that its own readings contradict is none.
fn ceiling_w(device: &Device, most_w: f64) -> f64 {
    let limited_w = ceiling(device).watts();
    if most_w <= limited_w { limited_w } else { OVER_HIGHEST * most_w }
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
