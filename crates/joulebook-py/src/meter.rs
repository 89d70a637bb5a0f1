//! Meter: giul's window on the native meter.
//!
//! Entering, marking and leaving read the clock and the ring, nothing else; the driver is asked by a
//! card's own recorder. Only a backend that is written in Python is read for the window itself, by
//! its own thread or task (`joulebook._reader`).
//!
//! Invariants: no lock is held while Python code runs or while anything is waited for; nothing that
//! goes wrong in metering is raised into the block that is measured.

mod answer;
mod given;
mod state;
mod window;

use std::sync::{Arc, Mutex};

pub use answer::Asked;
pub use given::of_node;
use pyo3::{
    prelude::*,
    pyclass::{PyTraverseError, PyVisit},
    types::{PyTuple, PyType},
};
use state::{Reader, State};

use crate::{
    bridge,
    done::Done,
    energy::Energy,
    jobs::{FirstReading, Settling},
    native::{Asking, Native, Wanted},
    node::{IdleFloor, Said},
    python,
    words::interned,
};

/// Measures what a block of work cost in joules.
///
/// Made by Meter.for_node(node), or from a backend of your own. A context manager, plain and async;
/// result() says what the block cost:
///
///     async with Meter.for_node(node, joules_per_1k_hint=4100.0) as m:
///         await retrieve(); m.mark("retrieve")
///         await generate(); m.mark("generate")
///     energy = m.result(tokens=412)
///
/// Pass sync=torch.cuda.synchronize where the work is queued on the card by this process: it is
/// called when the block ends, before the clock stops. An HTTP answer needs nothing.
///
/// Used again, it starts afresh. Closing twice is harmless; a result that is asked for while the
/// block runs is that of so far.
#[pyclass(module = "joulebook", frozen)]
pub struct Meter {
    inner: Mutex<Inner>,
}

struct Inner {
    wanted: Wanted,
    native: Arc<Native>,
    /// As it was given, or made for what was found.
    backend: Option<Py<PyAny>>,
    node: Option<Py<PyAny>>,
    watches_contention: bool,
    sync: Option<Py<PyAny>>,
    interval_s: f64,
    /// Where it was said.
    source: Option<&'static str>,
    state: State,
}

