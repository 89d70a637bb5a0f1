//! The tokens of a window.
//!
//! A token belongs to the window in which it arrived, whoever's it is: the joules of the window made
//! it. The pieces of an answer show when, its usage how many; an answer in one piece is spread
//! evenly over the time it took. A prompt's tokens are spread over the time until the first piece; of
//! what answers did not tell there is no sum, or it says how many did not.

use crate::bench::record::{Outcome, Phase, Repeat, Request, Tokens};

/// A window, ns of the clock.
#[derive(Clone, Copy)]
struct Window {
    open_ns: u64,
    close_ns: u64,
}

/// Fills a repeat's counts from its requests, whose instants are those of the clock, and each
/// request's own part of the window.
pub fn tally(repeat: &mut Repeat, requests: &mut [Request], open_ns: u64, close_ns: u64) {
    let window = Window { open_ns, close_ns };
    let mut tokens = Tokens { first: Some(0), ..Tokens::default() };
    let (mut completed, mut failed) = (0, 0);
    for request in requests {
        let of = window.tokens(request);
        request.window_tokens = request.completion_tokens.map(|_| of.completion);
        tokens = tokens.then(of);
        if window.has(request.sent_ns + request.ended_ns) {
            completed += u64::from(request.outcome == Outcome::Done);
            failed += u64::from(request.outcome == Outcome::Failed);
        }
        debug_assert!(request.phase != Phase::WarmUp || request.sent_ns <= close_ns);
    }
    (repeat.completed, repeat.failed) = (Some(completed), Some(failed));
    repeat.tokens = Some(tokens);
}

impl Window {
    const fn has(self, at_ns: u64) -> bool {
        self.open_ns <= at_ns && at_ns <= self.close_ns
    }

    /// How much of a span lies in it, 0 to 1.
    fn part(self, from_ns: u64, to_ns: u64) -> f64 {
        if from_ns >= to_ns {
            return f64::from(u8::from(self.has(to_ns)));
        }
        let inside = to_ns.min(self.close_ns).saturating_sub(from_ns.max(self.open_ns));
        inside as f64 / (to_ns - from_ns) as f64
    }

    /// What of a request's tokens belongs to it.
    fn tokens(self, request: &Request) -> Tokens {
        let at = |offset_ns: u64| request.sent_ns.saturating_add(offset_ns);
        let ended_ns = at(request.ended_ns);
        let first_ns = request.content_ns.first().map(|offset_ns| at(*offset_ns));
        let in_one = request.content_ns.len() < 2;
        let answer = if in_one && request.completion_tokens > Some(1) {
            self.part(request.sent_ns, ended_ns)
        } else {
            let inside = request.content_ns.iter().filter(|offset_ns| self.has(at(**offset_ns)));
            inside.count() as f64 / request.content_ns.len().max(1) as f64
        };
        let prompt = self.part(request.sent_ns, first_ns.unwrap_or(ended_ns));
        let of = |tokens: u64, part: f64| (tokens as f64 * part).round() as u64;
        let is_read = prompt > 0.0;
        let told = |tokens: Option<u64>| tokens.map(|it| of(it, prompt));
        let untold = |tokens: Option<u64>| {
            u64::from(is_read && request.outcome == Outcome::Done && tokens.is_none())
        };
        Tokens {
            prompt: told(request.prompt_tokens),
            cached: told(request.cached_tokens),
            // Each answer has some: those that its usage does not tell are counted by its pieces.
            completion: of(request.completion_tokens.unwrap_or_default(), answer),
            first: Some(u64::from(first_ns.is_some_and(|first_ns| self.has(first_ns)))),
            prompt_untold: untold(request.prompt_tokens),
            cached_untold: untold(request.cached_tokens),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(sent_ns: u64, content_ns: &[u64], tokens: u64) -> Request {
        Request {
            sent_ns,
            content_ns: content_ns.to_vec(),
            ended_ns: content_ns.last().copied().unwrap_or(100),
            prompt_tokens: Some(10),
            completion_tokens: Some(tokens),
            outcome: Outcome::Done,
            ..Request::default()
        }
    }

    fn tallied(mut requests: Vec<Request>) -> (Tokens, u64, Vec<Option<u64>>) {
        let mut repeat = Repeat::default();
        tally(&mut repeat, &mut requests, 1000, 2000);
        let parts = requests.iter().map(|request| request.window_tokens).collect();
        (repeat.tokens.unwrap(), repeat.completed.unwrap(), parts)
    }

    #[test]
    fn a_token_belongs_to_the_window_it_arrived_in() {
        // Before, across the opening, inside, across the close.
        let requests = vec![
            request(500, &[100, 200], 2),
            request(900, &[50, 100, 150, 200], 8),
            request(1500, &[100, 200], 2),
            request(1900, &[50, 150], 2),
        ];
        let (tokens, completed, parts) = tallied(requests);
        assert_eq!(parts, [Some(0), Some(6), Some(2), Some(1)]);
        assert_eq!((tokens.completion, tokens.first, completed), (9, Some(2), 2));
        // The prompt of the second was read before; of the last two inside.
        assert_eq!(tokens.prompt, Some(20));
    }

    #[test]
    fn what_no_answer_told_is_no_sum() {
        let silent = |sent_ns| Request { prompt_tokens: None, ..request(sent_ns, &[100, 200], 2) };
        let (tokens, ..) = tallied(vec![silent(1200), silent(1400)]);
        assert_eq!((tokens.prompt, tokens.prompt_untold), (None, 2));
        assert_eq!((tokens.cached, tokens.cached_untold), (None, 2));
        assert_eq!(tokens.completion, 4);
        // One of three told; of one that failed nobody expects it.
        let told = Request { cached_tokens: Some(0), ..request(1600, &[100, 200], 2) };
        let failed = Request { outcome: Outcome::Failed, ..silent(1300) };
        let (tokens, ..) = tallied(vec![silent(1200), told, silent(1400), failed]);
        assert_eq!((tokens.prompt, tokens.prompt_untold), (Some(10), 2));
        assert_eq!((tokens.cached, tokens.cached_untold), (Some(0), 2));
        // Of one outside the window nothing is missed, and what it told is not in it.
        let (tokens, ..) = tallied(vec![request(100, &[100, 200], 2), silent(2500)]);
        assert_eq!((tokens.prompt, tokens.prompt_untold), (Some(0), 0));
    }

    #[test]
    fn an_answer_in_one_piece_is_spread_over_its_time() {
        let (tokens, completed, _) = tallied(vec![request(500, &[1000], 100)]);
        assert_eq!((tokens.completion, completed), (50, 1));
        // One token is one token: it came when it came.
        let (tokens, _, _) = tallied(vec![request(500, &[1000], 1)]);
        assert_eq!((tokens.completion, tokens.first, tokens.prompt), (1, Some(1), Some(5)));
    }

    #[test]
    fn windows_side_by_side_have_all_tokens_once() {
        let all = request(0, &(1..=40).map(|n| n * 77).collect::<Vec<_>>(), 40);
        let count = |from_ns: u64, to_ns: u64| {
            let mut repeat = Repeat::default();
            tally(&mut repeat, &mut [all.clone()], from_ns, to_ns);
            repeat.tokens.unwrap().completion
        };
        // Instants that no piece has.
        assert_eq!(count(0, 1000) + count(1001, 2000) + count(2001, 4000), 40);
    }
}
