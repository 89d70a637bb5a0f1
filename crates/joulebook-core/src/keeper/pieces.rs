//! When how many tokens of an answer came that not every card has seated yet.
//!
//! Bounded: of a card that stands still more would be kept than it is worth, so older pieces are
//! joined two by two; the tokens stay, and come later than they did.

#![cfg_attr(not(test), deny(clippy::float_arithmetic, clippy::arithmetic_side_effects))]

use std::collections::VecDeque;

use super::weight::Window;

/// Pieces that are kept.
const MOST: usize = 256;

#[derive(Debug, Default)]
pub struct Pieces {
    /// When the first and the last of them came, and their sum: so that a tick in which all of them
    /// came, as nearly always, need not look at each. Of no meaning where there is none.
    first_ns: u64,
    last_ns: u64,
    sum: u64,
    queue: VecDeque<(u64, u32)>,
}

impl Pieces {
    /// Keeps one; its place in time is not before the last one's.
    pub fn push(&mut self, at_ns: u64, tokens: u32) {
        if tokens == 0 {
            return;
        }
        if self.queue.len() >= MOST {
            self.thin();
        }
        let at_ns = if self.queue.is_empty() { at_ns } else { at_ns.max(self.last_ns) };
        if self.queue.is_empty() {
            self.first_ns = at_ns;
        }
        self.last_ns = at_ns;
        self.sum = self.sum.saturating_add(tokens.into());
        self.queue.push_back((at_ns, tokens));
    }

    /// Tokens that came in a stretch.
    pub fn tokens_in(&self, window: Window) -> u32 {
        if self.lie_in(window) {
            return u32::try_from(self.sum).unwrap_or(u32::MAX);
        }
        let inside = self.queue.iter().filter(|(at_ns, _)| window.has(*at_ns));
        inside.fold(0u32, |sum, (_, tokens)| sum.saturating_add(*tokens))
    }

    /// The same, and all up to its end are let go of.
    #[inline]
    pub fn take(&mut self, window: Window) -> u32 {
        let tokens = self.tokens_in(window);
        if self.lie_in(window) {
            self.queue.clear();
            self.sum = 0;
        } else {
            self.let_go(window.to_ns);
        }
        tokens
    }

    /// Lets go of all up to an instant.
    pub fn let_go(&mut self, until_ns: u64) {
        while let Some((_, tokens)) = self.queue.pop_front_if(|(at_ns, _)| *at_ns <= until_ns) {
            self.sum = self.sum.saturating_sub(tokens.into());
        }
        self.first_ns = self.queue.front().map_or(0, |(at_ns, _)| *at_ns);
    }

    /// All of them do.
    const fn lie_in(&self, window: Window) -> bool {
        self.sum == 0 || (window.has(self.first_ns) && window.has(self.last_ns))
    }

    /// Joins the older half two by two.
    fn thin(&mut self) {
        let mut joined = VecDeque::with_capacity(MOST);
        let mut held = None;
        for (number, (at_ns, tokens)) in self.queue.drain(..).enumerate() {
            match held.take() {
                Some(more) => joined.push_back((at_ns, tokens.saturating_add(more))),
                None if number < MOST / 2 => held = Some(tokens),
                None => joined.push_back((at_ns, tokens)),
            }
        }
        self.first_ns = joined.front().map_or(0, |(at_ns, _)| *at_ns);
        self.queue = joined;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_bounded_and_no_token_is_lost() {
        let mut pieces = Pieces::default();
        for at_ns in 1..=10_000 {
            pieces.push(at_ns, 2);
        }
        assert!(pieces.queue.len() <= MOST);
        assert_eq!(pieces.tokens_in(Window { from_ns: 0, to_ns: 10_000 }), 20_000);
        let early = pieces.take(Window { from_ns: 0, to_ns: 9_990 });
        let late = pieces.take(Window { from_ns: 9_990, to_ns: 10_000 });
        assert_eq!((early + late, pieces.queue.len()), (20_000, 0));
        assert_eq!(late, 20, "the newest keep their times");
    }

    #[test]
    fn a_window_takes_what_lies_in_it_and_lets_go_of_what_lies_before() {
        let mut pieces = Pieces::default();
        for at_ns in [5, 10, 10, 15, 20] {
            pieces.push(at_ns, 1);
        }
        // One that comes late lies where the last one does.
        pieces.push(3, 1);
        assert_eq!(pieces.tokens_in(Window { from_ns: 9, to_ns: 20 }), 5);
        assert_eq!(pieces.take(Window { from_ns: 9, to_ns: 14 }), 2);
        assert_eq!(pieces.take(Window { from_ns: 14, to_ns: 30 }), 3);
        assert_eq!(pieces.take(Window { from_ns: 0, to_ns: 30 }), 0);
        pieces.push(2, 7);
        assert_eq!(pieces.take(Window { from_ns: 0, to_ns: 5 }), 7);
    }
}
