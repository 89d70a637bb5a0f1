//! What the ring and the register cost: a push, a look-up at random times in a full ring of 8,192
//! points, the newest point, the span of a 100 ms window, one reading of a register.
//! `cargo bench -p joulebook-core`
//!
//! Beside it, in the same run, stands a plain ring of seqlock slots with a binary search: what one
//! would write first.
#![allow(clippy::unwrap_used, reason = "the whole file is a benchmark")]

use std::{cell::Cell, hint::black_box};

use divan::Bencher;
use joulebook_core::{
    Flags,
    register::{DEFAULT_CEILING, Modulus, Register, Scale},
    ring::{Point, ring},
    series::{FINE_POINTS, series_of},
};

#[path = "ring/seqlock.rs"]
mod seqlock;

const MS: u64 = 1_000_000;
const PERIOD_NS: u64 = 100 * MS;
/// Pushes before a look-up: the ring has gone round.
const PUSHED: u64 = 3 * FINE_POINTS as u64;

fn main() {
    divan::main();
}

fn mixed(value: u64) -> u64 {
    let value = value.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (value ^ (value >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 20
}

/// Publishes each 100 ms, up to 1 ms early or late.
fn point(number: u64) -> Point {
    Point {
        at_ns: (number + 1) * PERIOD_NS + mixed(number) % (2 * MS) - MS,
        energy_uj: number * 7_000_000,
        power_uw: 70_000_000,
        uncertainty_ns: 500_000,
        flags: Flags::NONE,
    }
}

/// Instants anywhere in the newest 8,190 points.
fn asked() -> impl Fn() -> u64 {
    let span_ns = (FINE_POINTS as u64 - 2) * PERIOD_NS;
    let first_ns = (PUSHED - FINE_POINTS as u64 + 3) * PERIOD_NS;
    let instants: Vec<u64> =
        (0..65_536u64).map(|number| first_ns + mixed(number) % span_ns).collect();
    let next = Cell::new(0usize);
    move || {
        let at = next.get();
        next.set((at + 1) % instants.len());
        instants.get(at).copied().unwrap_or(first_ns)
    }
}

#[divan::bench(sample_count = 200, sample_size = 8192)]
fn push(bencher: Bencher) {
    let (mut writer, _ring) = ring(FINE_POINTS);
    let mut number = 0;
    bencher.bench_local(|| {
        writer.push(Point { at_ns: number, energy_uj: number, ..Point::default() });
        number += 1;
    });
}

#[divan::bench(sample_count = 200, sample_size = 8192)]
fn push_seqlock(bencher: Bencher) {
    let ring = seqlock::Ring::new(FINE_POINTS);
    let mut number = 0;
    bencher.bench_local(|| {
        ring.push(Point { at_ns: number, energy_uj: number, ..Point::default() });
        number += 1;
    });
}

#[divan::bench(sample_count = 200, sample_size = 8192)]
fn look_up(bencher: Bencher) {
    let (mut writer, ring) = ring(FINE_POINTS);
    (0..PUSHED).for_each(|number| writer.push(point(number)));
    let asked = asked();
    bencher.bench_local(|| ring.at_or_before(black_box(asked())));
}

#[divan::bench(sample_count = 200, sample_size = 8192)]
fn look_up_seqlock(bencher: Bencher) {
    let ring = seqlock::Ring::new(FINE_POINTS);
    (0..PUSHED).for_each(|number| ring.push(point(number)));
    let asked = asked();
    bencher.bench_local(|| ring.at_or_before(black_box(asked())).unwrap());
}

#[divan::bench(sample_count = 200, sample_size = 8192)]
fn newest(bencher: Bencher) {
    let (mut writer, ring) = ring(FINE_POINTS);
    (0..PUSHED).for_each(|number| writer.push(point(number)));
    bencher.bench_local(|| black_box(&ring).newest());
}

#[divan::bench(sample_count = 200, sample_size = 8192)]
fn span_of_100_ms(bencher: Bencher) {
    let (mut writer, series) = series_of(FINE_POINTS, FINE_POINTS);
    (0..PUSHED).for_each(|number| writer.push(point(number)));
    let asked = asked();
    bencher.bench_local(|| {
        let open_ns = black_box(asked());
        series.span(open_ns, open_ns + PERIOD_NS, 6, 3)
    });
}

#[divan::bench(sample_count = 200, sample_size = 8192)]
fn register_reading(bencher: Bencher) {
    let mut register = Register::new(Scale::MILLIJOULES, Modulus::None, DEFAULT_CEILING, PERIOD_NS);
    let mut number = 0;
    bencher.bench_local(|| {
        number += 1;
        // Three reads a publish.
        register.advance(black_box(number * PERIOD_NS / 3), Ok(number / 3 * 7000))
    });
}
