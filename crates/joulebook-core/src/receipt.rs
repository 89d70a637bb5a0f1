//! What one answer cost: a receipt of the books.
//!
//! Decides how what a request was charged is said: with its method, its bound, what other rules
//! would have charged, and why a figure is missing. Two kinds of error are never mixed:
//! `bound_joules` is the measurement's alone; `model_low` and `model_high` are what it would have
//! been charged under other rules: time, token and weighted, and where nobody knows how long a prompt
//! was queued, weighted with prompts read at the last possible moment.
//!
//! Refused: a sampled zero; a figure for a card that was not seen; anything extrapolated.

use std::{borrow::Cow, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{
    fault::Fault,
    flags::Flags,
    ledger::settle::Split,
    measurement::{Method, Source},
};

/// How a request ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It has not.
    #[default]
    Open,
    /// Answered.
    Done,
    /// Given up by whoever asked; what it used is charged all the same.
    Cancelled,
    /// Failed; what it used is charged all the same.
    Failed,
    /// Whoever asked left, and the server may have worked on.
    Abandoned,
    /// Never closed, and closed by the books after a long time.
    Lost,
}

/// Where token counts come from, and so how sure they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenSource {
    /// The answer's usage.
    Usage,
    /// The server's timings.
    Timings,
    /// The server's evaluation count.
    EvalCount,
    /// Counted as they passed: a lower bound where one piece holds several.
    Counted,
    /// Not known.
    #[default]
    Unknown,
}

/// What an answer used, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the prompt, those from a cache too.
    pub prompt: Option<u64>,
    /// Those of the prompt that came from a cache.
    pub cached: Option<u64>,
    /// Tokens of the answer, reasoning too.
    pub completion: Option<u64>,
    /// Those of the answer that were reasoning.
    pub reasoning: Option<u64>,
    /// From where.
    pub source: TokenSource,
}

/// Whose a request is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Labels {
    /// The model that answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Arc<str>>,
    /// Who asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller: Option<Arc<str>>,
    /// By which way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route: Option<Arc<str>>,
    /// What joins the attempts of one answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<Arc<str>>,
}

/// Transactions of one card's book.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entries {
    /// The card.
    pub card: Arc<str>,
    /// The first that charged the request.
    pub first: u64,
    /// The last so far.
    pub last: u64,
}

/// What one answer cost. Energies in J, times in s. What is written as JSON is read back as the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    /// Its number in the books.
    pub id: u64,
    /// Whose it is.
    #[serde(flatten)]
    pub labels: Labels,
    /// How it ended.
    pub status: Status,
    /// Why an abandoned request's account was closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<Cow<'static, str>>,
    /// What it is charged, above idle; none where that is not known.
    pub joules: Option<f64>,
    /// The same with its share, by time, of what the cards draw at rest.
    pub joules_with_idle_share: Option<f64>,
    /// The part for reading the prompt.
    pub prefill_joules: Option<f64>,
    /// The part for writing the answer.
    pub decode_joules: Option<f64>,
    /// Its tokens.
    pub tokens: Usage,
    /// Joules a token of the answer; none without either.
    pub joules_per_token: Option<f64>,
    /// Until the first token.
    pub ttft_seconds: Option<f64>,
    /// From its opening to its end, or so far.
    pub seconds: f64,
    /// When it was opened, seconds since 1970; none in simulated time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opened_unix_s: Option<f64>,
    /// The cards that worked on it.
    pub cards: Vec<Arc<str>>,
    /// How the figure was got.
    pub method: Method,
    /// Whose reading it is.
    pub source: Source,
    /// What read the cards.
    pub backend: Cow<'static, str>,
    /// All its ticks are final.
    pub settled: bool,
    /// The settled part of its lifetime; the rest is never extrapolated.
    pub coverage: f64,
    /// Who else was on a card.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contended_by: Option<Arc<str>>,
    /// What else is to be said.
    pub flags: Flags,
    /// The prompt's part or the answer's was spread over a longer time than it took.
    pub coarse: bool,
    /// The kind of rule: always the ledger's.
    pub rule: Cow<'static, str>,
    /// How ticks were split.
    pub split: Split,
    /// Worst-case error of the measurement, rule given; none without joules.
    pub bound_joules: Option<f64>,
    /// The least of the same answer under the rules time, token and weighted; and where it is not
    /// known how long prompts were queued, with its own or all others' read at the last moment.
    pub model_low: Option<f64>,
    /// The most.
    pub model_high: Option<f64>,
    /// The least it can be, where the measurement leaves that open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low_joules: Option<f64>,
    /// The most it can be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high_joules: Option<f64>,
    /// Its part before idle was subtracted, where no floor is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gross_joules: Option<f64>,
    /// What is certainly known when the rest is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lower_bound_joules: Option<f64>,
    /// Why the figure is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Fault>,
    /// Where it stands in the books.
    pub entries: Vec<Entries>,
    /// Marks, and when after the opening they were made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<(Arc<str>, f64)>,
}

