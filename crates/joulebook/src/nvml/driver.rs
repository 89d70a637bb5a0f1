//! The driver library, loaded once per process and name, and again when it has to be.
//!
//! Invariants: a failed load is tried again, when somebody asks, after a back-off that grows to 16
//! seconds; it is never final. The lock is held for look-ups only, never across a call into the
//! library: a call that hangs holds up its own thread alone. A load that hangs holds up others for
//! five seconds, after which they are told so.

use std::{
    collections::BTreeMap,
    env,
    ffi::{OsStr, OsString},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use nvml_wrapper::Nvml;

use super::{fault::LoadError, patience::Backoff, support::Support};

/// The environment variable that names another driver library.
pub const LIBRARY_VARIABLE: &str = "JOULEBOOK_NVML";

const NAMES: [&str; 2] = ["libnvidia-ml.so.1", "libnvidia-ml.so"];

/// How long a thread waits for another one that is loading the library.
const LOAD_WAIT: Duration = Duration::from_secs(5);

/// A driver library, loaded or still to be loaded. Shared by [`Arc`].
#[derive(Debug)]
pub struct Driver {
    candidates: Vec<OsString>,
    state: Mutex<State>,
    loaded: Condvar,
    started: Instant,
    /// When any card last answered, ms after `started`.
    answered_ms: AtomicU64,
}

/// The drivers of this process, by the names they are loaded by.
pub(crate) static DRIVERS: Mutex<BTreeMap<Vec<OsString>, Arc<Driver>>> =
    Mutex::new(BTreeMap::new());

#[derive(Debug, Default)]
struct State {
    library: Option<Arc<Library>>,
    loading: bool,
    generation: u64,
    backoff: Backoff,
    error: Option<LoadError>,
    /// What each card has said it does not support, by UUID.
    support: BTreeMap<String, Arc<Support>>,
}

/// One load of the library.
#[derive(Debug)]
pub(super) struct Library {
    pub(super) nvml: Nvml,
    pub(super) path: String,
    pub(super) generation: u64,
}

impl Driver {
    /// The driver that the environment names (`JOULEBOOK_NVML`), or the system's.
    pub fn shared() -> Arc<Self> {
        match env::var_os(LIBRARY_VARIABLE).filter(|path| !path.is_empty()) {
            Some(path) => Self::at(path),
            None => Self::of(NAMES.map(OsString::from).to_vec()),
        }
    }

    /// The driver library of this name or path. The same name gives the same driver.
    pub fn at(path: impl AsRef<OsStr>) -> Arc<Self> {
        Self::of(vec![path.as_ref().to_owned()])
    }

    fn of(candidates: Vec<OsString>) -> Arc<Self> {
        let mut drivers = DRIVERS.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(drivers.entry(candidates).or_insert_with_key(|candidates| {
            Arc::new(Self {
                candidates: candidates.clone(),
                state: Mutex::default(),
                loaded: Condvar::new(),
                started: Instant::now(),
                answered_ms: AtomicU64::new(0),
            })
        }))
    }

    /// Loads the library if it is not loaded. `Err` says what is missing; later it may be there.
    pub fn check(&self) -> Result<(), LoadError> {
        self.library().map(|_| ())
    }

    /// The driver's version, where it can be asked.
    pub fn version(&self) -> Option<String> {
        self.library().ok()?.nvml.sys_driver_version().ok()
    }

    /// Forgets what was probed: what cards do not support, and when a failed load may be tried
    /// again.
    pub fn forget(&self) {
        let mut state = self.lock();
        state.backoff = Backoff::default();
        state.support.values().for_each(|support| support.forget());
    }

    /// The library, loaded now if need be.
    pub(super) fn library(&self) -> Result<Arc<Library>, LoadError> {
        let asked = Instant::now();
        let mut state = self.lock();
        loop {
            if let Some(library) = &state.library {
                return Ok(Arc::clone(library));
            }
            if state.loading {
                let left = LOAD_WAIT.saturating_sub(asked.elapsed());
                if left.is_zero() {
                    return Err(LoadError::Busy);
                }
                let wait = self.loaded.wait_timeout(state, left);
                state = wait.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            match &state.error {
                Some(error) if !state.backoff.may_try(Instant::now()) => return Err(error.clone()),
                _ => break,
            }
        }
        state.loading = true;
        state.generation += 1;
        let generation = state.generation;
        drop(state);

        let result = self.load();

        let mut state = self.lock();
        state.loading = false;
        let answer = match result {
            Ok((path, nvml)) => {
                let library = Arc::new(Library { nvml, path, generation });
                state.library = Some(Arc::clone(&library));
                state.backoff = Backoff::default();
                state.error = None;
                Ok(library)
            }
            Err(error) => {
                tracing::debug!(%error, "the driver library is not there");
                state.backoff.failed(Instant::now());
                state.error = Some(error.clone());
                Err(error)
            }
        };
        drop(state);
        self.loaded.notify_all();
        answer
    }

    fn load(&self) -> Result<(String, Nvml), LoadError> {
        let mut missing: Option<String> = None;
        for path in &self.candidates {
            match Nvml::builder().lib_path(path).init().map_err(|error| LoadError::of(path, &error))
            {
                Ok(nvml) => return Ok((path.to_string_lossy().into_owned(), nvml)),
                // Only a library that is not there sends us to the next name.
                Err(LoadError::Missing { reason }) => {
                    missing.get_or_insert(reason);
                }
                Err(error) => return Err(error),
            }
        }
        Err(LoadError::Missing { reason: missing.unwrap_or_default() })
    }

    /// Lets go of a load that has gone stale, so that the next who asks loads anew.
    pub(super) fn discard(&self, stale: &Arc<Library>) {
        let mut state = self.lock();
        let current = state.library.as_ref();
        if !current.is_some_and(|library| Arc::ptr_eq(library, stale)) {
            return;
        }
        let library = state.library.take();
        // A new driver may support what the old one did not.
        state.support.values().for_each(|support| support.forget());
        drop(state);
        tracing::warn!("the driver library is loaded again: its cards answer no more");
        // The last owner shuts the library down: not under the lock.
        drop(library);
    }

    /// What the card of this UUID has said it does not support.
    pub(super) fn support(&self, uuid: &str) -> Arc<Support> {
        Arc::clone(self.lock().support.entry(uuid.to_owned()).or_default())
    }

    /// Some card answered.
    pub(super) fn answered(&self) {
        let now = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.answered_ms.store(now, Ordering::Relaxed);
    }

    /// True when no card has answered for this long.
    pub(super) fn silent_for(&self, span: Duration) -> bool {
        let answered = Duration::from_millis(self.answered_ms.load(Ordering::Relaxed));
        self.started.elapsed().saturating_sub(answered) >= span
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_driver_per_name() {
        assert!(Arc::ptr_eq(&Driver::at("libx.so"), &Driver::at("libx.so")));
        assert!(!Arc::ptr_eq(&Driver::at("libx.so"), &Driver::at("liby.so")));
    }

    #[test]
    fn a_missing_library_is_said_with_its_name_and_a_remedy() {
        let driver = Driver::at("/nowhere/libnvidia-ml.so.1");
        let error = driver.check().unwrap_err();
        assert!(matches!(error, LoadError::Missing { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains("/nowhere/libnvidia-ml.so.1"), "{text}");
        assert!(text.contains("JOULEBOOK_NVML") && text.lines().count() <= 2, "{text}");
    }

    #[test]
    fn a_file_that_is_no_library_is_told_from_a_missing_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("libnvidia-ml.so.1");
        std::fs::write(&path, "not a library\n").unwrap();
        let error = Driver::at(&path).check().unwrap_err();
        assert!(matches!(error, LoadError::Broken { .. }), "{error:?}");
        assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    }

    #[test]
    fn asked_again_at_once_it_answers_from_memory_and_after_forget_it_tries() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("libnvidia-ml.so.1");
        let driver = Driver::at(&path);
        assert!(matches!(driver.check(), Err(LoadError::Missing { .. })));
        std::fs::write(&path, "not a library\n").unwrap();
        assert!(matches!(driver.check(), Err(LoadError::Missing { .. })), "too early to try again");
        driver.forget();
        assert!(matches!(driver.check(), Err(LoadError::Broken { .. })));
    }
}
