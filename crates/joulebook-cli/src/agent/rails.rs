//! The processor's energy counters, where they can be read: what the rest of the node costs.
//!
//! Read every ten seconds, also when nobody asks: the kernel notices one wrap between two reads. A
//! rail is shown once it was seen to move (a platform zone of a virtual machine stays at 0); one
//! that cannot be read is absent, and so is the sum it belongs to.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use joulebook::{
    Energy, Fault, Power,
    core::register::{Register, Scale, Step},
    rapl::{Zone, count_uj, modulus, sums},
};

/// Where the kernel shows them.
pub const FOLDER: &str = "/sys/class/powercap";
/// How often they are read.
pub const EVERY: std::time::Duration = std::time::Duration::from_secs(10);
/// No zone draws more: a platform zone is a whole server.
const CEILING: Power = Power::from_microwatts(20_000_000_000);

/// A zone being followed.
#[derive(Debug)]
struct Followed {
    path: PathBuf,
    name: String,
    register: Register,
    counted: Energy,
    fault: Option<Fault>,
}

/// All rails of the host.
#[derive(Debug, Default)]
pub struct Rails {
    zones: Vec<Followed>,
}

/// A rail, and what it has counted since the agent began.
pub type Rail = (&'static str, Energy);

impl Rails {
    /// Those of a folder; none where there is none.
    pub fn of(folder: &Path) -> Self {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries
            .map(|entry| entry.path())
            .filter(|path| path.join("energy_uj").exists())
            .collect();
        paths.sort();
        let followed = |path: PathBuf| {
            let name = fs::read_to_string(path.join("name")).ok()?;
            let range = fs::read_to_string(path.join("max_energy_range_uj")).ok();
            let period_ns = u64::try_from(EVERY.as_nanos()).unwrap_or(u64::MAX);
            let modulus = modulus(range.as_deref());
            let register = Register::new(Scale::MICROJOULES, modulus, CEILING, period_ns);
            let fault = Some(Fault::NotReady);
            Some(Followed { path, name, register, counted: Energy::ZERO, fault })
        };
        Self { zones: paths.into_iter().filter_map(followed).collect() }
    }

    /// Reads all of them.
    pub fn read(&mut self, now_ns: u64) {
        for zone in &mut self.zones {
            let path = zone.path.join("energy_uj");
            let text = fs::read_to_string(&path);
            let text = text.as_deref().map_err(io::Error::kind);
            let count = count_uj(&path.display().to_string(), text);
            zone.fault = count.as_ref().err().map(joulebook::rapl::RaplError::fault);
            let delta = match zone.register.advance(now_ns, count.map_err(|error| error.fault())) {
                Step::Advanced(advance) => advance.delta,
                Step::Restarted { then, .. } | Step::Set { then, .. } => then.delta,
                Step::Anchored(_) | Step::Unchanged | Step::Provisional | Step::Hole(_) => {
                    Energy::ZERO
                }
            };
            zone.counted = zone.counted.saturating_add(delta);
        }
    }

    /// What each rail has counted.
    pub fn counted(&self) -> Vec<Rail> {
        let zone = |zone: &Followed| Zone {
            path: zone.path.display().to_string(),
            name: zone.name.clone(),
            energy: zone.fault.map_or(Ok(zone.counted), Err),
        };
        let zones: Vec<Zone> = self.zones.iter().map(zone).collect();
        let sums = sums(&zones);
        let rails =
            [("packages", sums.packages), ("memory", sums.memory), ("platform", sums.platform)];
        let moved = |energy: Option<Energy>| energy.filter(|energy| *energy > Energy::ZERO);
        rails.into_iter().filter_map(|(name, energy)| Some((name, moved(energy)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(folder: &Path, path: &str, name: &str, energy_uj: &str) {
        let path = folder.join(path);
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("name"), name).unwrap();
        fs::write(path.join("max_energy_range_uj"), "1000000\n").unwrap();
        fs::write(path.join("energy_uj"), energy_uj).unwrap();
    }

    #[test]
    fn what_moves_is_counted_past_its_end_and_what_stands_still_is_absent() {
        let folder = tempfile::tempdir().unwrap();
        let write = |package: &str| {
            zone(folder.path(), "intel-rapl:0", "package-0\n", package);
            zone(folder.path(), "intel-rapl:0:0", "core\n", "9\n");
            zone(folder.path(), "intel-rapl:1", "psys\n", "0\n");
        };
        write("900000\n");
        let mut rails = Rails::of(folder.path());
        assert_eq!(rails.counted(), []);
        for (second, package) in [(10, "900000\n"), (20, "950000\n"), (30, "50000\n")] {
            write(package);
            rails.read(second * 1_000_000_000);
        }
        assert_eq!(rails.counted(), [("packages", Energy::from_microjoules(150_000))]);
        write("junk\n");
        rails.read(40_000_000_000);
        assert_eq!(rails.counted(), [], "what cannot be read is not the last value");
        write("60000\n");
        rails.read(50_000_000_000);
        assert_eq!(rails.counted(), [("packages", Energy::from_microjoules(160_000))]);
    }

    #[test]
    fn a_host_without_any_has_none() {
        let mut rails = Rails::of(Path::new("/nonexistent"));
        rails.read(1);
        assert_eq!(rails.counted(), []);
    }
}
