//! What one more reading of a register means, decided here and nowhere else.
//!
//! A cumulative counter is read again and again; [`Register::advance`] says what each reading adds.
//! A call that took long (the reader was not let run) may have read anywhere in its time: what a card
//! can supply is measured by the most that can lie between two readings.
//! Invariants: accepted energy never falls; nothing is booked twice; a rise that no card can
//! supply is never booked; a fall, or such a rise, is provisional until the next reading tells a
//! glitch (back on the old line) from a restart or a set register (going on from the new line).
//! The modulus is a property of the register, never of the integer that carries it.
//!
//! Refused: a failed reading never becomes a number (it is a [`Step::Hole`]; the next good reading
//! spans it).

#![cfg_attr(not(test), deny(clippy::float_arithmetic, clippy::arithmetic_side_effects))]

use crate::{
    fault::Fault,
    units::{Energy, Power, energy_over},
};

/// What a register is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A cumulative counter of energy.
    Counter {
        /// Microjoules per unit of the register.
        scale: Scale,
        /// Where it starts again.
        modulus: Modulus,
        /// The smallest step it shows.
        quantum: Energy,
    },
    /// A gauge of power.
    Gauge {
        /// The span that one reading is the mean over, ns; `None` where it is not known (its update
        /// period is taken, and results say `window_assumed`).
        averaging_ns: Option<u64>,
    },
}

/// Microjoules per unit of a register, as an exact ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Microjoules …
    pub numerator: u64,
    /// … per this many units; not 0.
    pub denominator: u64,
}

impl Scale {
    /// Millijoules (NVML).
    pub const MILLIJOULES: Self = Self { numerator: 1000, denominator: 1 };
    /// Microjoules (RAPL).
    pub const MICROJOULES: Self = Self { numerator: 1, denominator: 1 };
}

/// Where a register starts again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modulus {
    /// Nowhere: it can only restart or lose (NVML, Intel's hwmon).
    None,
    /// After this many units (RAPL: `max_energy_range_uj`).
    At(u64),
    /// Somewhere that is not known.
    Unknown,
}

/// When a value was published, as far as polls can tell: after the poll that still showed the old
/// value, and no later than the one that showed the new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bracket {
    /// The last poll that showed the value before, ns.
    pub after_ns: u64,
    /// The first poll that showed this one, ns.
    pub by_ns: u64,
}

impl Bracket {
    /// The instant in the middle, ns.
    pub const fn middle_ns(self) -> u64 {
        self.after_ns.midpoint(self.by_ns)
    }

    /// How far the publish can lie from [`Self::middle_ns`], ns, rounded up.
    pub const fn uncertainty_ns(self) -> u64 {
        self.by_ns.saturating_sub(self.after_ns).div_ceil(2)
    }
}

/// Energy accepted from one reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advance {
    /// What is booked.
    pub delta: Energy,
    /// When the value was published.
    pub published: Bracket,
    /// The register passed its modulus.
    pub wrapped: bool,
    /// Readings off the line that this one has shown to be glitches.
    pub glitches: u32,
    /// Polls that failed since the reading before.
    pub holes: u32,
}

/// What one more reading means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The first reading: something to count from.
    Anchored(Bracket),
    /// The same value: stuck so far, the interval stays open. Not a zero.
    Unchanged,
    /// Energy was counted.
    Advanced(Advance),
    /// Off the line: nothing is booked until the next reading tells why.
    Provisional,
    /// The register started again before the reading at `restarted.by_ns`.
    Restarted {
        /// When the first reading after the restart was published.
        restarted: Bracket,
        /// What it had counted by then, where it is known to start at zero; when inside the
        /// bracket is not known, so it belongs to no request.
        counted: Option<Energy>,
        /// What this reading adds, from there on.
        then: Advance,
    },
    /// The register was set to a higher value at `set.by_ns`; nothing of the jump is accepted.
    Set {
        /// When the new line began.
        set: Bracket,
        /// What this reading adds, from there on.
        then: Advance,
    },
    /// The poll failed; the next good reading spans it.
    Hole(Fault),
}

/// The ceiling where neither a limit nor a power is known: above the largest single board sold.
pub const DEFAULT_CEILING: Power = Power::from_microwatts(1_500_000_000);