/// The rules of the model range: time, token and weighted, and weighted with prompts of which the
/// arrival alone is known queued until the last possible moment: its own, all others'.
pub const RULES: usize = 5;

/// What the books hold of a request, summed over its cards: what a receipt is made from.
#[derive(Clone, Debug, Default)]
pub struct Charged {
    /// µJ for the prompt.
    pub prefill_uj: i128,
    /// µJ for the answer.
    pub decode_uj: i128,
    /// Its share of idle, µJ.
    pub idle_uj: f64,
    /// What the measurement can be wrong by, µJ.
    pub bound_uj: f64,
    /// What each rule of the model range would have charged, µJ.
    pub rules_uj: [f64; RULES],
    /// Its share, as if alone, of ticks in which somebody else was there, µJ.
    pub alone_uj: f64,
    /// Cards of which something was seen while it was there.
    pub seen: usize,
    /// Somebody else, whose part cannot be told, was there.
    pub shared_device: bool,
    /// No floor was known.
    pub floorless: bool,
    /// Nothing more will come.
    pub over: bool,
}

impl Receipt {
    /// A receipt of nothing, for this reason.
    pub const fn unknown(id: u64, error: Fault) -> Self {
        Self {
            id,
            labels: Labels { model: None, caller: None, route: None, parent: None },
            status: Status::Open,
            ended_by: None,
            joules: None,
            joules_with_idle_share: None,
            prefill_joules: None,
            decode_joules: None,
            tokens: Usage {
                prompt: None,
                cached: None,
                completion: None,
                reasoning: None,
                source: TokenSource::Unknown,
            },
            joules_per_token: None,
            ttft_seconds: None,
            seconds: 0.0,
            opened_unix_s: None,
            cards: Vec::new(),
            method: Method::Unknown,
            source: Source::None,
            backend: Cow::Borrowed("none"),
            settled: false,
            coverage: 0.0,
            contended_by: None,
            flags: Flags::NONE,
            coarse: false,
            rule: Cow::Borrowed("ledger"),
            split: Split::Weighted,
            bound_joules: None,
            model_low: None,
            model_high: None,
            low_joules: None,
            high_joules: None,
            gross_joules: None,
            lower_bound_joules: None,
            error: Some(error),
            entries: Vec::new(),
            marks: Vec::new(),
        }
    }

    /// Decides what is said of what the books hold.
    pub(crate) fn grade(&mut self, charged: &Charged) {
        let joules = |uj: i128| uj as f64 / 1e6;
        let sum = joules(charged.prefill_uj.saturating_add(charged.decode_uj));
        self.error = self.why_unknown(charged, sum);
        if let Some(error) = self.error {
            self.method = Method::Unknown;
            match error {
                Fault::SharedDevice => {
                    self.low_joules = Some(0.0);
                    self.high_joules = Some(sum + charged.alone_uj / 1e6);
                }
                Fault::NoBaseline => self.gross_joules = Some(sum),
                Fault::PartialDevices => self.lower_bound_joules = Some(sum),
                _ => {}
            }
            return;
        }
        let bound = charged.bound_uj / 1e6;
        let rules = charged.rules_uj.map(|uj| uj / 1e6);
        self.method = Method::Sampled;
        self.joules = Some(sum);
        self.joules_with_idle_share = Some(sum + charged.idle_uj / 1e6);
        self.prefill_joules = Some(joules(charged.prefill_uj));
        self.decode_joules = Some(joules(charged.decode_uj));
        self.bound_joules = Some(bound);
        self.model_low = Some(rules.into_iter().fold(f64::INFINITY, f64::min));
        self.model_high = Some(rules.into_iter().fold(0.0, f64::max));
        self.joules_per_token = self
            .tokens
            .completion
            .filter(|tokens| *tokens > 0 && sum > 0.0)
            .map(|tokens| sum / tokens as f64);
        if bound > sum {
            self.flags |= Flags::UNRESOLVED;
            self.low_joules = Some((sum - bound).max(0.0));
            self.high_joules = Some(sum + bound);
        }
    }

