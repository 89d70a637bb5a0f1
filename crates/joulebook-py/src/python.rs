//! What the native side asks of the package's Python modules.

use std::sync::Arc;

use pyo3::{prelude::*, sync::PyOnceLock, types::PyModule};

use crate::{backends::Card, native::Native};

/// The module of coroutines.
pub fn wait(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = MODULE.get_or_try_init(py, || py.import("joulebook._wait").map(Bound::unbind))?;
    Ok(module.bind(py))
}

/// Waiting in this thread holds up nobody: no event loop runs here.
pub fn may_wait(py: Python<'_>) -> PyResult<bool> {
    wait(py)?.getattr("may_wait")?.call0()?.is_truthy()
}

/// Tells a person, through `logging`.
pub fn tell(py: Python<'_>, warnings: Vec<String>) -> PyResult<()> {
    if warnings.is_empty() {
        return Ok(());
    }
    let logger = py.import("logging")?.getattr("getLogger")?.call1(("joulebook",))?;
    for warning in warnings {
        logger.call_method1("warning", ("%s", warning))?;
    }
    Ok(())
}

/// What reads a backend that is written in Python, for one window.
pub fn reader<'py>(backend: &Bound<'py, PyAny>, interval_s: f64) -> PyResult<Bound<'py, PyAny>> {
    backend.py().import("joulebook._reader")?.getattr("Reader")?.call1((backend, interval_s))
}

/// The Python object for what reads a node's cards; none where nothing does.
pub fn backend<'py>(py: Python<'py>, native: &Arc<Native>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let name = native.backend();
    if name == "none" {
        return Ok(None);
    }
    let card = Card { native: Arc::clone(native) };
    py.import("joulebook.backends")?.getattr("_of")?.call1((name, card)).map(Some)
}
