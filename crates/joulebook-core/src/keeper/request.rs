//! A request as the books see it: when it came, read, spoke and went. What that weighs stands in
//! [`super::weight`].

#![cfg_attr(not(test), deny(clippy::float_arithmetic, clippy::arithmetic_side_effects))]

use std::sync::Arc;

use super::{page::Pages, pieces::Pieces, weight::Window};
use crate::{
    ledger::settle::Rho,
    receipt::{Labels, Status, Usage},
};

/// The marks of a request that are kept.
pub const MOST_MARKS: usize = 64;
/// Bytes of a prompt that count as a token until the usage is known.
const BYTES_A_TOKEN: u64 = 4;

/// Which part of the work a card does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phases {
    /// All of it.
    #[default]
    Both,
    /// It reads prompts.
    Prefill,
    /// It writes answers.
    Decode,
}

/// A card that works on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payer {
    /// The card's number in the books.
    pub card: usize,
    /// Its part of the work.
    pub phases: Phases,
    /// What a decode token costs there.
    pub rho: Rho,
}

/// A request as it comes.
#[derive(Clone, Debug, Default)]
pub struct Opening {
    /// Its number; no other request has it.
    pub id: u64,
    /// Whose it is.
    pub labels: Labels,
    /// The cards that will work on it.
    pub payers: Vec<Payer>,
    /// Whoever opened it will say when it is admitted; it weighs nothing until then.
    pub queued: bool,
    /// The prompt's length, until its tokens are known.
    pub prompt_bytes: u64,
}

/// What each tick looks at stands first, together with the page.
#[derive(Debug)]
pub struct Request {
    pub id: u64,
    pub opened_ns: u64,
    pub ended_ns: Option<u64>,
    /// As [`Request::steady`] has it.
    pub(super) steady_ns: u64,
    pub first_ns: Option<u64>,
    pieces: Pieces,
    pub pages: Pages,
    pub admitted_ns: Option<u64>,
    /// Tokens seen so far, the first too.
    pub counted: u64,
    pub usage: Usage,
    prompt_bytes: u64,
    pub abandoned_ns: Option<u64>,
    pub labels: Labels,
    pub marks: Vec<(Arc<str>, u64)>,
    pub ended_by: Option<&'static str>,
    pub status: Status,
    queued: bool,
    /// The first token weighs nothing of its own.
    pub(super) first_is_free: bool,
    /// A receipt that calls itself final has been handed out, or it was given up.
    pub finished: bool,
}

/// All that a request's weights in past ticks depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    uncached: u64,
    start_ns: Option<u64>,
    read_ns: Option<u64>,
    scale: (u64, u64),
    spread: u64,
    /// Its admission was told.
    told: bool,
}

impl Facts {
    /// From when on weights differ, where they do: nothing weighs before work began.
    pub fn differ_from(self, after: Self) -> Option<u64> {
        let start_ns = match (self.start_ns, after.start_ns) {
            (Some(before), Some(after)) => before.min(after),
            (before, after) => before.or(after)?,
        };
        (self != after).then_some(start_ns)
    }
}

impl Request {
    pub fn new(at_ns: u64, opening: Opening) -> Self {
        Self {
            id: opening.id,
            opened_ns: at_ns,
            ended_ns: None,
            steady_ns: u64::MAX,
            first_ns: None,
            pieces: Pieces::default(),
            pages: Pages::of(opening.payers),
            admitted_ns: None,
            counted: 0,
            usage: Usage::default(),
            prompt_bytes: opening.prompt_bytes,
            abandoned_ns: None,
            labels: opening.labels,
            marks: Vec::new(),
            ended_by: None,
            status: Status::Open,
            queued: opening.queued,
            first_is_free: false,
            finished: false,
        }
    }

    /// What its weights depend on has changed.
    pub fn refresh(&mut self) {
        self.steady_ns = self.steady();
    }

    /// Present in a stretch: open during any part of it.
    #[inline]
    pub fn is_present(&self, window: Window) -> bool {
        self.opened_ns < window.to_ns
            && self.ended_ns.is_none_or(|ended| {
                ended > window.from_ns || (ended == self.opened_ns && ended == window.from_ns)
            })
    }

    /// What it did up to an instant can be placed.
    #[inline]
    pub fn is_known(&self, to_ns: u64) -> bool {
        self.first_ns.is_some()
            || self.ended_ns.is_some()
            || (self.queued && self.admitted_ns.is_none_or(|admitted| admitted >= to_ns))
    }

    /// The spread of its prompt or its answer is wider than what it stands for.
    pub fn is_coarse(&self) -> bool {
        (self.admitted_ns.is_none() && self.uncached() > 0) || self.spread() > 0
    }

    pub fn facts(&self) -> Facts {
        Facts {
            uncached: self.uncached(),
            start_ns: self.start_ns(),
            read_ns: self.first_ns.or(self.ended_ns),
            scale: self.scale(),
            spread: self.spread(),
            told: self.admitted_ns.is_some(),
        }
    }

    /// Prompt tokens that had to be read.
    pub fn uncached(&self) -> u64 {
        match self.usage.prompt {
            Some(prompt) => prompt.saturating_sub(self.usage.cached.unwrap_or(0)),
            None => self.prompt_bytes / BYTES_A_TOKEN,
        }
    }

    /// When its work began, as far as that is known.
    pub(super) const fn start_ns(&self) -> Option<u64> {
        match self.admitted_ns {
            Some(admitted_ns) => Some(admitted_ns),
            None if self.queued && self.first_ns.is_none() => None,
            None => Some(self.opened_ns),
        }
    }

    /// Tokens that weigh: all, or all but the first.
    fn weighing(&self, tokens: u64) -> u64 {
        tokens.saturating_sub(u64::from(self.first_is_free))
    }

    /// What a counted token stands for.
    pub(super) fn scale(&self) -> (u64, u64) {
        let counted = self.weighing(self.counted);
        match self.usage.completion {
            Some(completion) if counted > 0 && self.weighing(completion) != counted => {
                (self.weighing(completion), counted)
            }
            _ => (1, 1),
        }
    }

    /// Tokens to be spread because their times are not known.
    pub(super) fn spread(&self) -> u64 {
        let placed = self.weighing(self.counted) > 0;
        let completion = self.usage.completion.filter(|_| !placed && self.ended_ns.is_some());
        completion.map_or(0, |completion| completion.saturating_sub(u64::from(self.uncached() > 0)))
    }

    /// More tokens. Returns how many of them weigh.
    pub fn add_tokens(&mut self, more: u64) -> u32 {
        if self.counted == 0 {
            self.first_is_free = self.uncached() > 0;
        }
        let before = self.weighing(self.counted);
        self.counted = self.counted.saturating_add(more);
        u32::try_from(self.weighing(self.counted).saturating_sub(before)).unwrap_or(u32::MAX)
    }

    /// Keeps tokens for cards that have not seated them yet.
    pub fn keep_piece(&mut self, at_ns: u64, tokens: u32) {
        self.pieces.push(at_ns, tokens);
    }

    /// Tokens that came in a stretch, which no card will ask for twice.
    #[inline]
    pub fn take_tokens(&mut self, window: Window) -> u32 {
        if self.pages.are_more_than_one() {
            let tokens = self.pieces.tokens_in(window);
            // Every card has seated what lies before.
            let seated_ns = self.pages.iter().map(|page| page.seated_ns).min();
            self.pieces.let_go(seated_ns.unwrap_or(u64::MAX));
            return tokens;
        }
        self.pieces.take(window)
    }
}
