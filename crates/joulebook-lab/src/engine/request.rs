//! One request of the engine: what can be seen of it, and what it truly cost.

use super::{event::Status, workload::Job};

/// A request.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Its number, in the order of arrival.
    pub id: u64,
    /// The attempt before it.
    pub parent: Option<u64>,
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// Of these cached.
    pub cached_tokens: u32,
    /// When it came, ns.
    pub arrived_ns: i64,
    /// When the step with its first chunk began, ns.
    pub admitted_ns: Option<i64>,
    /// When it emitted tokens; the first of these ends the prompt and is no decode token.
    pub emissions: Vec<Emission>,
    /// When it was over for its client, ns.
    pub ended_ns: Option<i64>,
    /// How it stands.
    pub status: Status,
    /// The truth.
    pub truth: Truth,
}

/// Tokens that came at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emission {
    /// When, ns.
    pub t_ns: i64,
    /// How many.
    pub tokens: u32,
}

/// The true joules above idle.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Truth {
    /// Of its prompt.
    pub prefill_joules: f64,
    /// Of its decode tokens.
    pub decode_joules: f64,
}

/// A request in the engine.
#[derive(Clone, Debug)]
pub(super) struct Seat {
    pub request: Request,
    pub job: Job,
    /// Tokens of its prompt that are still to be computed.
    pub left_tokens: u32,
    /// Tokens it takes in the step that runs.
    pub chunk_tokens: u32,
    pub emitted_tokens: u32,
}

impl Truth {
    /// All of it.
    pub fn joules(&self) -> f64 {
        self.prefill_joules + self.decode_joules
    }
}

impl Request {
    /// Tokens of its answer so far.
    pub fn answer_tokens(&self) -> u64 {
        self.emissions.iter().map(|emission| u64::from(emission.tokens)).sum()
    }
}

impl Seat {
    pub(super) fn new(id: u64, t_ns: i64, job: Job) -> Self {
        let prompt_tokens = job.prompt_tokens.max(1);
        let cached_tokens = job.cached_tokens.min(prompt_tokens - 1);
        Self {
            request: Request {
                id,
                parent: job.parent,
                prompt_tokens,
                cached_tokens,
                arrived_ns: t_ns,
                admitted_ns: None,
                emissions: Vec::new(),
                ended_ns: None,
                status: Status::Open,
                truth: Truth::default(),
            },
            job,
            left_tokens: prompt_tokens - cached_tokens,
            chunk_tokens: 0,
            emitted_tokens: 0,
        }
    }

    /// When its client leaves, if it has not ended by then.
    pub(super) fn leaves_ns(&self) -> Option<i64> {
        Some(self.request.arrived_ns.saturating_add(self.job.patience_ns?))
    }
}
