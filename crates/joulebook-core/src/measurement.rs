//! What a window ends as, and the two forms it is written in.
//!
//! [`Measurement::form`] is ours: an absent figure is null. [`Measurement::giul_form`] has exactly
//! the keys and roundings that users of the `giul` package read; there alone an unknown is 0.0. In
//! both a sampled figure keeps three significant digits, so that a small one does not print as 0.

use serde::{Deserialize, Serialize, Serializer, ser::SerializeMap};

use crate::{estimate::Rule, fault::Fault, flags::Flags};

/// How a figure was got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Measured by a real card.
    Sampled,
    /// Tokens times the hint.
    Estimated,
    /// Neither.
    Unknown,
}

/// Whose reading it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// This host's.
    Local,
    /// Another host's agent.
    Remote,
    /// Nobody's.
    #[default]
    None,
}

/// Who was on the card. Not seen is not the same as nobody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tenancy {
    /// Nobody but us.
    Alone,
    /// Somebody else.
    Foreign,
    /// It could not be seen.
    #[default]
    Unknown,
}

/// Which part of a machine a register covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The graphics card or chip.
    #[default]
    Gpu,
    /// A module that holds more than the GPU (CPU, memory).
    Module,
    /// A processor package.
    Package,
    /// A whole machine, at its supply.
    Machine,
}

/// What a window cost, how that is known and how wrong it can be. Energies in J, powers in W,
/// times in s.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// What the work is charged: energy above idle, or the estimate; none when unknown.
    pub joules: Option<f64>,
    /// How it was got.
    pub method: Method,
    /// Length of the window.
    pub seconds: f64,
    /// Sensor updates the figure stands on.
    pub samples: u64,
    /// Gross mean power seen; 0 when nothing was seen.
    pub mean_watts: f64,
    /// The idle floor that is subtracted; none where none is known.
    pub idle_watts: Option<f64>,
    /// Whose reading it is.
    pub source: Source,
    /// What read it, or tried to.
    pub backend: &'static str,
    /// One per mark, in order of their first mark.
    pub stages: Vec<(String, Measurement)>,
    /// Who else was on the card, where the node named its own.
    pub contended_by: Option<String>,
    /// False for the answer at once, which later publishes may sharpen.
    pub settled: bool,
    /// Which rule made it.
    pub rule: Option<Rule>,
    /// Worst-case measurement error of `joules`; none for estimates.
    pub bound_joules: Option<f64>,
    /// The least it can be, where the bound exceeds the value.
    pub low_joules: Option<f64>,
    /// The most it can be, where the bound exceeds the value.
    pub high_joules: Option<f64>,
    /// Energy before idle was subtracted.
    pub gross_joules: Option<f64>,
    /// What is certainly known when the rest is not.
    pub lower_bound_joules: Option<f64>,
    /// Joules that bridge a stretch without readings.
    pub bridged_joules: Option<f64>,
    /// Who was on the card.
    pub tenancy: Tenancy,
    /// What the register covers.
    pub scope: Scope,
    /// Polls made while the window was open.
    pub polls: u64,
    /// Polls refused or failed meanwhile.
    pub rejected: u64,
    /// Why the figure is missing.
    pub error: Option<Fault>,
    /// What else is to be said.
    pub flags: Flags,
}

impl Measurement {
    /// J per token; none without tokens or joules.
    pub fn per_token(&self, tokens: u64) -> Option<f64> {
        self.joules.filter(|_| tokens > 0).map(|joules| joules / tokens as f64)
    }

    /// Our form, as JSON.
    pub fn form(&self, tokens: u64) -> Form<'_> {
        Form::new(self, tokens)
    }

    /// giul's form, as JSON.
    pub fn giul_form(&self, tokens: u64) -> GiulForm<'_> {
        GiulForm::new(self, tokens)
    }
}

/// [`Measurement`] with the keys and roundings of giul 0.2.
#[derive(Clone, Debug, Serialize)]
pub struct GiulForm<'a> {
    joules: f64,
    method: Method,
    seconds: f64,
    samples: u64,
    mean_watts: f64,
    idle_watts: f64,
    source: Source,
    backend: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    joules_per_token: Option<f64>,
    // Null, not left out, at cost 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens_per_joule: Option<Option<f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stages: Option<Stages<GiulForm<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    contended: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    contended_by: Option<&'a str>,
}

