//! What a processor's energy counters (RAPL, the kernel's powercap zones) say: pure parsers of
//! their files, and which zones may be added. Nothing here opens a file.
//!
//! Decides by a zone's path what it lies in: packages and their memory are added; cores and the
//! rest of a package lie inside it and are not; `psys` is the whole platform, contains the packages
//! and stands alone. Zones are told apart by path: every package has a `dram` of its own.
//!
//! Invariants: a zone that cannot be read makes the sum it belongs to unknown, never smaller; a
//! register whose range cannot be read has a modulus that is not known, never a guessed one.
//! Refused: two registers of one package as two packages (`intel-rapl-mmio` beside `intel-rapl`).

use std::io::ErrorKind;

use joulebook_core::{Energy, Fault, register::Modulus};

/// A zone, with what it counted; `Err` where it could not be read.
#[derive(Clone, Debug, PartialEq)]
pub struct Zone {
    /// Its folder, with or without the folders above: `intel-rapl:0:2`.
    pub path: String,
    /// The text of its file `name`.
    pub name: String,
    /// Energy over the window asked for.
    pub energy: Result<Energy, Fault>,
}

/// What the zones of a machine add up to; absent where there is no such zone, or one of them could
/// not be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// All packages.
    pub packages: Option<Energy>,
    /// The memory beside them.
    pub memory: Option<Energy>,
    /// The platform, which contains the packages.
    pub platform: Option<Energy>,
}

/// What a zone is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// A processor package.
    Package,
    /// Memory beside a package.
    Memory,
    /// The whole platform.
    Platform,
    /// A part of a package.
    Inside,
}

/// Why a counter cannot be read, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RaplError {
    /// Its file is for root alone, as it is since kernel 5.10.
    #[error(
        "{path} may not be read: it is for root alone; grant it with \
         `sudo chmod a+r {path}` (until the next start), a udev rule, or CAP_DAC_READ_SEARCH"
    )]
    Permission {
        /// The file.
        path: String,
    },
    /// There is no such file.
    #[error(
        "{path} is not there: load the kernel module intel_rapl_msr (modprobe), or, in a container, \
         mount the host's /sys/class/powercap and the /sys/devices it points to"
    )]
    Absent {
        /// The file.
        path: String,
    },
    /// It holds no number, or the kernel failed.
    #[error("{path} holds no count of energy: {why}")]
    Unreadable {
        /// The file.
        path: String,
        /// What it holds.
        why: String,
    },
}

impl RaplError {
    /// The word for it.
    pub const fn fault(&self) -> Fault {
        match self {
            Self::Permission { .. } => Fault::Permission,
            Self::Absent { .. } => Fault::Absent,
            Self::Unreadable { .. } => Fault::MalformedRow,
        }
    }
}

/// The count in a zone's `energy_uj`: its text, or how opening or reading it failed.
pub fn count_uj(path: &str, text: Result<&str, ErrorKind>) -> Result<u64, RaplError> {
    let path = || path.to_owned();
    let unreadable = |why: String| RaplError::Unreadable { path: path(), why };
    match text {
        Ok(text) => text.trim().parse().map_err(|_| {
            unreadable(format!("`{}`", text.trim().chars().take(40).collect::<String>()))
        }),
        Err(ErrorKind::PermissionDenied) => Err(RaplError::Permission { path: path() }),
        // A link into a folder that a container does not have.
        Err(ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Err(RaplError::Absent { path: path() })
        }
        Err(kind) => Err(unreadable(kind.to_string())),
    }
}

/// Where a zone's counter starts again, by the text of its `max_energy_range_uj`.
pub fn modulus(text: Option<&str>) -> Modulus {
    let range = text.and_then(|text| text.trim().parse().ok()).filter(|range| *range > 0);
    range.map_or(Modulus::Unknown, Modulus::At)
}

impl Zone {
    /// What it is, by its place and its name.
    pub fn domain(&self) -> Domain {
        let name = self.name.trim();
        match name {
            "dram" => Domain::Memory,
            _ if !self.is_top() => Domain::Inside,
            "psys" => Domain::Platform,
            _ if name.starts_with("package") => Domain::Package,
            _ => Domain::Inside,
        }
    }

