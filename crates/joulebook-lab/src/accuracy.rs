//! How far the meter's figures lie from the truth, in simulated time.
//!
//! A [`Cell`] is one kind of load, one register, one way of polling and one window length.
//! [`measure`] lets a simulated card run through many such windows at random phase, polls it as the
//! recorder does (the product's own pace, tracks, series, estimators and labels; only the clock is
//! the lab's) and compares both answers, at once and settled, with the exact integral. The same
//! seed gives the same figures on every machine.
//!
//! Windows never overlap, and a second and a half or more lies between two, so that a step window is alone on
//! its card and a burst window is one on a card that is never at rest.

mod draw;
mod recorder;
mod sharpness;
mod tally;
mod timeline;

use joulebook::core::{
    estimate::{
        Curve, Edges, Estimated, Facts, Neighbours, Skew, gauge, raw, settled, settles_after_s,
    },
    grade::{Context, Hint, grade},
    measurement::{Source, Tenancy},
};

use crate::draw::Draw;
use draw::draw_of;
use recorder::Recorder;
pub use sharpness::{Sharpness, sharpness};
pub use tally::Tally;
use timeline::Timeline;

const MS: u64 = 1_000_000;
/// The floor that is subtracted, and what the card rests at, W.
const IDLE_W: f64 = 70.0;
/// The most that the card can draw: its limit of 700 W and a tenth, W.
const CEILING_W: f64 = 770.0;
/// How well a probe knows the lag, s.
const PROBED_LAG_S: f64 = 0.001;
/// The polling gap of a card that was never probed, ns.
const UNPROBED_GAP_NS: u64 = 100 * MS;
/// So many windows pass on one card; then another one, with other phases, takes its place. On one
/// card alone the slower wave would meet every publish at the same phase.
const WINDOWS_A_CARD: u32 = 100;
/// The window lengths of the matrix, ms.
const LENGTHS_MS: [u64; 7] = [5, 20, 50, 100, 250, 1000, 5000];

/// What the card does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drive {
    /// It draws 330 W more while the window is open, and rests at 70 W otherwise.
    Step,
    /// 300 W at 47 ms and 120 W at 1.3 s come and go over 70 W, whatever the window does.
    Burst,
}

/// What is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Register {
    /// A counter that publishes each `period_ns`, 1 ms early or late, `lag_ns` behind.
    Counter {
        /// Its publish period, ns.
        period_ns: u64,
        /// How old its values are, ns.
        lag_ns: u64,
    },
    /// A power reading: the mean over a second, ten times a second.
    Gauge,
}

/// How it is polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Polls {
    /// Ten times a second; nothing is known of period or lag.
    Unprobed,
    /// By the grid of its publishes; period and lag are known.
    Probed,
}

/// One cell of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// What the card does.
    pub drive: Drive,
    /// What is read.
    pub register: Register,
    /// How it is polled.
    pub polls: Polls,
    /// The windows' length, ns.
    pub length_ns: u64,
}

/// What a cell came to.
#[derive(Clone, Debug)]
pub struct Accuracy {
    /// The cell.
    pub cell: Cell,
    /// The answers at once.
    pub at_once: Tally,
    /// The settled answers.
    pub settled: Tally,
    /// How well a publish instant was known: the median over the windows, ns; `None` for a gauge.
    pub stamp_ns: Option<u64>,
}

/// All cells: both loads, each register, both ways of polling, each length.
pub fn matrix() -> Vec<Cell> {
    let counter = |period_ms: u64| {
        [0, 20, 50]
            .map(|lag_ms: u64| Register::Counter { period_ns: period_ms * MS, lag_ns: lag_ms * MS })
    };
    let registers =
        [100, 20].into_iter().flat_map(counter).chain([Register::Gauge]).collect::<Vec<_>>();
    let mut cells = Vec::new();
    for drive in [Drive::Step, Drive::Burst] {
        for register in &registers {
            for polls in [Polls::Unprobed, Polls::Probed] {
                cells.extend(LENGTHS_MS.map(|length_ms| Cell {
                    drive,
                    register: *register,
                    polls,
                    length_ns: length_ms * MS,
                }));
            }
        }
    }
    cells
}

/// Lets `windows` windows of a cell pass.
pub fn measure(cell: Cell, windows: u32, seed: u64) -> Accuracy {
    let mut draw = draw_of(seed, &cell);
    let mut accuracy =
        Accuracy { cell, at_once: Tally::default(), settled: Tally::default(), stamp_ns: None };
    let mut stamps_ns = Vec::new();
    let mut left = windows;
    while left > 0 {
        let now = left.min(WINDOWS_A_CARD);
        pass(&mut accuracy, now, &mut draw, &mut stamps_ns);
        left -= now;
    }
    stamps_ns.sort_unstable();
    accuracy.stamp_ns = stamps_ns.get(stamps_ns.len() / 2).copied();
    accuracy
}

