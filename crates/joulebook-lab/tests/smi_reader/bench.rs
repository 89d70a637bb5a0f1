//! A tool in a folder of its own, and what is left of its calls.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::Duration,
};

use joulebook::{
    Fault, Reader, Reading, Value,
    smi::{Feed, PERIOD, Program, SmiCard},
};
use joulebook_lab::{clock::system_ns, scenario::ClockKind};

/// A tool and the log of its calls.
pub struct Bench {
    pub folder: tempfile::TempDir,
}

/// The tool of a scenario's machine; the scenario begins now.
pub fn scenario(text: &str) -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scenario");
    fs::write(&file, text).unwrap();
    let exports = format!(
        "export FAKEGPU_SCENARIO='{}' FAKEGPU_EPOCH_NS={}",
        file.display(),
        system_ns(ClockKind::Monotonic)
    );
    let tool = env!("CARGO_BIN_EXE_nvidia-smi");
    install(folder, &format!("{exports}\nexec '{tool}' \"$@\""))
}

/// A tool that is a script.
pub fn script(text: &str) -> Bench {
    install(tempfile::tempdir().unwrap(), text)
}

fn install(folder: tempfile::TempDir, script: &str) -> Bench {
    let path = folder.path().join("nvidia-smi");
    let calls = folder.path().join("calls");
    // In one write, so that lines of two calls do not mix.
    let text = format!("#!/bin/sh\nprintf '%s\\n' \"$$ $*\" >> '{}'\n{script}\n", calls.display());
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    Bench { folder }
}

impl Bench {
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("nvidia-smi")
    }

    pub fn feed(&self) -> Arc<Feed> {
        Feed::start(&Program::at(self.path()), PERIOD).unwrap()
    }

    /// A reader of each card.
    pub fn cards(&self) -> (Arc<Feed>, Vec<SmiCard>) {
        let feed = self.feed();
        let cards = feed.cards().unwrap();
        let readers = cards.iter().map(|card| SmiCard::open(&feed, card)).collect();
        (feed, readers)
    }

    /// The calls so far: process id and arguments.
    pub fn calls(&self) -> Vec<(u32, String)> {
        calls(&self.folder.path().join("calls"))
    }

    /// How many of its processes are there, alive or not reaped.
    pub fn left(&self) -> usize {
        self.calls().iter().filter(|(pid, _)| exists(*pid)).count()
    }
}

pub fn calls(file: &Path) -> Vec<(u32, String)> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines()
        .filter_map(|line| {
            let (pid, arguments) = line.split_once(' ')?;
            Some((pid.parse().ok()?, arguments.to_owned()))
        })
        .collect()
}

pub fn exists(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

/// Asks again until the answer is accepted, for a good while.
pub fn until<T>(mut ask: impl FnMut() -> Option<T>) -> T {
    for _ in 0..3000 {
        if let Some(answer) = ask() {
            return answer;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("no such answer came");
}

pub fn watts(reading: Result<Reading, Fault>) -> Result<f64, Fault> {
    reading.map(|reading| match reading.value {
        Value::Power(power) => power.watts(),
        Value::Counter(value) => panic!("a gauge shows no count: {value}"),
    })
}

/// The next power that can be read.
pub fn next_watts(card: &mut SmiCard) -> f64 {
    until(|| watts(card.read()).ok())
}