    /// The folder's own name.
    fn folder(&self) -> &str {
        self.path.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
    }

    /// What controls it, and its numbers: `intel-rapl`, `0:2`.
    fn place(&self) -> (&str, &str) {
        self.folder().split_once(':').unwrap_or((self.folder(), ""))
    }

    fn is_top(&self) -> bool {
        !self.place().1.contains(':')
    }
}

/// Adds up what may be added.
pub fn sums(zones: &[Zone]) -> Sums {
    let counted = |wanted: Domain| {
        let mut sum: Option<Energy> = None;
        for zone in zones.iter().filter(|zone| zone.domain() == wanted && !is_twin(zone, zones)) {
            let energy = zone.energy.ok()?;
            sum = Some(sum.unwrap_or_default().saturating_add(energy));
        }
        sum
    };
    Sums {
        packages: counted(Domain::Package),
        memory: counted(Domain::Memory),
        platform: counted(Domain::Platform),
    }
}

impl Sums {
    /// Packages and their memory; packages alone where the machine has no register for memory.
    pub fn processors(&self, has_memory: bool) -> Option<Energy> {
        match (self.packages, self.memory) {
            (Some(packages), Some(memory)) => Some(packages.saturating_add(memory)),
            (packages, None) if !has_memory => packages,
            _ => None,
        }
    }
}

/// True for a second register of what another control shows already.
fn is_twin(zone: &Zone, zones: &[Zone]) -> bool {
    let (control, numbers) = zone.place();
    let same = |other: &&Zone| {
        let (others, place) = other.place();
        others.len() < control.len() && place == numbers && other.name.trim() == zone.name.trim()
    };
    control.contains("mmio") && zones.iter().any(|other| same(&other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(path: &str, name: &str, joules: f64) -> Zone {
        let energy = Energy::from_joules(joules).ok_or(Fault::Permission);
        Zone { path: path.into(), name: name.into(), energy }
    }

    #[test]
    fn what_lies_inside_is_not_added() {
        let zones = [
            zone("/sys/class/powercap/intel-rapl:0", "package-0\n", 100.0),
            zone("intel-rapl:0:0", "core", 70.0),
            zone("intel-rapl:0:1", "uncore", 10.0),
            zone("intel-rapl:0:2", "dram", 10.0),
            zone("intel-rapl:1", "psys", 180.0),
            zone("intel-rapl-mmio:0", "package-0", 100.0),
        ];
        let joules = |energy: Option<Energy>| energy.map(Energy::joules);
        let sums = sums(&zones);
        assert_eq!(joules(sums.packages), Some(100.0));
        assert_eq!(joules(sums.memory), Some(10.0));
        assert_eq!(joules(sums.platform), Some(180.0));
        assert_eq!(joules(sums.processors(true)), Some(110.0));
    }

    #[test]
    fn a_zone_that_cannot_be_read_makes_no_smaller_sum() {
        let zones =
            [zone("intel-rapl:0", "package-0", 50.0), zone("intel-rapl:1", "package-1", -1.0)];
        assert_eq!(sums(&zones), Sums::default());
    }

    #[test]
    fn a_failure_is_no_zero_and_says_what_to_do() {
        let path = "/sys/class/powercap/intel-rapl:0/energy_uj";
        let denied = count_uj(path, Err(ErrorKind::PermissionDenied)).unwrap_err();
        assert_eq!(denied.fault(), Fault::Permission);
        assert!(denied.to_string().contains("chmod a+r"), "{denied}");
        let absent = count_uj(path, Err(ErrorKind::NotFound)).unwrap_err();
        assert_eq!(absent.fault(), Fault::Absent);
        assert!(absent.to_string().contains("container"), "{absent}");
        assert_eq!(count_uj(path, Ok("")).unwrap_err().fault(), Fault::MalformedRow);
        assert_eq!(count_uj(path, Ok("123\n")), Ok(123));
    }

    #[test]
    fn a_range_that_cannot_be_read_is_not_guessed() {
        assert_eq!(modulus(Some("262143328850\n")), Modulus::At(262_143_328_850));
        assert_eq!([modulus(None), modulus(Some("0"))], [Modulus::Unknown; 2]);
    }
}
