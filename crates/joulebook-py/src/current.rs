//! The window that the running code is in: a context variable, so that each thread and each task has
//! its own, and nested code can mark it without being handed it.

use pyo3::{prelude::*, sync::PyOnceLock, types::PyDict};

use crate::meter::Meter;

struct Variable {
    get: Py<PyAny>,
    set: Py<PyAny>,
}

fn variable(py: Python<'_>) -> PyResult<&Variable> {
    static VARIABLE: PyOnceLock<Variable> = PyOnceLock::new();
    VARIABLE.get_or_try_init(py, || {
        let default = PyDict::new(py);
        default.set_item("default", py.None())?;
        let make = py.import("contextvars")?.getattr("ContextVar")?;
        let variable = make.call(("joulebook_window",), Some(&default))?;
        let get = variable.getattr("get")?.unbind();
        Ok(Variable { get, set: variable.getattr("set")?.unbind() })
    })
}

/// The innermost window that is open around the caller.
pub fn current(py: Python<'_>) -> PyResult<Option<Py<Meter>>> {
    let mut found = variable(py)?.get.bind(py).call0()?.cast_into::<Meter>().ok();
    // A task may outlive the window it was started in, and not what is around that.
    while let Some(meter) = found {
        if meter.get().is_open() {
            return Ok(Some(meter.unbind()));
        }
        found = meter.get().outer(py).map(|outer| outer.into_bound(py));
    }
    Ok(None)
}

/// Makes a window, or none, the caller's.
pub fn set(py: Python<'_>, meter: Option<&Py<Meter>>) -> PyResult<()> {
    variable(py)?.set.bind(py).call1((meter,)).map(drop)
}

/// The window that the running code is in, or None.
#[pyfunction]
#[pyo3(name = "current")]
pub fn current_meter(py: Python<'_>) -> PyResult<Option<Py<Meter>>> {
    current(py)
}

/// Marks the window that the running code is in, if it is in one: Meter.mark without the meter.
#[pyfunction]
pub fn mark(py: Python<'_>, name: String) -> PyResult<()> {
    current(py)?.map_or(Ok(()), |meter| meter.get().mark(py, name))
}
