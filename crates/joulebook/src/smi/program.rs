//! The tool as a child process: started, read, ended and reaped; and what it cost.
//!
//! A child never outlives us: the kernel kills it when the thread that started it ends, for
//! whatever reason (so it must be started by the thread that reads it). It has a process group of
//! its own, so that Ctrl-C reaches us and not first what we measure with. One that even SIGKILL
//! does not end (the driver holds it in the kernel) is kept and waited for, and until it is gone no
//! other is started.

use std::{
    env, fs,
    io::{self, PipeReader, Read},
    os::{fd::AsFd, unix::process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, Signal, getpid, getppid, kill_process_group, set_parent_process_death_signal},
};

/// The environment's name for another program than the `nvidia-smi` on PATH.
pub const PROGRAM_VARIABLE: &str = "JOULEBOOK_SMI";

/// How long a killed child is waited for.
const REAP: Duration = Duration::from_millis(300);
const STEP: Duration = Duration::from_millis(2);
/// The most that is read at once.
const CHUNK: usize = 1 << 16;

/// Children that SIGKILL has not ended.
pub(crate) static STUCK: Mutex<Vec<Child>> = Mutex::new(Vec::new());

/// The tool.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Program(PathBuf);

/// Why it did not start.
#[derive(Debug, thiserror::Error)]
pub(super) enum StartError {
    /// An earlier one is stuck.
    #[error("an earlier call of it hangs in the driver")]
    Stuck,
    /// The system refused.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// A child.
#[derive(Debug)]
pub(super) struct Running {
    child: Option<Child>,
    output: ChildStdout,
    cpu_ns: u64,
}

/// What waiting for a child's output came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum News {
    /// It printed something.
    Text,
    /// It will print no more.
    End,
    /// The time is over.
    Late,
    /// Nobody wants it any more.
    Stopped,
}

impl Default for Program {
    /// The one that `JOULEBOOK_SMI` names, else `nvidia-smi` on PATH.
    fn default() -> Self {
        let named = env::var_os(PROGRAM_VARIABLE).filter(|name| !name.is_empty());
        Self(named.map_or_else(|| PathBuf::from("nvidia-smi"), PathBuf::from))
    }
}

impl Program {
    /// The tool at a path, or of a name on PATH.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Its path or name.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Starts it; the calling thread must live as long as the child is to.
    pub(super) fn start(&self, arguments: &[String]) -> Result<Running, StartError> {
        let mut stuck = lock(&STUCK);
        stuck.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        if !stuck.is_empty() {
            return Err(StartError::Stuck);
        }
        let mut command = Command::new(&self.0);
        command.args(arguments).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        die_with_us(&mut command);
        let mut child = command.spawn()?;
        let output = child.stdout.take().ok_or_else(|| io::Error::other("it has no output"))?;
        Ok(Running { child: Some(child), output, cpu_ns: 0 })
    }
}

/// Has the kernel kill the child when this thread ends.
#[allow(unsafe_code)]
fn die_with_us(command: &mut Command) {
    let us = Some(getpid());
    let ask = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // We may have ended before the kernel was asked.
        if getppid() == us { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
    };
    // SAFETY: `ask` runs in the child between fork and exec, where only async-signal-safe calls are
    // allowed: it makes two system calls, takes no lock and allocates nothing.
    unsafe {
        command.pre_exec(ask);
    }
}

impl Running {
    /// Waits for output, for the end of `wait`, or for the other end of `stop` to close.
    pub(super) fn news(&self, stop: &PipeReader, wait: Duration) -> News {
        let mut watched = [
            PollFd::from_borrowed_fd(self.output.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN),
        ];
        let mut ready = poll(&mut watched, Some(&timespec(wait)));
        if ready == Err(rustix::io::Errno::INTR) {
            // We may have been stopped for long: what came meanwhile has not come late.
            ready = poll(&mut watched, Some(&timespec(Duration::ZERO)));
        }
        let [output, stop] = watched.each_ref().map(PollFd::revents);
        match ready {
            _ if !stop.is_empty() => News::Stopped,
            Ok(0) | Err(rustix::io::Errno::INTR) => News::Late,
            Ok(_) if output.contains(PollFlags::IN) => News::Text,
            Ok(_) | Err(_) => News::End,
        }
    }

