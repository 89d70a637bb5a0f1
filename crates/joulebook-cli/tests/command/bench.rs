//! A machine with simulated cards, and the program on it.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use joulebook_lab::{control::Control, scenario::ClockKind};
use serde_json::Value;

/// A machine for one test.
pub struct Bench {
    folder: tempfile::TempDir,
    library: Option<PathBuf>,
}

/// What a finished program said.
pub struct Said {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

/// A card whose counter shows a new value each 20 ms, so that tests are short.
pub const QUICK: &str = "card 0\nidle 70\ncounter period_ms=20\n";

impl Bench {
    /// With the cards of this scenario.
    pub fn with(scenario: &str) -> Self {
        let library = joulebook_lab::driver::library().unwrap();
        let bench = Self { folder: tempfile::tempdir().unwrap(), library: Some(library) };
        std::fs::write(bench.path("scenario"), scenario).unwrap();
        bench
    }

    /// Without a driver.
    pub fn without_cards() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), library: None }
    }

    /// With a card whose load is set by hand. `about` is more of the scenario.
    pub fn live(about: &str) -> (Self, Control) {
        let bench = Self::with("");
        let path = bench.path("control");
        let control = Control::create(&path, 1, 1000, ClockKind::Monotonic).unwrap();
        let scenario = format!("control {}\ncard 0\nidle 70\ndynamic\n{about}", path.display());
        std::fs::write(bench.path("scenario"), scenario).unwrap();
        (bench, control)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The program, with this machine around it.
    pub fn joulebook<const N: usize>(&self, arguments: [&str; N]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_joulebook"));
        command
            .args(arguments)
            .env("JOULEBOOK_STATE_DIR", self.path("state"))
            .env("FAKEGPU_SCENARIO", self.path("scenario"));
        for variable in [
            "JOULEBOOK_NVML",
            "FAKEGPU_EPOCH_NS",
            "FAKEGPU_CONTROL",
            "CUDA_VISIBLE_DEVICES",
            "CUDA_DEVICE_ORDER",
            "JOULEBOOK_LOG",
            "RUST_LOG",
        ] {
            command.env_remove(variable);
        }
        if let Some(library) = &self.library {
            command.env("JOULEBOOK_NVML", library);
        }
        command
    }

    /// What it says.
    pub fn say<const N: usize>(&self, arguments: [&str; N]) -> Said {
        said(&mut self.joulebook(arguments))
    }

    /// The files of profiles.
    pub fn profiles(&self) -> Vec<Value> {
        let Ok(entries) = std::fs::read_dir(self.path("state/cards")) else { return Vec::new() };
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths.iter().map(|path| json(&std::fs::read_to_string(path).unwrap())).collect()
    }
}

impl Said {
    /// Its one line of JSON on standard output.
    pub fn out_json(&self) -> Value {
        json(&self.out)
    }

    /// The last line of standard error as JSON.
    pub fn err_json(&self) -> Value {
        json(self.err.lines().last().unwrap_or_default())
    }
}

pub fn said(command: &mut Command) -> Said {
    let output = command.output().unwrap();
    Said {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

pub fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// A number of an object.
pub fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key} is a number in {value}"))
}

/// Waits until a file is there, for a good while.
pub fn wait_for(path: &Path) {
    let until = Instant::now() + Duration::from_secs(30);
    while !path.exists() {
        assert!(Instant::now() < until, "{} never came", path.display());
        std::thread::sleep(Duration::from_millis(1));
    }
}
