//! Signals as events to be read.
//!
//! They are blocked and read from a descriptor, so no handler is installed and no disposition
//! changes: what was ignored (`nohup`, a job in the background) stays ignored for a command that is
//! started. Its mask would be inherited, so [`Signals::unblocked_in`] gives it ours of before. Whether
//! a terminal or a process sent a signal is known, because a terminal sends it to the command too.

use std::{
    os::{
        fd::{AsFd, BorrowedFd},
        unix::process::CommandExt,
    },
    process::Command,
};

use nix::sys::{
    signal::{SigSet, Signal},
    signalfd::{SfdFlags, SignalFd},
};

/// The signals that end programs by request.
const CAUGHT: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];

/// Signals that are blocked for as long as this lives.
pub struct Signals {
    descriptor: SignalFd,
    before: SigSet,
}

/// A signal that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caught {
    /// Its number.
    pub number: i32,
    /// A terminal sent it, to the whole foreground group.
    pub from_terminal: bool,
}

impl Signals {
    /// Blocks them, for this thread and those it starts from now on.
    pub fn block() -> nix::Result<Self> {
        let set: SigSet = CAUGHT.into_iter().collect();
        let before = SigSet::thread_get_mask()?;
        set.thread_block()?;
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        let descriptor = SignalFd::with_flags(&set, flags).inspect_err(|_| {
            let _ = before.thread_set_mask();
        })?;
        Ok(Self { descriptor, before })
    }

    /// The next one that has come, if any.
    pub fn next(&self) -> Option<Caught> {
        let info = self.descriptor.read_signal().ok().flatten()?;
        // Codes above 0 are the kernel's own: SI_KERNEL for a terminal's keys and its hanging up.
        let from_terminal = info.ssi_code > 0;
        Some(Caught { number: i32::try_from(info.ssi_signo).ok()?, from_terminal })
    }

    /// The same command, to start with the signals blocked that were before.
    #[allow(unsafe_code)]
    pub fn unblocked_in<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let before = self.before;
        // SAFETY: between fork and exec only what is safe in a signal handler may be called;
        // pthread_sigmask is, on a set that was copied before, and an error of the system is made
        // from its number without allocating.
        unsafe { command.pre_exec(move || before.thread_set_mask().map_err(std::io::Error::from)) }
    }

    /// To be waited on.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // What came and was not asked for would end the process once it is let through.
        while self.next().is_some() {}
        let _ = self.before.thread_set_mask();
    }
}
