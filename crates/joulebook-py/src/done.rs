//! What a coroutine awaits that has nothing to wait for.

use pyo3::{exceptions::PyStopIteration, prelude::*};

/// An awaitable that has its value already: under any event loop, without a turn of it.
#[pyclass(module = "joulebook._native", frozen)]
pub struct Done(Option<Py<PyAny>>);

impl Done {
    pub fn with(py: Python<'_>, value: Option<Py<PyAny>>) -> PyResult<Bound<'_, PyAny>> {
        Ok(Bound::new(py, Self(value))?.into_any())
    }
}

#[pymethods]
impl Done {
    fn __await__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Err(PyStopIteration::new_err((self.0.as_ref().map(|value| value.clone_ref(py)),)))
    }
}
