//! Fields of an input, and why it may be refused.

use joulebook_core::estimate::Span;
use serde_json::Value;

/// Why an input has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    /// Nothing here reads this kind.
    #[error("not supported here")]
    Unsupported,
    /// A field is missing or is not what its kind needs.
    #[error("the input has no usable `{0}`")]
    Input(String),
    /// The books do not hold.
    #[error("the books do not hold: {0}")]
    Books(String),
}

pub(super) fn refused(name: &str) -> Refused {
    Refused::Input(name.to_owned())
}

pub(super) fn text<'a>(input: &'a Value, name: &str) -> Result<&'a str, Refused> {
    input.get(name).and_then(Value::as_str).ok_or_else(|| refused(name))
}

pub(super) fn number(input: &Value, name: &str) -> Result<f64, Refused> {
    maybe(input, name).ok_or_else(|| refused(name))
}

/// A number that need not be there.
pub(super) fn maybe(input: &Value, name: &str) -> Option<f64> {
    input.get(name).and_then(Value::as_f64)
}

pub(super) fn list<'a>(input: &'a Value, name: &str) -> Result<&'a [Value], Refused> {
    input.get(name).and_then(Value::as_array).map(Vec::as_slice).ok_or_else(|| refused(name))
}

/// Two numbers, `[from, to]` in seconds, as a span.
pub(super) fn span(input: &Value, name: &str) -> Option<Span> {
    let [from, to] = input.get(name)?.as_array()?.as_slice() else { return None };
    let (open_ns, close_ns) = (instant_ns(from.as_f64()?)?, instant_ns(to.as_f64()?)?);
    (open_ns <= close_ns).then_some(Span { open_ns, close_ns })
}

/// Seconds as an instant; none before zero.
pub(super) fn instant_ns(seconds: f64) -> Option<u64> {
    let ns = (seconds * 1e9).round();
    (ns.is_finite() && (0.0..1e19).contains(&ns)).then_some(ns as u64)
}
