//! The book of one card: ticks from publish to suspense to those who caused them.
//!
//! A tick is *posted* when it is published, *seated* when its watermark has passed (who was there,
//! and how many tokens of each came in it), *settled* when every seat can be placed, and may be
//! *corrected* as long as it is kept. Ticks are seated and settled in order.
//!
//! Invariants: what is held for a seat is what the ledger holds of it for that tick, so a correction only
//! moves what lies on seats of requests that are still known; suspense holds exactly the ticks that
//! are posted and not settled.

#![cfg_attr(not(test), deny(clippy::float_arithmetic, clippy::arithmetic_side_effects))]

mod correct;
mod scratch;
mod seat;

use std::collections::VecDeque;

pub use scratch::Scratch;
use seat::{Held, Seat, Seats};

use super::{
    CardFacts, Counts, Journal, Publish, Settings,
    page::Said,
    requests::{Place, Requests},
    tally::{Common, Edges},
    weight::Window,
};
use crate::ledger::{
    Account, Entry, Ledger, Phase, Reason, RequestId, Transaction,
    settle::{Carry, Outline, Rho, Tick, energy_uj, outline},
};

/// Ticks kept for corrections at most: a minute of a register that publishes each millisecond.
const MOST_RECORDS: usize = 65_536;

#[derive(Debug)]
pub struct Book {
    pub card: usize,
    pub facts: CardFacts,
    pub ledger: Ledger,
    pub carry: Carry,
    /// Posted, not seated.
    published: VecDeque<Publish>,
    /// The seats of a tick that was let go of, for the next one.
    spare: Vec<Seat>,
    /// Seated, oldest first; the first `settled` of them are settled.
    records: VecDeque<Record>,
    settled: usize,
    /// Seats in all records.
    seats: usize,
    /// Requests that may be present in the next tick.
    active: Vec<Place>,
    number: u64,
    edge_uj: u64,
    /// Up to when work has been seated and settled, ns.
    pub seated_ns: u64,
    pub settled_ns: u64,
    /// The last end of a request that was given up without having been seated to its end.
    pub evicted_ns: u64,
    dirty: bool,
}

/// A tick that has been seated.
#[derive(Debug)]
struct Record {
    publish: Publish,
    window: Window,
    edges: Edges,
    seats: Seats,
    /// Seats up to here can be placed.
    checked: usize,
    /// Somebody was there who has been given up since.
    evicted: bool,
    unattributed_uj: u64,
    dirty: bool,
}

impl Book {
    pub fn new(card: usize, facts: CardFacts) -> Self {
        Self {
            card,
            facts,
            ledger: Ledger::new(),
            carry: Carry::default(),
            published: VecDeque::new(),
            spare: Vec::new(),
            records: VecDeque::new(),
            settled: 0,
            seats: 0,
            active: Vec::new(),
            number: 0,
            edge_uj: 0,
            seated_ns: 0,
            settled_ns: 0,
            evicted_ns: 0,
            dirty: false,
        }
    }

    fn window(&self, tick: Tick) -> Window {
        let lag_ns = self.facts.lag_ns;
        Window {
            from_ns: tick.begin_ns.saturating_sub(lag_ns),
            to_ns: tick.end_ns.saturating_sub(lag_ns),
        }
    }

    /// Applies a transaction and hands it to the journal; its entries, where that does not want them.
    fn apply(
        &mut self,
        transaction: Transaction,
        hints: &[u32],
        journal: &mut Journal,
        counts: &mut Counts,
    ) -> Vec<Entry> {
        match self.ledger.apply_hinted(&transaction, hints) {
            Ok(()) => journal.write(self.card, transaction),
            Err(refused) => {
                debug_assert!(false, "{refused:?}: {transaction:?}");
                counts.refused = counts.refused.saturating_add(1);
                transaction.entries
            }
        }
    }

    /// A tick was published.
    pub fn post(&mut self, publish: Publish, journal: &mut Journal, counts: &mut Counts) {
        let posting = self.ledger.posting(publish.tick.end_ns, publish.tick.counted_uj);
        self.apply(posting, &[], journal, counts);
        self.published.push_back(publish);
    }

