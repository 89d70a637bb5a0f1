//! A request as the books see it: when it came, read, spoke and went, and how much it weighs in a
//! stretch of time.
//!
//! Weights count in 1/1024 token. The prompt's uncached part is spread evenly from admission (else
//! arrival) to the first token, tokens of the answer weigh where they came. The first token weighs
//! nothing when there was a prompt to read: the step that ends a prompt emits it. The final usage
//! scales what was counted; where nothing was, the answer is spread from an estimated first token
//! to the end.

#![cfg_attr(not(test), deny(clippy::float_arithmetic, clippy::arithmetic_side_effects))]

use std::{collections::VecDeque, sync::Arc};

use super::page::Page;
use crate::{
    ledger::settle::{Rho, TOKEN},
    receipt::{Labels, Status, Usage},
};

/// Pieces of an answer's history that are kept; beyond that older ones are joined two by two.
const MOST_PIECES: usize = 256;
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

/// A stretch of the time in which work was done: after `from_ns` up to and with `to_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub from_ns: u64,
    pub to_ns: u64,
}

/// What a request weighs in a tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// Of its prompt, 1/1024 token.
    pub prefill: u64,
    /// Of its answer, 1/1024 token.
    pub decode: u64,
    /// What it emitted, the first token too, 1/1024 token.
    pub emitted: u64,
    /// How long it was there and not known to be queued, ns.
    pub resident_ns: u64,
    /// How long it was open, ns.
    pub open_ns: u64,
}

#[derive(Debug)]
pub struct Request {
    pub id: u64,
    pub labels: Labels,
    pub opened_ns: u64,
    pub admitted_ns: Option<u64>,
    pub first_ns: Option<u64>,
    pub ended_ns: Option<u64>,
    pub abandoned_ns: Option<u64>,
    pub ended_by: Option<&'static str>,
    pub status: Status,
    pub usage: Usage,
    pub marks: Vec<(Arc<str>, u64)>,
    pub pages: Vec<Page>,
    /// Tokens seen so far, the first too.
    pub counted: u64,
    queued: bool,
    prompt_bytes: u64,
    /// The first token weighs nothing of its own.
    first_is_free: bool,
    /// When how many tokens came that are not yet seated on every card.
    pieces: VecDeque<(u64, u32)>,
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
}

impl Window {
    /// How much of `from_ns` to `to_ns` lies in it, ns.
    pub fn overlap_ns(self, from_ns: u64, to_ns: u64) -> u64 {
        to_ns.min(self.to_ns).saturating_sub(from_ns.max(self.from_ns))
    }

    pub const fn has(self, at_ns: u64) -> bool {
        at_ns > self.from_ns && at_ns <= self.to_ns
    }

    /// The part of `amount` that falls here when it is spread evenly from `from_ns` to `to_ns`. All
    /// of it, where that is no time, if the end lies here.
    fn portion(self, amount: u64, from_ns: u64, to_ns: u64) -> u64 {
        let length_ns = to_ns.saturating_sub(from_ns);
        if length_ns == 0 {
            return if self.has(to_ns) { amount } else { 0 };
        }
        let inside_ns = self.overlap_ns(from_ns, to_ns);
        // Most that is in flight is writing, and its prompt lies elsewhere; or all of it is here.
        if inside_ns == 0 || inside_ns == length_ns {
            return if inside_ns == 0 { 0 } else { amount };
        }
        let inside = u128::from(amount).saturating_mul(inside_ns.into());
        let part = inside.checked_div(length_ns.into()).unwrap_or(0);
        u64::try_from(part).unwrap_or(u64::MAX)
    }
}

impl Request {
    pub fn new(at_ns: u64, opening: Opening) -> Self {
        Self {
            id: opening.id,
            labels: opening.labels,
            opened_ns: at_ns,
            admitted_ns: None,
            first_ns: None,
            ended_ns: None,
            abandoned_ns: None,
            ended_by: None,
            status: Status::Open,
            usage: Usage::default(),
            marks: Vec::new(),
            pages: opening.payers.into_iter().map(Page::new).collect(),
            counted: 0,
            queued: opening.queued,
            prompt_bytes: opening.prompt_bytes,
            first_is_free: false,
            pieces: VecDeque::new(),
            finished: false,
        }
    }

    /// Present in a stretch: open during any part of it.
    pub fn is_present(&self, window: Window) -> bool {
        self.opened_ns < window.to_ns
            && self.ended_ns.is_none_or(|ended| {
                ended > window.from_ns || (ended == self.opened_ns && ended == window.from_ns)
            })
    }