/// For how many periods a line that a restart has left may still be returned to.
const LONGEST_GLITCH: u64 = 10;

/// A cumulative register, followed reading by reading.
#[derive(Clone, Debug)]
pub struct Register {
    scale: Scale,
    modulus: Modulus,
    ceiling: Power,
    period_ns: u64,
    /// The last accepted reading; everything before is booked.
    anchor: Option<Anchor>,
    /// A reading off the line that the next one will explain.
    candidate: Option<Anchor>,
    /// The line before the last restart, and the raw units booked since: a "restart" that returns
    /// to its old line was a long glitch, and must not be booked twice.
    retired: Option<(Anchor, u128)>,
    /// Raw units that a false restart had booked beyond what was drawn: the next ones pay them.
    debt: u128,
    /// Remainder of the last conversion, in 1/denominator µJ.
    carry: u128,
    glitches: u32,
    holes: u32,
}

/// A value, when it was first seen and when last.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    raw: u64,
    published: Bracket,
    /// It was not there before, at the earliest: where the call before may have begun.
    since_ns: u64,
    /// It was there by then, at the latest: where its own call ended.
    until_ns: u64,
    seen_ns: u64,
    /// Where the last call that showed it began.
    asked_ns: u64,
}

impl Register {
    /// A register that nobody has read yet. `period_ns`: its publish period, or the polling gap
    /// where the period is not known. `ceiling`: the most power the card can draw.
    pub fn new(scale: Scale, modulus: Modulus, ceiling: Power, period_ns: u64) -> Self {
        Self {
            scale,
            modulus,
            ceiling,
            period_ns,
            anchor: None,
            candidate: None,
            retired: None,
            debt: 0,
            carry: 0,
            glitches: 0,
            holes: 0,
        }
    }

    /// A ceiling or period learnt later.
    pub fn learn(&mut self, ceiling: Power, period_ns: u64) {
        self.ceiling = ceiling;
        self.period_ns = period_ns;
    }

    /// When the value that stands now was last seen to be new, ns: how long the register is stuck.
    pub fn moved_ns(&self) -> Option<u64> {
        self.anchor.map(|anchor| anchor.published.by_ns)
    }

    /// One more reading at `at_ns` (monotonic, not before the one before).
    pub fn advance(&mut self, at_ns: u64, reading: Result<u64, Fault>) -> Step {
        self.advance_within(at_ns, 0, reading)
    }

    /// The same for a reading that was taken up to `slack_ns` before or after `at_ns`.
    pub fn advance_within(
        &mut self,
        at_ns: u64,
        slack_ns: u64,
        reading: Result<u64, Fault>,
    ) -> Step {
        let (asked_ns, until_ns) = (at_ns.saturating_sub(slack_ns), at_ns.saturating_add(slack_ns));
        let raw = match reading {
            Ok(raw) => raw,
            Err(fault) => {
                self.holes = self.holes.saturating_add(1);
                return Step::Hole(fault);
            }
        };
        let Some(anchor) = self.anchor else {
            let published = Bracket { after_ns: at_ns, by_ns: at_ns };
            self.anchor = Some(Anchor {
                raw,
                published,
                since_ns: asked_ns,
                until_ns,
                seen_ns: at_ns,
                asked_ns,
            });
            return Step::Anchored(published);
        };
        let before = self.candidate.unwrap_or(anchor);
        let published = Bracket { after_ns: before.seen_ns.min(at_ns), by_ns: at_ns };
        let since_ns = before.asked_ns;
        let new = Anchor { raw, published, since_ns, until_ns, seen_ns: at_ns, asked_ns };

        if raw == anchor.raw {
            self.drop_candidate();
            self.anchor = Some(Anchor { seen_ns: at_ns, asked_ns, ..anchor });
            return Step::Unchanged;
        }
        if let Some((units, wrapped)) = self.on_line(anchor, raw, until_ns) {
            self.drop_candidate();
            return Step::Advanced(self.accept(new, units, wrapped));
        }
        if let Some((line, booked)) = self.retired
            && at_ns.saturating_sub(line.seen_ns) <= self.period_ns.saturating_mul(LONGEST_GLITCH)
            && let Some((units, wrapped)) = self.on_line(line, raw, until_ns)
        {
            self.drop_candidate();
            self.glitches = self.glitches.saturating_add(1);
            self.retired = None;
            self.debt = self.debt.saturating_add(booked);
            return Step::Advanced(self.accept(new, units, wrapped));
        }
        match self.candidate {
            Some(candidate) if raw == candidate.raw => {
                self.candidate = Some(Anchor { seen_ns: at_ns, asked_ns, ..candidate });
                Step::Provisional
            }
            Some(candidate) => match self.on_line(candidate, raw, until_ns) {
                Some((units, _)) => self.change_line(anchor, candidate, new, units),
                None => {
                    self.drop_candidate();
                    self.candidate = Some(new);
                    Step::Provisional
                }
            },
            None => {
                self.candidate = Some(new);
                Step::Provisional
            }
        }
    }