/// Lets some windows pass on one card, whose load and publishes have their own phases.
fn pass(accuracy: &mut Accuracy, windows: u32, draw: &mut Draw, stamps_ns: &mut Vec<u64>) {
    let cell = accuracy.cell;
    let timeline = Timeline::new(&cell, windows, draw);
    let mut recorder = Recorder::new(&cell, timeline.card());
    let facts = cell.facts();
    for (number, span) in timeline.windows().iter().copied().enumerate() {
        if cell.polls == Polls::Unprobed {
            // Any phase of the polls against window and publishes is as likely as any other; the
            // one poll that comes early to that end is over well before the window.
            recorder.run_until(span.open_ns - 900 * MS - draw.below(UNPROBED_GAP_NS));
            recorder.shift(1 + draw.below(UNPROBED_GAP_NS - 1));
        }
        let truth_j = timeline.truth_j(span);
        let context = context(span.seconds());
        let label = |estimated: &Estimated, settled| {
            grade(estimated, &Context { settled, ..context.clone() }, Hint::default())
        };

        recorder.run_until(span.open_ns);
        let opening = recorder.newest();
        recorder.run_until(span.close_ns);
        let points = recorder.around(span, &facts);
        let estimated = if cell.register == Register::Gauge {
            gauge(&Curve::new(&points, &facts), span, facts.period_s, Edges::Held)
        } else {
            raw(opening, recorder.newest(), &points, span, &facts)
        };
        accuracy.at_once.add(&estimated, &label(&estimated, false), &context, truth_j);

        let after_s = match cell.register {
            Register::Gauge => settles_after_s(&facts, facts.period_s),
            Register::Counter { .. } => 0.0,
        };
        let wait_s = facts.lag_s + facts.lag_uncertainty_s + after_s + 3.0 * facts.period_s;
        recorder.run_until(span.close_ns + (wait_s * 1e9) as u64);
        recorder.poll();
        let points = recorder.around(span, &facts);
        let curve = Curve::new(&points, &facts);
        let occupied = |from_ns, to_ns| timeline.others(number, from_ns, to_ns);
        let estimated = if cell.register == Register::Gauge {
            gauge(&curve, span, facts.period_s, Edges::Centred)
        } else {
            let newest = points.iter().rfind(|point| point.at_ns <= span.close_ns);
            stamps_ns.extend(newest.map(|point| u64::from(point.uncertainty_ns)));
            settled(&curve, span, &Neighbours { rest_w: Some(IDLE_W), occupied: &occupied })
        };
        accuracy.settled.add(&estimated, &label(&estimated, true), &context, truth_j);
    }
}

fn context(seconds: f64) -> Context {
    Context {
        seconds,
        idle_seconds: seconds,
        idle_w: Some(IDLE_W),
        source: Source::Local,
        backend: joulebook::Backend::Simulated.word(),
        tenancy: Tenancy::Alone,
        ..Context::default()
    }
}

impl Register {
    /// How often it shows something new, ns.
    pub const fn period_ns(self) -> u64 {
        match self {
            Self::Counter { period_ns, .. } => period_ns,
            Self::Gauge => 100 * MS,
        }
    }

    /// How old its values are, ns.
    pub const fn lag_ns(self) -> u64 {
        match self {
            Self::Counter { lag_ns, .. } => lag_ns,
            Self::Gauge => 0,
        }
    }
}

impl Cell {
    /// What is known of the card.
    fn facts(&self) -> Facts {
        let (period_s, lag_s, lag_uncertainty_s) = match self.polls {
            Polls::Probed => {
                (seconds(self.register.period_ns()), seconds(self.register.lag_ns()), PROBED_LAG_S)
            }
            Polls::Unprobed => (seconds(UNPROBED_GAP_NS), 0.0, seconds(UNPROBED_GAP_NS)),
        };
        Facts {
            ceiling_w: CEILING_W,
            deepest_w: IDLE_W,
            // Three reads a period, or one each tenth of a second: never further apart than this.
            poll_gap_s: period_s,
            period_s,
            lag_s,
            lag_uncertainty_s,
            quantum_j: 0.001,
            averaging_s: Some(1.0),
            skew: Skew::default(),
        }
    }
}

fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

#[cfg(test)]
mod tests;
