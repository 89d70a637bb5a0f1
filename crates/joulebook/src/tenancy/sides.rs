//! The residents of a card by the side they stand on: the numbers behind a verdict.
//!
//! Whose a process is is decided by [`decide`] alone, asked of each by itself, and of one that is not
//! ours beside those that are: what serves our port, once found, is not what cannot be seen. Of
//! several trees that could be ours none is, here as there.

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
        let every_size = Rules {
            contention_floor_mib: 0,
            contention_ignore: Vec::new(),
            own: rules.own.clone(),
        };
        let are_ours = |processes: &[Process]| {
            decide(Ok(processes), &every_size, ancestry).tenancy == Tenancy::Alone
        };
        let ours: Vec<Process> =
            resident.iter().filter(|process| are_ours(slice::from_ref(process))).cloned().collect();
        let is_one = are_ours(&ours);
        let ours = if is_one { ours } else { Vec::new() };
        let is_tenant = |process: &&Process| {
            if !rules.is_candidate(process) || ours.iter().any(|it| it.pid == process.pid) {
                return false;
            }
            let beside: Vec<Process> = ours.iter().chain([*process]).cloned().collect();
            matches!(decide(Ok(&beside), rules, ancestry).tenancy, Tenancy::Foreign(_))
        };
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

    /// Process 30 is seen to listen on our port, 31 on another; of others it cannot be seen.
    struct Ports;

    impl Ancestry for Ports {
        fn parent(&self, _: u32) -> Option<u32> {
            None
        }

        fn ports(&self, pid: u32) -> Option<Vec<u16>> {
            match pid {
                30 => Some(vec![8000]),
                31 => Some(vec![8001]),
                _ => None,
            }
        }
    }

    #[test]
    fn beside_who_listens_whose_ports_cannot_be_seen_is_a_tenant() {
        let rules = Rules { own: Own::Listening(8000), ..Rules::default() };
        let [found, seen, hidden, small] = [
            process(30, Some(9000), "vllm"),
            process(31, Some(9000), "seen"),
            process(40, Some(9000), "hidden"),
            process(41, Some(100), "small"),
        ];
        let both = [found, seen.clone(), hidden.clone(), small];
        let sides = Sides::of(&both, &rules, &Ports);
        assert_eq!((sides.ours, sides.tenants), (vec![30], vec![31, 40]));
        // As long as nobody was found it may be ours.
        let sides = Sides::of(&[seen, hidden], &rules, &Ports);
        assert_eq!((sides.ours, sides.tenants), (vec![], vec![31]));
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
