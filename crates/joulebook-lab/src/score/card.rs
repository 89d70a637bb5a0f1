//! What is seen of the cards of a run: their registers, and who else was there.
//!
//! A tenant's utilisation is what he draws, in whole per cent of the most that the engine draws; so
//! is ours. That is the best that utilisation can be: a real driver counts time, whatever is drawn
//! in it.

use joulebook_core::ledger::{TenantId, settle::Others};

use super::{Card, Load, Register, Tenant, Tick};
use crate::{draw::Draw, engine::Run};

/// The cards, each read at its own random phase.
pub(super) fn cards(load: &Load, run: &Run, draw: &mut Draw) -> Vec<Card> {
    let settings = load.settings(0);
    let most_w = settings.hardware.prefill_w.max(settings.hardware.decode_w(usize::MAX));
    let mut cards = Vec::new();
    for (number, curve) in run.curves.iter().enumerate() {
        let ticks = Register::default().ticks(curve, run.end_ns, draw);
        let foreign = || settings.foreign.iter().filter(|it| it.card == number);
        let others = |(tick, joules): &(Tick, f64)| {
            let theirs: f64 = foreign().map(|it| it.joules(tick.start_ns, tick.end_ns)).sum();
            if theirs <= 0.0 {
                return Others::Nobody;
            }
            if load.tenant == Tenant::Unseen {
                return Others::Unresolved;
            }
            let seconds = tick.seconds();
            let percent = |joules: f64| (joules / seconds / most_w * 100.0).round().max(0.0) as u64;
            let own = joules - settings.hardware.idle_w * seconds - theirs;
            let pid = foreign().map(|it| it.pid).next().unwrap_or(0);
            Others::Shares { own: percent(own), theirs: vec![(TenantId(pid), percent(theirs))] }
        };
        let others = if foreign().next().is_none() {
            Vec::new()
        } else {
            ticks.iter().map(others).collect()
        };
        cards.push(Card { ticks: ticks.into_iter().map(|(tick, _)| tick).collect(), others });
    }
    cards
}
