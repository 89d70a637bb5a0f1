//! What has been learnt of a card, kept between runs: its publish period, whether its counter can
//! be trusted, and its idle floors with their provenance. One small JSON file a card.
//!
//! A floor is never guessed: it is here because somebody declared it or asked for it to be
//! measured, and it says when, for how long, on how many readings and in what state.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use joulebook_core::Scope;
use serde::{Deserialize, Serialize};

/// The environment variable that names the folder profiles are kept in.
pub const STATE_VARIABLE: &str = "JOULEBOOK_STATE_DIR";

/// A floor older than this is marked `baseline_stale`, s.
pub const STALE_S: u64 = 86_400;

/// What is known of one card.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The card.
    pub uuid: String,
    /// Its name.
    pub name: String,
    /// The driver it was probed with; another one voids the probe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// What `probe` found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<Probed>,
    /// What the counter covers, where `probe` found it by comparing it with the driver's gauges;
    /// else the driver's word is taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counter_scope: Option<Scope>,
    /// Idle floors, newest last; one a state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub floors: Vec<Floor>,
}

/// What a probe found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probed {
    /// When, s since 1970.
    pub unix_s: u64,
    /// The register's publish period, s.
    pub period_s: f64,
    /// How far publishes strayed from their grid, s.
    pub jitter_s: f64,
    /// How long publishes lag behind the energy they show, s; `None` without a load to see it by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag_s: Option<Lag>,
    /// Which register is to be trusted.
    pub trust: Trust,
    /// Counter slope over the integral of power.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// The ratio is off by more than 10 %.
    pub mismatch: bool,
    /// The counter's slope depends on how often it is read.
    pub poll_sensitive: bool,
}

/// A lag and how uncertain it is, s.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lag {
    /// The lag.
    pub value: f64,
    /// How far it may lie from that.
    pub uncertainty: f64,
}

/// Which register a card is read by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// Its energy counter.
    Counter,
    /// Its power gauge.
    Gauge,
    /// Neither.
    Nothing,
}

/// What a card draws at rest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Floor {
    /// The floor, W.
    pub watts: f64,
    /// How far readings strayed from it, W.
    pub spread_watts: f64,
    /// Measured when, s since 1970.
    pub unix_s: u64,
    /// For how long, s.
    pub seconds: f64,
    /// On how many updates.
    pub readings: u64,
    /// By what.
    pub backend: String,
    /// Of what.
    pub scope: Scope,
    /// Our process, or any, held 512 MiB or more of the card.
    pub model_loaded: bool,
}

impl Profile {
    /// The floor of a state, newest first: the one with a model loaded where there is one.
    pub fn floor(&self, scope: Scope, model_loaded: bool) -> Option<&Floor> {
        let of_state = |floor: &&Floor| floor.scope == scope && floor.model_loaded == model_loaded;
        self.floors.iter().rev().find(of_state)
    }

    /// The floor that is subtracted where the node declares none: the newest with a model loaded,
    /// else without.
    pub fn resting(&self, scope: Scope) -> Option<&Floor> {
        self.floor(scope, true).or_else(|| self.floor(scope, false))
    }

    /// Keeps a floor, in place of an older one of the same state.
    pub fn keep(&mut self, floor: Floor) {
        self.floors
            .retain(|old| old.scope != floor.scope || old.model_loaded != floor.model_loaded);
        self.floors.push(floor);
    }
}

impl Floor {
    /// Older than a day.
    pub const fn is_stale(&self, now_unix_s: u64) -> bool {
        now_unix_s.saturating_sub(self.unix_s) > STALE_S
    }
}

/// The folder of profiles.
#[derive(Clone, Debug)]
pub struct Profiles {
    directory: PathBuf,
}

impl Profiles {
    /// In this folder, which need not exist yet.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// Where `JOULEBOOK_STATE_DIR` says, else the user's state folder; `None` where there is none.
    pub fn of_user() -> Option<Self> {
        let named = |variable: &str| env::var_os(variable).filter(|value| !value.is_empty());
        let directory = named(STATE_VARIABLE)
            .map(PathBuf::from)
            .or_else(|| named("XDG_STATE_HOME").map(|state| Path::new(&state).join("joulebook")))
            .or_else(|| {
                named("HOME").map(|home| Path::new(&home).join(".local/state/joulebook"))
            })?;
        Some(Self::at(directory))
    }

