//! A request's receipt, written from the books and its pages.

#![allow(clippy::float_arithmetic, clippy::arithmetic_side_effects)] // the page, not the books

use std::borrow::Cow;

use super::{Keeper, request::Request};
use crate::{
    flags::Flags,
    ledger::RequestId,
    receipt::{Charged, Entries, Receipt, TokenSource, Usage},
};

const SECOND: f64 = 1e9;

impl Keeper {
    /// What a request has cost so far, or in all; none where it is not known (any more).
    pub fn receipt(&self, id: u64, now_ns: u64) -> Option<Receipt> {
        let request = self.requests.get(self.requests.place(id)?)?;
        Some(self.write(request, now_ns))
    }

    pub(super) fn write(&self, request: &Request, now_ns: u64) -> Receipt {
        let end_ns = request.ended_ns.unwrap_or(now_ns).max(request.opened_ns);
        let since = |at_ns: u64| at_ns.saturating_sub(request.opened_ns) as f64 / SECOND;
        let settled = self.is_settled(request);
        let lifetime_ns = end_ns.saturating_sub(request.opened_ns);
        let mut charged = Charged { over: settled || request.finished, ..Charged::default() };
        let mut receipt = Receipt {
            labels: request.labels.clone(),
            status: request.status,
            ended_by: request.ended_by.map(Cow::Borrowed),
            tokens: request.tokens(),
            ttft_seconds: request.first_ns.map(since),
            seconds: since(end_ns),
            settled,
            coverage: 1.0,
            coarse: request.is_coarse(),
            split: self.settings.split,
            error: None,
            marks: request.marks.iter().map(|(name, at)| (name.clone(), since(*at))).collect(),
            ..Receipt::unknown(request.id, crate::Fault::NotReady)
        };
        for page in request.pages.iter() {
            let Some(book) = self.books.get(page.card) else { continue };
            let (prefill_uj, decode_uj) = book.ledger.charged(RequestId(request.id));
            charged.prefill_uj += prefill_uj;
            charged.decode_uj += decode_uj;
            charged.idle_uj += page.tally.idle_uj;
            charged.alone_uj += page.tally.alone_uj;
            charged.bound_uj += page.tally.bound_uj();
            charged.seen += usize::from(page.seen);
            charged.shared_device |= page.shared_device;
            charged.floorless |= page.floorless;
            for (sum, rule) in charged.rules_uj.iter_mut().zip(page.tally.rules_uj()) {
                *sum += rule;
            }
            receipt.cards.push(book.facts.name.clone());
            receipt.backend = Cow::Borrowed(book.facts.backend);
            receipt.source = book.facts.source;
            receipt.flags |= page.flags;
            if let Some((first, last)) = page.entries {
                receipt.entries.push(Entries { card: book.facts.name.clone(), first, last });
            }
            if receipt.contended_by.is_none() {
                receipt.contended_by.clone_from(&page.contended_by);
            }
            let covered = match lifetime_ns {
                0 => f64::from(u8::from(page.seen)),
                lifetime_ns => (page.covered_ns as f64 / lifetime_ns as f64).min(1.0),
            };
            receipt.coverage = receipt.coverage.min(covered);
        }
        if request.pages.is_empty() {
            receipt.coverage = 0.0;
        }
        if charged.over && receipt.coverage < 1.0 {
            receipt.flags |= Flags::PARTIAL;
        }
        receipt.grade(&charged);
        receipt
    }
}

impl Request {
    /// Its tokens as far as they are known, and from where.
    fn tokens(&self) -> Usage {
        match self.usage.completion {
            Some(_) => self.usage,
            None if self.counted > 0 => {
                Usage { completion: Some(self.counted), source: TokenSource::Counted, ..self.usage }
            }
            None => self.usage,
        }
    }
}
