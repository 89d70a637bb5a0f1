//! A command as a child: started in our own process group and terminal, told of signals, waited for.
//!
//! A terminal's signals reach the whole foreground group, so the child has them already; those that
//! a process sent to us are passed on. The child is waited for in the same thread that passes them
//! on, so none is ever sent to a process id that has been given to somebody else.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{Child, Command, ExitStatus},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open},
};

use crate::signals::Signals;

/// Between two looks where the system has no process descriptors.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself.
    Code(u8),
    /// By a signal.
    Signal(u8),
}

/// Why a command could not be run.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// It is not there.
    #[error("{0}")]
    NotFound(String),
    /// It cannot be executed.
    #[error("{0}")]
    NotExecutable(String),
    /// It was started and could not be waited for.
    #[error("{0} was started and cannot be waited for: {1}")]
    Lost(String, io::Error),
}

impl Refused {
    /// The exit code, as shells and `env` have it.
    pub const fn code(&self) -> u8 {
        match self {
            Self::NotFound(_) => 127,
            Self::NotExecutable(_) => 126,
            Self::Lost(..) => 125,
        }
    }
}

/// Runs it to its end.
pub fn run(program: &OsStr, arguments: &[OsString], signals: &Signals) -> Result<Exit, Refused> {
    let mut child = start(program, arguments, signals)?;
    let status = wait(&mut child, signals)
        .map_err(|error| Refused::Lost(program.to_string_lossy().into_owned(), error))?;
    Ok(Exit::of(status))
}

impl Exit {
    fn of(status: ExitStatus) -> Self {
        let small = |number: i32| u8::try_from(number).unwrap_or(u8::MAX);
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Code(small(code)),
            (None, Some(number)) => Self::Signal(small(number)),
            (None, None) => Self::Code(u8::MAX),
        }
    }
}

fn start(program: &OsStr, arguments: &[OsString], signals: &Signals) -> Result<Child, Refused> {
    let start = |command: &mut Command| signals.unblocked_in(command.args(arguments)).spawn();
    let error = match start(&mut Command::new(program)) {
        Ok(child) => return Ok(child),
        Err(error) => error,
    };
    // A script without a first line that names its interpreter is a shell's, as execvp has it.
    if error.raw_os_error() == Some(libc::ENOEXEC)
        && let Ok(child) = start(Command::new("/bin/sh").arg(program))
    {
        return Ok(child);
    }
    Err(refused(program, &error))
}

fn refused(program: &OsStr, error: &io::Error) -> Refused {
    let shown = program.to_string_lossy();
    let path = Path::new(program);
    let is_path = shown.contains('/');
    match error.kind() {
        io::ErrorKind::NotFound if is_path && path.exists() => Refused::NotExecutable(format!(
            "{shown} cannot be run: the interpreter that its first line names, or its loader, does \
             not exist"
        )),
        io::ErrorKind::NotFound if is_path => {
            Refused::NotFound(format!("there is no file {shown} to run"))
        }
        io::ErrorKind::NotFound => Refused::NotFound(format!(
            "there is no command {shown}: it is in no folder of PATH (a shell's own words and \
             aliases need a shell: sh -c '…')"
        )),
        io::ErrorKind::PermissionDenied if path.is_dir() => {
            Refused::NotExecutable(format!("{shown} cannot be run: it is a folder"))
        }
        io::ErrorKind::PermissionDenied => Refused::NotExecutable(format!(
            "{shown} cannot be run: permission denied (chmod +x makes a file executable)"
        )),
        _ => Refused::NotExecutable(format!("{shown} cannot be run: {error}")),
    }
}

fn wait(child: &mut Child, signals: &Signals) -> io::Result<ExitStatus> {
    let pid = Pid::from_child(child);
    let descriptor = pidfd_open(pid, PidfdFlags::empty()).ok();
    loop {
        let mut watched = vec![PollFd::from_borrowed_fd(signals.descriptor(), PollFlags::IN)];
        watched.extend(descriptor.as_ref().map(|fd| PollFd::new(fd, PollFlags::IN)));
        match poll(&mut watched, descriptor.is_none().then_some(&LOOK)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        while let Some(caught) = signals.next() {
            let signal = Signal::from_named_raw(caught.number);
            if let Some(signal) = signal.filter(|_| !caught.from_terminal) {
                // It may have ended meanwhile; it is not reaped yet, so the id is still its own.
                let _ = kill_process(pid, signal);
            }
        }
    }
}
