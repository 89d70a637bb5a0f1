//! What a simulated machine does: the scenario, its grammar and its defaults.
//!
//! This page is the reference of the grammar. A scenario is text, one statement a line. Blank
//! lines and lines that begin with `#` say nothing; ` #` and what follows it is a comment too,
//! except in statements that end in free text (`driver`, `name`, `uuid`, `pci`, `proc`, `smi.*`
//! faults). Times are seconds from the epoch, fractions allowed, `inf` for ever; a span `T0 T1`
//! holds T0 and not T1. `key=value` pairs come in any order and may be left out. A scalar said
//! twice holds as said last; `step`, `point`, `square`, `sine`, `proc` and `fault` add up.
//!
//! # The machine
//!
//! | statement | default | meaning |
//! | --- | --- | --- |
//! | `clock monotonic\|realtime` | monotonic | which system clock the driver library follows |
//! | `epoch_ns N` | first call into the library | time zero on that clock; `FAKEGPU_EPOCH_NS` goes before it |
//! | `control PATH` | none | live watts in shared memory ([`crate::control`]); `FAKEGPU_CONTROL` goes before it |
//! | `driver V` | 570.124.06 | the driver's version |
//! | `smi spawn_ms= mode=spin\|sleep` | 0, sleep | what starting `nvidia-smi` takes |
//! | `cost energy_us= power_us= mode=spin\|sleep` | 0, 0, spin | what one call for energy, or for power, takes; the value is taken in the middle of it |
//! | `card N` | | what follows is about card N. Numbers that are skipped are default cards; without any `card` the machine has none |
//!
//! # The card
//!
//! | statement | default | meaning |
//! | --- | --- | --- |
//! | `name …` `uuid …` `pci …` | a data-centre card | `pci` is `[domain:]bus:device[.function]`, hexadecimal |
//! | `arch N` `cc N.N` | 9, 9.0 | the driver's architecture number, compute capability |
//! | `mem total_mib= base_mib=` | 81559, 4 | used memory is base + what its processes hold |
//! | `limit w= min= max=` | 700, 200, 700 | power limit and its range; with `w` alone, `max` is w and `min` at most w |
//! | `mig 0\|1\|-1` | 0 | off, on, not supported |
//! | `clocks sm= mem= temp= reasons=` | 1980, 2619, 35, 0 | MHz, MHz, °C, the driver's bit mask of throttle reasons (decimal or 0x…) |
//! | `util gpu= mem=` | 0, 0 | per cent |
//! | `idle W` | 70 | the level before the first knot |
//! | `step T W` | | the level jumps to W at T |
//! | `point T W` | | the level reaches W at T on a straight line from the knot before (a step's or a point's; from idle at time 0 when it is the first, which jumps when T ≤ 0) |
//! | `square T0 T1 period_ms= duty= w= phase_ms=` | 100, 0.5, 100, 0 | adds w for the first `duty` (0 … 1) of each period; periods begin at T0 + phase |
//! | `sine T0 T1 period_ms= w=` | 100, 100 | adds w·sin(2π(t − T0)/period); where that would take the card below 0 W the scenario is refused |
//! | `dynamic` | | the level is what the control memory says (absolute watts); idle until it says anything. Knots then do nothing |
//!
//! After the last knot its level holds for ever. Before the epoch the card idles; a register's
//! energy is counted from the epoch, so one that lags may show a little less than `base_mj`, but
//! never below 0.
//!
//! # What the card shows
//!
//! `counter supported= period_ms= lag_ms= jitter_ms= phase_ms= gain= res_mj= base_mj= mode=true|sensor`
//! (1, 100, 0, 0, 0, 1, 1, 0, true). Publish k is due at phase + k·period and comes a draw from
//! [−jitter, +jitter] beside it, each its own, the same in every run. A read shows the last publish
//! that came: `base_mj + gain·E(instant − lag)`, cut down to a multiple of `res_mj`; E is the true
//! energy since the epoch, or with `mode=sensor` the running sum of what `sensor` showed. Period 0
//! publishes without end.
//!
//! `sensor supported= window_ms= period_ms= gain= phase_ms= lag_ms=` (1, 1000, 100, 1, 0, 0): the
//! power reading (`power.draw`, field 185): at phase + k·period, gain × the mean true power over the
//! window that ends lag before. `instant …` (1, 0, 100, 1, 0, 0): the same for field 186. A window
//! of 0 is the power at that instant.
//!
//! `proc T0 T1 PID MIB [sm=N] NAME`: a compute process. MIB −1 is a driver that cannot say. N is the
//! share of the time in which it is at work on the multiprocessors, per cent; the driver tells of
//! those that did some work since it was last asked, with their mean.
//!
//! # Faults
//!
//! `fault T0 T1 TARGET KIND [ARG]`. A fault acts on reads in [T0, T1); outside of it the card is as
//! if it had never been (so a finite `reset` is a glitch, an endless one a restart). Later lines act
//! on what earlier lines left.
//!
//! | target | kinds |
//! | --- | --- |
//! | `energy` | `reset` (starts at 0 at T0), `setto MJ` (starts at MJ at T0), `jump ±MJ`, and those below |
//! | `power` (`power.draw`, 185), `instant` (186), `fields` (every field read), `mem` `util` `procs` `name` `handle` `init` `all` | `stuck` (what it showed at T0), `value N`, `hang MS` (the call takes that long), ERROR |
//! | `smi.exit CODE [text]` `smi.hang x MS` `smi.garbage x TEXT` `smi.empty x` `smi.die x` `smi.pause x` `smi.FIELD text TEXT` | what the `nvidia-smi` program does ([`crate::smi`]) |
//!
//! N is mJ for `energy`, mW for `power` and `instant`, MiB for `mem`, per cent for `util`, how many
//! of its processes are listed for `procs`. ERROR = notsupported lost unknown timeout nodata noperm
//! notfound uninit invalid nodriver mismatch resetreq. `init` of any card is the library's; `all` is
//! every call about that card.