impl<'a> GiulForm<'a> {
    fn new(of: &'a Measurement, tokens: u64) -> Self {
        let joules = of.joules.unwrap_or(0.0);
        let sampled = of.method == Method::Sampled;
        let figure = |value, decimals| {
            if sampled { kept(value, decimals) } else { rounded(value, decimals) }
        };
        let per_token = (tokens > 0).then(|| joules / tokens as f64);
        Self {
            joules: figure(joules, 3),
            method: of.method,
            seconds: rounded(of.seconds, 4),
            samples: of.samples,
            mean_watts: rounded(of.mean_watts, 2),
            idle_watts: rounded(of.idle_watts.unwrap_or(0.0), 2),
            source: of.source,
            backend: of.backend,
            joules_per_token: per_token.map(|value| figure(value, 5)),
            tokens_per_joule: per_token
                .map(|value| (value != 0.0).then(|| figure(value.recip(), 3))),
            stages: stages(of, |stage| Self::new(stage, 0)),
            contended: of.contended_by.is_some().then_some(true),
            contended_by: of.contended_by.as_deref(),
        }
    }
}

/// [`Measurement`] in full.
#[derive(Clone, Debug, Serialize)]
pub struct Form<'a> {
    joules: Option<f64>,
    method: Method,
    seconds: f64,
    samples: u64,
    mean_watts: f64,
    idle_watts: Option<f64>,
    source: Source,
    backend: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    joules_per_token: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens_per_joule: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stages: Option<Stages<Form<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    contended: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    contended_by: Option<&'a str>,
    settled: bool,
    rule: Option<Rule>,
    bound_joules: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    low_joules: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    high_joules: Option<f64>,
    gross_joules: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lower_bound_joules: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bridged_joules: Option<f64>,
    tenancy: Tenancy,
    scope: Scope,
    polls: u64,
    rejected: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Fault>,
    flags: Flags,
}

impl<'a> Form<'a> {
    fn new(of: &'a Measurement, tokens: u64) -> Self {
        let joules = |value: Option<f64>| value.map(|value| kept(value, 6));
        let per_token = of.per_token(tokens);
        Self {
            joules: joules(of.joules),
            method: of.method,
            seconds: rounded(of.seconds, 6),
            samples: of.samples,
            mean_watts: rounded(of.mean_watts, 3),
            idle_watts: of.idle_watts.map(|watts| rounded(watts, 3)),
            source: of.source,
            backend: of.backend,
            joules_per_token: joules(per_token),
            tokens_per_joule: joules(per_token.filter(|value| *value != 0.0).map(f64::recip)),
            stages: stages(of, |stage| Self::new(stage, 0)),
            contended: of.contended_by.is_some().then_some(true),
            contended_by: of.contended_by.as_deref(),
            settled: of.settled,
            rule: of.rule,
            bound_joules: joules(of.bound_joules),
            low_joules: joules(of.low_joules),
            high_joules: joules(of.high_joules),
            gross_joules: joules(of.gross_joules),
            lower_bound_joules: joules(of.lower_bound_joules),
            bridged_joules: joules(of.bridged_joules),
            tenancy: of.tenancy,
            scope: of.scope,
            polls: of.polls,
            rejected: of.rejected,
            error: of.error,
            flags: of.flags,
        }
    }
}

/// Stages as a map that keeps their order.
#[derive(Clone, Debug)]
struct Stages<T>(Vec<(String, T)>);

impl<T: Serialize> Serialize for Stages<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, stage) in &self.0 {
            map.serialize_entry(name, stage)?;
        }
        map.end()
    }
}

fn stages<'a, T>(of: &'a Measurement, form: impl Fn(&'a Measurement) -> T) -> Option<Stages<T>> {
    let all = || of.stages.iter().map(|(name, stage)| (name.clone(), form(stage))).collect();
    (!of.stages.is_empty()).then(|| Stages(all()))
}

/// Rounded to `decimals`, half to even on the exact binary value, as Python's `round` does.
fn rounded(value: f64, decimals: usize) -> f64 {
    format!("{value:.decimals$}").parse().unwrap_or(value)
}

/// Rounded, but to no fewer than three significant digits.
fn kept(value: f64, decimals: usize) -> f64 {
    let least = 10f64.powi(2 - decimals as i32);
    if value == 0.0 || value.abs() >= least {
        return rounded(value, decimals);
    }
    format!("{value:.2e}").parse().unwrap_or(value)
}
