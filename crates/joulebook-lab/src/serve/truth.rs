//! What a server's requests truly cost, and what its card truly drew.

use serde::Serialize;

use crate::{
    engine::{Request, Status},
    load::Load,
};

/// The truth so far. Instants are ns of the system's monotonic clock.
#[derive(Clone, Debug, Serialize)]
pub struct Truth {
    /// Always: no card of this machine is meant.
    pub simulated: bool,
    /// What the card draws at rest, W.
    pub idle_watts: f64,
    /// Now.
    pub now_ns: i64,
    /// The requests that are over, in the order in which they ended.
    pub requests: Vec<RequestTruth>,
    /// What the card drew between the two instants that were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub card: Option<CardTruth>,
}

/// One request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RequestTruth {
    /// Its number in the engine.
    pub id: u64,
    /// What its client called it (`x-request-id`).
    pub name: Option<String>,
    /// Tokens of its prompt.
    pub prompt_tokens: u32,
    /// Tokens of its answer.
    pub answer_tokens: u64,
    /// When it came.
    pub arrived_ns: i64,
    /// When its first token was there.
    pub first_ns: Option<i64>,
    /// When it was over.
    pub ended_ns: Option<i64>,
    /// Its client left before the end.
    pub cancelled: bool,
    /// True joules above idle of its prompt.
    pub prefill_joules: f64,
    /// The same of its decode tokens.
    pub decode_joules: f64,
}

/// The card over a span.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CardTruth {
    /// From.
    pub from_ns: i64,
    /// To.
    pub to_ns: i64,
    /// True joules, idle included.
    pub joules: f64,
    /// The same above idle.
    pub joules_above_idle: f64,
}

impl RequestTruth {
    pub(super) fn of(request: &Request, name: Option<String>, epoch_ns: i64) -> Self {
        let at = |t_ns: i64| t_ns.saturating_add(epoch_ns);
        Self {
            id: request.id,
            name,
            prompt_tokens: request.prompt_tokens,
            answer_tokens: request.answer_tokens(),
            arrived_ns: at(request.arrived_ns),
            first_ns: request.emissions.first().map(|emission| at(emission.t_ns)),
            ended_ns: request.ended_ns.map(at),
            cancelled: request.status == Status::Cancelled,
            prefill_joules: request.truth.prefill_joules,
            decode_joules: request.truth.decode_joules,
        }
    }

    /// All its joules above idle.
    pub fn joules(&self) -> f64 {
        self.prefill_joules + self.decode_joules
    }
}

impl CardTruth {
    pub(super) fn of(load: &Load, idle_w: f64, epoch_ns: i64, from_ns: i64, to_ns: i64) -> Self {
        let joules = load.energy(from_ns - epoch_ns, to_ns - epoch_ns);
        let idle = idle_w * (to_ns - from_ns) as f64 / 1e9;
        Self { from_ns, to_ns, joules, joules_above_idle: joules - idle }
    }
}
