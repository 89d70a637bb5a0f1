//! One simulated card, as a scenario describes it. [`Card::numbered`] is the default card.

use std::fmt;

use super::{Fault, SmiFault, Span};

/// What the UUIDs of cards begin with that a scenario gives none of their own. No real card's does,
/// so whoever finds it knows that the card is simulated, also through another's driver or agent.
pub const UUID_STEM: &str = "GPU-1ab00000-0000-4000-8000-";

/// A card.
#[derive(Clone, Debug, PartialEq)]
pub struct Card {
    /// Its name.
    pub name: String,
    /// Its UUID.
    pub uuid: String,
    /// Where it sits.
    pub pci: PciAddress,
    /// The driver's architecture number (9: Hopper).
    pub architecture: u32,
    /// Compute capability, major and minor.
    pub compute_capability: (i32, i32),
    /// Its memory.
    pub memory: Memory,
    /// Its power limit.
    pub limit: Limit,
    /// Whether MIG is on; `None`: not supported.
    pub mig: Option<bool>,
    /// Its clocks, temperature and throttle reasons.
    pub clocks: Clocks,
    /// What its utilisation reads.
    pub utilization: Utilization,
    /// The level before the first knot, W.
    pub idle_w: f64,
    /// The level's knots, in the order of their instants.
    pub knots: Vec<Knot>,
    /// What is added to the level.
    pub waves: Vec<Wave>,
    /// The level comes from the control memory.
    pub dynamic: bool,
    /// Its energy register.
    pub counter: Counter,
    /// Its averaged power register.
    pub sensor: Gauge,
    /// Its instant power register.
    pub instant: Gauge,
    /// Its compute processes.
    pub residents: Vec<Resident>,
    /// What goes wrong, in the order it acts.
    pub faults: Vec<Fault>,
    /// What goes wrong with the `nvidia-smi` program.
    pub smi_faults: Vec<SmiFault>,
}

/// A PCI address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PciAddress {
    /// Domain.
    pub domain: u32,
    /// Bus.
    pub bus: u32,
    /// Device.
    pub device: u32,
    /// Function.
    pub function: u32,
}

/// A card's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// All of it, MiB.
    pub total_mib: u64,
    /// Used when no process is there, MiB.
    pub base_mib: u64,
}

/// A power limit and its range, W.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// In force.
    pub w: f64,
    /// The least that may be set.
    pub min_w: f64,
    /// The most that may be set.
    pub max_w: f64,
}

/// Clocks, temperature, throttle reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    /// Multiprocessors, MHz.
    pub sm_mhz: u32,
    /// Memory, MHz.
    pub mem_mhz: u32,
    /// Degrees Celsius.
    pub temperature_c: u32,
    /// The driver's bit mask.
    pub reasons: u64,
}

/// Utilisation, per cent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Utilization {
    /// Of the multiprocessors.
    pub gpu: u32,
    /// Of the memory interface.
    pub mem: u32,
}

/// A knot of the level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Knot {
    /// When, ns from the epoch.
    pub t_ns: i64,
    /// The level from there on, W.
    pub w: f64,
    /// Reached on a straight line from the knot before, not by a jump.
    pub linear: bool,
}

/// What is added to the level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Wave {
    /// `w` for the first `on_ns` of each period.
    Square {
        /// Where it acts.
        span: Span,
        /// Its period, ns; > 0.
        period_ns: i64,
        /// Its on time in a period, ns; 0 … period.
        on_ns: i64,
        /// A period begins so long after the span's start, ns.
        phase_ns: i64,
        /// What it adds, W.
        w: f64,
    },
    /// `w` · sin.
    Sine {
        /// Where it acts.
        span: Span,
        /// Its period, ns; > 0.
        period_ns: i64,
        /// Its amplitude, W.
        w: f64,
    },
}

/// An energy register.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counter {
    /// Whether the card has it.
    pub supported: bool,
    /// Between publishes, ns; 0: without end.
    pub period_ns: i64,
    /// How old a published value is, ns.
    pub lag_ns: i64,
    /// The most that a publish comes early or late, ns.
    pub jitter_ns: i64,
    /// When publish 0 is due, ns.
    pub phase_ns: i64,
    /// Its gain error (1: none).
    pub gain: f64,
    /// Its step, mJ.
    pub res_mj: f64,
    /// What it showed at the epoch, mJ.
    pub base_mj: u64,
    /// What it sums.
    pub mode: CounterMode,
}

