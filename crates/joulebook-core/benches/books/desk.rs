//! Books of one card with so many requests in flight, for benchmarks.

use joulebook_core::{
    Flags, Source,
    keeper::{CardFacts, Keeper, Opening, Payer, Phases, Publish, Settings},
    ledger::settle::{Others, Rest, Rho, Tick},
};

pub const MS: u64 = 1_000_000;

/// The books, and what has happened so far.
pub struct Desk {
    pub keeper: Keeper,
    pub now: u64,
    active: u64,
    tokens: u64,
}

impl Desk {
    /// Books that are new: each tick needs memory that none had before it.
    pub fn new(active: usize, journal: bool) -> Self {
        Self::of(active, Settings { journal, ..Settings::default() })
    }

    fn of(active: usize, settings: Settings) -> Self {
        let facts = CardFacts {
            name: "card".into(),
            backend: "simulated",
            source: Source::Local,
            lag_ns: 0,
            lag_uncertainty_ns: MS,
        };
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

    /// Books that have been kept for a while: as many ticks lie in them as may, and the oldest goes
    /// with each new one.
    #[allow(dead_code)] // where only instructions are counted memory is of no account
    pub fn running(active: usize, settings: Settings) -> Self {
        let mut desk = Self::of(active, settings);
        let kept = Settings::default().most_seats / active.max(1024) + 2;
        for _ in 0..kept {
            desk.work();
            desk.tick();
            desk.keeper.journal().for_each(drop);
        }
        desk
    }

    /// Ten looks at every ticket, as the owner takes them between two publishes.
    pub fn work(&mut self) {
        for _ in 0..10 {
            self.now += 10 * MS;
            self.tokens += 1;
            for id in 0..self.active {
                self.keeper.tokens(id, self.now, self.tokens + id % 3);
            }
        }
    }

    pub fn tick(&mut self) {
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
