//! Instruction counts, which other work on the machine does not change: a tick of the books, and a
//! look-up in the ring. Needs valgrind and the runner (`cargo install gungraun-runner`).

#![allow(clippy::expect_used, missing_docs)] // of a benchmark and of the harness's own items

#[path = "books/desk.rs"]
mod desk;

use std::{hint::black_box, sync::Arc};

use desk::{Desk, MS};
use gungraun::{library_benchmark, library_benchmark_group, main};
use joulebook_core::{
    ring::Point,
    series::{Series, series},
};

/// Books just before a publish.
fn busy(active: usize) -> Desk {
    let mut desk = Desk::new(active, false);
    desk.work();
    desk
}

#[library_benchmark]
#[bench::of_1(args = (1), setup = busy)]
#[bench::of_64(args = (64), setup = busy)]
#[bench::of_1024(args = (1024), setup = busy)]
#[bench::of_10000(args = (10_000), setup = busy)]
fn tick(mut desk: Desk) -> Desk {
    desk.tick();
    desk
}

/// A full ring of publishes each 100 ms.
fn full() -> Arc<Series> {
    let (mut writer, series) = series();
    for publish in 0..20_000u64 {
        writer.push(Point {
            at_ns: publish * 100 * MS,
            energy_uj: publish * 7_000_000,
            ..Point::default()
        });
    }
    series
}

#[library_benchmark]
#[bench::full(setup = full)]
fn share(series: Arc<Series>) -> (Option<f64>, Arc<Series>) {
    let at = |at_ms: u64| series.energy_uj_at(black_box(at_ms * MS));
    let share = at(1_900_123).zip(at(1_900_456)).map(|(open, close)| close - open);
    (share, series)
}

library_benchmark_group!(name = books; benchmarks = tick, share);
main!(library_benchmark_groups = books);
