//! Our rules as the product keeps them: the core's keeper of books is told what an observer sees,
//! when he sees it, and posts, settles and corrects in whole microjoules. What a request is charged
//! is what its receipt says in the end.
//!
//! Decides nothing of its own. A transaction that the ledger refused would leave a residual.

use std::{collections::VecDeque, iter::Peekable, vec::IntoIter};

use joulebook_core::{
    Fault, Flags, Source,
    keeper::{CardFacts, Keeper, Opening, Payer, Phases, Publish, Settings},
    ledger::{
        Account,
        settle::{self, Others, Rest, TOKEN},
    },
    receipt::{Receipt, Status, Usage},
};

use super::{Accounts, Admitted, Card, Charge, Rho, Rule, Seen, Tick};

/// The clock of the books does not begin at nothing.
const START_NS: u64 = 1_000_000_000_000;
/// Publishes are seen so much later than they come, ns.
const LATE_NS: u64 = 2_000_000;
/// A receipt may be corrected so long after it was called settled, ns; a little later its request
/// is forgotten.
const CORRECTED_NS: u64 = 61_000_000_000;

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

/// What is told of a request.
enum News {
    Opened,
    Admitted,
    /// So many tokens so far.
    Tokens(u64),
    Ended,
}

/// News in the order of time: when, of which request.
struct Told(Peekable<IntoIter<(i64, usize, News)>>);

/// Books in which it is known what each request was charged last.
struct Desk {
    keeper: Keeper,
    receipts: Vec<Option<Receipt>>,
    /// Receipts that may be corrected still, and when to look again.
    again: VecDeque<(u64, u64)>,
    origin_ns: i64,
}

impl Rule for Books {
    fn settle(&mut self, ticks: &[Tick], requests: &[Seen]) -> Accounts {
        self.settle_all(&[Card { ticks: ticks.to_vec(), others: Vec::new() }], requests)
    }

    fn settle_all(&mut self, cards: &[Card], requests: &[Seen]) -> Accounts {
        let mut desk = Desk::new(self.split, cards, requests.len());
        let mut told = Told::of(requests);
        // Publishes of all cards, in the order of time.
        let mut publishes: Vec<(i64, usize, usize)> = Vec::new();
        for (card, it) in cards.iter().enumerate() {
            publishes.extend(it.ticks.iter().enumerate().map(|(at, tick)| (tick.end_ns, card, at)));
        }
        publishes.sort_unstable();
        let (mut now_ns, rho) = (START_NS, self.rho.of_the_books());
        for (end_ns, number, at) in publishes {
            told.until(end_ns, |t_ns, who, news| {
                if let Some(request) = requests.get(who) {
                    desk.hear(t_ns, who, request, &news, cards.len(), rho);
                }
            });
            let Some((card, tick)) = cards.get(number).and_then(|it| Some((it, it.ticks.get(at)?)))
            else {
                continue;
            };
            now_ns = desk.publish(number, tick, card.others(at), self.floor_w);
        }
        // What came after the last tick tells of it too.
        told.until(i64::MAX, |t_ns, who, news| {
            let Some(request) = requests.get(who) else { return };
            now_ns = now_ns.max(desk.since(t_ns));
            desk.hear(t_ns, who, request, &news, cards.len(), rho);
        });
        desk.advance(now_ns.saturating_add(LATE_NS));
        desk.accounts(cards, now_ns)
    }
}

impl Told {
    fn of(requests: &[Seen]) -> Self {
        let mut news = Vec::new();
        for (who, request) in requests.iter().enumerate() {
            news.push((request.arrived_ns, who, News::Opened));
            if let Admitted::At(t_ns) = request.admitted {
                news.push((t_ns, who, News::Admitted));
            }
            let mut total = 0;
            for emission in &request.emissions {
                total += u64::from(emission.tokens);
                news.push((emission.t_ns, who, News::Tokens(total)));
            }
            news.push((request.ended_ns, who, News::Ended));
        }
        // Stable: what is of one instant keeps its order.
        news.sort_by_key(|(t_ns, ..)| *t_ns);
        Self(news.into_iter().peekable())
    }

    fn until(&mut self, until_ns: i64, mut tell: impl FnMut(i64, usize, News)) {
        while let Some((t_ns, who, news)) = self.0.next_if(|(t_ns, ..)| *t_ns <= until_ns) {
            tell(t_ns, who, news);
        }
    }
}

impl Desk {
    fn new(split: settle::Split, cards: &[Card], requests: usize) -> Self {
        let facts = (0..cards.len()).map(|number| CardFacts {
            name: format!("card-{number}").into(),
            backend: "simulated",
            source: Source::Local,
            lag_ns: 0,
            lag_uncertainty_ns: 0,
        });
        let first_ns = cards.iter().filter_map(|card| Some(card.ticks.first()?.start_ns)).min();
        Self {
            keeper: Keeper::new(Settings { split, ..Settings::default() }, facts),
            receipts: vec![None; requests],
            again: VecDeque::new(),
            origin_ns: first_ns.unwrap_or(0),
        }
    }

