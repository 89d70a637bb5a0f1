//! What goes wrong with the program at a tick.

use super::Ends;
use crate::{
    machine::{Machine, spend},
    scenario::{SmiEffect, SmiFault, Spend},
};

/// How a tick goes.
pub(super) enum Tick {
    /// It prints.
    Goes,
    /// It prints nothing.
    Nothing,
    /// The program ends.
    Ends(Ends),
}

/// Lets the faults of the moment act.
pub(super) fn begin(machine: &Machine) -> Tick {
    let longest_ns = |pick: fn(&SmiFault, i64) -> Option<i64>| {
        let now_ns = machine.now_ns();
        active(machine, now_ns).filter_map(|fault| pick(fault, now_ns)).max().unwrap_or(0)
    };
    spend(
        Spend::Sleep,
        longest_ns(|fault, _| match fault.effect {
            SmiEffect::Hang(ns) => Some(ns),
            _ => None,
        }),
    );
    let pause_ns = longest_ns(|fault, now_ns| match fault.effect {
        SmiEffect::Pause => Some(fault.span.end_ns.saturating_sub(now_ns)),
        _ => None,
    });
    spend(Spend::Sleep, pause_ns);
    let now_ns = machine.now_ns();
    if active(machine, now_ns).any(|fault| fault.effect == SmiEffect::Die) {
        return Tick::Ends(Ends { code: 1, says: String::new() });
    }
    for fault in active(machine, now_ns) {
        if let SmiEffect::Exit { code, text } = &fault.effect {
            let says = if text.is_empty() { String::new() } else { format!("{text}\n") };
            return Tick::Ends(Ends { code: u8::try_from(*code).unwrap_or(255), says });
        }
    }
    if active(machine, now_ns).any(|fault| fault.effect == SmiEffect::Empty) {
        return Tick::Nothing;
    }
    Tick::Goes
}

fn active(machine: &Machine, now_ns: i64) -> impl Iterator<Item = &SmiFault> {
    let faults = machine.models().iter().flat_map(|model| &model.card().smi_faults);
    faults.filter(move |fault| fault.span.contains(now_ns))
}