    /// Somebody came, perhaps before ticks that have been seated already.
    pub fn enter(&mut self, place: Place, requests: &mut Requests) {
        self.active.push(place);
        let Some(request) = requests.get_mut(place) else { return };
        if let Some(page) = request.pages.on_mut(self.card) {
            page.account = self.ledger.open(RequestId(request.id));
        }
        if request.opened_ns >= self.seated_ns {
            return;
        }
        let settled = self.settled;
        for (number, record) in self.records.iter_mut().enumerate() {
            if request.is_present(record.window) {
                record.checked = record.checked.min(record.seats.all.len());
                record.seats.push_late(place);
                self.seats = self.seats.saturating_add(1);
                record.dirty |= number < settled;
                self.dirty |= record.dirty;
            }
        }
        if let Some(page) = request.pages.on_mut(self.card) {
            page.seated_ns = self.seated_ns;
        }
    }

    /// Nothing can be booked on a request any more: its accounts are closed.
    pub fn leave(&mut self, id: u64, at_ns: u64, journal: &mut Journal, counts: &mut Counts) {
        if let Some(closing) = self.ledger.closing(RequestId(id), at_ns) {
            self.apply(closing, &[], journal, counts);
        }
        self.ledger.forget(RequestId(id));
    }

    /// Tokens came at an instant whose tick has been seated already.
    pub fn late_tokens(&mut self, place: Place, rho: Rho, at_ns: u64, tokens: u32) {
        let number = self.records.partition_point(|record| record.window.to_ns < at_ns);
        let settled = number < self.settled;
        let record = self.records.get_mut(number).filter(|record| record.window.has(at_ns));
        // Before the first tick, or so long ago that its tick is no longer kept.
        let Some(record) = record else { return };
        if record.seats.add_tokens(place, tokens, rho, settled) {
            record.dirty |= settled;
            self.dirty |= settled;
        }
    }

    /// What is known of a request's past has changed: its settled ticks are to be looked at again.
    pub fn touch(&mut self, place: Place, from_ns: u64) {
        let first = self.records.partition_point(|record| record.window.to_ns < from_ns);
        for record in self.records.range_mut(first.min(self.settled)..self.settled) {
            if record.seats.all.iter().any(|seat| seat.place == place) {
                record.dirty = true;
                self.dirty = true;
            }
        }
    }

    /// The next tick that is due is seated: its window of work.
    pub fn is_due(&self, now_ns: u64, settings: &Settings) -> Option<(Window, bool)> {
        let publish = self.published.front()?;
        let after_ns = self.facts.lag_uncertainty_ns.saturating_add(settings.lateness_ns);
        let at_rest = publish.rest.is_some_and(|rest| publish.tick.is_at_rest(rest));
        (publish.tick.end_ns.saturating_add(after_ns) <= now_ns)
            .then(|| (self.window(publish.tick), at_rest))
    }

    /// Seats the next published tick, and weighs who is in it as long as all can be placed.
    pub fn seat(&mut self, requests: &mut Requests, scratch: &mut Scratch, now_ns: u64) {
        let Some(publish) = self.published.pop_front() else { return };
        let window = self.window(publish.tick);
        let mut seats = std::mem::take(&mut self.spare);
        seats.reserve(self.active.len());
        let card = self.card;
        let mut checked = None;
        self.number = self.number.saturating_add(1);
        scratch.begin(card, self.number);
        self.active.retain(|place| {
            let Some(request) = requests.get_mut(*place) else { return false };
            let Some(page) = request.pages.on_mut(card) else { return false };
            page.seated_ns = page.seated_ns.max(window.to_ns);
            let (phases, rho) = (page.phases, page.rho);
            if request.is_present(window) {
                let tokens = request.take_tokens(window);
                if checked.is_none() && !request.is_known(window.to_ns) {
                    checked = Some(seats.len());
                }
                if checked.is_none() {
                    scratch.push(request.weigh(window, phases, tokens, now_ns), rho);
                }
                seats.push(Seat::new(*place, tokens));
            }
            request.ended_ns.is_none_or(|ended| ended > window.to_ns)
                || request.opened_ns >= window.to_ns
        });
        if checked.is_some() {
            scratch.drop_weights();
        }
        let edges = Edges {
            number: self.number,
            // Of the publish before the first nothing is known but that it is of the same kind.
            begin_uj: if self.number == 1 { publish.edge_uj } else { self.edge_uj },
            end_uj: publish.edge_uj,
            floor_uj: energy_uj(publish.spread_uw, publish.tick.length_ns()),
        };
        self.edge_uj = publish.edge_uj;
        self.seated_ns = window.to_ns;
        self.seats = self.seats.saturating_add(seats.len());
        self.records.push_back(Record {
            evicted: self.evicted_ns > window.from_ns,
            publish,
            window,
            edges,
            checked: checked.unwrap_or(seats.len()),
            seats: Seats::of(seats, window.length_ns()),
            unattributed_uj: 0,
            dirty: false,
        });
    }

