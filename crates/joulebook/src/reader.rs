//! The seam to the world: whoever can read a card.
//!
//! A [`Reader`] delivers the raw readings of one register of one card; it decides nothing. What a
//! reading means is decided once, in [`joulebook_core::register`]. A [`Tenants`] says whose
//! processes are resident. Both may block: they are called from a card's own recorder thread, never
//! from a caller's.

pub use joulebook_core::Scope;
use joulebook_core::{Fault, Power};
use serde::{Deserialize, Serialize};

/// One register of one card.
pub trait Reader: Send {
    /// The card and what its register is. Called once the reader exists, and again after a failure
    /// (a limit, a driver or a name may be known only later).
    fn device(&self) -> Device;

    /// One reading, now. The recorder stamps it with the midpoint of the call.
    fn read(&mut self) -> Result<Reading, Fault>;

    /// What the card's gauge shows now, beside its counter; no mean over longer than its updates. It
    /// is asked of counters that publish slowly, to see when inside a tick the energy was drawn.
    fn power(&mut self) -> Result<Power, Fault> {
        Err(Fault::NotSupported)
    }

    /// The card's power state (P0 is 0), where it has one. Asked about once a second.
    fn power_state(&mut self) -> Option<u8> {
        None
    }

    /// When the last reading was taken, ns of the [`crate::clock`], where the source itself says so.
    fn taken_ns(&self) -> Option<u64> {
        None
    }

    /// How often the source brings readings by itself, ns: [`Self::read`] then waits for the next,
    /// and the recorder adds no pause of its own. `None`: it is asked.
    fn every_ns(&self) -> Option<u64> {
        None
    }
}

/// Who is on a card.
pub trait Tenants: Send {
    /// The compute processes resident now. `Err` when they cannot be listed, which is not the same
    /// as nobody.
    fn resident(&mut self) -> Result<Vec<Process>, Fault>;

    /// How busy each process kept the card since the last call (the first call only begins): those
    /// that did no work are left out. `Err` when that cannot be told, which is not the same as no
    /// work.
    fn at_work(&mut self) -> Result<Vec<AtWork>, Fault> {
        Err(Fault::NotSupported)
    }

    /// What hid the processes when they could last not be listed, in one word (`pid_namespace`),
    /// where that is known.
    fn hidden_by(&self) -> Option<&'static str> {
        None
    }

    /// How full and how busy the card is. Asked only of cards whose usage somebody wants to know.
    fn usage(&mut self) -> Usage {
        Usage::default()
    }
}

/// How full and how busy a card is; each absent where it cannot be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Memory in use, MiB.
    pub used_mib: Option<u64>,
    /// Memory there is, MiB.
    pub total_mib: Option<u64>,
    /// Share of the last sampling period in which the card was at work.
    pub utilization_pct: Option<u32>,
}

/// A process that holds memory of a card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Process id, in the driver's namespace (the host's).
    pub pid: u32,
    /// Memory held, MiB; `None` where the driver cannot say (WSL, MIG, N/A).
    pub used_mib: Option<u64>,
    /// The executable's path or title, as far as it can be seen.
    pub name: String,
}

/// How busy a process kept a card over a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtWork {
    /// Process id, in the driver's namespace (the host's).
    pub pid: u32,
    /// Share of the time in which work of it was on the card's multiprocessors, %.
    pub percent: u32,
}

/// One reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The register's value.
    pub value: Value,
    /// What a gauge's sibling shows that averages over a known time: the better of the two for
    /// windows much longer than that.
    pub mean: Option<Mean>,
    /// What holds the clocks down, where the reader knows.
    pub throttle: Option<Throttle>,
}

/// A mean power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mean {
    /// The mean.
    pub power: Power,
    /// What it is the mean over, ns.
    pub over_ns: u64,
}

/// What a register shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// A cumulative counter, in the register's own units ([`Device::register`] has the scale).
    Counter(u64),
    /// A gauge.
    Power(Power),
}

/// Why the clocks are held down; `None` where that is not told, which is not the same as no.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throttle {
    /// The software power cap is at work.
    pub power_capped: Option<bool>,
    /// The hardware power brake is at work.
    pub power_braked: Option<bool>,
}

/// Which reader a card is read by; the word stands on every result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// The driver library's energy counter.
    NvmlCounter,
    /// The driver library's power gauge.
    NvmlPower,
    /// The `nvidia-smi` program.
    SmiSampler,
    /// An agent on the card's own host.
    RemoteAgent,
    /// A recording.
    Replay,
    /// The lab's card: its energy is known, and it is no measurement of this machine.
    Simulated,
    /// Nothing could read the card.
    None,
}

impl Backend {
    /// The word, as it stands in results.
    pub const fn word(self) -> &'static str {
        match self {
            Self::NvmlCounter => "nvml_counter",
            Self::NvmlPower => "nvml_power",
            Self::SmiSampler => "smi_sampler",
            Self::RemoteAgent => "remote_agent",
            Self::Replay => "replay",
            Self::Simulated => "simulated",
            Self::None => "none",
        }
    }
}

/// A card, and what its register is.
#[derive(Clone, Debug, PartialEq)]
pub struct Device {
    /// The driver's index (not CUDA's).
    pub index: u32,
    /// The card's UUID; the key under which what is learnt of it is stored.
    pub uuid: String,
    /// PCI address, `domain:bus:device.function`.
    pub pci: Option<String>,
    /// The card's name.
    pub name: String,
    /// The driver's version.
    pub driver: Option<String>,
    /// What reads it.
    pub backend: Backend,
    /// What its register covers.
    pub scope: Scope,
    /// What its register is.
    pub register: joulebook_core::register::Kind,
    /// The power limit in force.
    pub limit: Option<Power>,
    /// A consumer card (GeForce): read once a second until probed, since fast reads corrupt the
    /// counter of some of them.
    pub consumer: bool,
}
