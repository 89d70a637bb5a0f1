//! What one answer cost, as Python reads it.

use joulebook::books;
use pyo3::{prelude::*, types::PyTuple};

use crate::words::{self, word};

/// What one answer cost, by the books: a share of what the cards drew while it was in flight.
/// Immutable.
///
/// joules: what it is charged above idle, J; None where that is not known, and error says why.
/// bound_joules: worst-case error of the measurement, the rule of sharing given. model_low,
/// model_high: what other rules of sharing would have charged.
#[pyclass(module = "joulebook", frozen, eq)]
#[derive(Clone, Debug, PartialEq)]
pub struct Receipt(pub books::Receipt);

#[pymethods]
impl Receipt {
    /// Its number in the books; 0 where it is not in them.
    #[getter]
    fn id(&self) -> u64 {
        self.0.id
    }

    /// The model that answered.
    #[getter]
    fn model(&self) -> Option<&str> {
        self.0.labels.model.as_deref()
    }

    /// Who asked.
    #[getter]
    fn caller(&self) -> Option<&str> {
        self.0.labels.caller.as_deref()
    }

    /// By which way.
    #[getter]
    fn route(&self) -> Option<&str> {
        self.0.labels.route.as_deref()
    }

    /// What joins the attempts of one answer.
    #[getter]
    fn parent(&self) -> Option<&str> {
        self.0.labels.parent.as_deref()
    }

    /// How it ended: "open", "done", "cancelled", "failed", "abandoned" or "lost".
    #[getter]
    fn status(&self) -> String {
        word(&self.0.status)
    }

    /// What it is charged above idle, J; None where that is not known.
    #[getter]
    fn joules(&self) -> Option<f64> {
        self.0.joules
    }

    /// The same with its share, by time, of what the cards draw at rest, J.
    #[getter]
    fn joules_with_idle_share(&self) -> Option<f64> {
        self.0.joules_with_idle_share
    }

    /// The part for reading the prompt, J.
    #[getter]
    fn prefill_joules(&self) -> Option<f64> {
        self.0.prefill_joules
    }

    /// The part for writing the answer, J.
    #[getter]
    fn decode_joules(&self) -> Option<f64> {
        self.0.decode_joules
    }

    /// J per token of the answer; None without either.
    #[getter]
    fn joules_per_token(&self) -> Option<f64> {
        self.0.joules_per_token
    }

    /// Tokens of the prompt, those from a cache too; None where not known.
    #[getter]
    fn prompt_tokens(&self) -> Option<u64> {
        self.0.tokens.prompt
    }

    /// Tokens of the answer; None where not known.
    #[getter]
    fn completion_tokens(&self) -> Option<u64> {
        self.0.tokens.completion
    }

    /// Until the first token, s.
    #[getter]
    fn ttft_seconds(&self) -> Option<f64> {
        self.0.ttft_seconds
    }

    /// From its opening to its end, or so far, s.
    #[getter]
    fn seconds(&self) -> f64 {
        self.0.seconds
    }

    /// The cards that worked on it.
    #[getter]
    fn cards<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.cards.iter().map(AsRef::<str>::as_ref))
    }

    /// "sampled" or "unknown".
    #[getter]
    fn method(&self) -> String {
        word(&self.0.method)
    }

    /// Whose readings these are: "local", "remote" or "none".
    #[getter]
    fn source(&self) -> String {
        word(&self.0.source)
    }

    /// What read the cards.
    #[getter]
    fn backend(&self) -> &str {
        &self.0.backend
    }

    /// Nothing of it will change any more.
    #[getter]
    fn settled(&self) -> bool {
        self.0.settled
    }

    /// The settled part of its lifetime, 0 to 1; the rest is never extrapolated.
    #[getter]
    fn coverage(&self) -> f64 {
        self.0.coverage
    }

    /// Worst-case error of the measurement, J.
    #[getter]
    fn bound_joules(&self) -> Option<f64> {
        self.0.bound_joules
    }

    /// The least that another rule of sharing would have charged, J.
    #[getter]
    fn model_low(&self) -> Option<f64> {
        self.0.model_low
    }

    /// The most, J.
    #[getter]
    fn model_high(&self) -> Option<f64> {
        self.0.model_high
    }

    /// Who else was on a card.
    #[getter]
    fn contended_by(&self) -> Option<&str> {
        self.0.contended_by.as_deref()
    }

    /// Why the figure is missing, in one word.
    #[getter]
    fn error(&self) -> Option<&'static str> {
        self.0.error.map(|fault| fault.word())
    }

    /// What else is to be said, in words.
    #[getter]
    fn flags<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.flags.words().collect::<Vec<_>>())
    }

    /// All of it as plain data: these fields, and tokens, split, entries and marks.
    fn as_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        words::to_python(py, &self.0)
    }

    fn __repr__(this: &Bound<'_, Self>) -> PyResult<String> {
        const SHOWN: [&str; 8] = [
            "id",
            "status",
            "joules",
            "bound_joules",
            "method",
            "settled",
            "completion_tokens",
            "error",
        ];
        words::repr(this.as_any(), &SHOWN)
    }
}
