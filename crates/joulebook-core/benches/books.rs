//! What a tick costs with so many requests in flight: posted, seated, settled by the charged rule,
//! and the two others for the model range; without and with a journal, and when news makes a whole
//! tick be corrected.

#![allow(clippy::expect_used)] // a benchmark that cannot begin has nothing better to do

#[path = "books/desk.rs"]
mod desk;

use desk::{Desk, MS};
use divan::{Bencher, black_box};
use joulebook_core::{
    keeper::Settings,
    ledger::settle::Split,
    receipt::{Status, Usage},
};

const ACTIVE: &[usize] = &[1, 64, 1024, 10_000];

fn main() {
    divan::main();
}

#[divan::bench(args = ACTIVE, sample_count = 40, sample_size = 1)]
fn tick(bencher: Bencher, active: usize) {
    let desk = std::cell::RefCell::new(Desk::running(active, Settings::default()));
    bencher.with_inputs(|| desk.borrow_mut().work()).bench_local_values(|()| {
        desk.borrow_mut().tick();
    });
}

/// Charged by time: amount × weights is more than a word.
#[divan::bench(args = [1024, 10_000], sample_count = 40, sample_size = 1)]
fn tick_by_time(bencher: Bencher, active: usize) {
    let settings = Settings { split: Split::Time, ..Settings::default() };
    let desk = std::cell::RefCell::new(Desk::running(active, settings));
    bencher.with_inputs(|| desk.borrow_mut().work()).bench_local_values(|()| {
        desk.borrow_mut().tick();
    });
}

/// The first two seconds of ten thousand: what is kept for late news has to be got from the system.
#[divan::bench(args = [10_000], sample_count = 20, sample_size = 1)]
fn tick_of_new_books(bencher: Bencher, active: usize) {
    let desk = std::cell::RefCell::new(Desk::new(active, false));
    bencher.with_inputs(|| desk.borrow_mut().work()).bench_local_values(|()| {
        desk.borrow_mut().tick();
    });
}

#[divan::bench(args = ACTIVE, sample_count = 40, sample_size = 1)]
fn tick_with_a_journal(bencher: Bencher, active: usize) {
    let desk = std::cell::RefCell::new(Desk::running(
        active,
        Settings { journal: true, ..Settings::default() },
    ));
    let prepare = || {
        let mut desk = desk.borrow_mut();
        desk.work();
        black_box(desk.keeper.journal().count());
    };
    bencher.with_inputs(prepare).bench_local_values(|()| desk.borrow_mut().tick());
}

/// The looks themselves: ten at each ticket.
#[divan::bench(args = ACTIVE, sample_count = 20, sample_size = 1)]
fn ten_looks(bencher: Bencher, active: usize) {
    let desk = std::cell::RefCell::new(Desk::new(active, false));
    bencher.with_inputs(|| desk.borrow_mut().tick()).bench_local_values(|()| {
        desk.borrow_mut().work();
    });
}

/// A usage that differs from what was counted: ten settled ticks are looked at again.
#[divan::bench(args = [64, 1024, 10_000], sample_count = 20, sample_size = 1)]
fn ten_ticks_corrected(bencher: Bencher, active: usize) {
    bencher
        .with_inputs(|| {
            let mut desk = Desk::new(active, false);
            for _ in 0..5 {
                desk.work();
                desk.tick();
            }
            let usage = Usage { completion: Some(300), ..Usage::default() };
            desk.keeper.close(0, desk.now, Status::Done, usage);
            desk
        })
        .bench_local_refs(|desk| desk.keeper.advance(desk.now + 4 * MS));
}
