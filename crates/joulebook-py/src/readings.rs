//! Readings of a backend that is written in Python, and what a window on them comes to.
//!
//! The backend is read at the window's edges and marks and, in between, at the meter's interval; the
//! readings go through the same registers and rules as a card's. Nothing is known of its sensor, so
//! it is taken to average over the interval, and its register to publish as often.
//!
//! Refused: a reading that is no finite number of 0 or more, a jump no machine can make, a power held
//! on after the readings stopped.

use std::sync::{Mutex, MutexGuard, PoisonError};

use joulebook::{
    Energy, Fault, Measurement, Power,
    clock::now_ns,
    core::{
        Flags,
        estimate::{self, Curve, Edges, Estimated, Facts, Missing, Skew, Span},
        grade::{Context, Hint, combine, grade},
        register::{Modulus, Register, Scale, Step},
        ring::Point,
        series::{CounterTrack, GaugeTrack, Poll, SeriesWriter, series_of},
        units::energy_over,
    },
};
use pyo3::prelude::*;

/// More than a machine of eight boards draws.
const CEILING: Power = Power::from_microwatts(20_000_000_000);
/// What bounds are made of: more than a board draws.
const BOARD_W: f64 = 1500.0;
/// How far a register may lag behind, where nobody has probed it, s.
const LAG_S: f64 = 0.1;
/// Readings this many intervals apart are no hole.
const SILENT: u64 = 3;
const SECOND: f64 = 1e9;

/// Takes the readings of one window.
#[pyclass(module = "joulebook._native", frozen)]
pub struct Readings {
    is_counter: bool,
    interval_ns: u64,
    state: Mutex<State>,
}

struct State {
    track: Track,
    writer: SeriesWriter,
    points: Vec<Point>,
    polls: u64,
    rejected: u64,
    /// When the last good reading was taken, and why there is none since.
    good_ns: u64,
    fault: Option<Fault>,
    opening: Edge,
    marks: Vec<(String, Edge)>,
}

enum Track {
    Counter(Box<CounterTrack>),
    Gauge(GaugeTrack),
}

/// An edge of the window or of a stage, and the counter's reading that belongs to it.
#[derive(Clone, Copy, Default)]
struct Edge {
    at_ns: u64,
    point: Option<Point>,
    fault: Option<Fault>,
}

/// The readings of a window that is asked how it stands, or is over.
#[derive(Clone)]
pub struct Closing {
    points: Vec<Point>,
    is_counter: bool,
    interval_ns: u64,
    opening: Edge,
    closing: Edge,
    marks: Vec<(String, Edge)>,
    polls: u64,
    rejected: u64,
}

#[pymethods]
impl Readings {
    #[new]
    fn new(counter: bool, interval_s: f64) -> Self {
        let interval_s =
            if interval_s.is_finite() { interval_s.clamp(0.001, 3600.0) } else { 0.25 };
        let interval_ns = (interval_s * SECOND) as u64;
        let track = if counter {
            let register = Register::new(Scale::MICROJOULES, Modulus::None, CEILING, interval_ns);
            Track::Counter(Box::new(CounterTrack::new(register, interval_ns)))
        } else {
            Track::Gauge(GaugeTrack::new(interval_ns))
        };
        let state = State {
            track,
            // Points are kept here; the ring only hands them over.
            writer: series_of(2, 2).0,
            points: Vec::new(),
            polls: 0,
            rejected: 0,
            good_ns: 0,
            fault: None,
            opening: Edge::default(),
            marks: Vec::new(),
        };
        Self { is_counter: counter, interval_ns, state: Mutex::new(state) }
    }

    /// The clock that readings are stamped by, ns.
    #[staticmethod]
    fn now_ns() -> u64 {
        now_ns()
    }

    /// A reading that was asked for at begin_ns and has just come: joules or watts, or None.
    fn add(&self, begin_ns: u64, value: Option<f64>) {
        self.lock().add(Poll::between(begin_ns, now_ns()), value);
    }

    /// A reading has not come in time.
    fn late(&self) {
        self.lock().fault = Some(Fault::Timeout);
    }

    /// The window opens; a counter's first reading came just before.
    fn open(&self) {
        let mut state = self.lock();
        state.opening = state.edge(now_ns());
    }

    /// A mark was made at at_ns; a counter's reading came just after.
    fn mark(&self, name: String, at_ns: u64) {
        let mut state = self.lock();
        let edge = state.edge(at_ns);
        state.marks.push((name, edge));
    }
}

