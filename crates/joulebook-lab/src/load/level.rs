//! A level that jumps or runs straight between knots, with its energy summed at each knot.

use super::SECOND_NS;
use crate::scenario::Knot;

/// A level over time.
pub(super) struct Level {
    idle_w: f64,
    /// In the order of their instants.
    pieces: Vec<Piece>,
    /// What the sum from the first piece's start is at the epoch.
    origin_joules: f64,
}

/// From one knot to the next.
struct Piece {
    start_ns: i64,
    watts: f64,
    /// W per ns.
    slope: f64,
    /// From the first piece's start to this one's.
    joules: f64,
}

impl Level {
    /// From sorted knots.
    pub(super) fn new(idle_w: f64, knots: &[Knot]) -> Self {
        let mut pieces: Vec<Piece> = Vec::with_capacity(knots.len() + 1);
        if let Some(first) = knots.first().filter(|knot| knot.linear && knot.t_ns > 0) {
            let slope = (first.w - idle_w) / first.t_ns as f64;
            pieces.push(Piece { start_ns: 0, watts: idle_w, slope, joules: 0.0 });
        }
        for (at, knot) in knots.iter().enumerate() {
            let joules = pieces.last().map_or(0.0, |last| last.joules + last.energy(knot.t_ns));
            let next = knots.get(at + 1).filter(|next| next.linear && next.t_ns > knot.t_ns);
            let slope = next.map_or(0.0, |next| (next.w - knot.w) / (next.t_ns - knot.t_ns) as f64);
            pieces.push(Piece { start_ns: knot.t_ns, watts: knot.w, slope, joules });
        }
        let mut level = Self { idle_w, pieces, origin_joules: 0.0 };
        level.origin_joules = level.joules(0);
        level
    }

    /// The piece that holds an instant; none before the first.
    fn piece(&self, t_ns: i64) -> Option<&Piece> {
        let after = self.pieces.partition_point(|piece| piece.start_ns <= t_ns);
        self.pieces.get(after.checked_sub(1)?)
    }

    pub(super) fn watts(&self, t_ns: i64) -> f64 {
        self.piece(t_ns).map_or(self.idle_w, |piece| {
            piece.watts + piece.slope * t_ns.saturating_sub(piece.start_ns) as f64
        })
    }

    pub(super) fn joules(&self, t_ns: i64) -> f64 {
        let first_ns = self.pieces.first().map_or(0, |piece| piece.start_ns);
        let sum = match self.piece(t_ns) {
            Some(piece) => piece.joules + piece.energy(t_ns),
            None => self.idle_w * t_ns.saturating_sub(first_ns) as f64 / SECOND_NS,
        };
        sum - self.origin_joules
    }
}

impl Piece {
    /// From its start to an instant, as if it went on till then.
    fn energy(&self, t_ns: i64) -> f64 {
        let span = t_ns.saturating_sub(self.start_ns) as f64;
        (self.watts + 0.5 * self.slope * span) * span / SECOND_NS
    }
}
