//! The life of the process: the program from inside Python, forks, and the end of the interpreter.

use std::{cell::RefCell, ffi::OsString, process::ExitCode};

use joulebook::fork::Held;
use pyo3::{
    prelude::*,
    types::{PyDict, PyModule},
};

use crate::{bridge, native};

thread_local! {
    /// What is held still while this thread forks.
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

/// Has the interpreter tell when it forks or ends.
pub fn watch(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let calls = PyDict::new(py);
    calls.set_item("before", wrap_pyfunction!(_before_fork, module)?)?;
    calls.set_item("after_in_parent", wrap_pyfunction!(_after_fork_in_parent, module)?)?;
    calls.set_item("after_in_child", wrap_pyfunction!(_after_fork_in_child, module)?)?;
    py.import("os")?.getattr("register_at_fork")?.call((), Some(&calls))?;
    py.import("atexit")?.call_method1("register", (wrap_pyfunction!(_at_exit, module)?,))?;
    Ok(())
}

#[pyfunction]
fn _before_fork() {
    HELD.with_borrow_mut(|held| *held = Some(joulebook::fork::hold()));
}

#[pyfunction]
fn _after_fork_in_parent() {
    HELD.with_borrow_mut(|held| drop(held.take()));
}

#[pyfunction]
fn _after_fork_in_child() {
    if let Some(held) = HELD.with_borrow_mut(Option::take) {
        held.in_child();
    }
    native::forked();
    bridge::forked();
}

#[pyfunction]
fn _at_exit(py: Python<'_>) {
    bridge::close(py);
}

/// Runs the program `joulebook` with these arguments, the first of which is its name; returns its
/// exit code.
#[pyfunction]
pub fn main(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    let code = py.detach(|| joulebook_cli::main(arguments));
    // The standard library shows a code's number to nobody, but compares.
    (0..=u8::MAX).find(|number| ExitCode::from(*number) == code).unwrap_or(1)
}

/// The version of the package.
#[pyfunction]
pub const fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}