    fn why_unknown(&self, charged: &Charged, sum: f64) -> Option<Fault> {
        if charged.shared_device {
            return Some(Fault::SharedDevice);
        }
        if self.cards.is_empty() {
            return Some(Fault::DriverAbsent);
        }
        if charged.seen == 0 {
            return Some(if charged.over { Fault::Gap } else { Fault::NotReady });
        }
        if charged.seen < self.cards.len() && charged.over {
            return Some(Fault::PartialDevices);
        }
        if charged.floorless {
            return Some(Fault::NoBaseline);
        }
        // No sampled zero: neither of what was settled, nor of what has only begun.
        let nothing = if charged.over { Fault::BelowIdle } else { Fault::NotReady };
        (sum <= 0.0).then_some(nothing)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words() -> impl Strategy<Value = Option<Arc<str>>> {
        proptest::option::of("[a-zé \"\\\\/{}0-9]{0,12}".prop_map(Arc::from))
    }

    fn joules() -> impl Strategy<Value = Option<f64>> {
        proptest::option::of(prop_oneof![0.0..1e6f64, 0.0..1e-9f64, Just(0.0)])
    }

    prop_compose! {
        fn receipt()(
            id in any::<u64>(),
            labels in (words(), words(), words(), words()),
            figures in proptest::array::uniform16(joules()),
            tokens in proptest::array::uniform4(proptest::option::of(any::<u64>())),
            flags in any::<u32>(),
            kind in 0usize..6,
            open in any::<bool>(),
            names in proptest::collection::vec(words(), 0..3),
        ) -> Receipt {
            let (model, caller, route, parent) = labels;
            let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = figures;
            let [prompt, cached, completion, reasoning] = tokens;
            let names: Vec<Arc<str>> = names.into_iter().flatten().collect();
            let statuses =
                [Status::Open, Status::Done, Status::Cancelled, Status::Failed, Status::Abandoned, Status::Lost];
            let sources = [
                TokenSource::Usage,
                TokenSource::Timings,
                TokenSource::EvalCount,
                TokenSource::Counted,
                TokenSource::Unknown,
                TokenSource::Unknown,
            ];
            Receipt {
                labels: Labels { model, caller, route, parent: parent.clone() },
                status: statuses[kind],
                ended_by: open.then_some(Cow::Borrowed("floor")),
                joules: a,
                joules_with_idle_share: b,
                prefill_joules: c,
                decode_joules: d,
                tokens: Usage { prompt, cached, completion, reasoning, source: sources[kind] },
                joules_per_token: e,
                ttft_seconds: f,
                seconds: g.unwrap_or(1.5),
                opened_unix_s: h,
                cards: names.clone(),
                method: [Method::Sampled, Method::Estimated, Method::Unknown][kind % 3],
                source: [Source::Local, Source::Remote, Source::None][kind % 3],
                backend: Cow::Owned("nvml_counter".to_owned()),
                settled: open,
                coverage: i.unwrap_or(1.0),
                contended_by: parent,
                flags: Flags::from_bits(flags % (1 << 25)),
                coarse: !open,
                split: [Split::Weighted, Split::Token, Split::Time, Split::Equal][kind % 4],
                bound_joules: j,
                model_low: k,
                model_high: l,
                low_joules: m,
                high_joules: n,
                gross_joules: o,
                lower_bound_joules: p,
                error: open.then_some(Fault::SharedDevice),
                entries: names.iter().map(|card| Entries { card: card.clone(), first: id / 2, last: id }).collect(),
                marks: names.iter().map(|name| (name.clone(), a.unwrap_or(0.25))).collect(),
                ..Receipt::unknown(id, Fault::Absent)
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(receipt in receipt()) {
            let text = serde_json::to_string(&receipt).unwrap();
            prop_assert_eq!(serde_json::from_str::<Receipt>(&text).unwrap(), receipt);
        }
    }

    #[test]
    fn what_is_no_receipt_is_said() {
        let receipt = Receipt::unknown(7, Fault::Gap);
        let text = serde_json::to_string(&receipt).unwrap();
        assert_eq!(serde_json::from_str::<Receipt>(&text).unwrap(), receipt);
        for (from, to, why) in [
            ("\"flags\":[]", "\"flags\":[\"shiny\"]", "no mark `shiny`"),
            ("\"gap\"", "\"gaps\"", "gaps"),
            ("\"id\":7,", "", "missing field `id`"),
        ] {
            let forged = text.replacen(from, to, 1);
            assert_ne!(forged, text);
            let error = serde_json::from_str::<Receipt>(&forged).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
