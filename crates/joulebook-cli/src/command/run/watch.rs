//! Watching instead of running: until a process ends, a span is over, or a signal comes.

use std::{
    fs,
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, pidfd_open},
};

use crate::{context::Usage, signals::Signals};

/// A process that runs already.
pub struct Target {
    pid: u32,
    /// Readable when it has ended; none where the system has no such thing.
    descriptor: Option<OwnedFd>,
}

/// What ended the watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The process did.
    Process,
    /// The span was over.
    Span,
    /// A signal.
    Signal(i32),
}

impl Target {
    /// The process of that id.
    pub fn of(pid: u32) -> anyhow::Result<Self> {
        let missing = || Usage(format!("there is no process {pid} (--pid)"));
        let number = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(missing)?;
        let descriptor = match pidfd_open(number, PidfdFlags::empty()) {
            Ok(descriptor) => Some(descriptor),
            Err(rustix::io::Errno::SRCH) => return Err(missing().into()),
            Err(rustix::io::Errno::INVAL) => {
                return Err(Usage(format!("{pid} is a thread, not a process (--pid)")).into());
            }
            Err(_) => None,
        };
        let target = Self { pid, descriptor };
        if target.has_ended() { Err(missing().into()) } else { Ok(target) }
    }

    /// It is gone, or waits only to be asked for its exit code.
    fn has_ended(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid));
        match stat.as_ref().map(|stat| stat.rsplit_once(") ").map(|(_, rest)| rest)) {
            Ok(Some(rest)) => rest.starts_with(['Z', 'X']),
            Ok(None) => false,
            Err(_) => true,
        }
    }
}

/// Waits for the end.
pub fn until(target: Option<&Target>, span: Option<Duration>, signals: &Signals) -> End {
    let begin = Instant::now();
    let look = Duration::from_millis(20);
    loop {
        if let Some(caught) = signals.next() {
            return End::Signal(caught.number);
        }
        if target.is_some_and(Target::has_ended) {
            return End::Process;
        }
        let left = span.map(|span| span.saturating_sub(begin.elapsed()));
        if left.is_some_and(|left| left.is_zero()) {
            return End::Span;
        }
        let descriptor = target.and_then(|target| target.descriptor.as_ref());
        let blind = target.is_some() && descriptor.is_none();
        let wait = if blind { Some(left.map_or(look, |left| left.min(look))) } else { left };
        let wait = wait.and_then(|wait| Timespec::try_from(wait).ok());
        let mut watched = vec![PollFd::from_borrowed_fd(signals.descriptor(), PollFlags::IN)];
        watched.extend(descriptor.map(|fd| PollFd::new(fd, PollFlags::IN)));
        // Interrupted or not, the loop looks again.
        let _ = poll(&mut watched, wait.as_ref());
    }
}
