//! The books of a node's cards in Python: what each request cost, however many are in flight.
//!
//! A ticket's calls are stores and messages; a receipt is waited for outside the interpreter. After a
//! fork the child keeps books of its own, without the journal, which is its parent's.

mod ticket;

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use joulebook::{
    books::{self, BooksError, JournalFile, Labels, Rate, Rhos, Settings},
    core::ledger::settle::Split,
};
use pyo3::{
    exceptions::{PyOSError, PyRuntimeError, PyValueError},
    prelude::*,
    types::PyTuple,
};
use serde::Serialize;
pub use ticket::Ticket;

use crate::{
    meter::of_node,
    native::{Asking, Native},
    python,
    receipt::Receipt,
    words,
};

/// The books of a node's cards: each tick of a card is split among the requests in flight, by their
/// tokens, and all accounts together come to what the card's register counted.
///
///     books = Books(node)
///     with books.open(model="m", prompt_bytes=len(prompt)) as ticket:
///         async for piece in answer:
///             ticket.tokens(1)
///     receipt = await ticket.asettle()
///
/// split: "weighted" (prompt tokens, and tokens of the answer by what they cost), "token", "time" or
/// "equal". lenient: what somebody else may have caused is charged too, flagged, instead of leaving
/// requests without a figure. journal: a file that every transaction is appended to, for `joulebook
/// audit`. rho: a file of what tokens of an answer cost by model and card.
///
/// One card has one book. Made when a service starts: it waits up to a second for the cards. Raises
/// RuntimeError where a card has books already, OSError or ValueError for its files.
#[pyclass(module = "joulebook", frozen)]
pub struct Books {
    split: Split,
    lenient: bool,
    rho: Rhos,
    kept: Mutex<Kept>,
}

struct Kept {
    books: books::Books,
    native: Arc<Native>,
    /// They are the books of cards that were found.
    of_cards: bool,
    closed: bool,
}

impl Books {
    fn begin(
        &self,
        native: &Native,
        journal: Option<JournalFile>,
    ) -> Result<books::Books, BooksError> {
        let mut settings = Settings {
            rho: self.rho.clone(),
            lenient: self.lenient,
            journal: journal.map(books::Journal::from),
            ..Settings::default()
        };
        settings.keeping.split = self.split;
        books::Books::of(native.meter(), settings)
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The books as they are kept now; begun anew in a fork's child, or where cards came late.
    fn now(&self, py: Python<'_>) -> PyResult<books::Books> {
        let mut kept = self.lock();
        if kept.closed || (kept.of_cards && kept.native.is_ours()) {
            return Ok(kept.books.clone());
        }
        if !kept.native.is_ours() {
            kept.native = Native::of(&kept.native.wanted);
            kept.of_cards = false;
        }
        let native = Arc::clone(&kept.native);
        drop(kept);
        if !native.is_ready() && python::may_wait(py)? {
            py.detach(|| native.wait());
        }
        let mut trouble = native.untold();
        let mut kept = self.lock();
        if native.is_found() && !kept.of_cards {
            match self.begin(&native, None) {
                // What a fork's parent keeps is not ours to end.
                Ok(books) => std::mem::forget(std::mem::replace(&mut kept.books, books)),
                Err(error) => trouble.push(error.to_string()),
            }
            kept.of_cards = true;
        }
        let books = kept.books.clone();
        drop(kept);
        python::tell(py, trouble).map(|()| books)
    }
}

#[pymethods]
impl Books {
    #[new]
    #[pyo3(signature = (node, *, split="weighted", lenient=false, journal=None, rho=None))]
    fn new(
        node: &Bound<'_, PyAny>,
        split: &str,
        lenient: bool,
        journal: Option<PathBuf>,
        rho: Option<PathBuf>,
    ) -> PyResult<Self> {
        let py = node.py();
        let split = [Split::Weighted, Split::Token, Split::Time, Split::Equal]
            .into_iter()
            .find(|it| words::word(it) == split)
            .ok_or_else(|| {
                PyValueError::new_err(format!(
                    "split: '{split}' is none of 'weighted', 'token', 'time', 'equal'"
                ))
            })?;
        let journal = journal.map(|path| {
            JournalFile::append(&path)
                .map_err(|error| PyOSError::new_err(format!("{}: {error}", path.display())))
        });
        let rho = rho.map(|path| {
            Rhos::load(&path).map_err(|error| PyValueError::new_err(error.to_string()))
        });
        let (native, _) = of_node(node, Asking::usual(0.0))?;
        py.detach(|| native.wait());
        python::tell(py, native.untold())?;
        let kept = Kept { books: books::Books::off(), native, of_cards: false, closed: false };
        let rho = rho.transpose()?.unwrap_or_default();
        let this = Self { split, lenient, rho, kept: Mutex::new(kept) };
        let mut kept = this.lock();
        kept.books = this
            .begin(&kept.native, journal.transpose()?)
            .map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        kept.of_cards = kept.native.is_found();
        drop(kept);
        Ok(this)
    }