use std::path::{Path, PathBuf};

mod card;
mod fault;
mod parse;
mod words;

pub use card::{
    Card, Clocks, Counter, CounterMode, Gauge, Knot, Limit, Memory, PciAddress, Resident,
    UUID_STEM, Utilization, Wave,
};
pub use fault::{Effect, Fault, Refusal, SmiEffect, SmiFault, Target};
pub use words::ParseError;

/// A machine with simulated cards.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Which system clock the driver library follows.
    pub clock: ClockKind,
    /// Time zero on that clock, ns; `None`: the first call into the library.
    pub epoch_ns: Option<i64>,
    /// The control memory's file.
    pub control: Option<PathBuf>,
    /// The driver's version.
    pub driver: String,
    /// The `nvidia-smi` program.
    pub smi: Smi,
    /// What a driver call takes.
    pub cost: Cost,
    /// The cards, in the driver's order.
    pub cards: Vec<Card>,
}

/// A system clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClockKind {
    /// CLOCK_MONOTONIC.
    #[default]
    Monotonic,
    /// CLOCK_REALTIME.
    Realtime,
}

/// How a call spends its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spend {
    /// It computes.
    Spin,
    /// It waits.
    Sleep,
}

/// What starting `nvidia-smi` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Smi {
    /// Nanoseconds before its first output.
    pub spawn_ns: i64,
    /// How they are spent.
    pub spend: Spend,
}

/// What a driver call takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// A call that reads energy, ns.
    pub energy_ns: i64,
    /// A call that reads power, ns.
    pub power_ns: i64,
    /// How they are spent.
    pub spend: Spend,
}

/// A stretch of scenario time that holds its start and not its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First instant in it, ns from the epoch.
    pub start_ns: i64,
    /// First instant after it, ns from the epoch; `i64::MAX`: never ends.
    pub end_ns: i64,
}

/// Why a scenario could not be had.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file could not be read.
    #[error("cannot read the scenario {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file says what the grammar does not allow.
    #[error("{}: {source}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where and what.
        source: ParseError,
    },
}

impl Span {
    /// All of time.
    pub const ALWAYS: Self = Self { start_ns: i64::MIN, end_ns: i64::MAX };

    /// True when the instant lies in it.
    pub const fn contains(self, t_ns: i64) -> bool {
        self.start_ns <= t_ns && t_ns < self.end_ns
    }
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            clock: ClockKind::Monotonic,
            epoch_ns: None,
            control: None,
            driver: "570.124.06".to_owned(),
            smi: Smi { spawn_ns: 0, spend: Spend::Sleep },
            cost: Cost { energy_ns: 0, power_ns: 0, spend: Spend::Spin },
            cards: Vec::new(),
        }
    }
}

impl Scenario {
    /// From text.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        parse::scenario(text)
    }

    /// From a file.
    pub fn read(path: &Path) -> Result<Self, ScenarioError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ScenarioError::Unreadable { path: path.to_owned(), source })?;
        Self::parse(&text)
            .map_err(|source| ScenarioError::Malformed { path: path.to_owned(), source })
    }
}

/// Seconds as the grammar writes them, in whole ns; `inf` is `i64::MAX`.
pub fn seconds_as_ns(text: &str) -> Option<i64> {
    words::nanoseconds(text, 1e9)
}

#[cfg(test)]
mod tests;
