//! Late news: what a settled tick was is turned into what it should have been, by entries that add
//! up to zero. What lies on seats of forgotten requests stays where it is.

#![cfg_attr(not(test), deny(clippy::float_arithmetic, clippy::arithmetic_side_effects))]

use super::{Book, Record, Scratch};
use crate::{
    keeper::{Counts, Journal, Settings, requests::Requests},
    ledger::{Account, Entry, Phase, Reason, RequestId, Transaction, settle::Others},
};

impl Book {
    /// Corrects all settled ticks that news has come of.
    pub fn correct(
        &mut self,
        now_ns: u64,
        requests: &mut Requests,
        settings: &Settings,
        scratch: &mut Scratch,
        journal: &mut Journal,
        counts: &mut Counts,
    ) {
        if !std::mem::take(&mut self.dirty) {
            return;
        }
        for number in 0..self.settled {
            let Some(record) = self.records.get_mut(number) else { return };
            if !std::mem::take(&mut record.dirty) {
                continue;
            }
            scratch.weigh(record, requests, settings.split, now_ns, self.card);
            let next = self.ledger.next_number();
            let entries = corrected(record, requests, scratch, self.card, next);
            if entries.is_empty() {
                scratch.entries = entries;
            } else {
                let tick_ns = record.publish.tick.end_ns;
                let pair = Transaction { number: next, reason: Reason::Correct, tick_ns, entries };
                scratch.entries = self.apply(pair, &scratch.hints, journal, counts);
                counts.corrections = counts.corrections.saturating_add(1);
            }
        }
    }
}

/// Re-seats a tick; what each account gets or gives.
fn corrected(
    record: &mut Record,
    requests: &mut Requests,
    scratch: &mut Scratch,
    card: usize,
    number: u64,
) -> Vec<Entry> {
    let live = scratch.weighed.iter().enumerate().filter(|(_, weighed)| weighed.live);
    let held_uj =
        live.fold(0u64, |sum, (place, _)| sum.saturating_add(record.seats.charged_uj(place)));
    let mut entries = std::mem::take(&mut scratch.entries);
    entries.clear();
    scratch.hints.clear();
    let lost_uj =
        if scratch.sums.heads > 0 { std::mem::take(&mut record.unattributed_uj) } else { 0 };
    if lost_uj > 0 {
        entries.push(Entry {
            account: Account::Unattributed,
            amount_uj: i64::try_from(lost_uj).unwrap_or(i64::MAX).saturating_neg(),
        });
        scratch.hints.push(u32::MAX);
    }
    let amount_uj = held_uj.saturating_add(lost_uj);
    let mut portions = scratch.sums.portions(amount_uj);
    scratch.sums.amount(amount_uj);
    let edge_uj = record.edges.begin_uj.max(record.edges.end_uj);
    let unplaced = record.publish.tick.is_unplaced();
    let sums = scratch.sums;
    let coarse = sums.coarse || record.seats.sums.coarse;
    for (place, weighed) in scratch.weighed.iter().enumerate() {
        let Some(seat) = record.seats.all.get(place).copied() else { break };
        let Some(request) = requests.get_mut(seat.place) else { continue };
        let Some(page) = request.pages.on_mut(card) else { continue };
        let was = record.seats.held(place, page.rho);
        let mut now = was;
        if let Some(portions) = &mut portions {
            now.prefill_uj = portions.next(weighed.prefill);
            now.decode_uj = portions.next(weighed.decode);
        }
        for (phase, now_uj, was_uj) in [
            (Phase::Prefill, now.prefill_uj, was.prefill_uj),
            (Phase::Decode, now.decode_uj, was.decode_uj),
        ] {
            let amount_uj = difference(now_uj, was_uj);
            if amount_uj != 0 {
                let account = Account::Request(RequestId(request.id), phase);
                entries.push(Entry { account, amount_uj });
                scratch.hints.push(page.account);
                page.entered(number);
            }
        }
        if !unplaced {
            now.open_ns = weighed.weight.open_ns;
            now.figures = sums.figures(weighed);
            page.covered_ns =
                page.covered_ns.saturating_sub(was.open_ns).saturating_add(now.open_ns);
            page.seen = true;
            page.flags |= record.publish.flags;
            page.floorless |= record.publish.rest.is_none();
            page.shared_device |= record.publish.others == Others::Unresolved;
            page.tally.correct(edge_uj, &was.figures, &now.figures, coarse);
        }
        record.seats.take(place, weighed, &now);
    }
    // Only now: what had been taken was read from the old ones.
    record.seats.sums = sums;
    entries
}

fn difference(now_uj: u64, was_uj: u64) -> i64 {
    let by = |more: u64, less: u64| i64::try_from(more.saturating_sub(less)).unwrap_or(i64::MAX);
    if now_uj >= was_uj { by(now_uj, was_uj) } else { by(was_uj, now_uj).saturating_neg() }
}
