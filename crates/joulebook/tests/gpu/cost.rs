//! What one read of a register costs: wall time, and CPU time of the thread that asks.

use std::{thread, time::Duration};

use joulebook::{Reader, clock::now_ns};

use super::trace::rank;

/// Between two reads, so that they are like those of a recorder and not a loop in a warm cache.
const GAP: Duration = Duration::from_millis(2);

/// The cost of a read, µs.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    pub wall_p50_us: f64,
    pub wall_p99_us: f64,
    pub cpu_p50_us: f64,
    pub cpu_p99_us: f64,
    pub reads: usize,
}

/// Reads so many times; `None` where no read is answered.
pub fn of(reader: &mut dyn Reader, reads: usize) -> Option<Cost> {
    reader.read().ok()?;
    let (mut wall, mut cpu) = (Vec::with_capacity(reads), Vec::with_capacity(reads));
    for _ in 0..reads {
        thread::sleep(GAP);
        let (cpu_ns, wall_ns) = (thread_cpu_ns(), now_ns());
        let is_read = reader.read().is_ok();
        let (wall_end_ns, cpu_end_ns) = (now_ns(), thread_cpu_ns());
        if is_read {
            wall.push((wall_end_ns - wall_ns) as f64 / 1e3);
            cpu.push((cpu_end_ns - cpu_ns) as f64 / 1e3);
        }
    }
    Some(Cost {
        wall_p50_us: rank(&wall, 0.5)?,
        wall_p99_us: rank(&wall, 0.99)?,
        cpu_p50_us: rank(&cpu, 0.5)?,
        cpu_p99_us: rank(&cpu, 0.99)?,
        reads: wall.len(),
    })
}

/// CPU time of this thread, ns.
#[allow(unsafe_code)]
fn thread_cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec of ours that lives past the call; this clock exists on
    // every Linux, so the call cannot fail.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}
