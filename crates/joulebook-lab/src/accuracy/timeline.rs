//! The windows of a cell, and the card that lives through them.

use std::sync::Arc;

use joulebook::core::estimate::Span;

use super::{Cell, Drive, IDLE_W, MS, Register};
use crate::draw::Draw;
use crate::{
    card::Model,
    scenario::{Card, Counter, Gauge, Knot, Span as Stretch, Wave},
};

/// The first window opens after this: polls have found the grid by then.
const START_NS: u64 = 10_000 * MS;
/// At least this lies between two windows.
const LEAST_QUIET_NS: u64 = 1_500 * MS;
/// Up to this more: a whole period of the slower wave, so that any phase is as likely as another.
const MORE_QUIET_NS: u64 = 1_300 * MS;
/// What a step window adds, W.
const STEP_W: f64 = 330.0;
/// The bursts: W, period ns, on time ns.
const BURSTS: [(f64, u64, u64); 2] = [(300.0, 47 * MS, 47 * MS / 2), (120.0, 1_300 * MS, 780 * MS)];
const JITTER_NS: u64 = MS;

pub(super) struct Timeline {
    model: Arc<Model>,
    windows: Vec<Span>,
}

impl Timeline {
    pub fn new(cell: &Cell, windows: u32, draw: &mut Draw) -> Self {
        let mut open_ns = START_NS;
        let spans: Vec<Span> = (0..windows)
            .map(|_| {
                open_ns += LEAST_QUIET_NS + draw.below(MORE_QUIET_NS);
                let span = Span { open_ns, close_ns: open_ns + cell.length_ns };
                open_ns = span.close_ns;
                span
            })
            .collect();
        let phase_ns = draw.below(cell.register.period_ns()) as i64;
        let card = Card { idle_w: IDLE_W, ..Card::default() };
        let card = match cell.drive {
            Drive::Step => Card { knots: spans.iter().flat_map(step).collect(), ..card },
            Drive::Burst => Card { waves: BURSTS.map(|burst| wave(burst, draw)).to_vec(), ..card },
        };
        let card = match cell.register {
            Register::Counter { period_ns, lag_ns } => {
                let counter = Counter {
                    period_ns: period_ns as i64,
                    lag_ns: lag_ns as i64,
                    jitter_ns: JITTER_NS as i64,
                    phase_ns,
                    ..Counter::default()
                };
                Card { counter, ..card }
            }
            Register::Gauge => Card { sensor: Gauge { phase_ns, ..Gauge::AVERAGE }, ..card },
        };
        Self { model: Arc::new(Model::new(0, card, None)), windows: spans }
    }

    pub fn card(&self) -> Arc<Model> {
        Arc::clone(&self.model)
    }

    pub fn windows(&self) -> &[Span] {
        &self.windows
    }

    /// All that was drawn in a window, J.
    pub fn truth_j(&self, span: Span) -> f64 {
        self.model.load().energy(span.open_ns as i64, span.close_ns as i64)
    }

    /// Whether another window than number `number` was open between two instants.
    pub fn others(&self, number: usize, from_ns: u64, to_ns: u64) -> bool {
        let meets = |span: &Span| span.open_ns < to_ns && span.close_ns > from_ns;
        let before = number.checked_sub(1).and_then(|before| self.windows.get(before));
        let after = self.windows.get(number + 1);
        before.into_iter().chain(after).any(meets)
    }
}

fn step(span: &Span) -> [Knot; 2] {
    let knot = |t_ns: u64, w| Knot { t_ns: t_ns as i64, w, linear: false };
    [knot(span.open_ns, IDLE_W + STEP_W), knot(span.close_ns, IDLE_W)]
}

fn wave((w, period_ns, on_ns): (f64, u64, u64), draw: &mut Draw) -> Wave {
    Wave::Square {
        span: Stretch { start_ns: 0, end_ns: i64::MAX },
        period_ns: period_ns as i64,
        on_ns: on_ns as i64,
        phase_ns: draw.below(period_ns) as i64,
        w,
    }
}
