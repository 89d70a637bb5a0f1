//! The record of a benchmark: what was run against whom, and what each rung cost.
//!
//! Decides the shape of `record.json` and of the line per request. Sums are stored as integers (µJ,
//! ns, tokens); ratios are never stored here but derived from the sums of all repeats
//! ([`super::keys`]). What was not measured is absent.
//!
//! A rung holds its finished repeats and the broken one, if any, which is marked `incomplete` and
//! is left out of every sum and ratio.

use std::fmt;

use serde::{Deserialize, Serialize};

mod energy;
mod request;
mod run;

pub use energy::{Baseline, Books, Counter, Place, Rail, RailName, Sampler, Source};
pub use request::{Outcome, Phase, ReceiptFigures, Request, token_source};
pub use run::{Lengths, Settings, Target};

use super::gauge;

/// The form of the record that this program writes.
pub const FORM: &str = "joulebook-bench/1";

/// A whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// [`FORM`]; written by [`super::output`], in front of the keys.
    #[serde(skip_serializing)]
    pub form: String,
    /// The program's version; the same.
    #[serde(skip_serializing)]
    pub version: String,
    /// When the run began, seconds since 1970.
    pub started_unix_s: f64,
    /// How long it took, s.
    pub seconds: f64,
    /// Whom it asked.
    pub target: Target,
    /// What it was told to do.
    pub settings: Settings,
    /// Where energy was read, or why not.
    pub source: Source,
    /// What the cards drew with the model loaded and nothing in flight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
    /// What the long-lived reader of the gauge did, and cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampler: Option<Sampler>,
    /// Why the run ended before its end; none of a whole one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
    /// What a reader should know, in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The rungs, in the order they were run.
    pub rungs: Vec<Rung>,
}

/// How a rung drives the target; what stands in front of its keys is [`Kind::prefix`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Kind {
    /// So many requests in flight, each followed by the next (closed loop). `c8_`
    ClosedLoop {
        /// How many.
        concurrency: u32,
    },
    /// Requests at random times (Poisson), whatever is in flight (open loop). `r2.5_`
    Rate {
        /// How many a second.
        requests_per_s: f64,
    },
    /// One stream with a long answer: the cheapest a token can be alone. `floor_`
    Floor,
    /// Long prompts with answers of one token: what a prompt token costs. `prefill_b1_`
    PrefillPoint {
        /// How many requests in flight.
        concurrency: u32,
    },
    /// Short prompts with long answers: what an answer's token costs at B sequences. `decode_b8_`
    DecodePoint {
        /// How many requests in flight.
        concurrency: u32,
    },
    /// Somebody else's load generator, over its own time. `command_`
    Command,
}

/// One rung of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rung {
    /// How it drives the target.
    #[serde(flatten)]
    pub kind: Kind,
    /// Its repeats, in their order; the last may be incomplete.
    pub repeats: Vec<Repeat>,
}

/// One repeat of a rung: a window without warm-up and cool-down, and what happened in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Repeat {
    /// Its number, from 1.
    pub number: u32,
    /// The seed it was run with; none of somebody else's generator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// When the window opened, ns after the run began.
    pub opened_ns: u64,
    /// The window's length, ns.
    pub window_ns: u64,
    /// Why it did not end; none where it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
    /// Requests that ended well inside the window; none where nobody counted them (somebody else's
    /// generator).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed: Option<u64>,
    /// Requests that failed inside it; none likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<u64>,
    /// Tokens inside the window; none where they are not known (somebody else's generator).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// What the power gauge showed, all cards together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gauge: Option<gauge::Window>,
    /// What the energy counter counted, all cards together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counter: Option<Counter>,
    /// What the books charged to whom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub books: Option<Books>,
    /// Rails beside the GPU's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rails: Vec<Rail>,
    /// The requests, for their lines and the latencies; in a file of their own.
    #[serde(skip)]
    pub requests: Vec<Request>,
    /// Their latencies, ms, filled from `requests` when the record is closed.
    #[serde(default, skip_serializing_if = "Latencies::is_empty")]
    pub latencies: Latencies,
}

/// Tokens in a window, as they arrived; those of requests cut by its ends only in part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// Of prompts, those from a cache too; none where no answer told them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<u64>,
    /// Of those, from a cache; none likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<u64>,
    /// Of answers: what J/token divides by.
    pub completion: u64,
    /// Of those, the first of their answer: they come from reading the prompt; none where nobody
    /// counted them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<u64>,
    /// Answers whose prompt lies in the window and who did not tell its tokens: `prompt` is the sum
    /// of the others.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub prompt_untold: u64,
    /// The same of tokens from a cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached_untold: u64,
}