    /// What it did up to an instant can be placed.
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
    const fn start_ns(&self) -> Option<u64> {
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
    fn scale(&self) -> (u64, u64) {
        let counted = self.weighing(self.counted);
        match self.usage.completion {
            Some(completion) if counted > 0 && self.weighing(completion) != counted => {
                (self.weighing(completion), counted)
            }
            _ => (1, 1),
        }
    }

    /// Tokens to be spread because their times are not known.
    fn spread(&self) -> u64 {
        let placed = self.weighing(self.counted) > 0;
        let completion = self.usage.completion.filter(|_| !placed && self.ended_ns.is_some());
        completion.map_or(0, |completion| completion.saturating_sub(u64::from(self.uncached() > 0)))
    }

    /// More tokens. Returns how many of them weigh.
    pub fn add_tokens(&mut self, at_ns: u64, more: u64) -> u32 {
        if more == 0 {
            return 0;
        }
        if self.counted == 0 {
            self.first_is_free = self.uncached() > 0;
            self.first_ns = self.first_ns.or(Some(at_ns));
        }
        let before = self.weighing(self.counted);
        self.counted = self.counted.saturating_add(more);
        u32::try_from(self.weighing(self.counted).saturating_sub(before)).unwrap_or(u32::MAX)
    }

    /// Keeps a piece for cards that have not seated it yet.
    pub fn keep_piece(&mut self, at_ns: u64, tokens: u32) {
        if tokens == 0 {
            return;
        }
        if self.pieces.len() >= MOST_PIECES {
            self.thin();
        }
        let at_ns = at_ns.max(self.pieces.back().map_or(0, |(last_ns, _)| *last_ns));
        self.pieces.push_back((at_ns, tokens));
    }

    /// Joins the older pieces two by two.
    fn thin(&mut self) {
        let mut joined = VecDeque::with_capacity(MOST_PIECES);
        let mut held = None;
        for (number, (at_ns, tokens)) in self.pieces.drain(..).enumerate() {
            match held.take() {
                Some(more) => joined.push_back((at_ns, tokens.saturating_add(more))),
                None if number < MOST_PIECES / 2 => held = Some(tokens),
                None => joined.push_back((at_ns, tokens)),
            }
        }
        self.pieces = joined;
    }

    /// Tokens that came in a stretch.
    pub fn tokens_in(&self, window: Window) -> u32 {
        let inside = self.pieces.iter().filter(|(at_ns, _)| window.has(*at_ns));
        inside.fold(0u32, |sum, (_, tokens)| sum.saturating_add(*tokens))
    }

    /// Lets go of pieces that every card has seated.
    pub fn prune(&mut self) {
        let seated_ns = self.pages.iter().map(|page| page.seated_ns).min().unwrap_or(u64::MAX);
        while self.pieces.front().is_some_and(|(at_ns, _)| *at_ns <= seated_ns) {
            self.pieces.pop_front();
        }
    }

    /// What it weighs in a stretch in which so many counted tokens of it came.
    pub fn weigh(&self, window: Window, phases: Phases, tokens: u32, now_ns: u64) -> Weight {
        let end_ns = self.ended_ns.unwrap_or(now_ns).max(self.opened_ns);
        let open_ns = window.overlap_ns(self.opened_ns, end_ns);
        let Some(start_ns) = self.start_ns() else {
            return Weight { open_ns, ..Weight::default() };
        };
        let mut weight = Weight {
            open_ns,
            resident_ns: window.overlap_ns(start_ns.max(self.opened_ns), end_ns),
            ..Weight::default()
        };
        let prompt = self.uncached().saturating_mul(TOKEN);
        let spread = self.spread();
        let mut read_ns = self.first_ns.unwrap_or(end_ns).max(start_ns);
        if spread > 0 {
            // Read first, then written: the time is cut as the default ρ weighs them.
            let answer = u128::from(spread).saturating_mul(Rho::default().a.into());
            let whole = answer.saturating_add(prompt.into()).max(1);
            let length = u128::from(end_ns.saturating_sub(start_ns));
            let reading = length.saturating_mul(prompt.into()).checked_div(whole).unwrap_or(0);
            let reading = u64::try_from(reading).unwrap_or(0);
            // A first token that came as all others did says nothing.
            read_ns = start_ns.saturating_add(reading).min(read_ns);
            weight.decode = window.portion(spread.saturating_mul(TOKEN), read_ns, end_ns);
        } else {
            let (stands_for, counted) = self.scale();
            let plain = u64::from(tokens).saturating_mul(TOKEN);
            weight.decode = if stands_for == counted {
                plain
            } else {
                let scaled = u128::from(plain).saturating_mul(stands_for.into());
                let scaled = scaled.checked_div(counted.into()).unwrap_or(0);
                u64::try_from(scaled).unwrap_or(u64::MAX)
            };
        }
        weight.prefill = window.portion(prompt, start_ns, read_ns);
        let first_here = self.first_is_free && self.first_ns.is_some_and(|at| window.has(at));
        weight.emitted = weight.decode.saturating_add(if first_here { TOKEN } else { 0 });
        match phases {
            Phases::Both => {}
            Phases::Prefill => (weight.decode, weight.emitted) = (0, 0),
            Phases::Decode => weight.prefill = 0,
        }
        weight
    }
}
