//! What is booked, as transactions: a posting, a settlement, a correction, a closing.

#![cfg_attr(not(test), deny(clippy::float_arithmetic, clippy::arithmetic_side_effects))]

use std::collections::BTreeMap;

use super::{Account, Entry, Ledger, Phase, Reason, RequestId, Transaction};

impl Ledger {
    /// The transaction that posts what the register counted in a tick.
    pub fn posting(&self, tick_ns: u64, counted_uj: u64) -> Transaction {
        let amount_uj = i64::try_from(counted_uj).unwrap_or(i64::MAX);
        let entry = |account, amount_uj| Entry { account, amount_uj };
        Transaction {
            number: self.next,
            reason: Reason::Post,
            tick_ns,
            entries: vec![
                entry(Account::Register, amount_uj.saturating_neg()),
                entry(Account::Suspense, amount_uj),
            ],
        }
    }

    /// The transaction that takes a tick out of suspense and gives it to those who caused it.
    pub fn settling(&self, tick_ns: u64, shares: &[(Account, u64)]) -> Transaction {
        let mut sum_uj = 0i64;
        let mut entries = Vec::with_capacity(shares.len().saturating_add(1));
        for (account, share_uj) in shares.iter().filter(|(_, share_uj)| *share_uj > 0) {
            let amount_uj = i64::try_from(*share_uj).unwrap_or(i64::MAX);
            sum_uj = sum_uj.saturating_add(amount_uj);
            entries.push(Entry { account: *account, amount_uj });
        }
        entries.push(Entry { account: Account::Suspense, amount_uj: sum_uj.saturating_neg() });
        Transaction { number: self.next, reason: Reason::Settle, tick_ns, entries }
    }

    /// The transaction that turns what a settled tick was into what it should have been: the
    /// difference of two settlements of one sum. `None` when nothing changes.
    pub fn correcting(
        &self,
        tick_ns: u64,
        before: &[(Account, u64)],
        after: &[(Account, u64)],
    ) -> Option<Transaction> {
        let mut change: BTreeMap<Account, i64> = BTreeMap::new();
        for (account, share_uj) in after {
            let amount = i64::try_from(*share_uj).unwrap_or(i64::MAX);
            let sum = change.entry(*account).or_default();
            *sum = sum.saturating_add(amount);
        }
        for (account, share_uj) in before {
            let amount = i64::try_from(*share_uj).unwrap_or(i64::MAX);
            let sum = change.entry(*account).or_default();
            *sum = sum.saturating_sub(amount);
        }
        let entries: Vec<Entry> = change
            .into_iter()
            .filter(|(_, amount_uj)| *amount_uj != 0)
            .map(|(account, amount_uj)| Entry { account, amount_uj })
            .collect();
        (!entries.is_empty()).then_some(Transaction {
            number: self.next,
            reason: Reason::Correct,
            tick_ns,
            entries,
        })
    }

    /// The transaction that closes a request's accounts: what it was charged joins what others were
    /// that are closed. `None` where they hold nothing.
    pub fn closing(&self, request: RequestId, at_ns: u64) -> Option<Transaction> {
        let (prefill_uj, decode_uj) = self.charged(request);
        let mut entries = Vec::with_capacity(4);
        for (phase, held_uj) in [(Phase::Prefill, prefill_uj), (Phase::Decode, decode_uj)] {
            if held_uj != 0 {
                let amount_uj = i64::try_from(held_uj).unwrap_or(i64::MAX);
                let account = Account::Request(request, phase);
                entries.push(Entry { account, amount_uj: amount_uj.saturating_neg() });
                entries.push(Entry { account: Account::Closed(phase), amount_uj });
            }
        }
        (!entries.is_empty()).then_some(Transaction {
            number: self.next,
            reason: Reason::Close,
            tick_ns: at_ns,
            entries,
        })
    }
}