    /// What it has printed since; `false` at its end. Call after [`News::Text`]: it does not wait.
    pub(super) fn read(&mut self, into: &mut Vec<u8>) -> bool {
        let begin = into.len();
        into.resize(begin + CHUNK, 0);
        let read = self.output.read(into.get_mut(begin..).unwrap_or_default()).unwrap_or(0);
        into.truncate(begin + read);
        read > 0
    }

    /// Its CPU time so far, ns.
    pub(super) fn cpu_ns(&mut self) -> u64 {
        if let Some(child) = &self.child {
            self.cpu_ns = self.cpu_ns.max(cpu_ns(child.id()).unwrap_or(0));
        }
        self.cpu_ns
    }

    /// Waits for its end, for this long; then kills it. Its exit code, where it has one.
    pub(super) fn end(mut self, patience: Duration) -> (Option<i32>, u64) {
        let until = Instant::now() + patience;
        let Some(mut child) = self.child.take() else { return (None, self.cpu_ns) };
        // What has ended by itself keeps its figures until it is reaped.
        while Instant::now() < until && !has_ended(child.id()) {
            thread::sleep(STEP);
        }
        self.cpu_ns = self.cpu_ns.max(cpu_ns(child.id()).unwrap_or(0));
        (finish(&mut child).or_else(|| keep(child)), self.cpu_ns)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take()
            && finish(&mut child).is_none()
        {
            keep(child);
        }
    }
}

/// Kills and reaps; `None` where it could not be reaped.
fn finish(child: &mut Child) -> Option<i32> {
    // What it started too, where it is a wrapper. Until it is reaped its number is its own.
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.kill();
    let until = Instant::now() + REAP;
    loop {
        match child.try_wait() {
            // By a signal: the shell's number for it.
            Ok(Some(status)) => return Some(status.code().unwrap_or(128 + 9)),
            // Somebody else in the process has reaped it.
            Err(_) => return Some(0),
            Ok(None) if Instant::now() >= until => return None,
            Ok(None) => thread::sleep(STEP),
        }
    }
}

fn keep(child: Child) -> Option<i32> {
    tracing::warn!("nvidia-smi (process {}) cannot be ended: the driver holds it", child.id());
    lock(&STUCK).push(child);
    None
}

/// Sleeps; false when nobody wants it any more.
pub(super) fn rest(stop: &PipeReader, wait: Duration) -> bool {
    let mut watched = [PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN)];
    let until = Instant::now() + wait;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        match poll(&mut watched, Some(&timespec(left))) {
            Ok(0) => return true,
            Err(rustix::io::Errno::INTR) => {}
            Ok(_) | Err(_) => return false,
        }
    }
}

fn timespec(wait: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: wait.subsec_nanos().into(),
    }
}

/// The scheduler's count for a process and its threads that still run, ns.
fn cpu_ns(pid: u32) -> Option<u64> {
    let first = |path: &Path| -> Option<u64> {
        fs::read_to_string(path).ok()?.split_whitespace().next()?.parse().ok()
    };
    let folder = Path::new("/proc").join(pid.to_string());
    let threads = fs::read_dir(folder.join("task")).ok().map(|threads| {
        threads.flatten().filter_map(|thread| first(&thread.path().join("schedstat"))).sum()
    });
    threads.max(first(&folder.join("schedstat")))
}

/// True of a process that has ended and is not reaped yet, or is gone.
fn has_ended(pid: u32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return true };
    // The state stands behind the name, which may hold anything.
    stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('Z'))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
