//! Whose work is on a card.
//!
//! Decides it from the processes resident there, the node's rules and the tree of processes, all of
//! which are arguments. Three answers: alone, foreign (with names), unknown. Not seen is not the
//! same as nobody.
//!
//! Invariants: a process whose memory is not known counts as large; a card is called contended only
//! where the node has said which work is its own; of several trees that could be ours, none is.

mod family;
pub mod linux;
mod sides;

use std::collections::BTreeSet;

use joulebook_core::Fault;

pub(crate) use family::Family;
pub(crate) use sides::Sides;

use crate::reader::Process;

/// What a node says of its work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Whose work is ours.
    pub own: Own,
    /// A process that holds less than this is no tenant.
    pub contention_floor_mib: u64,
    /// Neither is one whose name contains one of these.
    pub contention_ignore: Vec<String>,
}

/// Whose work is ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Own {
    /// The node has not said: what descends from these processes (the caller, or the command that
    /// is measured). Others then decide the rule of measuring, but do not make it contended.
    Trees(Vec<u32>),
    /// The one tree of processes whose name contains this.
    Matching(String),
    /// What descends from these processes, which serve the node.
    Serving(Vec<u32>),
    /// What descends from the process that listens on this TCP port of the card's host.
    Listening(u16),
    /// The work is another host's, and the node has not said which of its processes do it.
    Elsewhere,
}

/// Where a process comes from.
pub trait Ancestry {
    /// The process that started it, where that can be seen.
    fn parent(&self, pid: u32) -> Option<u32>;

    /// Its command line, where that can be seen.
    fn name(&self, pid: u32) -> Option<String> {
        let _ = pid;
        None
    }

    /// The TCP ports it listens on; `None` where that cannot be seen, which is not the same as none.
    fn ports(&self, pid: u32) -> Option<Vec<u16>> {
        let _ = pid;
        None
    }

    /// False where it was not looked what started it.
    fn is_known(&self, pid: u32) -> bool {
        let _ = pid;
        true
    }
}

/// Whose a process is.
enum Whose {
    Ours,
    Others,
    Unseen,
}

/// Who was on the card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tenancy {
    /// Nobody but us.
    Alone,
    /// Others: `name (N MiB)` of each, sorted.
    Foreign(Vec<String>),
    /// It cannot be seen, and why.
    Unknown(String),
}

/// The decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Who was there.
    pub tenancy: Tenancy,
    /// Others were there, by a rule that the node gave.
    pub contended: bool,
}

/// Why the processes could not be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unseen {
    /// The word of the failure.
    pub fault: Fault,
    /// What hides them, where that is known (`pid_namespace`).
    pub hidden_by: Option<&'static str>,
}

impl Default for Rules {
    /// Ours is this process's tree; tenants hold 512 MiB or more.
    fn default() -> Self {
        Self {
            own: Own::Trees(vec![std::process::id()]),
            contention_floor_mib: 512,
            contention_ignore: Vec::new(),
        }
    }
}

impl Own {
    /// From what a node may say. Processes named by id or port tell two servers of one name apart,
    /// so they go before the name; an empty name says nothing.
    pub fn choose(
        serving_match: Option<&str>,
        serving_processes: Option<Vec<u32>>,
        own_trees: Vec<u32>,
    ) -> Self {
        match (serving_processes, serving_match) {
            (Some(processes), _) => Self::Serving(processes),
            (None, Some(name)) if !name.trim().is_empty() => Self::Matching(name.to_owned()),
            _ => Self::Trees(own_trees),
        }
    }

    const fn is_named(&self) -> bool {
        matches!(self, Self::Matching(_) | Self::Serving(_) | Self::Listening(_))
    }

    /// Why it cannot be told whose a process is.
    fn unseen(&self) -> String {
        match self {
            Self::Listening(port) => format!(
                "permission: which process listens on port {port} cannot be seen from where the \
                 card is read (another user's, or another container's)"
            ),
            Self::Elsewhere => {
                "the node does not say which of its host's processes are ours: give \
                                serving_match, serving_pid or serving_port"
                    .to_owned()
            }
            Self::Trees(_) | Self::Serving(_) | Self::Matching(_) => {
                "what started a process on the card cannot be seen".to_owned()
            }
        }
    }
}

impl<F: Fn(u32) -> Option<u32>> Ancestry for F {
    fn parent(&self, pid: u32) -> Option<u32> {
        self(pid)
    }
}

impl From<Fault> for Unseen {
    fn from(fault: Fault) -> Self {
        Self { fault, hidden_by: None }
    }
}

impl Verdict {
    /// The others in one line; `None` where the card is not contended.
    pub fn contended_by(&self) -> Option<String> {
        match &self.tenancy {
            Tenancy::Foreign(names) if self.contended => Some(names.join(", ")),
            _ => None,
        }
    }
}

