//! One request of a run: what was asked, when its pieces came, what it cost or why it failed.
//!
//! Instants are stored, latencies derived, so that both definitions in use come from one line:
//! aiperf counts pieces with content, vLLM's `bench serve` every piece with a choice (also the empty
//! first and the last one, with the reason for the end).

use joulebook::core::receipt::{Receipt, TokenSource};
use serde::{Deserialize, Serialize};

/// Whether a request counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Sent before the window.
    WarmUp,
    /// Sent inside it, wherever it ended.
    #[default]
    Measured,
    /// Sent after it, or inside it beyond the requests that were asked for.
    CoolDown,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Answered in full.
    Done,
    /// Not answered, or not to the end.
    #[default]
    Failed,
    /// Given up by us (the run was interrupted).
    Cancelled,
}

/// A request, as a line of `requests.jsonl`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Its rung (`c8`).
    pub rung: String,
    /// Its repeat, from 1.
    pub repeat: u32,
    /// Its number in the repeat, from 1.
    pub number: u64,
    /// Whether it counts.
    pub phase: Phase,
    /// How it ended.
    pub outcome: Outcome,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The answer's HTTP status, where there was an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
    /// When it was due (open loop) or its place was free, ns after the run began.
    pub due_ns: u64,
    /// When it was sent, ns after the run began.
    pub sent_ns: u64,
    /// When the first piece with a choice came, content or not, ns after it was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_piece_ns: Option<u64>,
    /// When each piece with content came, ns after it was sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub content_ns: Vec<u64>,
    /// When the last piece with a choice came, content or not, ns after it was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_piece_ns: Option<u64>,
    /// When it was over, ns after it was sent.
    pub ended_ns: u64,
    /// Tokens of the prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_tokens: Option<u64>,
    /// Of those, from a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// Tokens of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_tokens: Option<u64>,
    /// Of those, reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
    /// Where the counts are from (`usage`, `counted`, …).
    pub token_source: String,
    /// Tokens of the answer that arrived inside the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_tokens: Option<u64>,
    /// What it cost, by the books.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<ReceiptFigures>,
}

/// The figures of a receipt that belong on a request's line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReceiptFigures {
    /// Above idle, J.
    pub joules: Option<f64>,
    /// With its share of idle, J.
    pub joules_with_idle_share: Option<f64>,
    /// For the prompt, J.
    pub prefill_joules: Option<f64>,
    /// For the answer, J.
    pub decode_joules: Option<f64>,
    /// Worst-case error of the measurement, J.
    pub bound_joules: Option<f64>,
    /// The least under other rules, J.
    pub model_low: Option<f64>,
    /// The most, J.
    pub model_high: Option<f64>,
    /// How it was got.
    pub method: String,
    /// All its ticks are final.
    pub settled: bool,
    /// Why there is no figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What else is to be said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
}

impl Request {
    /// True when it is measured and was answered: what latencies are made of.
    pub fn is_counted(&self) -> bool {
        self.phase == Phase::Measured && self.outcome == Outcome::Done
    }

    /// To the first content, ms.
    pub fn ttft_ms(&self) -> Option<f64> {
        self.content_ns.first().copied().map(milliseconds)
    }

    /// To the last content, ms; of an answer in one piece, to its end.
    pub fn e2el_ms(&self) -> Option<f64> {
        self.content_ns.last().copied().map(milliseconds)
    }

    /// Per token after the first, ms; none of one token.
    pub fn tpot_ms(&self) -> Option<f64> {
        let after = self.completion_tokens?.checked_sub(1).filter(|after| *after > 0)?;
        Some((self.e2el_ms()? - self.ttft_ms()?) / after as f64)
    }

    /// Between pieces with content, ms.
    pub fn itl_ms(&self) -> impl Iterator<Item = f64> {
        self.content_ns
            .iter()
            .zip(self.content_ns.iter().skip(1))
            .map(|(before, after)| milliseconds(after.saturating_sub(*before)))
    }
}

impl From<&Receipt> for ReceiptFigures {
    fn from(receipt: &Receipt) -> Self {
        Self {
            joules: receipt.joules,
            joules_with_idle_share: receipt.joules_with_idle_share,
            prefill_joules: receipt.prefill_joules,
            decode_joules: receipt.decode_joules,
            bound_joules: receipt.bound_joules,
            model_low: receipt.model_low,
            model_high: receipt.model_high,
            method: word(&receipt.method),
            settled: receipt.settled,
            error: receipt.error.map(|fault| fault.to_string()),
            flags: receipt.flags.words().map(str::to_owned).collect(),
        }
    }
}

/// The word of a token source, as lines carry it.
pub fn token_source(source: TokenSource) -> String {
    word(&source)
}

/// The word that a unit variant is written as.
fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

fn milliseconds(ns: u64) -> f64 {
    ns as f64 / 1e6
}
