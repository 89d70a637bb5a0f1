//! Who else was on a card in a tick, and what part of its work was theirs.
//!
//! Decides, of a tick with a tenant in it, whether its energy can be divided by how much each
//! process was at work. Where everybody's part is known each other process gets its own, tenant or
//! not; where nobody did anything and the card drew no more than at rest, nobody was there who
//! matters. Everything else is unresolved (or charged to us all the same, where that is wanted): a
//! tenant who left before it was told of, none of the processes ours, work of somebody who is neither
//! us nor a tenant while ours shows none (a shared service that works for both).

use std::{collections::BTreeMap, sync::Arc};

use joulebook_core::{
    Flags,
    ledger::{TenantId, settle::Others},
};

use crate::{
    card::{Card, Residents, Work},
    tenancy::{Rules, Sides, Tenancy, Verdict, decide},
};

/// How tenants are judged.
#[derive(Clone)]
pub(super) struct Neighbours {
    rules: Rules,
    lenient: bool,
    /// The residents as judged last, and from when on that holds.
    judged: Option<(u64, Judged)>,
}

#[derive(Clone)]
struct Judged {
    verdict: Verdict,
    sides: Sides,
}

/// Who was there, over a tick.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// Tenants' names, sorted.
    names: Vec<String>,
    sides: Sides,
    flags: Flags,
}

/// A tick's neighbours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Around {
    pub others: Others,
    pub contended_by: Option<Arc<str>>,
    pub flags: Flags,
}

impl Neighbours {
    pub fn new(rules: Rules, lenient: bool) -> Self {
        Self { rules, lenient, judged: None }
    }

    /// Anybody at any instant of the tick.
    pub fn seen(&mut self, card: &Card, from_ns: u64, to_ns: u64) -> Seen {
        let states = card.residents(from_ns, to_ns);
        let mut seen = Seen::default();
        if states.is_empty() {
            seen.flags |= Flags::TENANCY_UNKNOWN;
        }
        for state in states {
            seen.add(&self.judge(&state));
        }
        seen.names.sort();
        seen.names.dedup();
        if !seen.names.is_empty() {
            seen.flags |= Flags::FOREIGN;
        }
        seen
    }

    fn judge(&mut self, state: &Residents) -> Judged {
        if let Some((judged_ns, judged)) = &self.judged
            && *judged_ns == state.from_ns
        {
            return judged.clone();
        }
        let resident = state.seen.as_ref().as_ref().map(Vec::as_slice).map_err(|unseen| *unseen);
        let judged = Judged {
            verdict: decide(resident, &self.rules, &*state.family),
            sides: resident
                .map(|resident| Sides::of(resident, &self.rules, &*state.family))
                .unwrap_or_default(),
        };
        self.judged = Some((state.from_ns, judged.clone()));
        judged
    }

    /// What part of the tick's work was whose; none as long as that may still be told. `at_rest`: the
    /// card drew no more than at rest.
    pub fn around(&self, seen: &Seen, work: Work, at_rest: bool) -> Option<Around> {
        let others = if seen.is_alone() {
            Others::Nobody
        } else {
            match work {
                Work::Pending => return None,
                Work::Known(work) => divided(&work, &seen.sides, at_rest),
                Work::Unknown => None,
            }
            .unwrap_or(if self.lenient { Others::Lenient } else { Others::Unresolved })
        };
        let contended_by = (!seen.is_alone()).then(|| seen.names.join(", ").into());
        Some(Around { others, contended_by, flags: seen.flags })
    }
}

impl Seen {
    fn add(&mut self, judged: &Judged) {
        match &judged.verdict.tenancy {
            Tenancy::Alone => {}
            Tenancy::Foreign(others) => self.names.extend(others.iter().cloned()),
            Tenancy::Unknown(_) => self.flags |= Flags::TENANCY_UNKNOWN,
        }
        let merge = |into: &mut Vec<u32>, from: &[u32]| {
            into.extend_from_slice(from);
            into.sort_unstable();
            into.dedup();
        };
        merge(&mut self.sides.ours, &judged.sides.ours);
        merge(&mut self.sides.tenants, &judged.sides.tenants);
        self.sides.model_loaded |= judged.sides.model_loaded;
    }