impl Meter {
    /// The name that the backend given goes by, else that of what reads the card.
    fn name_of_backend(&self, py: Python<'_>) -> &'static str {
        let inner = self.lock();
        let Some(backend) = inner.backend.as_ref().map(|it| it.clone_ref(py)) else {
            return inner.native.backend();
        };
        drop(inner);
        let name = backend.getattr(py, "name").and_then(|it| it.extract::<String>(py));
        name.map_or("none", |name| interned(&name))
    }

    /// Waits until it is known what reads the cards, a moment at the most.
    fn known(&self, py: Python<'_>) -> Arc<Native> {
        let native = Arc::clone(&self.lock().native);
        if !native.is_ready() {
            py.detach(|| native.wait());
        }
        native
    }
}

#[pymethods]
impl Meter {
    #[new]
    #[pyo3(text_signature = "(backend, idle_w=0.0, interval_s=0.25, joules_per_1k_hint=0.0, \
        source='none', sync=None, node=None)",
        signature = (backend, idle_w=IdleFloor::Sum(0.0), interval_s=0.25,
        joules_per_1k_hint=Some(0.0), source="none", sync=None, node=None))]
    fn new(
        backend: Option<&Bound<'_, PyAny>>,
        idle_w: IdleFloor,
        interval_s: f64,
        joules_per_1k_hint: Option<f64>,
        source: &str,
        sync: Option<Py<PyAny>>,
        node: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        idle_w.check()?;
        let rules = node.map(Said::of).transpose()?;
        let asking = Asking::usual(joules_per_1k_hint.unwrap_or(0.0));
        let wanted = given::wanted(backend, rules.as_ref(), idle_w, asking)?;
        let inner = Inner {
            native: Native::of(&wanted),
            wanted,
            backend: backend.map(|it| it.clone().unbind()),
            watches_contention: rules.is_some_and(|rules| rules.watches_contention()),
            node: node.map(|it| it.clone().unbind()),
            sync,
            interval_s,
            source: (source != "none").then(|| interned(source)),
            state: State::Fresh,
        };
        Ok(Self { inner: Mutex::new(inner) })
    }

    /// A meter of a node's cards: their energy counter, else their power, else nvidia-smi, else the
    /// agent at power_endpoint, else none; its windows then say why.
    ///
    /// node: a Node, any object with its attributes, or None for no card. tier: any object with
    /// joules_per_1k_hint. joules_per_1k_hint: what 1000 tokens cost by your own estimate, J; used,
    /// and named "estimated", where nothing was measured. sync: called when the block ends.
    /// interval_s: how often a backend written in Python is read; cards are read at their own pace.
    /// timeout_s: how long an agent may take to answer.
    ///
    /// Raises nothing. The first meter of a card waits up to a second for its first reading, unless
    /// an event loop runs in this thread; then `async with` does, without holding the loop.
    #[classmethod]
    #[pyo3(signature = (node, tier=None, interval_s=0.25, *, joules_per_1k_hint=None, sync=None,
        timeout_s=2.0))]
    #[allow(clippy::too_many_arguments)] // giul's
    fn for_node(
        _class: &Bound<'_, PyType>,
        py: Python<'_>,
        node: Option<&Bound<'_, PyAny>>,
        tier: Option<&Bound<'_, PyAny>>,
        interval_s: f64,
        joules_per_1k_hint: Option<f64>,
        sync: Option<Py<PyAny>>,
        timeout_s: f64,
    ) -> PyResult<Self> {
        let of_tier = || tier?.getattr("joules_per_1k_hint").ok()?.extract::<f64>().ok();
        let hint = joules_per_1k_hint.or_else(of_tier).unwrap_or(0.0);
        let (native, watches_contention) = match node {
            Some(node) => {
                given::of_node(node, Asking { joules_per_1k_hint: hint, timeout_s, interval_s })?
            }
            None => (Native::of(&Wanted::nothing(hint)), false),
        };
        Self::give_time(py, &native)?;
        let inner = Inner {
            wanted: native.wanted.clone(),
            native,
            backend: None,
            node: node.map(|it| it.clone().unbind()),
            watches_contention,
            sync,
            interval_s,
            source: None,
            state: State::Fresh,
        };
        Ok(Self { inner: Mutex::new(inner) })
    }

    /// This meter, for `with m.sync():`, as giul spells it.
    fn sync(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    fn __enter__<'py>(this: Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        Self::begin(&this, true)?;
        Ok(this)
    }

    /// Opens a window that is no block: of a callback, a generator, a stream. The code that runs
    /// meanwhile is not in it, as far as mark() and current() go. stop() closes it.
    fn start(this: &Bound<'_, Self>) -> PyResult<()> {
        Self::begin(this, false)
    }

    /// Closes the window that start() opened. Twice is harmless.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        let (close_ns, interrupt) = self.halt(py);
        let read = self.reading(py).map(|reader| reader.call_method0(py, "close"));
        self.close(py, close_ns)?;
        // An interrupt, of its last reading or of the sync, goes on once the window is closed.
        read.transpose()?;
        interrupt.map_or(Ok(()), Err)
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.stop(py)
    }

    fn __aenter__<'py>(this: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = this.py();
        let native = this.get().native();
        let reader = this.get().reader(py)?;
        if reader.is_some() || !native.is_ready() {
            let reader = reader.map(|reader| reader.driver);
            return python::wait(py)?.getattr("enter")?.call1((this, reader));
        }
        python::tell(py, native.untold())?;
        Self::open(&this, None, true)?;
        Done::with(py, Some(this.into_any().unbind()))
    }

    #[pyo3(signature = (*_exception))]
    fn __aexit__<'py>(
        this: Bound<'py, Self>,
        _exception: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = this.py();
        if let Some(reader) = this.get().reading(py) {
            return python::wait(py)?.getattr("leave")?.call1((this, reader));
        }
        this.get().__exit__(py, _exception)?;
        Done::with(py, None)
    }

    /// Closes the stage that is open and opens the next: what has passed since the mark before, or
    /// the beginning, is stage `name`. The same name twice adds up in one stage; what follows the
    /// last mark is in the total and in no stage.
    pub fn mark(&self, py: Python<'_>, name: String) -> PyResult<()> {
        let mut inner = self.lock();
        let State::Open(open) = &mut inner.state else { return Ok(()) };
        let Some(reader) = &open.reader else {
            open.window.mark(name);
            return Ok(());
        };
        let driver = reader.driver.clone_ref(py);
        drop(inner);
        driver.call_method1(py, "mark", (name,)).map(drop)
    }

    /// What the block cost, at once: J above idle, with how that is known. tokens: what an estimate
    /// is made from where nothing could be measured. While the block runs: so far. Waits for nothing.
    #[pyo3(text_signature = "($self, tokens=0)", signature = (tokens=Some(0)))]
    fn result(&self, py: Python<'_>, tokens: Option<i64>) -> Energy {
        let (pending, asked) = self.pending(py, tokens);
        asked.energy(&pending, None)
    }

    /// What the block cost, once the card has published past its end: sharper, mostly within a
    /// quarter of a second. After timeout_s the answer is the one that stands.
    #[pyo3(text_signature = "($self, timeout_s=5.0, *, tokens=0)",
        signature = (timeout_s=5.0, *, tokens=Some(0)))]
    fn settle(&self, py: Python<'_>, timeout_s: f64, tokens: Option<i64>) -> Energy {
        let (pending, asked) = self.pending(py, tokens);
        let timeout = bridge::seconds(timeout_s);
        py.detach(|| asked.energy(&pending, Some(timeout)))
    }

    /// settle() for coroutines: holds no event loop (asyncio, uvloop, trio).
    #[pyo3(text_signature = "($self, timeout_s=5.0, *, tokens=0)",
        signature = (timeout_s=5.0, *, tokens=Some(0)))]
    fn asettle<'py>(
        this: &Bound<'py, Self>,
        timeout_s: f64,
        tokens: Option<i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = this.py();
        let start = this.getattr("_settle_then")?;
        python::wait(py)?.getattr("until")?.call1((start, timeout_s, tokens))
    }

    fn _settle_then(&self, py: Python<'_>, timeout_s: f64, tokens: Option<i64>, then: Py<PyAny>) {
        let (pending, asked) = self.pending(py, tokens);
        let job = Box::new(Settling { pending, asked, energy: None });
        bridge::wait(job, bridge::seconds(timeout_s), then);
    }

    /// The object that reads the card: the one given, or one for what was found; None without.
    #[getter]
    fn backend<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let given = self.lock().backend.as_ref().map(|it| it.bind(py).clone());
        if given.is_some() {
            return Ok(given);
        }
        let made = python::backend(py, &self.known(py))?;
        self.lock().backend = made.as_ref().map(|it| it.clone().unbind());
        Ok(made)
    }

    /// What reads the card: "nvml_counter", "nvml_power", "smi_sampler", "remote_agent", the name of
    /// the backend given, or "none".
    #[getter]
    fn backend_name(&self, py: Python<'_>) -> &'static str {
        self.known(py);
        self.name_of_backend(py)
    }

    /// Something reads the card.
    #[getter]
    fn sampling(&self, py: Python<'_>) -> bool {
        self.backend_name(py) != "none"
    }

    /// Whose readings these are: "local", "remote" or "none".
    #[getter]
    fn get_source(&self, py: Python<'_>) -> &'static str {
        let said = self.lock().source;
        said.unwrap_or_else(|| self.known(py).source())
    }

    #[setter]
    fn set_source(&self, source: &str) {
        self.lock().source = (source != "none").then(|| interned(source));
    }

    /// The idle floor in force, W; None where none is known.
    #[getter]
    fn get_idle_w(&self) -> Option<f64> {
        self.lock().native.idle_watts()
    }

    #[setter]
    fn set_idle_w(&self, watts: IdleFloor) -> PyResult<()> {
        watts.check()?;
        self.change(|inner| inner.wanted.said.idle = watts);
        Ok(())
    }

    /// What 1000 tokens cost by the caller's own estimate, J.
    #[getter]
    fn get_joules_per_1k_hint(&self) -> f64 {
        self.lock().wanted.asking.joules_per_1k_hint
    }

    #[setter]
    fn set_joules_per_1k_hint(&self, joules: f64) {
        self.change(|inner| inner.wanted.asking.joules_per_1k_hint = joules);
    }

    /// How often a backend written in Python is read, s; cards are read at their own pace.
    #[getter]
    fn get_interval_s(&self) -> f64 {
        self.lock().interval_s
    }

    #[setter]
    fn set_interval_s(&self, seconds: f64) {
        self.lock().interval_s = seconds;
    }

    /// The node it was made for.
    #[getter]
    fn node(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.lock().node.as_ref().map(|node| node.clone_ref(py))
    }

    /// The node names its own work, so that others make a window contended.
    #[getter]
    fn watches_contention(&self) -> bool {
        self.lock().watches_contention
    }

    /// What a person should know of the choice of cards, or why there is none.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.lock().native.warnings()
    }

    /// The second half of entering, for a coroutine.
    fn _open(this: &Bound<'_, Self>, driver: Option<Bound<'_, PyAny>>) -> PyResult<()> {
        Self::open(this, driver.map(Reader::driven_by).transpose()?, true)
    }

    /// The first half of leaving: stops the clock, and says when.
    fn _stop(&self, py: Python<'_>) -> PyResult<u64> {
        match self.halt(py) {
            (close_ns, Some(interrupt)) => self.close(py, close_ns).and(Err(interrupt)),
            (close_ns, None) => Ok(close_ns),
        }
    }

    fn _close(&self, py: Python<'_>, close_ns: u64) -> PyResult<()> {
        self.close(py, close_ns)
    }

    /// Nothing is left to wait for before a window opens.
    fn _is_ready(&self) -> bool {
        self.native().is_ready()
    }

    /// Calls `then` with None when its first reading is there, or is not worth waiting for.
    fn _ready_then(&self, then: Py<PyAny>) {
        let native = self.native();
        let patience = native.patience();
        bridge::wait(Box::new(FirstReading(native)), patience, then);
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // Held by nobody who could be collected: never across a call into Python.
        let Ok(inner) = self.inner.try_lock() else { return Ok(()) };
        [&inner.backend, &inner.node, &inner.sync].into_iter().try_for_each(|it| visit.call(it))?;
        match &inner.state {
            State::Fresh => Ok(()),
            State::Open(open) => {
                visit.call(open.reader.as_ref().map(|reader| &reader.driver))?;
                visit.call(&open.outer)
            }
            State::Closed(closed) => visit.call(&closed.outer),
        }
    }

    fn __clear__(&self) {
        let mut inner = self.lock();
        let gone = (inner.backend.take(), inner.node.take(), inner.sync.take());
        let state = std::mem::take(&mut inner.state);
        drop(inner);
        drop((gone, state));
    }
}
