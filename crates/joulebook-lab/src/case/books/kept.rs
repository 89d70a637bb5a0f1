//! Books kept over cards and requests that a case describes, in simulated time.
//!
//! The books are the shipped ones: tickets and publishes go in, receipts and a journal come out. The
//! journal is read back by an auditor that knows nothing else, and balances are its. A floor is
//! declared, or learnt from the ticks as they come.

use std::collections::BTreeMap;

use joulebook::{
    books::{Audit, CardAudit, Line},
    core::{
        Flags, Power, Source,
        answer::Answer,
        estimate::Span,
        idle::{self, Quiet},
        keeper::{CardFacts, Counts, Keeper, Opening, Payer, Phases, Publish, Settings},
        ledger::{
            Account, Transaction,
            settle::{Others, Rest, Rho, Tick},
        },
        receipt::{Labels, Receipt, Status, TokenSource, Usage},
    },
};

use super::super::field::Refused;

/// From one publish of a simulated card to the next; stretches of a case are whole ones.
const TICK_NS: u64 = 100_000_000;
/// Token events and publishes come this much later than what they tell of.
const LATE_NS: u64 = 2_000_000;
/// After this long without news all that can be settled is.
const LONG_NS: u64 = 90_000_000_000;
/// The clock of the books does not begin at nothing.
const START_NS: u64 = 1_000_000_000_000;
/// More tokens of one request than any case has.
const MOST_TOKENS: u64 = 1_000_000;

/// A stretch in which a card draws one power.
pub struct Stretch {
    pub span: Span,
    pub power: Power,
    /// A model is loaded.
    pub loaded: bool,
}

/// How the books know what a card draws at rest.
pub enum Floor {
    /// It was declared, or nothing is known.
    Declared(Option<Rest>),
    /// From quiet ticks.
    Learnt(Quiet),
}

/// A card of a case.
pub struct Card {
    pub name: String,
    /// Where it is not described it publishes nothing.
    pub draws: Vec<Stretch>,
    pub floor: Floor,
    /// Who else is there, and when.
    pub others: Option<(Span, Others)>,
    /// Its register starts again at these instants.
    pub restarts_ns: Vec<u64>,
}

/// A request of a case.
#[derive(Clone, Debug, Default)]
pub struct Work {
    pub name: String,
    /// The cards it works on, by number.
    pub cards: Vec<usize>,
    pub open_ns: u64,
    pub close_ns: u64,
    pub prompt: Option<u64>,
    pub cached: Option<u64>,
    /// When its first token came, where that is told.
    pub first_ns: Option<u64>,
    pub tokens: Option<u64>,
    /// How much later the books learn of its tokens.
    pub late_ns: u64,
    pub status: Status,
    pub parent: Option<String>,
}

/// What came of it.
pub struct Kept {
    /// One each, in the order of the requests.
    pub receipts: Vec<Receipt>,
    /// What each card's accounts hold, as its journal has it, µJ.
    pub accounts: Vec<BTreeMap<Account, i128>>,
    /// What the cards drew at rest, without and with a model, where that was learnt.
    pub floors: Vec<[Option<Power>; 2]>,
    pub counts: Counts,
    pub floor_dropped_uj: u64,
}

enum Event {
    Open,
    First,
    /// So many tokens so far.
    Tokens(u64),
    Close,
}

/// Keeps the books of these cards from the first second to the last.
pub fn kept(mut cards: Vec<Card>, works: &[Work], span: Span) -> Result<Kept, Refused> {
    let settings = Settings { journal: true, ..Settings::default() };
    let mut keeper = Keeper::new(settings, cards.iter().map(Card::facts));
    let mut events = events(works)?.into_iter().peekable();
    let mut told_until = |keeper: &mut Keeper, until_ns: u64| -> Result<(), Refused> {
        while let Some((_, place, at_ns, event)) = events.next_if(|event| event.0 <= until_ns) {
            if let Some(work) = works.get(place) {
                work.tell(keeper, place as u64, START_NS.saturating_add(at_ns), &event)?;
            }
        }
        Ok(())
    };
    let mut receipts: BTreeMap<u64, Receipt> = BTreeMap::new();
    let mut lines = Vec::new();
    let mut from_ns = span.open_ns;
    while from_ns < span.close_ns {
        let to_ns = from_ns.saturating_add(TICK_NS).min(span.close_ns);
        told_until(&mut keeper, to_ns)?;
        for (number, card) in cards.iter_mut().enumerate() {
            let ours = |work: &Work| work.is_on(number, from_ns, to_ns);
            if let Some(publish) = card.publish(from_ns, to_ns, works.iter().any(ours)) {
                keeper.publish(number, publish);
            }
        }
        keeper.advance(START_NS.saturating_add(to_ns).saturating_add(LATE_NS));
        lines.extend(keeper.journal());
        from_ns = to_ns;
    }
    told_until(&mut keeper, u64::MAX)?;
    let end_ns = START_NS.saturating_add(span.close_ns);
    for late_ns in [LATE_NS, LONG_NS] {
        let now_ns = end_ns.saturating_add(late_ns);
        keeper.advance(now_ns);
        receipts.extend(keeper.finished().map(|receipt| (receipt.id, receipt)));
        // What has been handed out may have been corrected since.
        let now = (0..works.len() as u64).filter_map(|id| keeper.receipt(id, now_ns));
        receipts.extend(now.map(|receipt| (receipt.id, receipt)));
    }
    lines.extend(keeper.journal());
    keeper.self_check().map_err(Refused::Books)?;
    let floors = cards.iter().map(|card| card.floors(end_ns)).collect();
    let dropped = keeper.standings().map(|standing| standing.carry.dropped_uj);
    Ok(Kept {
        receipts: receipts.into_values().collect(),
        accounts: audited(&cards, &lines)?,
        floors,
        counts: keeper.counts(),
        floor_dropped_uj: dropped.fold(0, u64::saturating_add),
    })
}