    /// Somebody else was there, or that cannot be seen.
    pub fn is_occupied(&self) -> bool {
        !self.is_alone() || self.is_unknown()
    }

    /// Who is there cannot be seen, at least for a while.
    pub fn is_unknown(&self) -> bool {
        self.flags.contains(Flags::TENANCY_UNKNOWN)
    }

    /// One of ours held a model.
    pub fn model_loaded(&self) -> bool {
        self.sides.model_loaded
    }

    /// No tenant was seen.
    pub fn is_alone(&self) -> bool {
        self.names.is_empty()
    }
}

/// By how much each was at work; none where that does not tell whose the energy is.
fn divided(work: &BTreeMap<u32, u64>, sides: &Sides, at_rest: bool) -> Option<Others> {
    if sides.ours.is_empty() {
        return None;
    }
    let mut own = 0u64;
    let mut strangers = 0u64;
    let mut theirs = Vec::new();
    for (pid, share) in work.iter().filter(|(_, share)| **share > 0) {
        if sides.ours.contains(pid) {
            own = own.saturating_add(*share);
            continue;
        }
        if !sides.tenants.contains(pid) {
            strangers = strangers.saturating_add(*share);
        }
        theirs.push((TenantId(*pid), *share));
    }
    match (own, theirs.as_slice()) {
        (0, []) => at_rest.then_some(Others::Nobody),
        (0, _) if strangers > 0 => None,
        (_, []) => Some(Others::Nobody),
        _ => Some(Others::Shares { own, theirs }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(ours: &[u32], tenants: &[u32]) -> Seen {
        let sides = Sides { ours: ours.into(), tenants: tenants.into(), model_loaded: false };
        Seen { names: vec!["other (4000 MiB)".into()], sides, flags: Flags::FOREIGN }
    }

    fn others(seen: &Seen, work: &[(u32, u64)], at_rest: bool) -> Others {
        let neighbours = Neighbours::new(Rules::default(), false);
        let work = Work::Known(work.iter().copied().collect());
        let around = neighbours.around(seen, work, at_rest).unwrap();
        assert_eq!(around.contended_by.as_deref(), Some("other (4000 MiB)"));
        around.others
    }

    #[test]
    fn everybody_gets_what_they_did() {
        let seen = seen(&[1, 2], &[9]);
        let theirs = vec![(TenantId(8), 5), (TenantId(9), 25)];
        let shares = others(&seen, &[(1, 50), (2, 20), (8, 5), (9, 25)], false);
        assert_eq!(shares, Others::Shares { own: 70, theirs });
        let theirs = vec![(TenantId(9), 25)];
        assert_eq!(others(&seen, &[(9, 25)], false), Others::Shares { own: 0, theirs });
    }

    #[test]
    fn a_tenant_that_did_nothing_takes_nothing() {
        assert_eq!(others(&seen(&[1], &[9]), &[(1, 50)], false), Others::Nobody);
        assert_eq!(others(&seen(&[1], &[9]), &[], true), Others::Nobody);
    }

    #[test]
    fn what_does_not_tell_stays_unresolved() {
        // Nobody says that he worked, and the card did.
        assert_eq!(others(&seen(&[1], &[9]), &[], false), Others::Unresolved);
        // A service that works for others shows in their place.
        assert_eq!(others(&seen(&[1], &[9]), &[(5, 80)], false), Others::Unresolved);
        // Nobody there is ours, so ours works unseen.
        assert_eq!(others(&seen(&[], &[9]), &[(9, 80)], false), Others::Unresolved);
        let around = |lenient| {
            let neighbours = Neighbours::new(Rules::default(), lenient);
            let seen = seen(&[1], &[9]);
            assert_eq!(neighbours.around(&seen, Work::Pending, true), None);
            neighbours.around(&seen, Work::Unknown, true).unwrap().others
        };
        assert_eq!((around(false), around(true)), (Others::Unresolved, Others::Lenient));
    }
}
