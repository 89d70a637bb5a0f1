//! CPU time, as the kernel counts it.

use rustix::time::{ClockId, clock_gettime};

/// CPU time of the calling thread, ns.
pub fn thread_ns() -> u64 {
    cpu_ns(ClockId::ThreadCPUTime)
}

/// CPU time of all threads of the process but this one, ns.
#[allow(dead_code, reason = "not every example asks")]
pub fn others_ns() -> u64 {
    cpu_ns(ClockId::ProcessCPUTime).saturating_sub(thread_ns())
}

fn cpu_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    (time.tv_sec * 1_000_000_000 + time.tv_nsec).unsigned_abs()
}