    /// An instant of the run on the books' clock.
    fn since(&self, t_ns: i64) -> u64 {
        START_NS.saturating_add_signed(t_ns.saturating_sub(self.origin_ns))
    }

    fn hear(
        &mut self,
        t_ns: i64,
        who: usize,
        request: &Seen,
        news: &News,
        cards: usize,
        rho: settle::Rho,
    ) {
        let (id, at_ns) = (who as u64, self.since(t_ns));
        match news {
            News::Opened => {
                let payer = |card| Payer { card, phases: Phases::Both, rho };
                let opening = Opening {
                    id,
                    payers: (0..cards).map(payer).collect(),
                    queued: request.admitted != Admitted::Unseen,
                    ..Opening::default()
                };
                // Refused ones would be missing from the sum.
                let _ = self.keeper.open(at_ns, opening);
                self.keeper.prompt(id, request.uncached_tokens.into(), Some(0));
            }
            News::Admitted => self.keeper.admitted(id, at_ns),
            News::Tokens(total) => self.keeper.tokens(id, at_ns, *total),
            News::Ended => self.keeper.close(id, at_ns, Status::Done, Usage::default()),
        }
    }

    /// A card publishes; the time by then.
    fn publish(&mut self, card: usize, tick: &Tick, others: Others, floor_w: f64) -> u64 {
        let power_uw = (floor_w * 1e6) as u64;
        let (begin_ns, end_ns) = (self.since(tick.start_ns), self.since(tick.end_ns));
        let publish = Publish {
            tick: settle::Tick { begin_ns, end_ns, counted_uj: tick.energy_uj, unplaced: false },
            edge_uj: 1000,
            rest: Some(Rest { power_uw, off_uw: None, model_loaded: true }),
            spread_uw: 0,
            contended_by: (others != Others::Nobody).then(|| "a tenant".into()),
            others,
            flags: Flags::NONE,
        };
        self.keeper.publish(card, publish);
        let now_ns = end_ns.saturating_add(LATE_NS);
        self.advance(now_ns);
        now_ns
    }

    fn advance(&mut self, now_ns: u64) {
        self.keeper.advance(now_ns);
        for receipt in self.keeper.finished() {
            self.again.push_back((now_ns.saturating_add(CORRECTED_NS), receipt.id));
            if let Some(last) = self.receipts.get_mut(receipt.id as usize) {
                *last = Some(receipt);
            }
        }
        while let Some((_, id)) = self.again.pop_front_if(|(due_ns, _)| *due_ns <= now_ns) {
            self.look(id, now_ns);
        }
    }

    fn look(&mut self, id: u64, now_ns: u64) {
        let now = self.keeper.receipt(id, now_ns);
        if let (Some(last), Some(now)) = (self.receipts.get_mut(id as usize), now) {
            *last = Some(now);
        }
    }

    fn accounts(mut self, cards: &[Card], now_ns: u64) -> Accounts {
        for id in 0..self.receipts.len() as u64 {
            self.look(id, now_ns);
        }
        let (mut held, mut residual_uj) = ([0i128; 3], 0i128);
        for (standing, card) in self.keeper.standings().zip(cards) {
            let ledger = standing.ledger;
            let counted_uj: i128 = card.ticks.iter().map(|tick| i128::from(tick.energy_uj)).sum();
            let accounts = [
                [Account::IdleOff, Account::IdleResident].map(|it| ledger.balance(it)).iter().sum(),
                ledger.balance(Account::Unattributed),
                foreign_uj(ledger),
            ];
            for (sum, uj) in held.iter_mut().zip(accounts) {
                *sum += uj;
            }
            residual_uj += ledger.imbalance_uj().abs()
                + (ledger.counted_uj() - counted_uj).abs()
                + ledger.balance(Account::Suspense).abs();
        }
        let [idle, unattributed, foreign] = held.map(|uj| uj as f64 / 1e6);
        let charges: Vec<Charge> = self.receipts.iter().map(Charge::of).collect();
        Accounts {
            requests: charges.iter().map(|charge| charge.joules.unwrap_or(0.0)).collect(),
            charges,
            bounds: Vec::new(),
            idle,
            unattributed,
            foreign,
            residual_uj: Some(residual_uj),
        }
    }
}

fn foreign_uj(ledger: &joulebook_core::ledger::Ledger) -> i128 {
    let foreign =
        |account: &Account| matches!(account, Account::Foreign(_) | Account::ForeignUnresolved);
    ledger.balances().filter(|(account, _)| foreign(account)).map(|(_, uj)| uj).sum()
}

impl Charge {
    fn of(receipt: &Option<Receipt>) -> Self {
        let Some(receipt) = receipt else { return Self::default() };
        // Nothing was charged, and that is known.
        if receipt.settled && receipt.error == Some(Fault::BelowIdle) {
            return Self { joules: Some(0.0), range: Some((0.0, 0.0)) };
        }
        let range = match receipt.joules {
            Some(_) => receipt.model_low.zip(receipt.model_high),
            None => receipt.low_joules.zip(receipt.high_joules),
        };
        Self { joules: receipt.joules, range }
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
