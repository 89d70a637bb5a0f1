//! A measurement as an answer, under the names that cases use.

use joulebook_core::{
    Measurement, Method,
    estimate::{Estimated, Span},
    grade::{Context, Hint, grade},
};
use serde_json::{Value, json};

use super::{Answer, field::maybe};

/// The context of a window that is asked for alone on its card, by a recording's clock.
pub(super) fn context(span: Span, idle_w: Option<f64>, backend: &'static str) -> Context {
    Context {
        seconds: span.seconds(),
        idle_seconds: span.seconds(),
        idle_w,
        backend,
        settled: true,
        ..Context::default()
    }
}

/// The hint and tokens of an input.
pub(super) fn hint(input: &Value) -> Hint {
    let tokens = input.get("tokens").and_then(Value::as_u64).unwrap_or(0);
    Hint { tokens, joules_per_1k: maybe(input, "hint_j_per_1k").unwrap_or(0.0) }
}

/// The graded window, as far as cases ask for it.
pub(super) fn answer(estimated: &Estimated, context: &Context, input: &Value) -> Answer {
    let given = hint(input);
    let measured = grade(estimated, context, given);
    let without = grade(estimated, context, Hint::default());
    // What a hint would make of it, where none was given.
    let some = Hint { tokens: 1, joules_per_1k: 1.0 };
    let with =
        if given == Hint::default() { grade(estimated, context, some) } else { measured.clone() };
    let mut answer = of(&measured);
    answer.insert("with_hint".into(), json!(with.method));
    answer.insert("without_hint".into(), json!({ "method": without.method }));
    answer
}

/// One measurement's fields.
pub(super) fn of(measured: &Measurement) -> Answer {
    let above_idle_j = measured.joules.filter(|_| measured.method == Method::Sampled);
    // What was seen, whether or not it may be called a measurement.
    let seen_j = measured.gross_joules.or(measured.lower_bound_joules);
    let fields = json!({
        "method": measured.method,
        "joules": measured.joules,
        "error": measured.error,
        "reason_in_result": measured.error,
        "backend": measured.backend,
        "seconds": measured.seconds,
        "mean_w": measured.mean_watts,
        "samples": measured.samples,
        "distinct_updates": measured.samples,
        "polls": measured.polls,
        "rejected": measured.rejected,
        "rejected_reads": measured.rejected,
        "gross_j": measured.gross_joules,
        "total_gross_j": measured.gross_joules,
        "measured_gross_j": seen_j,
        "above_idle_j": above_idle_j,
        "request_above_idle_j": above_idle_j,
        "above_idle": { "method": measured.method, "error": measured.error },
        "lower_bound_j": measured.lower_bound_joules,
        "contended": measured.contended_by.is_some(),
        "flag": measured.flags,
        "scope": measured.scope,
        "idle_w": measured.idle_watts,
    });
    match fields {
        Value::Object(fields) => fields,
        _ => Answer::new(),
    }
}