/// Latencies of the completed requests of a repeat or rung, ms.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latencies {
    /// To the first token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttft_ms: Option<super::statistics::Statistics>,
    /// Between pieces of an answer, all of all requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub itl_ms: Option<super::statistics::Statistics>,
    /// Per token after the first, one figure a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tpot_ms: Option<super::statistics::Statistics>,
    /// End to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub e2el_ms: Option<super::statistics::Statistics>,
}

impl Record {
    /// Fills what is derived from the requests, for writing without them.
    pub fn close(&mut self) {
        for repeat in self.rungs.iter_mut().flat_map(|rung| &mut rung.repeats) {
            if !repeat.requests.is_empty() {
                repeat.latencies = Latencies::of(&repeat.requests);
            }
        }
    }
}

impl Tokens {
    /// Both windows' tokens. What only one of them was told is the sum of that one, since how many
    /// did not tell stands beside it; first tokens that only one counted are not known.
    #[must_use]
    pub fn then(self, other: Self) -> Self {
        let told = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).reduce(|a, b| a + b);
        Self {
            prompt: told(self.prompt, other.prompt),
            cached: told(self.cached, other.cached),
            completion: self.completion + other.completion,
            first: self.first.zip(other.first).map(|(a, b)| a + b),
            prompt_untold: self.prompt_untold + other.prompt_untold,
            cached_untold: self.cached_untold + other.cached_untold,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Kind {
    /// What stands in front of a rung's keys.
    pub fn prefix(self) -> String {
        format!("{self}_")
    }

    /// Requests in flight, where the rung fixes them.
    pub const fn concurrency(self) -> Option<u32> {
        match self {
            Self::ClosedLoop { concurrency }
            | Self::PrefillPoint { concurrency }
            | Self::DecodePoint { concurrency } => Some(concurrency),
            Self::Floor => Some(1),
            Self::Rate { .. } | Self::Command => None,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClosedLoop { concurrency } => write!(to, "c{concurrency}"),
            Self::Rate { requests_per_s } => write!(to, "r{requests_per_s}"),
            Self::Floor => to.write_str("floor"),
            Self::PrefillPoint { concurrency } => write!(to, "prefill_b{concurrency}"),
            Self::DecodePoint { concurrency } => write!(to, "decode_b{concurrency}"),
            Self::Command => to.write_str("command"),
        }
    }
}

impl Rung {
    /// A rung without repeats yet.
    pub const fn new(kind: Kind) -> Self {
        Self { kind, repeats: Vec::new() }
    }

    /// The repeats that ended: all that sums and ratios are made of.
    pub fn finished(&self) -> impl Iterator<Item = &Repeat> + Clone {
        self.repeats.iter().filter(|repeat| repeat.incomplete.is_none())
    }
}

impl Repeat {
    /// The window's length, s.
    pub fn seconds(&self) -> f64 {
        self.window_ns as f64 / 1e9
    }

    /// Tokens of answers inside the window, where they are known.
    pub fn completion_tokens(&self) -> Option<u64> {
        self.tokens.map(|tokens| tokens.completion)
    }
}

impl Latencies {
    /// Of the completed and measured requests among these.
    pub fn of<'a>(requests: impl IntoIterator<Item = &'a Request>) -> Self {
        let counted: Vec<&Request> =
            requests.into_iter().filter(|request| request.is_counted()).collect();
        let of = |value: &dyn Fn(&Request) -> Option<f64>| {
            let values: Vec<f64> = counted.iter().filter_map(|request| value(request)).collect();
            super::statistics::Statistics::of(&values)
        };
        let gaps: Vec<f64> = counted.iter().flat_map(|request| request.itl_ms()).collect();
        Self {
            ttft_ms: of(&Request::ttft_ms),
            itl_ms: super::statistics::Statistics::of(&gaps),
            tpot_ms: of(&Request::tpot_ms),
            e2el_ms: of(&Request::e2el_ms),
        }
    }

    /// True where there is none.
    pub const fn is_empty(&self) -> bool {
        self.ttft_ms.is_none()
            && self.itl_ms.is_none()
            && self.tpot_ms.is_none()
            && self.e2el_ms.is_none()
    }
}
