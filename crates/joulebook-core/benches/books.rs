//! What a tick costs with so many requests in flight: posted, seated, settled by the charged rule,
//! and the two others for the model range; without and with a journal, and when news makes a whole
//! tick be corrected.

#![allow(clippy::expect_used)] // a benchmark that cannot begin has nothing better to do

use divan::{Bencher, black_box};
use joulebook_core::{
    Flags, Source,
    keeper::{CardFacts, Keeper, Opening, Payer, Phases, Publish, Settings},
    ledger::settle::{Others, Rest, Rho, Tick},
    receipt::{Status, Usage},
};

const MS: u64 = 1_000_000;
const ACTIVE: &[usize] = &[1, 64, 1024, 10_000];

fn main() {
    divan::main();
}

struct Desk {
    keeper: Keeper,
    now: u64,
    active: u64,
    tokens: u64,
}

impl Desk {
    fn new(active: usize, journal: bool) -> Self {
        let facts = CardFacts {
            name: "card".into(),
            backend: "simulated",
            source: Source::Local,
            lag_ns: 0,
            lag_uncertainty_ns: MS,
        };
        let settings = Settings { journal, ..Settings::default() };
        let mut desk = Self {
            keeper: Keeper::new(settings, [facts]),
            now: 1_000_000 * MS,
            active: active as u64,
            tokens: 0,
        };
        for id in 0..active as u64 {
            let payer = Payer { card: 0, phases: Phases::Both, rho: Rho { a: 2970, b: 126_976 } };
            let opening = Opening { id, payers: vec![payer], ..Opening::default() };
            desk.keeper.open(desk.now, opening).expect("room for all");
            desk.keeper.prompt(id, 200 + id % 700, Some(0));
            desk.keeper.admitted(id, desk.now);
        }
        for _ in 0..5 {
            desk.work();
            desk.tick();
        }
        desk
    }

    /// Ten looks at every ticket, as the owner takes them between two publishes.
    fn work(&mut self) {
        for _ in 0..10 {
            self.now += 10 * MS;
            self.tokens += 1;
            for id in 0..self.active {
                self.keeper.tokens(id, self.now, self.tokens + id % 3);
            }
        }
    }

    fn tick(&mut self) {
        let tick = Tick {
            begin_ns: self.now - 100 * MS,
            end_ns: self.now,
            counted_uj: 60_000_000 + self.now % 1000,
            unplaced: false,
        };
        self.keeper.publish(
            0,
            Publish {
                tick,
                edge_uj: 100_000,
                rest: Some(Rest { power_uw: 70_000_000, off_uw: None, model_loaded: true }),
                spread_uw: 500_000,
                others: Others::Nobody,
                contended_by: None,
                flags: Flags::NONE,
            },
        );
        self.keeper.advance(self.now + 3 * MS);
    }
}

#[divan::bench(args = ACTIVE, sample_count = 40, sample_size = 1)]
fn tick(bencher: Bencher, active: usize) {
    let desk = std::cell::RefCell::new(Desk::new(active, false));
    bencher.with_inputs(|| desk.borrow_mut().work()).bench_local_values(|()| {
        desk.borrow_mut().tick();
    });
}

#[divan::bench(args = ACTIVE, sample_count = 40, sample_size = 1)]
fn tick_with_a_journal(bencher: Bencher, active: usize) {
    let desk = std::cell::RefCell::new(Desk::new(active, true));
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