impl Kept {
    /// What all cards' books hold in the accounts that are asked for, µJ.
    pub fn sum_uj(&self, which: impl Fn(Account) -> bool) -> i128 {
        let held = self.accounts.iter().flatten();
        held.filter(|(account, _)| which(**account)).map(|(_, uj)| uj).sum()
    }

    /// The attempts that are one answer.
    pub fn answer(&self, parent: &str) -> Answer {
        let is_of = |receipt: &&Receipt| receipt.labels.parent.as_deref() == Some(parent);
        Answer::of(self.receipts.iter().filter(is_of))
    }
}

/// The books, read from their journal: as text, one line a transaction.
fn audited(
    cards: &[Card],
    journal: &[(usize, Transaction)],
) -> Result<Vec<BTreeMap<Account, i128>>, Refused> {
    let mut text = Vec::new();
    for (number, transaction) in journal {
        let Some(card) = cards.get(*number) else { continue };
        let line = Line::moved(card.name.as_str(), transaction.clone());
        serde_json::to_writer(&mut text, &line).map_err(|it| Refused::Books(it.to_string()))?;
        text.push(b'\n');
    }
    let mut audit = Audit::of_each_request();
    audit.read(&mut text.as_slice()).map_err(|fault| Refused::Books(fault.to_string()))?;
    if let Some(broken) = audit.broken() {
        return Err(Refused::Books(broken.what.clone()));
    }
    let accounts = |card: &Card| {
        let it = audit.cards().find(|(name, _)| *name == card.name).map(|(_, it)| it);
        let mut accounts = it.map(CardAudit::accounts).unwrap_or_default();
        accounts.retain(|account, _| !matches!(account, Account::Closed(_)));
        let each = it.into_iter().flat_map(CardAudit::each);
        accounts.extend(each.map(|(_, account, uj)| (account, uj)));
        accounts
    };
    Ok(cards.iter().map(accounts).collect())
}

impl Card {
    fn facts(&self) -> CardFacts {
        CardFacts {
            name: self.name.as_str().into(),
            backend: "simulated",
            source: Source::Local,
            lag_ns: 0,
            lag_uncertainty_ns: 0,
        }
    }

    /// What its register has counted up to an instant, µJ.
    fn counted_uj(&self, until_ns: u64) -> u64 {
        let drawn = |stretch: &Stretch| {
            let to_ns = stretch.span.close_ns.min(until_ns);
            let length_ns = to_ns.saturating_sub(stretch.span.open_ns);
            u128::from(stretch.power.microwatts()) * u128::from(length_ns)
        };
        let drawn: u128 = self.draws.iter().map(drawn).sum();
        u64::try_from(drawn / 1_000_000_000).unwrap_or(u64::MAX)
    }

    /// The publish that ends a tick.
    fn publish(&mut self, from_ns: u64, to_ns: u64, occupied: bool) -> Option<Publish> {
        let covers =
            |stretch: &&Stretch| stretch.span.open_ns < to_ns && stretch.span.close_ns > from_ns;
        let loaded = self.draws.iter().find(covers)?.loaded;
        let counted_uj = self.counted_uj(to_ns).saturating_sub(self.counted_uj(from_ns));
        let inside = |at_ns: &u64| (from_ns..to_ns).contains(at_ns);
        let tick = Tick {
            begin_ns: START_NS.saturating_add(from_ns),
            end_ns: START_NS.saturating_add(to_ns),
            counted_uj,
            unplaced: self.restarts_ns.iter().any(inside),
        };
        let others = match &self.others {
            Some((span, others)) if span.open_ns < to_ns && span.close_ns > from_ns => {
                others.clone()
            }
            _ => Others::Nobody,
        };
        let alone = others == Others::Nobody;
        Some(Publish {
            rest: self.rest(tick, loaded, occupied || !alone),
            tick,
            edge_uj: 1,
            spread_uw: 0,
            contended_by: (!alone).then(|| "another process".into()),
            others,
            flags: Flags::NONE,
        })
    }