    /// The register's units from `from` to `raw`, and whether it wrapped; `None` when no card can
    /// have supplied them.
    fn on_line(&self, from: Anchor, raw: u64, until_ns: u64) -> Option<(u128, bool)> {
        let (units, wrapped) = match (raw.checked_sub(from.raw), self.modulus) {
            (Some(units), _) => (u128::from(units), false),
            (None, Modulus::At(modulus)) => {
                (u128::from(modulus.checked_sub(from.raw)?).saturating_add(u128::from(raw)), true)
            }
            (None, Modulus::None | Modulus::Unknown) => return None,
        };
        self.plausible(units, from, until_ns).then_some((units, wrapped))
    }

    fn plausible(&self, units: u128, from: Anchor, until_ns: u64) -> bool {
        // From the poll before the old value was first seen: it may have stood since then.
        let elapsed = until_ns.saturating_sub(from.since_ns).saturating_add(self.period_ns);
        let most = u128::from(energy_over(self.ceiling, elapsed).microjoules());
        units.saturating_mul(u128::from(self.scale.numerator))
            <= most.saturating_mul(u128::from(self.scale.denominator))
    }

    fn change_line(&mut self, old: Anchor, first: Anchor, new: Anchor, units: u128) -> Step {
        self.candidate = None;
        if first.raw > old.raw {
            self.retired = None;
            return Step::Set { set: first.published, then: self.accept(new, units, false) };
        }
        // Where the register can only restart, it counts from zero; elsewhere a fall may as well
        // be a wrap of unknown size, and only what follows counts.
        let counted = (self.modulus == Modulus::None
            && self.plausible(u128::from(first.raw), old, first.until_ns))
        .then_some(u128::from(first.raw));
        self.retired = Some((old, counted.unwrap_or(0)));
        let counted = counted.map(|units| self.convert(units));
        let then = self.accept(new, units, false);
        Step::Restarted { restarted: first.published, counted, then }
    }

    fn accept(&mut self, new: Anchor, units: u128, wrapped: bool) -> Advance {
        let paid = units.min(self.debt);
        self.debt = self.debt.saturating_sub(paid);
        let units = units.saturating_sub(paid);
        if let Some((_, booked)) = &mut self.retired {
            *booked = booked.saturating_add(units);
        }
        self.anchor = Some(new);
        Advance {
            delta: self.convert(units),
            published: new.published,
            wrapped,
            glitches: std::mem::take(&mut self.glitches),
            holes: std::mem::take(&mut self.holes),
        }
    }

    /// Units to whole µJ; what is cut off is carried to the next conversion.
    fn convert(&mut self, units: u128) -> Energy {
        let denominator = u128::from(self.scale.denominator).max(1);
        let total =
            units.saturating_mul(u128::from(self.scale.numerator)).saturating_add(self.carry);
        self.carry = total.checked_rem(denominator).unwrap_or(0);
        let whole = total.checked_div(denominator).unwrap_or(0);
        Energy::from_microjoules(u64::try_from(whole).unwrap_or(u64::MAX))
    }

    fn drop_candidate(&mut self) {
        if self.candidate.take().is_some() {
            self.glitches = self.glitches.saturating_add(1);
        }
    }
}

#[cfg(test)]
#[path = "register_tests.rs"]
mod tests;