/// Decides whose work is on the card.
pub fn decide(
    resident: Result<&[Process], Unseen>,
    rules: &Rules,
    ancestry: &impl Ancestry,
) -> Verdict {
    let resident = match resident {
        Ok(resident) => resident,
        Err(unseen) => {
            return Verdict { tenancy: Tenancy::Unknown(unseen.reason()), contended: false };
        }
    };
    let candidates: Vec<&Process> =
        resident.iter().filter(|process| rules.is_candidate(process)).collect();
    let (mut ours, mut others, mut unseen) = (Vec::new(), Vec::new(), Vec::new());
    for process in candidates {
        match rules.own.whose(process, ancestry) {
            Whose::Ours => ours.push(process),
            Whose::Others => others.push(process),
            Whose::Unseen => unseen.push(process),
        }
    }
    if matches!(rules.own, Own::Listening(_)) && !ours.is_empty() {
        // One process listens, and it was found: whatever else is unseen does not descend from it.
        others.append(&mut unseen);
    }
    if let Own::Matching(text) = &rules.own {
        let pids: BTreeSet<u32> = ours.iter().map(|process| process.pid).collect();
        let roots: BTreeSet<u32> =
            pids.iter().map(|pid| root(*pid, text, &pids, ancestry)).collect();
        if roots.len() > 1 {
            others.extend(ours);
        }
    }
    if others.is_empty() {
        let tenancy = match unseen.as_slice() {
            [] => Tenancy::Alone,
            _ => Tenancy::Unknown(rules.own.unseen()),
        };
        return Verdict { tenancy, contended: false };
    }
    let mut names: Vec<String> = others.into_iter().map(witness).collect();
    names.sort();
    Verdict { tenancy: Tenancy::Foreign(names), contended: rules.own.is_named() }
}

/// A process as results name it: the first 80 characters of its name, without those that would
/// steer a terminal or change the order in which it is read, and its memory.
pub fn witness(process: &Process) -> String {
    let is_shown = |letter: &char| !letter.is_control() && !is_format(*letter);
    let name: String = process.name.chars().filter(is_shown).take(80).collect();
    match process.used_mib {
        Some(used) => format!("{name} ({used} MiB)"),
        None => format!("{name} (N/A MiB)"),
    }
}

impl Rules {
    fn is_candidate(&self, process: &Process) -> bool {
        // A size that is not known cannot be excluded by size.
        let is_large = process.used_mib.is_none_or(|used| used >= self.contention_floor_mib);
        let is_ignored = self
            .contention_ignore
            .iter()
            .any(|part| !part.trim().is_empty() && contains(&process.name, part));
        is_large && !is_ignored
    }
}

impl Unseen {
    /// One word: what hides them where that is known, else the failure.
    pub const fn word(self) -> &'static str {
        match self.hidden_by {
            Some(word) => word,
            None => self.fault.word(),
        }
    }

    fn reason(self) -> String {
        match self.hidden_by {
            Some("pid_namespace") => {
                "pid_namespace: the card is in use, and this container cannot see by whom (start \
                 it with the host's process ids, --pid=host)"
                    .to_owned()
            }
            Some(word) => {
                format!("{word}: the card is in use, and the driver does not list by whom")
            }
            None => format!("{}: the processes on the card cannot be listed", self.fault),
        }
    }
}

/// Characters without a shape that join, part or turn around the text beside them.
const fn is_format(letter: char) -> bool {
    matches!(letter, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

fn contains(name: &str, part: &str) -> bool {
    name.to_lowercase().contains(&part.to_lowercase())
}

/// No tree is deeper; a tree that seems to be was read while it changed.
const DEEPEST: usize = 64;

impl Own {
    fn whose(&self, process: &Process, ancestry: &impl Ancestry) -> Whose {
        match self {
            Self::Trees(roots) | Self::Serving(roots) => {
                if lineage(process.pid, ancestry).any(|pid| roots.contains(&pid)) {
                    Whose::Ours
                } else if ancestry.is_known(process.pid) {
                    Whose::Others
                } else {
                    Whose::Unseen
                }
            }
            Self::Matching(text) if contains(&process.name, text) => Whose::Ours,
            Self::Matching(_) => Whose::Others,
            Self::Listening(port) => {
                let ports: Vec<_> =
                    lineage(process.pid, ancestry).map(|pid| ancestry.ports(pid)).collect();
                if ports.iter().flatten().any(|ports| ports.contains(port)) {
                    Whose::Ours
                } else if ports.iter().all(Option::is_some) {
                    Whose::Others
                } else {
                    Whose::Unseen
                }
            }
            Self::Elsewhere => Whose::Unseen,
        }
    }
}

/// A process and its ancestors.
fn lineage(pid: u32, ancestry: &impl Ancestry) -> impl Iterator<Item = u32> {
    std::iter::successors(Some(pid), |pid| ancestry.parent(*pid).filter(|pid| *pid > 0))
        .take(DEEPEST)
}

/// The top of the tree of the server that a process belongs to: up through those of its ancestors
/// that are the server's too. Where ancestors have no names, all below the first process are.
fn root(pid: u32, text: &str, ours: &BTreeSet<u32>, ancestry: &impl Ancestry) -> u32 {
    let is_servers = |pid: u32| {
        ours.contains(&pid)
            || match ancestry.name(pid) {
                Some(name) => contains(&name, text) && !is_shell(&name),
                None => pid > 1,
            }
    };
    std::iter::successors(Some(pid), |pid| {
        ancestry.parent(*pid).filter(|parent| *parent != 0 && is_servers(*parent))
    })
    .take(DEEPEST)
    .last()
    .unwrap_or(pid)
}

/// A shell's command line names what it started, and it may have started two servers.
fn is_shell(command: &str) -> bool {
    const SHELLS: [&str; 7] = ["sh", "bash", "dash", "zsh", "fish", "ksh", "busybox"];
    let program = command.split_whitespace().next().unwrap_or_default();
    let base = program.rsplit('/').next().unwrap_or_default();
    SHELLS.contains(&base.trim_start_matches('-'))
}

#[cfg(test)]
mod tests;
