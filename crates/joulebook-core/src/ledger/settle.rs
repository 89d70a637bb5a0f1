//! Whose a tick's energy is: the interval between two publishes, split among idle, others and the
//! requests in flight.
//!
//! The steps, in order: what cannot be placed in time is a gap (or idle, when nobody was there); a
//! quiet tick is all idle; the idle floor comes first and what a tick lacks of it is carried one
//! tick; others take their share; the rest goes to the requests by their weights, by their time
//! where there is no weight, and to nobody where there is nobody. All of it in whole microjoules,
//! and the shares add up to what was counted.
//!
//! Source of the steps and of the weights: the project's ledger specification, "A tick".

#![cfg_attr(not(test), deny(clippy::float_arithmetic, clippy::arithmetic_side_effects))]

use serde::{Deserialize, Serialize};

use super::{Account, Phase, RequestId, TenantId};
use crate::apportion::apportion;

/// A token's weight: weights count in 1/1024 of an uncached prompt token.
pub const TOKEN: u64 = 1024;
/// A longer tick says too little about when its energy was drawn.
pub const LONGEST_TICK_NS: u64 = 2_000_000_000;
const SECOND_NS: u128 = 1_000_000_000;

/// An interval between two publishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick {
    /// When it began, ns.
    pub begin_ns: u64,
    /// When it ended, ns.
    pub end_ns: u64,
    /// What the register counted in it, µJ.
    pub counted_uj: u64,
    /// The register restarted inside, or for another reason nobody knows when it was counted.
    pub unplaced: bool,
}

/// A request that was in flight during any part of a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Presence {
    /// Whose.
    pub request: RequestId,
    /// How long it was there, ns.
    pub resident_ns: u64,
    /// Uncached prompt tokens that were read in the tick, in 1/1024; 0 while it is queued.
    pub prefill_weight: u64,
    /// Tokens of the answer that came in the tick.
    pub decode_tokens: u64,
}

/// What a card draws at rest now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rest {
    /// The floor of its present state, µW.
    pub power_uw: u64,
    /// The floor without a model, µW, where it has been seen.
    pub off_uw: Option<u64>,
    /// A model is loaded.
    pub model_loaded: bool,
}

/// Who else was on the card.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Others {
    /// Nobody.
    #[default]
    Nobody,
    /// Somebody whose part is known: utilisation of each, and ours, in one unit.
    Shares {
        /// Ours.
        own: u64,
        /// Theirs.
        theirs: Vec<(TenantId, u64)>,
    },
    /// Somebody whose part cannot be told: the active energy is nobody's figure.
    Unresolved,
    /// The same, charged to the requests all the same because the owner wants it so.
    Lenient,
}

/// How the requests' part is split.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Split {
    /// Uncached prompt tokens, and tokens of the answer times ρ(B).
    #[default]
    Weighted,
    /// Tokens of the answer.
    Token,
    /// Time in flight.
    Time,
    /// Per head.
    Equal,
}

/// What a decode token costs in prompt tokens when B requests emit: `a + b / B`, in 1/1024.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rho {
    /// What does not depend on B.
    pub a: u64,
    /// What the B of them share.
    pub b: u64,
}

impl Default for Rho {
    /// 8 at every B.
    fn default() -> Self {
        Self { a: 8 * TOKEN, b: 0 }
    }
}

impl Rho {
    /// ρ at B emitters, in 1/1024.
    pub const fn at(self, emitters: u64) -> u64 {
        match self.b.checked_div(emitters) {
            Some(shared) => self.a.saturating_add(shared),
            None => self.a.saturating_add(self.b),
        }
    }
}

/// Idle energy that ticks have lacked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carry {
    /// To be taken from the next tick, µJ; never more than one tick's floor.
    pub owed_uj: u64,
    /// Given up, µJ: the floor was too high.
    pub dropped_uj: u64,
}

/// A tick's split.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settlement {
    /// What each account gets, µJ; the sum is what was counted.
    pub shares: Vec<(Account, u64)>,
    /// The part that was split among requests, µJ.
    pub active_uj: u64,
    /// Requests were there, and somebody else whose part cannot be told.
    pub shared_device: bool,
    /// Some of the floor was given up.
    pub floor_suspect: bool,
}

