//! Who is on a card, by the driver's list.
//!
//! Refuses to vouch for an empty card that it cannot see: a list that does not explain the memory
//! or the work on the card is an error, not "nobody". Who was at work is asked with the stamp of the
//! newest sample seen before, so each answer is about the time since; the driver lists those that did
//! some work, and says "not found" where nobody did. Stamps are only handed back, never read: some
//! drivers count from 1970, some from the start of the machine.

use std::{cmp::Reverse, fs, sync::Arc};

use joulebook_core::Fault;
use nvml_wrapper::{
    Device as Card,
    enums::device::UsedGpuMemory,
    error::NvmlError,
    struct_wrappers::device::{ProcessInfo, ProcessUtilizationSample},
};

use super::{
    cards::CardInfo,
    driver::Driver,
    fault::fault,
    names, raw,
    session::Session,
    state,
    support::{Call, Support},
};
use crate::reader::{AtWork, Process, Tenants, Usage};

const MEBIBYTE: u64 = 1 << 20;

/// A process cannot compute on a card without a context there, and a context takes more than this.
const NOBODY_MIB: u64 = 64;
/// Memory that the listed processes may leave unexplained inside a container (the driver's own, a
/// display).
const UNEXPLAINED_MIB: u64 = 512;
/// The same on the host itself, where the list is complete save in rare cases.
const UNEXPLAINED_ON_HOST_MIB: u64 = 1024;

/// Whose process ids this process sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PidNamespace {
    /// The host's: the driver's list is complete.
    Host,
    /// A container's own: the driver leaves out whom we cannot see.
    Container,
}

impl PidNamespace {
    /// This process's. Where that cannot be told, a container is assumed.
    pub fn of_this_process() -> Self {
        // The kernel's fixed number of the first pid namespace (PROC_PID_INIT_INO).
        match fs::read_link("/proc/self/ns/pid") {
            Ok(link) if link.as_os_str() == "pid:[4026531836]" => Self::Host,
            _ => Self::Container,
        }
    }
}

/// Lists the compute processes of a card.
#[derive(Debug)]
pub struct NvmlTenants {
    session: Session,
    namespace: PidNamespace,
    hidden: bool,
    /// The stamp of the newest sample of who was at work.
    sampled: u64,
}

impl NvmlTenants {
    /// The tenants of this card. Makes no call.
    pub fn open(driver: &Arc<Driver>, card: &CardInfo) -> Self {
        Self {
            session: Session::new(driver, &card.uuid),
            namespace: PidNamespace::of_this_process(),
            hidden: false,
            sampled: 0,
        }
    }

    /// The same, with the namespace given.
    #[must_use]
    pub fn in_namespace(self, namespace: PidNamespace) -> Self {
        Self { namespace, ..self }
    }
}

impl Tenants for NvmlTenants {
    fn resident(&mut self) -> Result<Vec<Process>, Fault> {
        let Self { session, namespace, hidden, .. } = self;
        *hidden = false;
        let listed = session.call(|card, support| listed(card, support, *namespace))?;
        *hidden = listed.is_none();
        listed.ok_or(Fault::Permission)
    }

    fn at_work(&mut self) -> Result<Vec<AtWork>, Fault> {
        let Self { session, sampled, .. } = self;
        session.call(|card, support| {
            support.ask(Call::ProcessUtilization, || believed(samples(card, *sampled)?, sampled))
        })
    }

    fn hidden_by(&self) -> Option<&'static str> {
        self.hidden.then_some(match self.namespace {
            PidNamespace::Container => "pid_namespace",
            PidNamespace::Host => "unlisted",
        })
    }

    fn usage(&mut self) -> Usage {
        let asked = self.session.call(|card, support| {
            let memory = state::memory(card, support);
            let utilization = state::utilization(card, support);
            // Nothing of it: a card that is lost is looked for anew.
            if let (Err(fault), Err(_)) = (memory, utilization) {
                return Err(fault);
            }
            let memory = memory.ok();
            Ok(Usage {
                used_mib: memory.map(|memory| memory.used_mib),
                total_mib: memory.map(|memory| memory.total_mib),
                utilization_pct: utilization.ok(),
            })
        });
        asked.unwrap_or_default()
    }
}

/// Who was at work since a sample was taken.
fn samples(card: &Card<'_>, since: u64) -> Result<Vec<ProcessUtilizationSample>, Fault> {
    // The list may grow between asking its length and asking for it.
    for _ in 0..3 {
        match card.process_utilization_stats(since) {
            Ok(samples) => return Ok(samples),
            Err(NvmlError::NotFound) => return Ok(Vec::new()),
            Err(NvmlError::InsufficientSize(_)) => {}
            Err(error) => return Err(fault(&error)),
        }
    }
    Err(Fault::Unknown)
}

