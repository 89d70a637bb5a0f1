//! The residents of a card by the side they stand on: the numbers behind a verdict.
//!
//! Whose a process is is decided by [`decide`] alone, asked of each by itself; of several trees that
//! could be ours none is, here as there.

use std::slice;

use super::{Ancestry, Rules, Tenancy, decide};
use crate::{idle::LOADED_MIB, reader::Process};

/// Who is ours, and who is a tenant beside us.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sides {
    /// Our processes, however small.
    pub ours: Vec<u32>,
    /// The tenants, by the rules' sizes and names.
    pub tenants: Vec<u32>,
    /// One of ours holds a model in the card's memory.
    pub model_loaded: bool,
}

impl Sides {
    pub(crate) fn of(resident: &[Process], rules: &Rules, ancestry: &impl Ancestry) -> Self {
        let tenancy = |process: &Process, rules| {
            decide(Ok(slice::from_ref(process)), rules, ancestry).tenancy
        };
        let every_size = Rules {
            contention_floor_mib: 0,
            contention_ignore: Vec::new(),
            own: rules.own.clone(),
        };
        let ours: Vec<Process> = resident
            .iter()
            .filter(|process| tenancy(process, &every_size) == Tenancy::Alone)
            .cloned()
            .collect();
        let is_one = decide(Ok(&ours), &every_size, ancestry).tenancy == Tenancy::Alone;
        let ours = if is_one { ours } else { Vec::new() };
        let is_tenant = |process: &&Process| matches!(tenancy(process, rules), Tenancy::Foreign(_));
        Self {
            // A size that is not known counts as large.
            model_loaded: ours
                .iter()
                .any(|process| process.used_mib.is_none_or(|used| used >= LOADED_MIB)),
            ours: ours.iter().map(|process| process.pid).collect(),
            tenants: resident.iter().filter(is_tenant).map(|process| process.pid).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tenancy::Own;

    fn process(pid: u32, used_mib: Option<u64>, name: &str) -> Process {
        Process { pid, used_mib, name: name.to_owned() }
    }

    #[test]
    fn ours_counts_at_every_size_and_others_by_the_rules() {
        let rules = Rules {
            own: Own::Trees(vec![10]),
            contention_ignore: vec!["xorg".into()],
            ..Rules::default()
        };
        let resident = [
            process(10, Some(100), "ours"),
            process(20, Some(4000), "other"),
            process(21, Some(100), "small"),
            process(22, Some(4000), "Xorg"),
        ];
        let sides = Sides::of(&resident, &rules, &|_| None);
        let expected = Sides { ours: vec![10], tenants: vec![20], model_loaded: false };
        assert_eq!(sides, expected);
        let loaded = [process(11, None, "child")];
        let parent = |pid: u32| (pid == 11).then_some(10);
        assert!(Sides::of(&loaded, &rules, &parent).model_loaded);
    }

    #[test]
    fn of_several_trees_none_is_ours() {
        let rules = Rules { own: Own::Matching("vllm".into()), ..Rules::default() };
        let resident = [process(30, Some(9000), "vllm a"), process(40, Some(9000), "vllm b")];
        let sides = Sides::of(&resident, &rules, &|_| Some(1));
        assert_eq!((sides.ours.len(), sides.model_loaded), (0, false));
        let sides = Sides::of(&resident[..1], &rules, &|_| Some(1));
        assert_eq!((sides.ours, sides.model_loaded), (vec![30], true));
    }
}
