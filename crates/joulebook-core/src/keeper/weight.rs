//! What a request weighs in a stretch of time.
//!
//! Weights count in 1/1024 token. The prompt's uncached part is spread evenly from admission (else
//! arrival) to the first token, tokens of the answer weigh where they came. The first token weighs
//! nothing when there was a prompt to read: the step that ends a prompt emits it. The final usage
//! scales what was counted; where nothing was, the answer is spread from an estimated first token
//! to the end.
//!
//! Where only the arrival is known, nobody knows how long the prompt was queued. It is charged as if
//! it had been read all the time; beside that stands what it weighs when it was queued until the
//! last possible moment (`late`), which is where the model range comes from. Of a request that ended
//! without a token that is nothing at all.

#![cfg_attr(not(test), deny(clippy::float_arithmetic, clippy::arithmetic_side_effects))]

use super::request::{Phases, Request};
use crate::ledger::settle::{Rho, TOKEN};

/// A stretch of the time in which work was done: after `from_ns` up to and with `to_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub from_ns: u64,
    pub to_ns: u64,
}

/// What a request weighs in a tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// Of its prompt, 1/1024 token.
    pub prefill: u64,
    /// The same, had it been queued until the last moment.
    pub late: u64,
    /// Of its answer, 1/1024 token.
    pub decode: u64,
    /// What it emitted, the first token too, 1/1024 token.
    pub emitted: u64,
    /// How long it was there and not known to be queued, ns.
    pub resident_ns: u64,
    /// How long it was open, ns.
    pub open_ns: u64,
    /// It did nothing but write, all the time: its tokens say the rest.
    pub plain: bool,
}

impl Weight {
    /// Of somebody who does nothing but write, all the time.
    #[inline]
    pub const fn writing(tokens: u32, length_ns: u64) -> Self {
        let decode = (tokens as u64).saturating_mul(TOKEN);
        Self {
            prefill: 0,
            late: 0,
            decode,
            emitted: decode,
            resident_ns: length_ns,
            open_ns: length_ns,
            plain: true,
        }
    }
}

impl Window {
    pub const fn length_ns(self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }

    /// How much of `from_ns` to `to_ns` lies in it, ns.
    pub fn overlap_ns(self, from_ns: u64, to_ns: u64) -> u64 {
        to_ns.min(self.to_ns).saturating_sub(from_ns.max(self.from_ns))
    }

    pub const fn has(self, at_ns: u64) -> bool {
        at_ns > self.from_ns && at_ns <= self.to_ns
    }

    /// The part of `amount` that falls here when it is spread evenly from `from_ns` to `to_ns`. All
    /// of it, where that is no time, if the end lies here.
    fn portion(self, amount: u64, from_ns: u64, to_ns: u64) -> u64 {
        let length_ns = to_ns.saturating_sub(from_ns);
        if length_ns == 0 {
            return if self.has(to_ns) { amount } else { 0 };
        }
        let inside_ns = self.overlap_ns(from_ns, to_ns);
        if inside_ns == 0 || inside_ns == length_ns {
            return if inside_ns == 0 { 0 } else { amount };
        }
        if let Some(inside) = amount.checked_mul(inside_ns) {
            return inside.checked_div(length_ns).unwrap_or(0);
        }
        let inside = u128::from(amount).saturating_mul(inside_ns.into());
        let part = inside.checked_div(length_ns.into()).unwrap_or(0);
        u64::try_from(part).unwrap_or(u64::MAX)
    }
}

impl Request {
    /// What it weighs in a stretch in which so many counted tokens of it came.
    #[inline]
    pub fn weigh(&self, window: Window, phases: Phases, tokens: u32, now_ns: u64) -> Weight {
        let stays = self.ended_ns.is_none_or(|ended_ns| ended_ns >= window.to_ns);
        if window.from_ns >= self.steady_ns && stays && phases == Phases::Both {
            // Most that is in flight is writing, and has nothing else to tell.
            return Weight::writing(tokens, window.length_ns());
        }
        self.weigh_all(window, phases, tokens, now_ns)
    }

    /// The same, whatever it is doing.
    fn weigh_all(&self, window: Window, phases: Phases, tokens: u32, now_ns: u64) -> Weight {
        let end_ns = self.ended_ns.unwrap_or(now_ns).max(self.opened_ns);
        let open_ns = window.overlap_ns(self.opened_ns, end_ns);
        let Some(start_ns) = self.start_ns() else {
            return Weight { open_ns, ..Weight::default() };
        };
        let mut weight = Weight {
            open_ns,
            resident_ns: window.overlap_ns(start_ns.max(self.opened_ns), end_ns),
            ..Weight::default()
        };
        let prompt = self.uncached().saturating_mul(TOKEN);
        let spread = self.spread();
        let mut read_ns = self.first_ns.unwrap_or(end_ns).max(start_ns);
        if spread > 0 {
            // Read first, then written: the time is cut as the default ρ weighs them.
            let answer = u128::from(spread).saturating_mul(Rho::default().a.into());
            let whole = answer.saturating_add(prompt.into()).max(1);
            let length = u128::from(end_ns.saturating_sub(start_ns));
            let reading = length.saturating_mul(prompt.into()).checked_div(whole).unwrap_or(0);
            let reading = u64::try_from(reading).unwrap_or(0);
            // A first token that came as all others did says nothing.
            read_ns = start_ns.saturating_add(reading).min(read_ns);
            weight.decode = window.portion(spread.saturating_mul(TOKEN), read_ns, end_ns);
        } else {
            let (stands_for, counted) = self.scale();
            let plain = u64::from(tokens).saturating_mul(TOKEN);
            weight.decode = if stands_for == counted {
                plain
            } else {
                let scaled = u128::from(plain).saturating_mul(stands_for.into());
                let scaled = scaled.checked_div(counted.into()).unwrap_or(0);
                u64::try_from(scaled).unwrap_or(u64::MAX)
            };
        }
        weight.prefill = window.portion(prompt, start_ns, read_ns);
        let was_read = self.first_ns.is_some() || spread > 0;
        weight.late = match self.admitted_ns {
            Some(_) => weight.prefill,
            None if was_read && window.has(read_ns) => prompt,
            None => 0,
        };
        let first_here = self.first_is_free && self.first_ns.is_some_and(|at| window.has(at));
        weight.emitted = weight.decode.saturating_add(if first_here { TOKEN } else { 0 });
        match phases {
            Phases::Both => {}
            Phases::Prefill => (weight.decode, weight.emitted) = (0, 0),
            Phases::Decode => (weight.prefill, weight.late) = (0, 0),
        }
        weight
    }

    /// From when on each token weighs what it counts, and nothing else does; never where what was
    /// counted stands for something else.
    pub(super) fn steady(&self) -> u64 {
        let (stands_for, counted) = self.scale();
        match (self.start_ns(), self.first_ns) {
            (Some(start_ns), Some(first_ns)) if stands_for == counted && self.spread() == 0 => {
                start_ns.max(first_ns).max(self.opened_ns)
            }
            _ => u64::MAX,
        }
    }
}