/// The samples that were written. Some drivers say that there are a hundred and write two, some
/// write numbers that are no share of anything; those make the whole answer worthless.
fn believed(
    mut samples: Vec<ProcessUtilizationSample>,
    sampled: &mut u64,
) -> Result<Vec<AtWork>, Fault> {
    samples.retain(|sample| sample.pid != 0 && sample.timestamp > *sampled);
    if samples.iter().any(|sample| sample.sm_util > 100) {
        return Err(Fault::Implausible);
    }
    // The latest of each process.
    samples.sort_by_key(|sample| (sample.pid, Reverse(sample.timestamp)));
    samples.dedup_by_key(|sample| sample.pid);
    *sampled = samples.iter().map(|sample| sample.timestamp).fold(*sampled, u64::max);
    let work = samples.iter().map(|sample| AtWork { pid: sample.pid, percent: sample.sm_util });
    Ok(work.filter(|work| work.percent > 0).collect())
}

/// The processes that compute on the card; `None` where the list does not explain what is seen of
/// it.
pub(super) fn listed(
    card: &Card<'_>,
    support: &Support,
    namespace: PidNamespace,
) -> Result<Option<Vec<Process>>, Fault> {
    let processes = processes(card, support)?;
    let seen = Seen::look(card, support, &processes, namespace);
    Ok(Some(processes).filter(|processes| seen.is_explained_by(processes, namespace)))
}

fn processes(card: &Card<'_>, support: &Support) -> Result<Vec<Process>, Fault> {
    let mut found = support.ask(Call::Processes, || list(card))?;
    // Clients of a multi-process service stand in a list of their own, which old drivers lack.
    match support.ask(Call::SharedProcesses, || {
        card.mps_running_compute_processes().map(owned).map_err(|error| fault(&error))
    }) {
        Ok(clients) => found.extend(clients),
        Err(Fault::NotSupported | Fault::NvmlSymbolMissing) => {}
        Err(fault) => return Err(fault),
    }
    let mut processes: Vec<Process> = Vec::with_capacity(found.len());
    for (pid, used) in found {
        match processes.iter_mut().find(|process| process.pid == pid) {
            // In both lists, or on several instances of a split card.
            Some(process) => process.used_mib = process.used_mib.max(used),
            None => processes.push(Process {
                pid,
                used_mib: used,
                name: names::name_of(card.nvml(), pid),
            }),
        }
    }
    Ok(processes)
}

type Found = Vec<(u32, Option<u64>)>;

/// The driver's list by the newest form of the call that it knows.
fn list(card: &Card<'_>) -> Result<Found, Fault> {
    // The list may grow between asking its length and asking for it.
    for _ in 0..3 {
        let listed = card.running_compute_processes().or_else(|error| match fault(&error) {
            Fault::NvmlSymbolMissing => card.running_compute_processes_v2(),
            _ => Err(error),
        });
        match listed {
            Ok(list) => return Ok(owned(list)),
            Err(NvmlError::InsufficientSize(_)) => {}
            Err(error) if fault(&error) == Fault::NvmlSymbolMissing => {
                let list = raw::oldest_processes(card).map_err(|error| fault(&error))?;
                return Ok(list.into_iter().map(|(pid, bytes)| (pid, known(bytes))).collect());
            }
            Err(error) => return Err(fault(&error)),
        }
    }
    Err(Fault::Unknown)
}

fn owned(list: Vec<ProcessInfo>) -> Found {
    list.into_iter()
        .map(|process| match process.used_gpu_memory {
            UsedGpuMemory::Used(bytes) => (process.pid, known(bytes)),
            UsedGpuMemory::Unavailable => (process.pid, None),
        })
        .collect()
}

/// All ones stands for "not known".
fn known(bytes: u64) -> Option<u64> {
    (bytes != u64::MAX).then_some(bytes / MEBIBYTE)
}

/// Memory held, as the driver counts it; `None` where it does not know.
pub fn known_mib(bytes: u64) -> Option<u64> {
    known(bytes)
}

/// What shows that somebody is on a card, beside the list.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// Memory in use, MiB.
    pub used_mib: Option<u64>,
    /// How busy it is, per cent.
    pub utilization_pct: Option<u32>,
    /// Somebody draws pictures on it.
    pub drawing: bool,
}