impl Readings {
    /// What a window that ends at `close_ns` stands on; its last reading came just after.
    pub fn until(&self, close_ns: u64) -> Closing {
        let state = self.lock();
        let mut closing = state.edge(close_ns);
        let silent_ns = SILENT * self.interval_ns;
        if !self.is_counter {
            // The last power may be held for a moment.
            let is_silent = close_ns.saturating_sub(state.good_ns) > silent_ns;
            closing.fault = closing.fault.or(Some(Fault::NotReady)).filter(|_| is_silent);
        }
        let mut points = state.points.clone();
        let first = points.first().copied().filter(|_| !self.is_counter);
        if let Some(first) = first
            && let Some(before_ns) = first.at_ns.checked_sub(state.opening.at_ns)
            && (1..=silent_ns).contains(&before_ns)
        {
            // And so may the first, which was asked for when the window opened.
            let energy_uj = energy_over(Power::from_microwatts(first.power_uw), before_ns);
            let energy_uj = energy_uj.microjoules();
            points.iter_mut().for_each(|point| point.energy_uj += energy_uj);
            points.insert(0, Point { at_ns: state.opening.at_ns, energy_uj: 0, ..first });
        }
        Closing {
            points,
            is_counter: self.is_counter,
            interval_ns: self.interval_ns,
            opening: state.opening,
            closing,
            marks: state.marks.clone(),
            polls: state.polls,
            rejected: state.rejected,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn edge(&self, at_ns: u64) -> Edge {
        Edge { at_ns, point: self.points.last().copied(), fault: self.fault }
    }

    fn add(&mut self, poll: Poll, value: Option<f64>) {
        self.polls += 1;
        match self.take(poll, value) {
            Ok(()) => (self.good_ns, self.fault) = (poll.at_ns, None),
            Err(fault) => {
                self.rejected += 1;
                self.fault = Some(fault);
            }
        }
        if let Some(last) = self.writer.last().filter(|last| self.points.last() != Some(last)) {
            self.points.push(last);
        }
    }

    fn take(&mut self, poll: Poll, value: Option<f64>) -> Result<(), Fault> {
        let value = value.ok_or(Fault::Unknown)?;
        match &mut self.track {
            Track::Counter(track) => {
                let energy = Energy::from_joules(value).ok_or(Fault::Implausible);
                let raw = energy.map(Energy::microjoules);
                match track.reading(poll, raw, Flags::NONE, &mut self.writer) {
                    Step::Hole(fault) => Err(fault),
                    Step::Provisional => Err(Fault::CounterGlitch),
                    Step::Anchored(_)
                    | Step::Unchanged
                    | Step::Advanced(_)
                    | Step::Restarted { .. }
                    | Step::Set { .. } => Ok(()),
                }
            }
            Track::Gauge(track) => {
                let power = Power::from_watts(value).filter(|power| *power <= CEILING);
                let power = power.ok_or(Fault::Implausible)?;
                track.reading(poll.at_ns, power, Flags::NONE, &mut self.writer)
            }
        }
    }
}

impl Closing {
    /// The measurement; `context` has what is known beside the readings.
    pub fn measurement(&self, context: &Context, hint: Hint) -> Measurement {
        let context = Context { polls: self.polls, rejected: self.rejected, ..context.clone() };
        let mut measured = self.graded(&[(self.opening, self.closing)], &context, hint);
        let mut stages: Vec<(&str, Vec<(Edge, Edge)>)> = Vec::new();
        let mut opening = self.opening;
        for (name, closing) in &self.marks {
            let span = (opening, *closing);
            opening = *closing;
            match stages.iter_mut().find(|(known, _)| known == name) {
                Some((_, spans)) => spans.push(span),
                None => stages.push((name, vec![span])),
            }
        }
        let context = Context { polls: 0, rejected: 0, ..context };
        let stage = |(name, spans): (&str, Vec<(Edge, Edge)>)| {
            (name.to_owned(), self.graded(&spans, &context, Hint::default()))
        };
        measured.stages = stages.into_iter().map(stage).collect();
        measured
    }

    fn graded(&self, spans: &[(Edge, Edge)], context: &Context, hint: Hint) -> Measurement {
        let parts: Vec<Estimated> =
            spans.iter().map(|(opening, closing)| self.estimate(opening, closing)).collect();
        let seconds = spans.iter().map(|(opening, closing)| span(opening, closing).seconds()).sum();
        let context = Context { seconds, idle_seconds: seconds, ..context.clone() };
        let measured = grade(&combine(&parts), &context, hint);
        match self.steady_w().filter(|_| measured.gross_joules.is_some()) {
            // Energies are whole microjoules; a power that stood still is known better.
            Some(mean_watts) => Measurement { mean_watts, ..measured },
            None => measured,
        }
    }

    /// A gauge's reading, where all are the same, W.
    fn steady_w(&self) -> Option<f64> {
        let first = self.points.first().filter(|_| !self.is_counter)?;
        let is_steady = self.points.iter().all(|point| point.power_uw == first.power_uw);
        is_steady.then(|| Power::from_microwatts(first.power_uw).watts())
    }

    fn estimate(&self, opening: &Edge, closing: &Edge) -> Estimated {
        if let Some(fault) = opening.fault.filter(|_| self.is_counter).or(closing.fault) {
            return Err(Missing::of(fault));
        }
        let interval_s = self.interval_ns as f64 / SECOND;
        let facts = Facts {
            ceiling_w: BOARD_W,
            deepest_w: 0.0,
            poll_gap_s: interval_s,
            period_s: interval_s,
            lag_s: 0.0,
            lag_uncertainty_s: LAG_S,
            quantum_j: 0.0,
            averaging_s: None,
            skew: Skew::default(),
        };
        let span = span(opening, closing);
        if self.is_counter {
            return estimate::raw(opening.point, closing.point, &self.points, span, &facts);
        }
        estimate::gauge(&Curve::new(&self.points, &facts), span, interval_s, Edges::Held)
    }
}

fn span(opening: &Edge, closing: &Edge) -> Span {
    Span { open_ns: opening.at_ns, close_ns: closing.at_ns.max(opening.at_ns) }
}
