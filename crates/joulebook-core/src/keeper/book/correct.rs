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
            if !entries.is_empty() {
                let tick_ns = record.publish.tick.end_ns;
                let pair = Transaction { number: next, reason: Reason::Correct, tick_ns, entries };
                self.apply(pair, &[], journal, counts);
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
    let live = |scratch: &Scratch, seat: usize| {
        scratch.weighed.get(seat).is_some_and(|weighed| weighed.live)
    };
    let held = record.seats.iter().enumerate().filter(|(seat, _)| live(scratch, *seat));
    let held_uj = held.fold(0u64, |sum, (_, seat)| {
        sum.saturating_add(seat.prefill_uj).saturating_add(seat.decode_uj)
    });
    let mut entries = Vec::new();
    let lost_uj =
        if scratch.sums.heads > 0 { std::mem::take(&mut record.unattributed_uj) } else { 0 };
    if lost_uj > 0 {
        entries.push(Entry {
            account: Account::Unattributed,
            amount_uj: i64::try_from(lost_uj).unwrap_or(i64::MAX).saturating_neg(),
        });
    }
    let amount_uj = held_uj.saturating_add(lost_uj);
    let mut portions = scratch.sums.portions(amount_uj);
    scratch.sums.amount(amount_uj);
    let edge_uj = record.edges.begin_uj.max(record.edges.end_uj);
    let unplaced = record.publish.tick.is_unplaced();
    for (seat, weighed) in record.seats.iter_mut().zip(&scratch.weighed) {
        let Some(request) = requests.get_mut(seat.place) else { continue };
        let Some(page) = request.pages.on_mut(card) else { continue };
        let (prefill_uj, decode_uj) = (seat.prefill_uj, seat.decode_uj);
        if let Some(portions) = &mut portions {
            seat.take(weighed, portions);
        }
        for (phase, now_uj, was_uj) in [
            (Phase::Prefill, seat.prefill_uj, prefill_uj),
            (Phase::Decode, seat.decode_uj, decode_uj),
        ] {
            let amount_uj = difference(now_uj, was_uj);
            if amount_uj != 0 {
                let account = Account::Request(RequestId(request.id), phase);
                entries.push(Entry { account, amount_uj });
                page.entered(number);
            }
        }
        if unplaced {
            continue;
        }
        let open_ns = weighed.weight.open_ns;
        page.covered_ns = page.covered_ns.saturating_sub(seat.open_ns).saturating_add(open_ns);
        page.seen = true;
        page.flags |= record.publish.flags;
        page.floorless |= record.publish.rest.is_none();
        page.shared_device |= record.publish.others == Others::Unresolved;
        seat.open_ns = open_ns;
        let figures = scratch.sums.figures(weighed);
        page.tally.correct(edge_uj, &seat.figures, &figures);
        seat.figures = figures;
    }
    entries
}

fn difference(now_uj: u64, was_uj: u64) -> i64 {
    let by = |more: u64, less: u64| i64::try_from(more.saturating_sub(less)).unwrap_or(i64::MAX);
    if now_uj >= was_uj { by(now_uj, was_uj) } else { by(was_uj, now_uj).saturating_neg() }
}