    /// A request comes. model, caller, route, parent: whose it is, for its receipt. queued: it waits,
    /// and weighs nothing until ticket.admitted(). prompt_bytes: the prompt's length, which stands
    /// for its tokens until those are known.
    #[pyo3(signature = (*, model=None, caller=None, route=None, parent=None, queued=false,
        prompt_bytes=0))]
    #[allow(clippy::too_many_arguments)] // one for each thing that can be said
    fn open(
        &self,
        py: Python<'_>,
        model: Option<&str>,
        caller: Option<&str>,
        route: Option<&str>,
        parent: Option<&str>,
        queued: bool,
        prompt_bytes: u64,
    ) -> PyResult<Ticket> {
        let labels = Labels { model, caller, route, parent, queued, prompt_bytes, cards: &[] };
        Ok(Ticket::new(self.now(py)?.open(&labels)))
    }

    /// The receipt of a request by its number: as it stands, or final; None when it is not known
    /// (any more).
    fn receipt(&self, py: Python<'_>, id: u64) -> PyResult<Option<Receipt>> {
        let books = self.now(py)?;
        Ok(py.detach(|| books.receipt(id)).map(Receipt))
    }

    /// All accounts of all cards, their sum against the registers, and what was dropped, as plain
    /// data; None when the books are closed.
    fn trial_balance<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let books = self.now(py)?;
        let balance = py.detach(|| books.trial_balance());
        balance.map(|balance| words::to_python(py, &balance)).transpose()
    }

    /// What the cards drew over the last second, and the tokens that came of it: seconds, tokens,
    /// gross_joules, joules, joules_per_token; None while the cards have not shown so much.
    fn last_second<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        rate(py, self.now(py)?.last_second())
    }

    /// The same since the books were opened.
    fn since_start<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        rate(py, self.now(py)?.since_start())
    }

    /// Closes the books: what is pending gets the receipt it has by now, and the journal is written
    /// out. Tickets that are still open are charged nothing more.
    fn close(&self, py: Python<'_>) {
        let mut kept = self.lock();
        kept.closed = true;
        let books = std::mem::replace(&mut kept.books, books::Books::off());
        let is_ours = kept.native.is_ours();
        drop(kept);
        if is_ours {
            py.detach(|| books.close());
        }
    }

    fn __enter__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        self.close(py);
    }
}

/// A rate, and what a token cost in it.
#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    rate: Rate,
    joules_per_token: Option<f64>,
}

fn rate(py: Python<'_>, rate: Option<Rate>) -> PyResult<Option<Bound<'_, PyAny>>> {
    let shown = rate.map(|rate| Shown { joules_per_token: rate.joules_per_token(), rate });
    shown.map(|shown| words::to_python(py, &shown)).transpose()
}
