//! What the agent itself costs: its processor time and memory, and how often it was asked.

use std::{
    fs,
    sync::atomic::{AtomicU64, Ordering},
};

use rustix::time::{ClockId, clock_gettime};

/// How often what has happened.
#[derive(Debug, Default)]
pub struct Counts {
    /// Answers with a status below 400.
    pub answered: AtomicU64,
    /// Answers with a status from 400 to 499: asked wrongly.
    pub refused: AtomicU64,
    /// Answers with a status from 500 on: what was asked for cannot be read now.
    pub unreadable: AtomicU64,
    /// Connections turned away because there were too many.
    pub turned_away: AtomicU64,
    /// Connections cut because they made no progress, or to make room.
    pub cut: AtomicU64,
    /// Publishes left out of a stream because its client was too slow.
    pub skipped: AtomicU64,
}

/// One more.
pub fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// CPU time of this process, s.
pub fn cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Memory of this process that is in RAM, bytes.
pub fn resident_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    pages.checked_mul(u64::try_from(rustix::param::page_size()).ok()?)
}
