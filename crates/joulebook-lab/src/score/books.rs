//! Our rules as the product keeps them: each tick is posted to the core's ledger and settled by it,
//! in whole microjoules.
//!
//! Decides nothing of its own: it says who was there in a tick, and the core does the rest. A
//! transaction that the ledger refused would leave a residual.

use joulebook_core::ledger::{
    Account, Ledger, RequestId,
    settle::{self, Around, Carry, Others, Presence, Rest, TOKEN},
};

use super::{
    Accounts, Rho, Rule, Seen, Tick,
    sweep::{Present, Sweep},
};

/// One of our rules, kept in books.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Books {
    /// What a tick is divided by.
    pub split: settle::Split,
    /// The weight of a decode token, where it has one.
    pub rho: Rho,
    /// What the card draws at rest, W.
    pub floor_w: f64,
}

impl Rule for Books {
    fn settle(&mut self, ticks: &[Tick], requests: &[Seen]) -> Accounts {
        let mut sweep = Sweep::new(requests);
        let mut ledger = Ledger::new();
        let mut carry = Carry::default();
        let power_uw = (self.floor_w * 1e6) as u64;
        let rest = Some(Rest { power_uw, off_uw: None, model_loaded: true });
        let (split, rho) = (self.split, self.rho.of_the_books());
        // The books' clock begins with the first tick, which may begin before the run.
        let origin_ns = ticks.first().map_or(0, |tick| tick.start_ns);
        let since = |t_ns: i64| u64::try_from(t_ns - origin_ns).unwrap_or(0);
        let mut refused_uj = 0_i128;
        for tick in ticks {
            let present: Vec<Presence> =
                sweep.tick(tick).iter().map(|it| presence(it, split)).collect();
            let around = Around { present: &present, others: &Others::Nobody, rest, rho, split };
            let booked = settle::Tick {
                begin_ns: since(tick.start_ns),
                end_ns: since(tick.end_ns),
                counted_uj: tick.energy_uj,
                unplaced: false,
            };
            let settlement = settle::settle(booked, &around, &mut carry);
            let posting = ledger.posting(booked.end_ns, booked.counted_uj);
            let posted = ledger.apply(&posting);
            let settling = ledger.settling(booked.end_ns, &settlement.shares);
            if posted.is_err() || ledger.apply(&settling).is_err() {
                refused_uj += i128::from(tick.energy_uj);
            }
        }
        let counted_uj: i128 = ticks.iter().map(|tick| i128::from(tick.energy_uj)).sum();
        let charged = |at: usize| {
            let (prefill_uj, decode_uj) = ledger.charged(RequestId(at as u64));
            (prefill_uj + decode_uj) as f64 / 1e6
        };
        let held = |account| ledger.balance(account) as f64 / 1e6;
        Accounts {
            requests: (0..requests.len()).map(charged).collect(),
            bounds: Vec::new(),
            idle: held(Account::IdleOff) + held(Account::IdleResident),
            unattributed: held(Account::Unattributed),
            residual_uj: Some(
                refused_uj.abs()
                    + ledger.imbalance_uj().abs()
                    + (ledger.counted_uj() - counted_uj).abs()
                    + ledger.balance(Account::Suspense).abs(),
            ),
        }
    }
}

fn presence(present: &Present, split: settle::Split) -> Presence {
    let tokens = match split {
        settle::Split::Token => present.tokens,
        _ => present.decode_tokens,
    };
    Presence {
        request: RequestId(present.request as u64),
        resident_ns: u64::try_from(present.resident_ns).unwrap_or(0),
        prefill_weight: (present.prompt_tokens * TOKEN as f64).round() as u64,
        decode_tokens: u64::from(tokens),
    }
}

impl Rho {
    /// In 1/1024, as the books count.
    fn of_the_books(self) -> settle::Rho {
        let whole = |rho: f64| (rho * TOKEN as f64).round() as u64;
        match self {
            Self::Constant(rho) => settle::Rho { a: whole(rho), b: 0 },
            Self::Shared { a, b } => settle::Rho { a: whole(a), b: whole(b) },
        }
    }
}