    /// Settles what is final; true when something was.
    pub fn settle(
        &mut self,
        now_ns: u64,
        requests: &mut Requests,
        settings: &Settings,
        scratch: &mut Scratch,
        journal: &mut Journal,
        counts: &mut Counts,
    ) -> bool {
        let mut moved = false;
        loop {
            let crowded = self.seats > settings.most_seats;
            let Some(record) = self.records.get_mut(self.settled) else { return moved };
            let due_ns = record.publish.tick.end_ns.saturating_add(settings.wait_ns);
            if !record.is_final(requests) {
                if crowded {
                    counts.forced = counts.forced.saturating_add(1);
                } else if now_ns < due_ns {
                    return moved;
                } else {
                    counts.capped = counts.capped.saturating_add(1);
                }
            }
            self.settle_next(now_ns, requests, settings, scratch, journal, counts);
            moved = true;
            self.let_go(now_ns, settings, counts);
        }
    }

    fn settle_next(
        &mut self,
        now_ns: u64,
        requests: &mut Requests,
        settings: &Settings,
        scratch: &mut Scratch,
        journal: &mut Journal,
        counts: &mut Counts,
    ) {
        let Some(record) = self.records.get_mut(self.settled) else { return };
        self.settled = self.settled.saturating_add(1);
        self.settled_ns = record.window.to_ns;
        let publish = &record.publish;
        let nobody = record.seats.all.is_empty() && !record.evicted;
        let mut carry = self.carry;
        let outline = outline(publish.tick, nobody, &publish.others, publish.rest, &mut carry);
        self.carry = carry;
        record.unattributed_uj = outline.unattributed_uj();
        scratch.weigh(record, requests, settings.split, now_ns, self.card);
        let number = self.ledger.next_number();
        let tick_ns = record.publish.tick.end_ns;
        record.charge(&outline, requests, scratch, self.card, number);
        if !scratch.entries.is_empty() {
            let entries = std::mem::take(&mut scratch.entries);
            let settling = Transaction { number, reason: Reason::Settle, tick_ns, entries };
            scratch.entries = self.apply(settling, &scratch.hints, journal, counts);
        }
    }

    /// Lets go of settled ticks that are too old, or too many.
    fn let_go(&mut self, now_ns: u64, settings: &Settings, counts: &mut Counts) {
        while self.settled > 0 {
            let Some(record) = self.records.front() else { return };
            let old_ns = record.publish.tick.end_ns.saturating_add(settings.correct_ns);
            let crowded = self.seats > settings.most_seats || self.records.len() > MOST_RECORDS;
            if old_ns > now_ns && !crowded {
                return;
            }
            if old_ns > now_ns {
                counts.let_go = counts.let_go.saturating_add(1);
            }
            self.seats = self.seats.saturating_sub(record.seats.all.len());
            self.settled = self.settled.saturating_sub(1);
            if let Some(Record { seats: Seats { all: mut seats, .. }, .. }) =
                self.records.pop_front()
                && seats.capacity() > self.spare.capacity()
            {
                seats.clear();
                self.spare = seats;
            }
        }
    }

