//! Where the processes on a card come from, kept from when they were seen: a window is judged after
//! its command has ended, when `/proc` knows the command no more.

use std::collections::BTreeMap;

use super::{Ancestry, DEEPEST};
use crate::{nvml, reader::Process, wire};

/// The ancestors of some processes, as they were.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Family {
    kin: BTreeMap<u32, Kin>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Kin {
    parent: Option<u32>,
    name: Option<String>,
    ports: Option<Vec<u16>>,
}

impl Family {
    /// Looks now.
    pub(crate) fn look(processes: &[Process], ancestry: &impl Ancestry) -> Self {
        let mut kin = BTreeMap::new();
        for process in processes {
            let mut next = Some(process.pid);
            for _ in 0..DEEPEST {
                let Some(pid) = next.filter(|pid| *pid > 0 && !kin.contains_key(pid)) else {
                    break;
                };
                let parent = ancestry.parent(pid);
                let (name, ports) = (ancestry.name(pid), ancestry.ports(pid));
                kin.insert(pid, Kin { parent, name, ports });
                next = parent;
            }
        }
        Self { kin }
    }

    /// As another host has seen it.
    pub(crate) fn told(kin: Vec<wire::Kin>) -> Self {
        let each = |kin: wire::Kin| {
            (kin.pid, Kin { parent: kin.parent, name: kin.name, ports: kin.ports })
        };
        Self { kin: kin.into_iter().map(each).collect() }
    }

    /// To be told to another host.
    pub(crate) fn tell(&self) -> Vec<wire::Kin> {
        let each = |(pid, kin): (&u32, &Kin)| wire::Kin {
            pid: *pid,
            parent: kin.parent,
            name: kin.name.as_deref().map(nvml::program_of),
            ports: kin.ports.clone(),
        };
        self.kin.iter().map(each).collect()
    }
}

impl Ancestry for Family {
    fn parent(&self, pid: u32) -> Option<u32> {
        self.kin.get(&pid)?.parent
    }

    fn name(&self, pid: u32) -> Option<String> {
        self.kin.get(&pid)?.name.clone()
    }

    fn ports(&self, pid: u32) -> Option<Vec<u16>> {
        self.kin.get(&pid)?.ports.clone()
    }

    fn is_known(&self, pid: u32) -> bool {
        self.kin.contains_key(&pid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tenancy::{Own, Rules, Tenancy, decide};

    #[test]
    fn a_process_that_has_ended_is_still_ours() {
        let alive = |pid: u32| Some(pid / 10).filter(|parent| *parent > 0);
        let resident = [Process { pid: 4242, used_mib: None, name: "python3".into() }];
        let family = Family::look(&resident, &alive);
        let rules = Rules { own: Own::Trees(vec![42]), ..Rules::default() };
        let ended = |_: u32| None;
        assert_ne!(decide(Ok(&resident), &rules, &ended).tenancy, Tenancy::Alone);
        assert_eq!(decide(Ok(&resident), &rules, &family).tenancy, Tenancy::Alone);
    }
}
