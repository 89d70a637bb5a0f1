//! What the energy register of a card shows of a run, as ticks: the intervals between publishes.

use crate::{draw::Draw, engine::Curve};

/// The interval between two publishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick {
    /// When the earlier was seen, ns.
    pub start_ns: i64,
    /// When the later was seen, ns.
    pub end_ns: i64,
    /// How far the register went, µJ.
    pub energy_uj: u64,
}

/// A register and who reads it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Register {
    /// From publish to publish, ns.
    pub period_ns: i64,
    /// What it counts in, µJ.
    pub quantum_uj: u64,
    /// A publish is seen up to so much later, ns.
    pub late_ns: i64,
    /// What the card draws before the run, W.
    pub idle_w: f64,
}

impl Default for Register {
    fn default() -> Self {
        Self { period_ns: 100_000_000, quantum_uj: 1000, late_ns: 0, idle_w: 70.0 }
    }
}

impl Tick {
    /// Its length, s.
    pub fn seconds(&self) -> f64 {
        (self.end_ns - self.start_ns) as f64 / 1e9
    }

    /// Its energy, J.
    pub fn joules(&self) -> f64 {
        self.energy_uj as f64 / 1e6
    }
}

impl Register {
    /// The ticks of a run at a random phase, from before it begins until after it ends; and beside
    /// each what the card truly drew between the same two instants.
    pub fn ticks(&self, curve: &Curve, end_ns: i64, draw: &mut Draw) -> Vec<(Tick, f64)> {
        let joules = |t_ns: i64| match t_ns {
            before if before < 0 => self.idle_w * before as f64 / 1e9,
            t_ns => curve.joules(t_ns),
        };
        // Positive from the first publish on.
        let origin = -self.idle_w * self.period_ns as f64 / 1e9;
        let quantum = self.quantum_uj.max(1);
        let shown_uj =
            |t_ns: i64| ((joules(t_ns) - origin) * 1e6 / quantum as f64) as u64 * quantum;
        let mut publish_ns = draw.below(self.period_ns as u64) as i64 - self.period_ns;
        let seen = |publish_ns: i64, draw: &mut Draw| {
            publish_ns + draw.below(self.late_ns as u64 + 1) as i64
        };
        let (mut from_ns, mut from_uj) = (seen(publish_ns, draw), shown_uj(publish_ns));
        let mut ticks = Vec::new();
        while publish_ns < end_ns {
            publish_ns += self.period_ns;
            let (to_ns, to_uj) = (seen(publish_ns, draw), shown_uj(publish_ns));
            let tick = Tick { start_ns: from_ns, end_ns: to_ns, energy_uj: to_uj - from_uj };
            ticks.push((tick, joules(to_ns) - joules(from_ns)));
            (from_ns, from_uj) = (to_ns, to_uj);
        }
        ticks
    }
}