/// What is known of a tick beside its energy.
#[derive(Clone, Copy, Debug)]
pub struct Around<'a> {
    /// The requests that were there.
    pub present: &'a [Presence],
    /// Who else was.
    pub others: &'a Others,
    /// What the card draws at rest, where that is known.
    pub rest: Option<Rest>,
    /// ρ.
    pub rho: Rho,
    /// How the requests' part is split.
    pub split: Split,
}

/// What of a tick goes elsewhere than to requests, and what is left for them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// What goes elsewhere, µJ.
    pub elsewhere: Vec<(Account, u64)>,
    /// The part of that which is idle, µJ.
    pub idle_uj: u64,
    /// What lies above the floor, µJ.
    pub above_uj: u64,
    /// The part of that which the requests pay, µJ.
    pub active_uj: u64,
    /// Requests were there, and somebody else whose part cannot be told.
    pub shared_device: bool,
    /// Some of the floor was given up.
    pub floor_suspect: bool,
    /// Counted, but nobody knows when.
    pub unplaced: bool,
}

/// Splits a tick.
pub fn settle(tick: Tick, around: &Around<'_>, carry: &mut Carry) -> Settlement {
    let nobody = around.present.is_empty();
    let outline = outline(tick, nobody, around.others, around.rest, carry);
    let mut shares = outline.elsewhere;
    share_out(outline.active_uj, around, &mut shares);
    Settlement {
        shares,
        active_uj: outline.active_uj,
        shared_device: outline.shared_device,
        floor_suspect: outline.floor_suspect,
    }
}

/// Takes from a tick what is not the requests': gap, idle, others'. Their part is 0 where `nobody`
/// of them was there.
pub fn outline(
    tick: Tick,
    nobody: bool,
    others: &Others,
    rest: Option<Rest>,
    carry: &mut Carry,
) -> Outline {
    let mut outline = Outline::default();
    let length_ns = tick.length_ns();
    if tick.is_unplaced() {
        outline.unplaced = true;
        if nobody {
            outline.idle(tick.counted_uj, length_ns, rest);
        } else {
            outline.give(Account::Gap, tick.counted_uj);
        }
        return outline;
    }
    let is_quiet = |rest: &Rest| nobody && *others == Others::Nobody && tick.is_at_rest(*rest);
    let Some(rest) = rest.filter(|rest| !is_quiet(rest)) else {
        if rest.is_some() || nobody {
            carry.owed_uj = 0;
            outline.idle(tick.counted_uj, length_ns, rest);
        } else {
            // No floor is known: nothing is idle, and requests are charged all of it.
            outline.above(tick.counted_uj, nobody, others);
        }
        return outline;
    };
    let floor_uj = energy_uj(rest.power_uw, length_ns);
    let wanted_uj = floor_uj.saturating_add(carry.owed_uj);
    let idle_uj = wanted_uj.min(tick.counted_uj);
    let lacking_uj = wanted_uj.saturating_sub(idle_uj);
    carry.owed_uj = lacking_uj.min(floor_uj);
    let dropped_uj = lacking_uj.saturating_sub(carry.owed_uj);
    carry.dropped_uj = carry.dropped_uj.saturating_add(dropped_uj);
    outline.floor_suspect = dropped_uj > 0;
    outline.idle(idle_uj, length_ns, Some(rest));
    outline.above(tick.counted_uj.saturating_sub(idle_uj), nobody, others);
    outline
}

/// The weight of each request by a rule; all zero where the rule has nothing to go by.
pub fn weights(present: &[Presence], rho: Rho, split: Split) -> Vec<(u64, u64)> {
    let emitters = present.iter().filter(|presence| presence.decode_tokens > 0).count();
    let rho = rho.at(u64::try_from(emitters).unwrap_or(u64::MAX));
    present
        .iter()
        .map(|presence| match split {
            Split::Weighted => {
                (presence.prefill_weight, presence.decode_tokens.saturating_mul(rho))
            }
            Split::Token => (0, presence.decode_tokens),
            Split::Time => (0, presence.resident_ns),
            Split::Equal => (0, 1),
        })
        .collect()
}

/// What a power draws in a time, µJ.
pub(crate) fn energy_uj(power_uw: u64, length_ns: u64) -> u64 {
    let energy = u128::from(power_uw).saturating_mul(u128::from(length_ns)) / SECOND_NS;
    u64::try_from(energy).unwrap_or(u64::MAX)
}

