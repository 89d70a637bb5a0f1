//! How requests end: closed, abandoned, lost; settled or given up; and when they are forgotten.

#![cfg_attr(not(test), deny(clippy::float_arithmetic, clippy::arithmetic_side_effects))]

use super::{Keeper, SECOND_NS, Status, Usage};
use crate::ledger::settle::LONGEST_TICK_NS;

impl Keeper {
    /// A request ends. What its answer used is charged whatever the status; counts that are not
    /// known now keep what was known before. A second end is nothing.
    pub fn close(&mut self, id: u64, at_ns: u64, status: Status, usage: Usage) {
        let Some(place) = self.requests.place(id) else { return };
        if self.requests.get(place).is_none_or(|request| request.ended_ns.is_some()) {
            return;
        }
        self.learn(id, |request| {
            request.ended_ns = Some(at_ns.max(request.opened_ns));
            if request.status == Status::Open {
                request.status = status;
            }
            let known = &mut request.usage;
            known.prompt = usage.prompt.or(known.prompt);
            known.cached = usage.cached.or(known.cached);
            known.completion = usage.completion.or(known.completion);
            known.reasoning = usage.reasoning.or(known.reasoning);
            known.source = usage.source;
        });
        self.open = self.open.saturating_sub(1);
        self.ending.push(place);
        self.moved = true;
    }

    /// Whoever asked has left, and the server may work on: the account stays open until it is
    /// closed, a card rests, or long enough has passed.
    pub fn abandon(&mut self, id: u64, at_ns: u64, usage: Usage) {
        let Some(place) = self.requests.place(id) else { return };
        self.learn(id, |request| {
            request.status = Status::Abandoned;
            request.abandoned_ns = Some(at_ns);
            request.usage.prompt = usage.prompt.or(request.usage.prompt);
            request.usage.cached = usage.cached.or(request.usage.cached);
        });
        self.abandoned.push(place);
    }

    /// A card rests since `from_ns`: what was abandoned there before has ended.
    pub(super) fn at_rest(&mut self, card: usize, from_ns: u64) {
        let rests = |request: &super::Request| {
            request.abandoned_ns.is_some_and(|left| left <= from_ns)
                && request.pages.iter().any(|page| page.card == card)
        };
        self.end_abandoned(rests, from_ns, "floor");
    }

    fn end_abandoned(
        &mut self,
        which: impl Fn(&super::Request) -> bool,
        at_ns: u64,
        why: &'static str,
    ) {
        let mut waiting = std::mem::take(&mut self.abandoned);
        waiting.retain(|place| {
            let Some(request) = self.requests.get_mut(*place) else { return false };
            if request.ended_ns.is_some() {
                return false;
            }
            if !which(request) {
                return true;
            }
            request.ended_by = Some(why);
            let (id, usage) = (request.id, request.usage);
            self.close(id, at_ns, Status::Abandoned, usage);
            false
        });
        self.abandoned = waiting;
    }

    /// Once a second: what was abandoned or left open too long.
    pub(super) fn sweep(&mut self, now_ns: u64) {
        if now_ns.saturating_sub(self.swept_ns) < SECOND_NS {
            return;
        }
        self.swept_ns = now_ns;
        let after_ns = self.settings.abandon_after_ns;
        let timed_out = |request: &super::Request| {
            request.abandoned_ns.is_some_and(|left| now_ns.saturating_sub(left) >= after_ns)
        };
        self.end_abandoned(timed_out, now_ns, "timeout");
        let longest_ns = self.settings.longest_ns;
        let is_lost = |request: &super::Request| {
            request.ended_ns.is_none() && now_ns.saturating_sub(request.opened_ns) > longest_ns
        };
        let lost: Vec<(u64, Usage)> = self
            .requests
            .iter()
            .filter(|(_, request)| is_lost(request))
            .map(|(_, request)| (request.id, request.usage))
            .collect();
        for (id, usage) in lost {
            self.counts.lost = self.counts.lost.saturating_add(1);
            self.close(id, now_ns, Status::Lost, usage);
        }
        // Some of those that wait may have waited long enough.
        self.moved = true;
    }

    /// Hands out the receipts of requests whose ticks are all final, and of those that have waited
    /// long enough.
    pub(super) fn finish(&mut self, now_ns: u64) {
        if !std::mem::take(&mut self.moved) {
            return;
        }
        let mut ending = std::mem::take(&mut self.ending);
        ending.retain(|place| {
            let Some(request) = self.requests.get(*place) else { return false };
            let ended_ns = request.ended_ns.unwrap_or(now_ns);
            let settled = self.is_settled(request);
            if !settled && now_ns.saturating_sub(ended_ns) < self.settings.give_up_ns {
                return true;
            }
            if !settled {
                self.counts.given_up = self.counts.given_up.saturating_add(1);
            }
            if let Some(request) = self.requests.get_mut(*place) {
                request.finished = true;
            }
            if let Some(request) = self.requests.get(*place) {
                let receipt = self.write(request, now_ns);
                self.finished.push_back(receipt);
            }
            self.ended.push_back((now_ns, *place));
            false
        });
        self.ending = ending;
    }

    /// All its ticks are final.
    pub(super) fn is_settled(&self, request: &super::Request) -> bool {
        request.ended_ns.is_some_and(|ended_ns| {
            request.pages.iter().all(|page| {
                self.books.get(page.card).is_none_or(|book| book.settled_ns >= ended_ns)
            })
        })
    }

    /// Forgets requests that no news can change any more, or the oldest where too many are held.
    pub(super) fn forget(&mut self, now_ns: u64) {
        let after_ns = self.settings.correct_ns.saturating_add(LONGEST_TICK_NS);
        while let Some((finished_ns, place)) = self.ended.front().copied() {
            let early = now_ns.saturating_sub(finished_ns) < after_ns;
            if early && self.ended.len() <= self.settings.most_ended {
                return;
            }
            self.counts.forgotten_early =
                self.counts.forgotten_early.saturating_add(u64::from(early));
            self.ended.pop_front();
            let Some(request) = self.requests.remove(place) else { continue };
            let ended_ns = request.ended_ns.unwrap_or(now_ns);
            for page in request.pages.iter() {
                if let Some(book) = self.books.get_mut(page.card) {
                    book.leave(request.id, now_ns, &mut self.journal, &mut self.counts);
                    if page.seated_ns < ended_ns {
                        book.evicted_ns = book.evicted_ns.max(ended_ns);
                    }
                }
            }
        }
    }
}
