//! What one answer cost over all attempts at it.
//!
//! A request that failed and was asked again has used energy twice, and has one answer. The attempts'
//! receipts (joined by their label `parent`) come in; their sum goes out, and what a token that was
//! delivered cost.
//!
//! Refused: a sum in which the figure of an attempt is missing, which is a lower bound only; tokens
//! of an attempt that failed as delivered.

use serde::Serialize;

use crate::{
    fault::Fault,
    receipt::{Receipt, Status},
};

/// The cost of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Answer {
    /// How often it was tried.
    pub attempts: usize,
    /// All of them are settled.
    pub settled: bool,
    /// J of all attempts, above idle; none where that of one is not known.
    pub joules: Option<f64>,
    /// By how much that can be off.
    pub bound_joules: Option<f64>,
    /// What is certainly known, where the sum is not.
    pub lower_bound_joules: Option<f64>,
    /// Tokens of the attempts that were answered.
    pub delivered_tokens: Option<u64>,
    /// Joules a delivered token; none without either.
    pub joules_per_delivered_token: Option<f64>,
}

impl Answer {
    /// From the receipts of its attempts.
    pub fn of<'a>(attempts: impl IntoIterator<Item = &'a Receipt>) -> Self {
        let mut answer = Self { settled: true, ..Self::default() };
        let (mut known, mut bound, mut all_known) = (0.0, 0.0, true);
        let mut delivered = Some(0u64);
        for receipt in attempts {
            answer.attempts = answer.attempts.saturating_add(1);
            answer.settled &= receipt.settled;
            known += receipt.joules.or(receipt.lower_bound_joules).unwrap_or(0.0);
            bound += receipt.bound_joules.unwrap_or(0.0);
            // An attempt that ended before it used anything adds nothing, and hides nothing.
            let nothing = receipt.settled && receipt.error == Some(Fault::BelowIdle);
            all_known &= receipt.joules.is_some() || nothing;
            if receipt.status == Status::Done {
                delivered = delivered
                    .zip(receipt.tokens.completion)
                    .map(|(sum, tokens)| sum.saturating_add(tokens));
            }
        }
        answer.delivered_tokens = delivered.filter(|_| answer.attempts > 0);
        let is_something = known > 0.0;
        if !all_known {
            answer.lower_bound_joules = is_something.then_some(known);
        } else if is_something {
            answer.joules = Some(known);
            answer.bound_joules = Some(bound);
        }
        let tokens = answer.delivered_tokens.filter(|tokens| *tokens > 0);
        answer.joules_per_delivered_token =
            answer.joules.zip(tokens).map(|(joules, tokens)| joules / tokens as f64);
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(status: Status, joules: Option<f64>, tokens: Option<u64>) -> Receipt {
        let mut receipt = Receipt::unknown(1, Fault::BelowIdle);
        receipt.tokens.completion = tokens;
        let error = joules.is_none().then_some(Fault::BelowIdle);
        Receipt { status, joules, error, settled: true, bound_joules: joules, ..receipt }
    }

    #[test]
    fn what_failed_is_paid_and_not_delivered() {
        let attempts = [
            attempt(Status::Failed, Some(40.0), Some(20)),
            attempt(Status::Done, Some(100.0), Some(50)),
        ];
        let answer = Answer::of(&attempts);
        assert_eq!((answer.joules, answer.bound_joules), (Some(140.0), Some(140.0)));
        assert_eq!((answer.delivered_tokens, answer.attempts), (Some(50), 2));
        assert_eq!(answer.joules_per_delivered_token, Some(2.8));
    }

    #[test]
    fn what_is_not_known_of_one_is_not_known_of_all() {
        let failed = attempt(Status::Failed, Some(40.0), None);
        let shared =
            Receipt { error: Some(Fault::SharedDevice), ..attempt(Status::Done, None, Some(50)) };
        let answer = Answer::of([&failed, &shared]);
        assert_eq!((answer.joules, answer.lower_bound_joules), (None, Some(40.0)));
        assert_eq!((answer.delivered_tokens, answer.joules_per_delivered_token), (Some(50), None));
        let uncounted = attempt(Status::Done, Some(9.0), None);
        let answer = Answer::of([&failed, &uncounted]);
        assert_eq!((answer.joules, answer.delivered_tokens), (Some(49.0), None));
        assert_eq!(answer.joules_per_delivered_token, None);
    }

    #[test]
    fn an_attempt_that_used_nothing_hides_nothing() {
        let refused = attempt(Status::Failed, None, None);
        let done = attempt(Status::Done, Some(9.0), Some(3));
        let answer = Answer::of([&refused, &done]);
        assert_eq!((answer.joules, answer.joules_per_delivered_token), (Some(9.0), Some(3.0)));
        for nothing in [Answer::of([&refused, &refused]), Answer::of([])] {
            assert_eq!((nothing.joules, nothing.lower_bound_joules), (None, None), "no zero");
        }
        let early = Receipt { settled: false, ..refused };
        assert_eq!(Answer::of([&early, &done]).lower_bound_joules, Some(9.0));
    }
}
