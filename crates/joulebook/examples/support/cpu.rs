//! CPU time, as the kernel counts it.

/// CPU time of the calling thread, ns.
pub fn thread_ns() -> u64 {
    cpu_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time of all threads of the process but this one, ns.
#[allow(dead_code, reason = "not every example asks")]
pub fn others_ns() -> u64 {
    cpu_ns(libc::CLOCK_PROCESS_CPUTIME_ID).saturating_sub(thread_ns())
}

#[allow(unsafe_code)]
fn cpu_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec of ours that lives past the call; both clocks exist on
    // every Linux, so the call cannot fail.
    unsafe { libc::clock_gettime(clock, &mut time) };
    (time.tv_sec * 1_000_000_000 + time.tv_nsec).unsigned_abs()
}