    /// What it draws at rest now, as far as is known.
    fn rest(&mut self, tick: Tick, model_loaded: bool, occupied: bool) -> Option<Rest> {
        let quiet = match &mut self.floor {
            Floor::Declared(rest) => return *rest,
            Floor::Learnt(quiet) => quiet,
        };
        let power_uw = (u128::from(tick.counted_uj) * 1_000_000_000)
            .checked_div(u128::from(tick.length_ns()))
            .and_then(|power_uw| u64::try_from(power_uw).ok());
        if let Some(power_uw) = power_uw {
            let power = Power::from_microwatts(power_uw);
            quiet.tick(idle::Tick { to_ns: tick.end_ns, power, occupied, model_loaded });
        }
        let floor_uw =
            |loaded| quiet.floor(loaded, tick.end_ns).ok().map(|floor| floor.power.microwatts());
        floor_uw(model_loaded).map(|power_uw| Rest {
            power_uw,
            off_uw: floor_uw(false),
            model_loaded,
        })
    }

    fn floors(&self, now_ns: u64) -> [Option<Power>; 2] {
        match &self.floor {
            Floor::Learnt(quiet) => [false, true]
                .map(|loaded| quiet.floor(loaded, now_ns).ok().map(|floor| floor.power)),
            Floor::Declared(_) => [None, None],
        }
    }
}

impl Work {
    fn is_on(&self, card: usize, from_ns: u64, to_ns: u64) -> bool {
        self.cards.contains(&card) && self.open_ns < to_ns && self.close_ns > from_ns
    }

    fn tell(&self, keeper: &mut Keeper, id: u64, at_ns: u64, event: &Event) -> Result<(), Refused> {
        match event {
            Event::Open => {
                let payer =
                    |card: &usize| Payer { card: *card, phases: Phases::Both, rho: Rho::default() };
                let labels = Labels {
                    model: Some(self.name.as_str().into()),
                    parent: self.parent.as_deref().map(Into::into),
                    ..Labels::default()
                };
                let payers = self.cards.iter().map(payer).collect();
                let opening = Opening { id, labels, payers, ..Opening::default() };
                keeper.open(at_ns, opening).map_err(|why| Refused::Books(format!("{why:?}")))?;
                if let Some(prompt) = self.prompt {
                    keeper.prompt(id, prompt, self.cached);
                    keeper.admitted(id, at_ns);
                }
            }
            Event::First => keeper.first_token(id, at_ns),
            Event::Tokens(total) => keeper.tokens(id, at_ns, *total),
            Event::Close => {
                let usage = Usage {
                    prompt: self.prompt,
                    cached: self.cached,
                    completion: self.tokens,
                    reasoning: None,
                    source: self.tokens.map_or(TokenSource::Unknown, |_| TokenSource::Usage),
                };
                keeper.close(id, at_ns, self.status, usage);
            }
        }
        Ok(())
    }
}

/// What is told of the requests: when, of which, when it happened, what; in the order of telling.
fn events(works: &[Work]) -> Result<Vec<(u64, usize, u64, Event)>, Refused> {
    let mut events = Vec::new();
    for (place, work) in works.iter().enumerate() {
        let mut tell = |at_ns: u64, late_ns: u64, event| {
            events.push((at_ns.saturating_add(late_ns), place, at_ns, event));
        };
        let tokens = work.tokens.unwrap_or(0);
        if tokens > MOST_TOKENS {
            return Err(super::super::field::refused("tokens"));
        }
        tell(work.open_ns, 0, Event::Open);
        if let Some(first_ns) = work.first_ns {
            tell(first_ns, 0, Event::First);
        }
        let begin_ns = work.first_ns.unwrap_or(work.open_ns);
        let length_ns = u128::from(work.close_ns.saturating_sub(begin_ns));
        for number in 1..=tokens {
            // The first of them comes where it was told, else all of them evenly.
            let after_ns = match work.first_ns {
                Some(_) => (length_ns * u128::from(number - 1)).checked_div((tokens - 1).into()),
                None => (length_ns * u128::from(number)).checked_div(tokens.into()),
            };
            let after_ns = after_ns.and_then(|ns| u64::try_from(ns).ok()).unwrap_or(0);
            tell(begin_ns.saturating_add(after_ns), work.late_ns, Event::Tokens(number));
        }
        tell(work.close_ns, 0, Event::Close);
    }
    // Stable: what is told at one instant keeps its order.
    events.sort_by_key(|(told_ns, ..)| *told_ns);
    Ok(events)
}
