//! A ticket: a request in flight, in the hands of whoever works on it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use joulebook::books::{self, PendingReceipt, TokenSource, Usage};
use pyo3::{
    exceptions::{PyException, PyValueError},
    prelude::*,
    types::{PyTuple, PyType},
};

use crate::{bridge, done::Done, jobs::Receiving, python, receipt::Receipt, words::word};

/// A request in flight. As a context manager it is closed at the end of its block: done, failed where
/// an exception comes out, cancelled where the task was. Dropped, it is cancelled. However it ends,
/// it is charged for what it used.
#[pyclass(module = "joulebook", frozen)]
pub struct Ticket(Mutex<State>);

struct State {
    stage: Stage,
    /// What the server said of its tokens.
    usage: Usage,
}

enum Stage {
    Open(books::Ticket),
    Over(PendingReceipt),
}

/// Where token counts come from.
const SOURCES: [TokenSource; 5] = [
    TokenSource::Usage,
    TokenSource::Timings,
    TokenSource::EvalCount,
    TokenSource::Counted,
    TokenSource::Unknown,
];

impl Ticket {
    pub fn new(ticket: books::Ticket) -> Self {
        Self(Mutex::new(State { stage: Stage::Open(ticket), usage: Usage::default() }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with it while it is open.
    fn working(&self, work: impl FnOnce(&mut books::Ticket)) {
        if let Stage::Open(ticket) = &mut self.lock().stage {
            work(ticket);
        }
    }

    fn pending(&self) -> PendingReceipt {
        match &self.lock().stage {
            Stage::Open(ticket) => ticket.so_far(),
            Stage::Over(pending) => pending.clone(),
        }
    }

    /// Ends it, the first time.
    fn end(&self, end: fn(books::Ticket, Usage) -> PendingReceipt) {
        let mut state = self.lock();
        let Stage::Open(ticket) = &state.stage else { return };
        let so_far = Stage::Over(ticket.so_far());
        if let Stage::Open(ticket) = std::mem::replace(&mut state.stage, so_far) {
            state.stage = Stage::Over(end(ticket, state.usage));
        }
    }
}

#[pymethods]
impl Ticket {
    /// Its number in the books; None when it is not in them.
    #[getter]
    fn id(&self) -> Option<u64> {
        self.pending().id()
    }

    /// How long the prompt is, and how much of that came from a cache, where that is known.
    #[pyo3(signature = (tokens, cached=None))]
    fn prompt(&self, tokens: u64, cached: Option<u64>) {
        self.working(|ticket| ticket.prompt(tokens, cached));
    }

    /// Its work begins now: it was queued until here.
    fn admitted(&self) {
        self.working(books::Ticket::admitted);
    }

    /// More tokens of the answer. The first call is its first token.
    #[pyo3(signature = (more=1))]
    fn tokens(&self, more: u64) {
        self.working(|ticket| ticket.tokens(more));
    }

    /// A point in its life, for its receipt.
    fn mark(&self, name: &str) {
        self.working(|ticket| ticket.mark(name));
    }

    /// What the answer used, as the server says it, for its receipt. source: "usage", "timings",
    /// "eval_count", "counted" or "unknown".
    #[pyo3(signature = (*, prompt_tokens=None, cached_tokens=None, completion_tokens=None,
        reasoning_tokens=None, source="usage"))]
    fn used(
        &self,
        prompt_tokens: Option<u64>,
        cached_tokens: Option<u64>,
        completion_tokens: Option<u64>,
        reasoning_tokens: Option<u64>,
        source: &str,
    ) -> PyResult<()> {
        let source = SOURCES.into_iter().find(|it| word(it) == source).ok_or_else(|| {
            let words = SOURCES.map(|it| format!("'{}'", word(&it))).join(", ");
            PyValueError::new_err(format!("source: '{source}' is none of {words}"))
        })?;
        self.lock().usage = Usage {
            prompt: prompt_tokens,
            cached: cached_tokens,
            completion: completion_tokens,
            reasoning: reasoning_tokens,
            source,
        };
        Ok(())
    }

    /// Ends it, once: "done", "failed", "cancelled" (given up by whoever asked), or "abandoned"
    /// (whoever asked has left, and the server may work on).
    #[pyo3(signature = (status="done"))]
    fn close(&self, status: &str) -> PyResult<()> {
        let end = match status {
            "done" => books::Ticket::close,
            "failed" => books::Ticket::fail,
            "cancelled" => books::Ticket::cancel,
            "abandoned" => books::Ticket::abandon,
            other => {
                return Err(PyValueError::new_err(format!(
                    "status: '{other}' is none of 'done', 'failed', 'cancelled', 'abandoned'"
                )));
            }
        };
        self.end(end);
        Ok(())
    }

    /// The receipt as it stands: waits for the books' answer alone, not for the cards.
    fn receipt(&self, py: Python<'_>) -> Receipt {
        let pending = self.pending();
        Receipt(py.detach(|| pending.now()))
    }

    /// The final receipt, or the one that stands when timeout_s passes before it.
    #[pyo3(signature = (timeout_s=5.0))]
    fn settle(&self, py: Python<'_>, timeout_s: f64) -> Receipt {
        let pending = self.pending();
        Receipt(py.detach(|| pending.settle(bridge::seconds(timeout_s))))
    }

    /// settle() for coroutines: holds no event loop (asyncio, uvloop, trio).
    #[pyo3(signature = (timeout_s=5.0))]
    fn asettle<'py>(this: &Bound<'py, Self>, timeout_s: f64) -> PyResult<Bound<'py, PyAny>> {
        let start = this.getattr("_settle_then")?;
        python::wait(this.py())?.getattr("until")?.call1((start, timeout_s))
    }

    fn _settle_then(&self, timeout_s: f64, then: Py<PyAny>) {
        let job = Box::new(Receiving { pending: self.pending(), receipt: None });
        bridge::wait(job, bridge::seconds(timeout_s), then);
    }

    fn __enter__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    #[pyo3(signature = (exception=None, *_rest))]
    fn __exit__(&self, exception: Option<&Bound<'_, PyType>>, _rest: &Bound<'_, PyTuple>) {
        let failed = exception.map(|it| it.is_subclass_of::<PyException>().unwrap_or(true));
        self.end(match failed {
            None => books::Ticket::close,
            Some(true) => books::Ticket::fail,
            // A task that was cancelled, a generator that was closed, an interrupt.
            Some(false) => books::Ticket::cancel,
        });
    }

    fn __aenter__<'py>(this: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Done::with(this.py(), Some(this.clone().into_any().unbind()))
    }

    #[pyo3(signature = (exception=None, *rest))]
    fn __aexit__<'py>(
        &self,
        py: Python<'py>,
        exception: Option<&Bound<'py, PyType>>,
        rest: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.__exit__(exception, rest);
        Done::with(py, None)
    }
}