impl Seen {
    fn look(
        card: &Card<'_>,
        support: &Support,
        listed: &[Process],
        namespace: PidNamespace,
    ) -> Self {
        if !listed.is_empty() && namespace == PidNamespace::Host {
            return Self::default();
        }
        Self {
            used_mib: state::memory(card, support).ok().map(|memory| memory.used_mib),
            utilization_pct: state::utilization(card, support).ok(),
            drawing: card.running_graphics_processes().is_ok_and(|list| !list.is_empty()),
        }
    }

    /// True when the list may be believed.
    pub fn is_explained_by(self, listed: &[Process], namespace: PidNamespace) -> bool {
        let busy = self.utilization_pct.is_some_and(|percent| percent > 0);
        match namespace {
            PidNamespace::Host => {
                let held = self.used_mib.is_some_and(|used| used > UNEXPLAINED_ON_HOST_MIB);
                !(listed.is_empty() && held && busy && !self.drawing)
            }
            PidNamespace::Container if listed.is_empty() => {
                !busy && self.used_mib.is_some_and(|used| used <= NOBODY_MIB)
            }
            PidNamespace::Container => {
                let held = listed.iter().map(|process| process.used_mib).sum::<Option<u64>>();
                match (self.used_mib, held) {
                    (Some(used), Some(held)) => used <= held.saturating_add(UNEXPLAINED_MIB),
                    _ => true,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        PidNamespace::{Container, Host},
        *,
    };

    fn seen(used_mib: Option<u64>, utilization_pct: Option<u32>) -> Seen {
        Seen { used_mib, utilization_pct, drawing: false }
    }

    fn process(used_mib: Option<u64>) -> Process {
        Process { pid: 1, used_mib, name: "x".into() }
    }

    fn sample(pid: u32, timestamp: u64, sm_util: u32) -> ProcessUtilizationSample {
        ProcessUtilizationSample { pid, timestamp, sm_util, mem_util: 0, enc_util: 0, dec_util: 0 }
    }

    #[test]
    fn of_samples_only_what_was_written_since_is_believed() {
        let mut sampled = 100;
        let list = vec![
            sample(7, 130, 40),
            sample(7, 120, 90),
            sample(8, 140, 0),
            sample(9, 100, 50),
            sample(0, 150, 50),
            sample(0, 0, 0),
        ];
        assert_eq!(believed(list, &mut sampled), Ok(vec![AtWork { pid: 7, percent: 40 }]));
        assert_eq!(sampled, 140);
        assert_eq!(believed(vec![], &mut sampled), Ok(vec![]));
        let garbage = vec![sample(7, 150, 40), sample(8, 150, 2_147_483_632)];
        assert_eq!(believed(garbage, &mut sampled), Err(Fault::Implausible));
        assert_eq!(sampled, 140);
    }

    #[test]
    fn all_ones_is_no_memory() {
        assert_eq!(known(u64::MAX), None);
        assert_eq!(known(3 * MEBIBYTE), Some(3));
    }

    #[test]
    fn in_a_container_an_empty_list_is_believed_only_of_an_empty_card() {
        assert!(!seen(Some(10_916), Some(59)).is_explained_by(&[], Container));
        assert!(!seen(Some(10_916), Some(0)).is_explained_by(&[], Container));
        assert!(!seen(Some(3), Some(59)).is_explained_by(&[], Container));
        assert!(!seen(None, None).is_explained_by(&[], Container));
        assert!(!seen(None, Some(0)).is_explained_by(&[], Container));
        assert!(seen(Some(3), Some(0)).is_explained_by(&[], Container));
        assert!(seen(Some(3), None).is_explained_by(&[], Container));
    }

    #[test]
    fn in_a_container_a_list_must_explain_the_memory() {
        assert!(seen(Some(9_000), Some(80)).is_explained_by(&[process(Some(8_800))], Container));
        assert!(!seen(Some(40_000), Some(80)).is_explained_by(&[process(Some(8_800))], Container));
        assert!(seen(Some(40_000), Some(80)).is_explained_by(&[process(None)], Container));
    }

    #[test]
    fn on_the_host_the_list_is_believed_unless_memory_and_work_both_speak_against_it() {
        assert!(!seen(Some(10_916), Some(59)).is_explained_by(&[], Host));
        assert!(seen(Some(10_916), Some(0)).is_explained_by(&[], Host));
        assert!(seen(Some(600), Some(59)).is_explained_by(&[], Host));
        assert!(seen(None, None).is_explained_by(&[], Host));
        let game = Seen { drawing: true, ..seen(Some(10_916), Some(59)) };
        assert!(game.is_explained_by(&[], Host));
    }
}
