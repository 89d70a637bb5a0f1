//! What the tool has shown so far: written by the thread that reads it, read by any number of
//! others.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use joulebook_core::{Fault, Power};

use super::{stamp, table::Row};
use crate::{identity, nvml, reader::Throttle};

/// Rows kept of each card: a reader may fall behind by so many.
const KEPT: usize = 256;
/// Spacings of rows kept.
const SPACINGS: usize = 16;
const SECOND_NS: u64 = 1_000_000_000;

/// What the tool says of a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmiCardInfo {
    /// The driver's index (not CUDA's).
    pub index: u32,
    /// The card's UUID; where the tool names none, what it is told apart by.
    pub uuid: String,
    /// PCI address, `0000:65:00.0`.
    pub pci: Option<String>,
    /// The card's name.
    pub name: String,
    /// The driver's version.
    pub driver: Option<String>,
    /// Whether the card is split into instances (MIG).
    pub mig: Option<bool>,
    /// The power limit in force.
    pub limit: Option<Power>,
    /// A consumer card (GeForce).
    pub consumer: bool,
    /// What `power.draw` and `power.draw.average` are the mean over; `None` where they are not
    /// known to average longer than their update period.
    pub averaging_ns: Option<u64>,
}

/// One row of a card, as readers need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    /// When the row was taken, ns of our clock.
    pub at_ns: u64,
    pub instant: Option<Result<Power, Fault>>,
    pub average: Option<Result<Power, Fault>>,
    pub draw: Option<Result<Power, Fault>>,
    pub throttle: Option<Throttle>,
    pub used_mib: Option<u64>,
    pub total_mib: Option<u64>,
    pub utilization_pct: Option<u32>,
}

/// What a reader that waits for its card's next row is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A row, and its number.
    Row(u64, Shown),
    /// The tool failed, for the time with this number.
    Fault(u64, Fault),
    /// The time is over, and the tool shows other cards.
    Absent,
    /// The time is over.
    Late,
}

#[derive(Debug, Default)]
pub(super) struct Shared {
    state: Mutex<State>,
    news: Condvar,
}

#[derive(Debug, Default)]
struct State {
    lanes: Vec<Lane>,
    /// Every card has shown itself.
    complete: bool,
    /// Why there are no rows now, and how often there were none.
    fault: Option<Fault>,
    faults: u64,
    said: String,
    ended: bool,
    cost: Cost,
}

#[derive(Debug)]
struct Lane {
    info: SmiCardInfo,
    rows: VecDeque<Shown>,
    /// How many rows it has had.
    count: u64,
    spacings_ns: VecDeque<u64>,
}

/// What asking the tool has cost so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// CPU time of the tool, ns, of all calls of it.
    pub cpu_ns: u64,
    /// CPU time of the thread that reads it, ns.
    pub thread_cpu_ns: u64,
    /// How long it has been asked, ns.
    pub wall_ns: u64,
    /// How often it was started.
    pub starts: u64,
    /// Rows that were taken.
    pub rows: u64,
    /// Lines that were no row of a card, and not blank.
    pub rejected_lines: u64,
}

