//! A test in a process of its own.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    thread,
    time::Duration,
};

use joulebook::{
    Reader, Value,
    core::Fault,
    nvml::{CardInfo, Driver, LIBRARY_VARIABLE, cards},
};

const CHILD: &str = "JOULEBOOK_TEST_FOLDER";

/// What a test has.
pub struct Bench {
    /// The driver with the scenario's cards.
    pub driver: Arc<Driver>,
    /// Where it lies.
    pub library: PathBuf,
    /// A folder that goes with the test.
    pub folder: PathBuf,
}

/// Runs the body in a process of its own; `name` is the test's.
pub fn run(name: &str, scenario: &str, body: impl FnOnce(&Bench)) {
    if let Some(folder) = env::var_os(CHILD) {
        let library = PathBuf::from(env::var_os(LIBRARY_VARIABLE).unwrap());
        return body(&Bench { driver: Driver::shared(), library, folder: folder.into() });
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scenario");
    fs::write(&file, scenario).unwrap();
    let (_, test) = name.split_once("::").unwrap();
    let child = Command::new(env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(CHILD, folder.path())
        .env("FAKEGPU_SCENARIO", &file)
        .env(LIBRARY_VARIABLE, library())
        .env_remove("FAKEGPU_EPOCH_NS")
        .env_remove("FAKEGPU_CONTROL")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    let errors = String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "{said}\n{errors}");
    assert!(said.contains("1 passed"), "the test of that name ran: {said}\n{errors}");
}

fn library() -> PathBuf {
    joulebook_lab::driver::library().unwrap()
}

impl Bench {
    /// The cards that can be named.
    pub fn cards(&self) -> Vec<CardInfo> {
        cards(&self.driver).unwrap().cards
    }

    /// The first card.
    pub fn card(&self) -> CardInfo {
        self.cards().swap_remove(0)
    }

    /// A copy of the library at another place.
    pub fn copy_library(&self, path: &Path) {
        fs::copy(&self.library, path).unwrap();
    }
}

/// Asks again until the answer is accepted, for a good while.
pub fn until<T>(mut ask: impl FnMut() -> Option<T>) -> T {
    for _ in 0..1000 {
        if let Some(answer) = ask() {
            return answer;
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("no such answer came");
}

/// The counter's millijoules.
pub fn millijoules(reader: &mut impl Reader) -> Result<u64, Fault> {
    reader.read().map(|reading| match reading.value {
        Value::Counter(millijoules) => millijoules,
        Value::Power(power) => panic!("a counter shows no power: {power}"),
    })
}

/// The gauge's watts.
pub fn watts(reader: &mut impl Reader) -> Result<f64, Fault> {
    reader.read().map(|reading| match reading.value {
        Value::Power(power) => power.watts(),
        Value::Counter(value) => panic!("a gauge shows no count: {value}"),
    })
}