    /// The folder.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The file of a card.
    pub fn path(&self, uuid: &str) -> PathBuf {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
        let name: String =
            uuid.chars().map(|letter| if plain(letter) { letter } else { '_' }).collect();
        self.directory.join("cards").join(format!("{name}.json"))
    }

    /// What is known of a card; `None` when nothing is.
    pub fn load(&self, uuid: &str) -> io::Result<Option<Profile>> {
        let path = self.path(uuid);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(named(&path, &error)),
        };
        serde_json::from_str(&text)
            .map(Some)
            .map_err(|error| named(&path, &io::Error::other(error)))
    }

    /// All that is kept, by file name; a file that cannot be read stands with its reason.
    pub fn all(&self) -> io::Result<Vec<io::Result<Profile>>> {
        let folder = self.directory.join("cards");
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(named(&folder, &error)),
        };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
        paths.sort();
        let read = |path: &PathBuf| {
            let text = fs::read_to_string(path).map_err(|error| named(path, &error))?;
            serde_json::from_str(&text).map_err(|error| named(path, &io::Error::other(error)))
        };
        Ok(paths.iter().map(read).collect())
    }

    /// Writes it, whole or not at all.
    pub fn save(&self, profile: &Profile) -> io::Result<PathBuf> {
        let path = self.path(&profile.uuid);
        let part = path.with_extension(format!("part-{}", std::process::id()));
        let write = || {
            fs::create_dir_all(path.parent().unwrap_or(&self.directory))?;
            fs::write(&part, serde_json::to_string_pretty(profile)? + "\n")?;
            fs::rename(&part, &path)
        };
        write().map_err(|error| {
            let _ = fs::remove_file(&part);
            named(&path, &error)
        })?;
        Ok(path)
    }
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floor(watts: f64, model_loaded: bool) -> Floor {
        Floor {
            watts,
            spread_watts: 0.5,
            unix_s: 1000,
            seconds: 2.0,
            readings: 20,
            backend: "nvml_counter".into(),
            scope: Scope::Gpu,
            model_loaded,
        }
    }

    #[test]
    fn a_profile_comes_back_as_it_was_kept() {
        let folder = tempfile::tempdir().unwrap();
        let profiles = Profiles::at(folder.path());
        assert_eq!(profiles.load("GPU-1").unwrap(), None);
        let mut profile =
            Profile { uuid: "GPU-1".into(), name: "card".into(), ..Profile::default() };
        profile.keep(floor(17.0, false));
        profile.keep(floor(71.0, true));
        profile.keep(floor(70.0, true));
        profiles.save(&profile).unwrap();
        let back = profiles.load("GPU-1").unwrap().unwrap();
        assert_eq!(back, profile);
        assert_eq!(back.floor(Scope::Gpu, true).map(|floor| floor.watts), Some(70.0));
        assert_eq!(back.floor(Scope::Module, true), None);
        assert_eq!(back.resting(Scope::Gpu).map(|floor| floor.watts), Some(70.0));
        assert_eq!(back.floors.len(), 2);
        fs::write(profiles.path("GPU-2"), "{}").unwrap();
        let all = profiles.all().unwrap();
        assert_eq!(all.len(), 2);
        assert_eq!(all[0].as_ref().unwrap(), &profile);
        assert!(all[1].as_ref().unwrap_err().to_string().contains("GPU-2.json"));
    }

    #[test]
    fn a_broken_profile_is_named_and_not_taken_for_none() {
        let folder = tempfile::tempdir().unwrap();
        let profiles = Profiles::at(folder.path());
        fs::create_dir_all(folder.path().join("cards")).unwrap();
        fs::write(profiles.path("../GPU 1"), "{\"uuid\": 3}").unwrap();
        let error = profiles.load("../GPU 1").unwrap_err().to_string();
        assert!(error.contains("___GPU_1.json"), "{error}");
    }

    #[test]
    fn a_folder_that_cannot_be_written_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let profile = Profile { uuid: "GPU-1".into(), ..Profile::default() };
        let error = Profiles::at(&file).save(&profile).unwrap_err();
        assert!(error.to_string().contains("GPU-1.json"), "{error}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
