//! The Python package `joulebook`: the meter, the books and the program, natively.
//!
//! Classes of Rust where a window passes; coroutines, middleware and hooks are Python
//! (`python/joulebook`). What must hold everywhere: nothing is waited for with the interpreter held;
//! a fork's child reads for itself; a thread of ours never touches an interpreter that goes down.

mod backends;
mod books;
mod bridge;
mod current;
mod done;
mod energy;
mod jobs;
mod life;
mod meter;
mod native;
mod node;
mod python;
mod readings;
mod receipt;

mod words;

/// The native half of joulebook.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::backends::{
        _fits_then, _probe_then, Card, FitForPython, read_gpu_state, reset_probe_cache,
    };
    #[pymodule_export]
    use crate::books::{Books, Ticket};
    #[pymodule_export]
    use crate::current::{current_meter, mark};
    #[pymodule_export]
    use crate::energy::Energy;
    #[pymodule_export]
    use crate::life::{main, version};
    #[pymodule_export]
    use crate::meter::Meter;
    #[pymodule_export]
    use crate::node::Node;
    #[pymodule_export]
    use crate::readings::Readings;
    #[pymodule_export]
    use crate::receipt::Receipt;

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::life::watch(module)
    }
}