/// What an energy register sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterMode {
    /// The true power.
    True,
    /// What the averaged power register shows.
    Sensor,
}

/// A power register.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gauge {
    /// Whether the card has it.
    pub supported: bool,
    /// The span that a value is the mean over, ns; 0: the power at one instant.
    pub window_ns: i64,
    /// Between publishes, ns; 0: without end.
    pub period_ns: i64,
    /// When publish 0 comes, ns.
    pub phase_ns: i64,
    /// How old a published value is, ns.
    pub lag_ns: i64,
    /// Its gain error (1: none).
    pub gain: f64,
}

/// A compute process on the card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resident {
    /// When it is there.
    pub span: Span,
    /// Its id.
    pub pid: u32,
    /// Memory it holds, MiB; `None`: the driver cannot say.
    pub used_mib: Option<u64>,
    /// Its share of the multiprocessors, per cent.
    pub sm_percent: Option<u32>,
    /// Its name.
    pub name: String,
}

impl Card {
    /// The default card with this number: a data-centre card at rest.
    pub fn numbered(index: u32) -> Self {
        Self {
            name: "NVIDIA H100 80GB HBM3".to_owned(),
            uuid: format!("{UUID_STEM}{index:012x}"),
            pci: PciAddress { domain: 0, bus: 0x18 + index, device: 0, function: 0 },
            architecture: 9,
            compute_capability: (9, 0),
            memory: Memory { total_mib: 81_559, base_mib: 4 },
            limit: Limit { w: 700.0, min_w: 200.0, max_w: 700.0 },
            mig: Some(false),
            clocks: Clocks { sm_mhz: 1980, mem_mhz: 2619, temperature_c: 35, reasons: 0 },
            utilization: Utilization::default(),
            idle_w: 70.0,
            knots: Vec::new(),
            waves: Vec::new(),
            dynamic: false,
            counter: Counter::default(),
            sensor: Gauge::AVERAGE,
            instant: Gauge::INSTANT,
            residents: Vec::new(),
            faults: Vec::new(),
            smi_faults: Vec::new(),
        }
    }
}

impl Default for Card {
    fn default() -> Self {
        Self::numbered(0)
    }
}

impl Default for Counter {
    fn default() -> Self {
        Self {
            supported: true,
            period_ns: 100_000_000,
            lag_ns: 0,
            jitter_ns: 0,
            phase_ns: 0,
            gain: 1.0,
            res_mj: 1.0,
            base_mj: 0,
            mode: CounterMode::True,
        }
    }
}

impl Gauge {
    /// The default averaged register: the last second, ten times a second.
    pub const AVERAGE: Self = Self {
        supported: true,
        window_ns: 1_000_000_000,
        period_ns: 100_000_000,
        phase_ns: 0,
        lag_ns: 0,
        gain: 1.0,
    };

    /// The default instant register: the power of the moment, ten times a second.
    pub const INSTANT: Self = Self { window_ns: 0, ..Self::AVERAGE };
}

impl Wave {
    /// Where it acts.
    pub const fn span(&self) -> Span {
        match self {
            Self::Square { span, .. } | Self::Sine { span, .. } => *span,
        }
    }

    /// The lowest it adds, W; never above 0.
    pub fn lowest_w(&self) -> f64 {
        match self {
            Self::Square { w, .. } => w.min(0.0),
            Self::Sine { w, .. } => -w.abs(),
        }
    }
}

impl fmt::Display for PciAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { domain, bus, device, function } = self;
        write!(formatter, "{domain:08X}:{bus:02X}:{device:02X}.{function:X}")
    }
}

impl std::str::FromStr for PciAddress {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let hexadecimal = |part: &str| u32::from_str_radix(part, 16).map_err(|_| ());
        let (place, function) = text.split_once('.').unwrap_or((text, "0"));
        let parts: Vec<&str> = place.split(':').collect();
        let (domain, bus, device) = match parts.as_slice() {
            [domain, bus, device] => {
                (hexadecimal(domain)?, hexadecimal(bus)?, hexadecimal(device)?)
            }
            [bus, device] => (0, hexadecimal(bus)?, hexadecimal(device)?),
            _ => return Err(()),
        };
        let function = hexadecimal(function)?;
        let address = Self { domain, bus, device, function };
        (bus < 256 && device < 32 && function < 8).then_some(address).ok_or(())
    }
}