impl From<&SmiCardInfo> for identity::Card {
    fn from(card: &SmiCardInfo) -> Self {
        Self {
            index: card.index,
            uuid: card.uuid.clone(),
            pci: card.pci.clone(),
            name: card.name.clone(),
            mig: card.mig == Some(true),
            slices: Vec::new(),
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A row has come; false when it says of no card whose it is.
    pub(super) fn deliver(&self, row: &Row, read_ns: u64, read_unix_ns: u64) -> bool {
        let Some(mut info) = described(row) else { return false };
        let mut state = self.lock();
        let same = |lane: &Lane| match (&row.uuid, &row.pci, row.index) {
            (Some(uuid), ..) => lane.info.uuid == *uuid,
            (None, Some(pci), _) => lane.info.pci.as_ref() == Some(pci),
            (None, None, index) => Some(lane.info.index) == index,
        };
        let found = state.lanes.iter().position(same);
        let at = found.unwrap_or(state.lanes.len());
        if found.is_none() {
            let (rows, spacings_ns) = (VecDeque::new(), VecDeque::new());
            state.lanes.push(Lane { info: info.clone(), rows, count: 0, spacings_ns });
        }
        let Some(lane) = state.lanes.get_mut(at) else { return false };
        // A cell that failed this time takes nothing away that is known.
        let known = &lane.info;
        info.uuid.clone_from(&known.uuid);
        info.pci = info.pci.or_else(|| known.pci.clone());
        info.limit = info.limit.or(known.limit);
        info.driver = info.driver.or_else(|| known.driver.clone());
        if row.name.is_none() || row.index.is_none() {
            (info.name, info.index) = (known.name.clone(), known.index);
            (info.consumer, info.averaging_ns) = (known.consumer, known.averaging_ns);
        }
        lane.info = info;
        let before_ns = lane.rows.back().map(|row| row.at_ns);
        let at_ns = stamp::taken_ns(row.stamp_ns, read_ns, read_unix_ns, before_ns);
        if let Some(before_ns) = before_ns {
            if lane.spacings_ns.len() == SPACINGS {
                lane.spacings_ns.pop_front();
            }
            lane.spacings_ns.push_back(at_ns - before_ns);
        }
        if lane.rows.len() == KEPT {
            lane.rows.pop_front();
        }
        lane.rows.push_back(Shown {
            at_ns,
            instant: row.instant,
            average: row.average,
            draw: row.draw,
            throttle: row.throttle(),
            used_mib: row.used_mib,
            total_mib: row.total_mib,
            utilization_pct: row.utilization_pct,
        });
        lane.count += 1;
        state.cost.rows += 1;
        state.fault = None;
        drop(state);
        self.news.notify_all();
        true
    }

    /// Every card has shown itself once.
    pub(super) fn completed(&self) {
        self.lock().complete = true;
        self.news.notify_all();
    }

    /// There will be no rows for a while.
    pub(super) fn failed(&self, fault: Fault, said: &str) {
        let mut state = self.lock();
        state.fault = Some(fault);
        state.faults += 1;
        said.clone_into(&mut state.said);
        drop(state);
        self.news.notify_all();
    }

    /// There will be no rows any more.
    pub(super) fn ended(&self) {
        self.lock().ended = true;
        self.news.notify_all();
    }

    pub(super) fn count(&self, change: impl FnOnce(&mut Cost)) {
        change(&mut self.lock().cost);
    }

    pub(super) fn cost(&self) -> Cost {
        self.lock().cost
    }

    /// The cards, once each has shown itself; or why they have not by then, and what was said. A
    /// start with other fields has the whole time again.
    pub(super) fn wait_cards(&self, wait: Duration) -> Result<Vec<SmiCardInfo>, (Fault, String)> {
        let mut until = Instant::now() + wait;
        let mut state = self.lock();
        let mut starts = state.cost.starts;
        loop {
            if state.complete {
                return Ok(state.lanes.iter().map(|lane| lane.info.clone()).collect());
            }
            if let Some(fault) = state.fault {
                return Err((fault, state.said.clone()));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() && state.cost.starts > starts {
                starts = state.cost.starts;
                until += wait;
            } else if left.is_zero() || state.ended {
                return Err((Fault::Timeout, String::new()));
            }
            let waited = self.news.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The card's row after those that were `seen`. A failure is told at once, but only once by its
    /// number, `told`; then it is waited for as any other.
    pub(super) fn next(&self, uuid: &str, seen: u64, told: u64, wait: Duration) -> Next {
        let until = Instant::now() + wait;
        let mut state = self.lock();
        let rows = state.cost.rows;
        loop {
            if let Some(lane) = state.lanes.iter().find(|lane| lane.info.uuid == uuid) {
                let oldest = lane.count - lane.rows.len() as u64;
                let number = seen.max(oldest);
                let row = lane.rows.get(usize::try_from(number - oldest).unwrap_or(usize::MAX));
                if let Some(row) = row {
                    return Next::Row(number + 1, *row);
                }
            }
            let fault = state.fault.map(|fault| Next::Fault(state.faults, fault));
            let left = until.saturating_duration_since(Instant::now());
            match fault {
                Some(fault) if state.faults != told || left.is_zero() => return fault,
                None if left.is_zero() && state.cost.rows > rows => return Next::Absent,
                None if left.is_zero() => return Next::Late,
                _ => {}
            }
            let waited = self.news.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// What is known of a card, its newest row, and how many it has had.
    pub(super) fn newest(&self, uuid: &str) -> Option<(SmiCardInfo, Option<Shown>, u64)> {
        let state = self.lock();
        let lane = state.lanes.iter().find(|lane| lane.info.uuid == uuid)?;
        Some((lane.info.clone(), lane.rows.back().copied(), lane.count))
    }

    /// How far apart a card's rows are: the median, once there are a few.
    pub(super) fn spacing_ns(&self, uuid: &str) -> Option<u64> {
        let state = self.lock();
        let lane = state.lanes.iter().find(|lane| lane.info.uuid == uuid)?;
        let mut sorted: Vec<u64> = lane.spacings_ns.iter().copied().collect();
        sorted.sort_unstable();
        (sorted.len() >= 4).then(|| sorted.get(sorted.len() / 2).copied()).flatten()
    }

    /// True while rows come: the newest of any card is at most this old.
    pub(super) fn is_lively(&self, now_ns: u64, age_ns: u64) -> bool {
        let state = self.lock();
        state.fault.is_none()
            && state.lanes.iter().any(|lane| {
                lane.rows.back().is_some_and(|row| now_ns.saturating_sub(row.at_ns) <= age_ns)
            })
    }
}

/// The card of a row; `None` where the row does not say whose it is.
fn described(row: &Row) -> Option<SmiCardInfo> {
    if !row.is_bound() {
        return None;
    }
    let index = row.index.unwrap_or_default();
    let name = row.name.clone().unwrap_or_else(|| "NVIDIA card of unknown name".to_owned());
    let averaging_ns = match row.capability {
        Some(capability) => nvml::averaging_ns(Some(capability), None),
        None => averages_by_name(&name).then_some(SECOND_NS),
    };
    Some(SmiCardInfo {
        index,
        uuid: row
            .uuid
            .clone()
            .or_else(|| row.pci.clone())
            .unwrap_or_else(|| format!("index {index}")),
        pci: row.pci.clone(),
        driver: row.driver.clone(),
        mig: row.mig,
        limit: row.limit,
        consumer: name.to_lowercase().contains("geforce"),
        averaging_ns,
        name,
    })
}

/// Where the driver is too old to say the card's compute capability: all cards but those of names
/// older than Ampere, and the GA100's, are taken to average over a second. That refuses windows
/// rather than reads them wrong.
pub(crate) fn averages_by_name(name: &str) -> bool {
    const INSTANT: [&str; 17] = [
        "A100",
        "A800",
        "A30",
        "V100",
        "Tesla K",
        "Tesla M",
        "Tesla P",
        "Tesla T4",
        "GTX",
        "RTX 20",
        "TITAN",
        "Quadro K",
        "Quadro M",
        "Quadro P",
        "Quadro GP",
        "Quadro GV",
        "Quadro RTX",
    ];
    !INSTANT.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests;