    /// What is posted and not settled, µJ: for the self-check.
    pub fn waiting_uj(&self) -> i128 {
        let posted = self.published.iter().map(|publish| publish.tick.counted_uj);
        let seated = self.records.iter().skip(self.settled);
        let seated = seated.map(|record| record.publish.tick.counted_uj);
        posted.chain(seated).fold(0i128, |sum, uj| sum.saturating_add(uj.into()))
    }

    /// Seats, counted anew: for the self-check.
    pub fn seats_agree(&self) -> bool {
        self.records.iter().map(|record| record.seats.all.len()).sum::<usize>() == self.seats
    }

    /// Who may be present in the next tick.
    pub fn active(&self) -> &[Place] {
        &self.active
    }

    /// Who is there now, and what is kept: for the trial balance.
    pub fn sizes(&self) -> (usize, usize) {
        (self.active.len(), self.records.len().saturating_add(self.published.len()))
    }

    /// Expires what is old though nothing new comes.
    pub fn expire(&mut self, now_ns: u64, settings: &Settings, counts: &mut Counts) {
        self.let_go(now_ns, settings, counts);
    }
}

impl Record {
    /// Charges everybody who was there, and says what each account gets.
    fn charge(
        &mut self,
        outline: &Outline,
        requests: &mut Requests,
        scratch: &mut Scratch,
        card: usize,
        number: u64,
    ) {
        let Scratch { weighed, sums, entries, hints, .. } = scratch;
        sums.amount(outline.active_uj);
        entries.clear();
        hints.clear();
        let mut sum_uj = 0u64;
        let mut give = |account, share_uj: u64, hint| {
            if share_uj > 0 {
                let amount_uj = i64::try_from(share_uj).unwrap_or(i64::MAX);
                sum_uj = sum_uj.saturating_add(share_uj);
                entries.push(Entry { account, amount_uj });
                hints.push(hint);
            }
        };
        for (account, share_uj) in &outline.elsewhere {
            give(*account, *share_uj, u32::MAX);
        }
        let mut portions = sums.portions(outline.active_uj);
        if portions.is_none() {
            // Whoever was there has been given up.
            give(Account::Unattributed, outline.active_uj, u32::MAX);
        }
        let (common, said) = (Common::of(self.edges, outline), Said::of(&self.publish, outline));
        for (place, weighed) in weighed.iter().enumerate() {
            let Some(seat) = self.seats.all.get(place) else { break };
            let Some(request) = requests.get_mut(seat.place) else { continue };
            let Some(page) = request.pages.on_mut(card) else { continue };
            let mut held = Held { open_ns: weighed.weight.open_ns, ..Held::default() };
            if let Some(portions) = &mut portions {
                held.prefill_uj = portions.next(weighed.prefill);
                held.decode_uj = portions.next(weighed.decode);
            }
            if !outline.unplaced {
                held.figures = sums.figures(weighed);
            }
            page.note(&said, held.open_ns);
            page.tally.tick(&common, &held.figures, sums.idle(weighed), sums.coarse);
            if held.prefill_uj | held.decode_uj > 0 {
                let account = |phase| Account::Request(RequestId(request.id), phase);
                give(account(Phase::Prefill), held.prefill_uj, page.account);
                give(account(Phase::Decode), held.decode_uj, page.account);
                page.entered(number);
            }
            self.seats.take(place, weighed, &held);
        }
        self.seats.sums = *sums;
        if sum_uj > 0 {
            let amount_uj = i64::try_from(sum_uj).unwrap_or(i64::MAX).saturating_neg();
            entries.push(Entry { account: Account::Suspense, amount_uj });
        }
    }

    /// Everybody who was there can be placed.
    fn is_final(&mut self, requests: &Requests) -> bool {
        while let Some(seat) = self.seats.all.get(self.checked) {
            let request = requests.get(seat.place);
            if request.is_some_and(|request| !request.is_known(self.window.to_ns)) {
                return false;
            }
            self.checked = self.checked.saturating_add(1);
        }
        true
    }
}
