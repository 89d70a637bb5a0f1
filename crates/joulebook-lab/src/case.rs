//! Cases: what real users met, each with what the product must make of it.
//!
//! One JSON object a line: an `input` whose `kind` says how to read it, and an `expected` answer. The
//! input goes through the product's own parsers, registers, series, estimates and grades; what comes
//! out is set against the expectation (`compare`). Nothing here knows a case by its name.
//!
//! Keys of the answer that are prose (`must_not`, `rule`, …) are no part of it. A kind that nothing
//! here can read is said to be unsupported and does not pass.

mod amd;
mod books;
mod compare;
mod counter;
mod field;
mod heard;
mod identity;
mod idle;
mod measured;
mod rapl;
mod readings;
mod samples;
mod scripted;
mod smi;
mod sources;
mod tenancy;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use self::field::Refused;

/// What an input comes to: more than any one case asks for.
type Answer = Map<String, Value>;

/// A case, as a line of a file has it.
#[derive(Clone, Debug, Deserialize)]
pub struct Case {
    /// Its name.
    pub id: String,
    /// What happened.
    pub input: Value,
    /// What must come of it.
    pub expected: Map<String, Value>,
}

/// What came of a case.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The case's name.
    pub id: String,
    /// The answer, with the keys that were expected.
    pub got: Value,
    /// It is the expected one.
    pub pass: bool,
    /// Where it is not: the keys, with what was expected and what came.
    #[serde(skip)]
    pub differs: Vec<String>,
}

/// Why a line is no case.
#[derive(Debug, thiserror::Error)]
#[error("line {line} is no case: {error}")]
pub struct CaseError {
    line: usize,
    error: serde_json::Error,
}

impl Case {
    /// The cases of a file: one a line, blank lines between.
    pub fn read(text: &str) -> Result<Vec<Self>, CaseError> {
        let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
        lines
            .map(|(line, text)| {
                serde_json::from_str(text).map_err(|error| CaseError { line, error })
            })
            .collect()
    }

    /// All that its input comes to, of which the case may ask for a part; or why it has no answer.
    pub fn answer(&self) -> Result<Map<String, Value>, String> {
        answer(&self.input).map_err(|refused| refused.to_string())
    }

    /// Runs it.
    pub fn judge(&self) -> Outcome {
        let id = self.id.clone();
        match answer(&self.input) {
            Ok(answer) => {
                let got = compare::picked(&self.expected, &answer);
                let differs = compare::differences(&self.expected, &got);
                Outcome { id, pass: differs.is_empty(), got: Value::Object(got), differs }
            }
            Err(refused) => {
                let said = refused.to_string();
                Outcome { id, got: json!({ "error": said }), pass: false, differs: vec![said] }
            }
        }
    }
}

/// What the product makes of an input.
fn answer(input: &Value) -> Result<Answer, Refused> {
    match field::text(input, "kind")? {
        "samples" => samples::answer(input),
        "samples_multi" => samples::several(input),
        "ledger" | "ledger_audit" | "ticks" => books::answer(input),
        "counter" => counter::answer(input),
        "counters" | "probe" | "two_sources" => sources::answer(input),
        "cell_table" => samples::cells(input),
        "nvml" | "env" => scripted::answer(input),
        "identity" => identity::answer(input),
        "multi_die" | "amdsmi" | "hwmon" | "rocm_json" => amd::answer(input),
        "tenancy" => tenancy::answer(input),
        "rapl" => rapl::answer(input),
        _ => smi::answer(input),
    }
}
