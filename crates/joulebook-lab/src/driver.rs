//! Where the simulated driver library is, and how a program is made to load it.
//!
//! Cargo builds this crate's cdylib beside whatever depends on it; a program that loads the
//! driver by name wants it under the driver's name, in a directory of its own. Nothing is put where
//! a program would find it without being told to.

use std::{
    env::consts::{DLL_PREFIX, DLL_SUFFIX},
    io,
    path::{Path, PathBuf},
    process::Command,
};

/// The name by which programs load the driver library.
pub const DRIVER_NAME: &str = "libnvidia-ml.so.1";
/// The name by which they start the driver's program.
pub const TOOL_NAME: &str = "nvidia-smi";

/// Why the library is not to be had.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// It was not built.
    #[error("{name} is not beside {}: build it with `cargo build -p joulebook-lab`", program.display())]
    NotBuilt {
        /// Its file name.
        name: String,
        /// The running program.
        program: PathBuf,
    },
    /// It could not be built.
    #[error("`cargo build -p joulebook-lab` failed:\n{output}")]
    BuildFailed {
        /// What cargo said.
        output: String,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    System {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// The cdylib as cargo built it, for tests: where it is not there, it is built for the profile
/// that the running program was built for.
pub fn library() -> Result<PathBuf, DriverError> {
    find().or_else(|_| {
        build()?;
        find()
    })
}

/// The `nvidia-smi` program as cargo built it, for tests: where it is not there, it is built too.
pub fn tool() -> Result<PathBuf, DriverError> {
    find_tool().or_else(|_| {
        build()?;
        find_tool()
    })
}

fn build() -> Result<(), DriverError> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    build.args(["build", "--quiet", "-p", "joulebook-lab", "--manifest-path"]).arg(manifest);
    let profile_dir = program_directories()?.into_iter().next_back();
    if let Some(dir) = &profile_dir {
        match dir.file_name().and_then(|name| name.to_str()) {
            Some("debug") | None => {}
            Some(profile) => {
                build.args(["--profile", profile]);
            }
        }
        if let Some(target) = dir.parent() {
            build.arg("--target-dir").arg(target);
        }
    }
    let output = build
        .output()
        .map_err(|source| DriverError::System { path: PathBuf::from("cargo"), source })?;
    if !output.status.success() {
        let output = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(DriverError::BuildFailed { output });
    }
    Ok(())
}

/// The `nvidia-smi` program beside the running program.
pub fn find_tool() -> Result<PathBuf, DriverError> {
    let candidates = program_directories()?.into_iter().map(|dir| dir.join(TOOL_NAME));
    candidates.rev().find(|path| path.is_file()).ok_or_else(|| DriverError::NotBuilt {
        name: TOOL_NAME.to_owned(),
        program: current_program().unwrap_or_default(),
    })
}

/// The cdylib beside the running program; the newest, where cargo left two.
pub fn find() -> Result<PathBuf, DriverError> {
    let name = format!("{DLL_PREFIX}joulebook_lab{DLL_SUFFIX}");
    let mut newest = None;
    for dir in program_directories()? {
        for candidate in [dir.join("deps").join(&name), dir.join(&name)] {
            if let Ok(modified) = candidate.metadata().and_then(|file| file.modified())
                && newest.as_ref().is_none_or(|(when, _)| modified > *when)
            {
                newest = Some((modified, candidate));
            }
        }
    }
    newest.map(|(_, path)| path).ok_or_else(|| DriverError::NotBuilt {
        name,
        program: current_program().unwrap_or_default(),
    })
}

/// Puts the library under the driver's name into a directory, which is made where it is missing;
/// the path of the library there.
pub fn install(library: &Path, directory: &Path) -> Result<PathBuf, DriverError> {
    let at = |path: &Path| {
        let path = path.to_owned();
        move |source| DriverError::System { path, source }
    };
    std::fs::create_dir_all(directory).map_err(at(directory))?;
    let target = directory.join(DRIVER_NAME);
    // A copy that takes the name in one step: a program that has the old one open keeps it.
    let fresh = directory.join(format!(".{DRIVER_NAME}.{}", std::process::id()));
    std::fs::copy(library, &fresh).map_err(at(&fresh))?;
    std::fs::rename(&fresh, &target).map_err(at(&target))?;
    Ok(target)
}

/// The directory of the running program, and the one above where cargo keeps tests and examples.
fn program_directories() -> Result<Vec<PathBuf>, DriverError> {
    let program = current_program()?;
    let Some(dir) = program.parent() else {
        return Ok(Vec::new());
    };
    let mut directories = vec![dir.to_owned()];
    let below = dir.file_name().is_some_and(|name| name == "deps" || name == "examples");
    directories.extend(dir.parent().filter(|_| below).map(Path::to_owned));
    Ok(directories)
}

fn current_program() -> Result<PathBuf, DriverError> {
    let path = PathBuf::from("the running program");
    std::env::current_exe().map_err(|source| DriverError::System { path, source })
}
