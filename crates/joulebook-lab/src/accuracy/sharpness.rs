//! Whether the bound of the shared rule is as sharp as it can be: on a load that swings over the
//! card's whole range at the worst pace, the worst error comes close to it.

use std::sync::Arc;

use joulebook::core::estimate::{Curve, Facts, Span, shared};

use super::{CEILING_W, Cell, Drive, IDLE_W, MS, Polls, Register, recorder::Recorder};
use crate::{
    card::Model,
    scenario::{Card, Span as Stretch, Wave},
};

const PERIOD_NS: u64 = 100 * MS;
/// Windows that end half a cycle of the load later than they began, or more by whole cycles: there
/// the errors of both edges add up.
const LENGTHS_NS: [u64; 3] = [100 * MS, 300 * MS, 1_100 * MS];
const PHASE_STEP_NS: u64 = 5 * MS;
/// By then the polls know the grid.
const START_NS: u64 = 30_000 * MS;

/// The widest bound and the worst error of one sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sharpness {
    /// The widest bound that was given, J.
    pub bound_j: f64,
    /// The worst error that was made, J.
    pub error_j: f64,
}

impl Sharpness {
    /// How many times wider the bound is than the worst error.
    pub fn ratio(self) -> f64 {
        self.bound_j / self.error_j
    }
}

/// A square load from the deepest idle to the ceiling, its period twice the register's, against
/// publishes and windows at every phase; the lag known, no jitter.
pub fn sharpness() -> Sharpness {
    let cell = Cell {
        drive: Drive::Burst,
        register: Register::Counter { period_ns: PERIOD_NS, lag_ns: 0 },
        polls: Polls::Probed,
        length_ns: PERIOD_NS,
    };
    let facts = Facts { lag_uncertainty_s: 0.0, ..cell.facts() };
    let mut worst = Sharpness::default();
    for load_phase in 0..2 * PERIOD_NS / PHASE_STEP_NS {
        let square = Wave::Square {
            span: Stretch { start_ns: 0, end_ns: i64::MAX },
            period_ns: 2 * PERIOD_NS as i64,
            on_ns: PERIOD_NS as i64,
            phase_ns: (load_phase * PHASE_STEP_NS) as i64,
            w: CEILING_W - IDLE_W,
        };
        let card = Card { idle_w: IDLE_W, waves: vec![square], ..Card::default() };
        let model = Arc::new(Model::new(0, card, None));
        let mut recorder = Recorder::new(&cell, Arc::clone(&model));
        recorder.run_until(START_NS + 3_000 * MS);
        for open_phase in 0..2 * PERIOD_NS / PHASE_STEP_NS {
            for length_ns in LENGTHS_NS {
                let open_ns = START_NS + open_phase * PHASE_STEP_NS;
                let span = Span { open_ns, close_ns: open_ns + length_ns };
                let points = recorder.around(span, &facts);
                let Ok(estimate) = shared(&Curve::new(&points, &facts), span) else { continue };
                let truth_j = model.load().energy(open_ns as i64, span.close_ns as i64);
                worst.bound_j = worst.bound_j.max(estimate.bound_j);
                worst.error_j = worst.error_j.max((estimate.gross_j - truth_j).abs());
            }
        }
    }
    worst
}
