//! The energy register: when it publishes, what it publishes, and what faults make of it.

use super::Model;
use crate::scenario::{Counter, CounterMode, Effect, Refusal, Target};

impl Model {
    /// What a read shows through the first `count` faults, mJ.
    pub(super) fn shown_energy(
        &self,
        t_ns: i64,
        targets: &[Target],
        count: usize,
    ) -> Result<u64, Refusal> {
        let faults = self.card.faults.iter().enumerate().take(count).rev();
        for (earlier, fault) in faults {
            if !(targets.contains(&fault.target) && fault.span.contains(t_ns)) {
                continue;
            }
            let start_ns = fault.span.start_ns;
            match fault.effect {
                Effect::Refuse(refusal) => return Err(refusal),
                Effect::Value(value) => return Ok(value as u64),
                Effect::Stuck => return self.shown_energy(start_ns, targets, earlier),
                Effect::Set(mj) => return Ok(self.register_mj(t_ns, Some(start_ns), mj)),
                Effect::Jump(mj) => {
                    let before = self.shown_energy(t_ns, targets, earlier)?;
                    return Ok(before.saturating_add_signed(mj));
                }
                Effect::Hang(_) => {}
            }
        }
        if !self.card.counter.supported {
            return Err(Refusal::NotSupported);
        }
        let base_mj = i64::try_from(self.card.counter.base_mj).unwrap_or(i64::MAX);
        Ok(self.register_mj(t_ns, None, base_mj))
    }

    /// The register's value; where it was set to `base_mj` at an instant, it counts from there.
    fn register_mj(&self, t_ns: i64, set_ns: Option<i64>, base_mj: i64) -> u64 {
        let counter = &self.card.counter;
        let as_of_ns = publish_ns(counter, self.index, t_ns).saturating_sub(counter.lag_ns);
        let joules = match set_ns {
            None => self.summed(as_of_ns),
            Some(set_ns) if as_of_ns <= set_ns => 0.0,
            Some(set_ns) => self.summed(as_of_ns) - self.summed(set_ns),
        };
        quantized_mj(counter.gain * joules, base_mj, counter.res_mj)
    }

    /// What the register has summed since the epoch, J.
    fn summed(&self, t_ns: i64) -> f64 {
        match self.card.counter.mode {
            CounterMode::True => self.load.joules(t_ns),
            CounterMode::Sensor => self.sensor_sum.joules(&self.card.sensor, &self.load, t_ns),
        }
    }
}

/// The instant of the last publish that has come by an instant.
pub(super) fn publish_ns(counter: &Counter, card: u32, t_ns: i64) -> i64 {
    let (period_ns, jitter_ns) = (counter.period_ns, counter.jitter_ns);
    if period_ns == 0 {
        return t_ns;
    }
    let into = t_ns.saturating_sub(counter.phase_ns);
    if jitter_ns == 0 {
        return instant_ns(counter, card, into.div_euclid(period_ns));
    }
    // Publish `surely` has come whatever it drew; later ones may have, and one that is less than
    // two jitters older may have come after it.
    let surely = into.saturating_sub(jitter_ns).div_euclid(period_ns);
    let perhaps = into.saturating_add(jitter_ns).div_euclid(period_ns);
    let overtaken = jitter_ns.saturating_mul(2) / period_ns;
    (surely - overtaken..=perhaps)
        .map(|index| instant_ns(counter, card, index))
        .filter(|instant_ns| *instant_ns <= t_ns)
        .max()
        .unwrap_or(t_ns)
}

/// When a publish comes.
pub(super) fn instant_ns(counter: &Counter, card: u32, index: i64) -> i64 {
    let due_ns = counter.phase_ns.saturating_add(index.saturating_mul(counter.period_ns));
    due_ns.saturating_add(displacement_ns(card, index, counter.jitter_ns))
}

/// The draw of one publish: uniform in [−jitter, +jitter], from its index alone.
fn displacement_ns(card: u32, index: i64, jitter_ns: i64) -> i64 {
    let seed = (u64::from(card) << 48) ^ 0x6a6f_756c_6562_6f6f;
    let draw = mixed(seed ^ mixed(index.cast_unsigned()));
    let span = jitter_ns.unsigned_abs().saturating_mul(2).saturating_add(1);
    let scaled = (u128::from(draw) * u128::from(span)) >> 64;
    i64::try_from(scaled).unwrap_or(0) - jitter_ns
}

/// The finaliser of SplitMix64: every input bit reaches every output bit.
const fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// A register's whole mJ: cut down to a multiple of its step, never below 0.
fn quantized_mj(joules: f64, base_mj: i64, res_mj: f64) -> u64 {
    // Whole nanojoules, so that 70 J in doubles is 70,000 mJ and not one less.
    let nanojoules = (joules * 1e9).round() as i128 + i128::from(base_mj) * 1_000_000;
    let step = ((res_mj * 1e6).round() as i128).max(1);
    let cut = nanojoules.max(0) / step * step / 1_000_000;
    u64::try_from(cut).unwrap_or(u64::MAX)
}
