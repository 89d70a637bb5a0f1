//! The folder of a machine that a server drives: its scenario, the control memory that its card
//! follows, and the driver's library that shows it.
//!
//! The scenario's card is `dynamic` and follows the control memory; more may be said of it (its
//! register, faults). What any program must have in its environment to see the card is
//! [`Home::environment`].

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::{
    clock::system_ns,
    control::{Control, ControlError},
    driver::{self, DriverError},
    engine::Hardware,
    scenario::ClockKind,
};

/// Changes of power that are kept: some hours of work. The file is sparse.
const CAPACITY: usize = 1 << 22;

/// A machine's folder.
#[derive(Clone, Debug)]
pub struct Home {
    folder: PathBuf,
    epoch_ns: i64,
}

/// Why a folder cannot be such a home.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// A file could not be written.
    #[error("{}: {error}", path.display())]
    System {
        /// Which.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The control memory could not be made.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// There is no driver library to install.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

impl Home {
    /// Makes a machine in a folder: a card at rest, from now on. `about` is more of its scenario.
    pub fn make(folder: &Path, hardware: &Hardware, about: &str) -> Result<Self, HomeError> {
        let at = |path: &Path| {
            let path = path.to_owned();
            move |error| HomeError::System { path, error }
        };
        fs::create_dir_all(folder).map_err(at(folder))?;
        let folder = folder.canonicalize().map_err(at(folder))?;
        let home = Self { folder, epoch_ns: system_ns(ClockKind::Monotonic) };
        Control::create(&home.control_file(), 1, CAPACITY, ClockKind::Monotonic)?;
        let scenario = format!(
            "epoch_ns {}\ncontrol {}\ncard 0\nidle {}\ndynamic\nproc 0 inf {} 40000 lab-server\n{about}\n",
            home.epoch_ns,
            home.control_file().display(),
            hardware.idle_w,
            std::process::id(),
        );
        let file = home.scenario_file();
        fs::write(&file, scenario).map_err(at(&file))?;
        Ok(home)
    }

    /// Puts the driver's library there too, and its program where that was built.
    pub fn install_driver(&self) -> Result<(), HomeError> {
        driver::install(&driver::find()?, &self.folder)?;
        if let Ok(tool) = driver::find_tool() {
            let link = self.folder.join(driver::TOOL_NAME);
            let _ = fs::remove_file(&link);
            std::os::unix::fs::symlink(tool, &link)
                .map_err(|error| HomeError::System { path: link, error })?;
        }
        Ok(())
    }

    /// What a program needs in its environment to see the card: names and values. The library is
    /// found by its name, and by joulebook also without that.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        let library = self.folder.join(driver::DRIVER_NAME);
        vec![
            ("FAKEGPU_SCENARIO", self.scenario_file().display().to_string()),
            ("LD_LIBRARY_PATH", self.folder.display().to_string()),
            ("JOULEBOOK_NVML", library.display().to_string()),
        ]
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The scenario's file.
    pub fn scenario_file(&self) -> PathBuf {
        self.folder.join("scenario")
    }

    /// The control memory's file.
    pub fn control_file(&self) -> PathBuf {
        self.folder.join("control")
    }

    /// Time zero on the system's monotonic clock, ns.
    pub const fn epoch_ns(&self) -> i64 {
        self.epoch_ns
    }

    /// The control memory, to write.
    pub(super) fn control(&self) -> Result<Control, ControlError> {
        Control::open(&self.control_file())
    }
}