/// Shares what the requests pay among them.
fn share_out(amount_uj: u64, around: &Around<'_>, into: &mut Vec<(Account, u64)>) {
    let by = |split| weights(around.present, around.rho, split);
    let is_zero = |parts: &[(u64, u64)]| parts.iter().all(|part| *part == (0, 0));
    let mut parts = by(around.split);
    if is_zero(&parts) {
        parts = by(Split::Time);
    }
    if is_zero(&parts) {
        // Everybody came and went in no time.
        parts = by(Split::Equal);
    }
    let flat: Vec<u64> = parts.iter().flat_map(|(prefill, decode)| [*prefill, *decode]).collect();
    let mut shares = vec![0; flat.len()];
    apportion(amount_uj, &flat, &mut shares);
    for (presence, pair) in around.present.iter().zip(shares.chunks_exact(2)) {
        for (phase, share_uj) in [Phase::Prefill, Phase::Decode].into_iter().zip(pair) {
            if *share_uj > 0 {
                into.push((Account::Request(presence.request, phase), *share_uj));
            }
        }
    }
}

impl Tick {
    /// How long it was, ns.
    pub const fn length_ns(self) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns)
    }

    /// When in it its energy was drawn cannot be told.
    pub const fn is_unplaced(self) -> bool {
        self.unplaced || self.length_ns() > LONGEST_TICK_NS
    }

    /// No more power than at rest, and 3 % or 2 W.
    pub fn is_at_rest(self, rest: Rest) -> bool {
        let slack_uw = (rest.power_uw / 100).saturating_mul(3).max(2_000_000);
        let most_uj = energy_uj(rest.power_uw.saturating_add(slack_uw), self.length_ns());
        self.counted_uj <= most_uj
    }
}

impl Outline {
    /// The part that goes to nobody, µJ.
    pub(crate) fn unattributed_uj(&self) -> u64 {
        let nobodys = |(account, _): &&(Account, u64)| *account == Account::Unattributed;
        self.elsewhere.iter().find(nobodys).map_or(0, |(_, share_uj)| *share_uj)
    }

    fn give(&mut self, account: Account, amount_uj: u64) {
        if amount_uj > 0 {
            self.elsewhere.push((account, amount_uj));
        }
    }

    /// What the card draws without a model, and what the model adds.
    fn idle(&mut self, amount_uj: u64, length_ns: u64, rest: Option<Rest>) {
        let off_uj = match rest {
            Some(Rest { off_uw: Some(_), model_loaded: false, .. }) => amount_uj,
            Some(Rest { off_uw: Some(off_uw), .. }) => energy_uj(off_uw, length_ns).min(amount_uj),
            _ => 0,
        };
        self.idle_uj = amount_uj;
        self.give(Account::IdleOff, off_uj);
        self.give(Account::IdleResident, amount_uj.saturating_sub(off_uj));
    }

    /// What is above the floor.
    fn above(&mut self, amount_uj: u64, nobody: bool, others: &Others) {
        self.above_uj = amount_uj;
        let own_uj = match others {
            Others::Nobody | Others::Lenient => amount_uj,
            Others::Unresolved => {
                self.shared_device = !nobody;
                self.give(Account::ForeignUnresolved, amount_uj);
                0
            }
            Others::Shares { own, theirs } => self.foreign(amount_uj, *own, theirs),
        };
        if nobody {
            self.give(Account::Unattributed, own_uj);
        } else {
            self.active_uj = own_uj;
        }
    }

    /// Others' parts by utilisation; returns ours.
    fn foreign(&mut self, amount_uj: u64, own: u64, theirs: &[(TenantId, u64)]) -> u64 {
        let weights: Vec<u64> =
            std::iter::once(own).chain(theirs.iter().map(|(_, weight)| *weight)).collect();
        let mut shares = vec![0; weights.len()];
        if !apportion(amount_uj, &weights, &mut shares) {
            return amount_uj;
        }
        let mut shares = shares.into_iter();
        let own_uj = shares.next().unwrap_or(0);
        for ((tenant, _), share_uj) in theirs.iter().zip(shares) {
            self.give(Account::Foreign(*tenant), share_uj);
        }
        own_uj
    }
}
