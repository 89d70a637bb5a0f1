//! What can be seen of the engine, in the order of time, and who looks.

use super::Request;

/// Something that happened at an instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    /// When, ns from the engine's start.
    pub t_ns: i64,
    /// What.
    pub kind: Kind,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A request came.
    Arrived {
        /// Which.
        request: u64,
        /// Tokens of its prompt.
        prompt_tokens: u32,
        /// Of these cached.
        cached_tokens: u32,
        /// The attempt before it.
        parent: Option<u64>,
    },
    /// The step with the first chunk of a request's prompt began.
    Admitted {
        /// Which.
        request: u64,
    },
    /// A request emitted tokens.
    Tokens {
        /// Which.
        request: u64,
        /// How many.
        count: u32,
    },
    /// A request is over.
    Ended {
        /// Which.
        request: u64,
        /// How.
        status: Status,
    },
    /// A card's power changed.
    Power {
        /// Which card.
        card: usize,
        /// From here on, W.
        watts: f64,
    },
}

/// How a request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Not over yet.
    Open,
    /// All its tokens were emitted.
    Finished,
    /// Its client left.
    Cancelled,
}

/// Who is told what happens, in real time.
pub trait Sink: Send {
    /// A change of power, told as soon as it is planned, a few ms ahead of its time; at latest when
    /// it happens.
    fn power(&mut self, t_ns: i64, card: usize, watts: f64);

    /// Anything else, told when it happens. Those of one instant come in the order of their causes.
    fn event(&mut self, event: &Event);

    /// A request is over: all of it, its truth too. Follows its last event.
    fn over(&mut self, request: &Request) {
        let _ = request;
    }
}
