//! Cards as backends: what the classes in `joulebook.backends` stand on, and the questions about a
//! card that are asked outside of windows.

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use joulebook::{
    Backend, Node as NodeOfCards, Reader, Value,
    nvml::{CardInfo, Driver, Fit, NvmlCounter, NvmlGauge, PowerField, cards},
};
use pyo3::{IntoPyObjectExt, prelude::*, types::PyDict};

use crate::{
    bridge,
    native::{Asking, Native, Wanted, forget},
    node::{Gpu, IdleFloor, Node, Said},
    words,
};

/// How long nvidia-smi may take to show a power.
const ROWS: Duration = Duration::from_secs(1);
const STEP: Duration = Duration::from_millis(20);

/// A card that is read natively.
#[pyclass(module = "joulebook._native", frozen)]
pub struct Card {
    pub native: Arc<Native>,
}

/// What a Python object may say in the place of its card.
const READS: [&str; 4] = ["read_joules", "read_watts", "aread_joules", "aread_watts"];

impl Card {
    /// The card behind one of our own backends; none of others, and where somebody has put another
    /// way of reading in the place of ours.
    pub fn behind<'py>(backend: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, Self>>> {
        let ours = backend.get_type().module()? == "joulebook.backends";
        let Some(dict) = backend.getattr_opt("__dict__")?.filter(|_| ours) else { return Ok(None) };
        let dict = dict.cast_into::<PyDict>()?;
        for name in READS {
            if dict.contains(name)? {
                return Ok(None);
            }
        }
        Ok(dict.get_item("_card")?.and_then(|card| card.cast_into().ok()))
    }

    fn ready(py: Python<'_>, wanted: &Wanted) -> Self {
        let native = Native::of(wanted);
        py.detach(|| native.wait());
        Self { native }
    }
}

/// A card of this machine.
fn local(gpu: Gpu) -> Said {
    Said { gpu, is_local: true, idle: IdleFloor::Sum(0.0), ..Said::default() }
}

#[pymethods]
impl Card {
    /// A card of this machine, by the best reader it has.
    #[staticmethod]
    fn local(py: Python<'_>, gpu_index: Gpu) -> Self {
        Self::ready(py, &Wanted::node(local(gpu_index), Asking::usual(0.0)))
    }

    /// The same through nvidia-smi.
    #[staticmethod]
    fn program(gpu_index: Gpu) -> Self {
        let wanted =
            Wanted { by_program: true, ..Wanted::node(local(gpu_index), Asking::usual(0.0)) };
        Self { native: Native::of(&wanted) }
    }

    /// A card of another machine, by the agent there.
    #[staticmethod]
    fn agent(endpoint: String, gpu_index: Gpu, timeout_s: f64) -> Self {
        let said = Said { is_local: false, power_endpoint: Some(endpoint), ..local(gpu_index) };
        Self { native: Native::of(&Wanted::node(said, Asking { timeout_s, ..Asking::usual(0.0) })) }
    }

    /// What reads it.
    #[getter]
    fn backend_name(&self) -> &'static str {
        self.native.backend()
    }

    /// What it draws now, W; None where that cannot be read. Asks the driver, or the agent.
    fn watts(&self, py: Python<'_>) -> Option<f64> {
        py.detach(|| {
            self.native.wait();
            if self.native.wanted.is_remote() {
                let node = self.native.wanted.node_of_cards();
                return joulebook::probe_node(&node).and_then(|state| state.watts);
            }
            match self
                .read(|driver, card| Box::new(NvmlGauge::open(driver, card, PowerField::Instant)))
            {
                Some(Value::Power(power)) => Some(power.watts()),
                Some(Value::Counter(_)) => None,
                None => self.shown(),
            }
        })
    }

    /// What its register counts, J since the driver was loaded; None where it has none that can be
    /// read. Asks the driver.
    fn joules(&self, py: Python<'_>) -> Option<f64> {
        py.detach(|| {
            self.native.wait();
            match self.read(|driver, card| Box::new(NvmlCounter::open(driver, card)))? {
                Value::Counter(millijoules) => Some(millijoules as f64 / 1000.0),
                Value::Power(_) => None,
            }
        })
    }
}

impl Card {
    /// One reading through the driver's library, where that reads the card.
    fn read(&self, open: fn(&Arc<Driver>, &CardInfo) -> Box<dyn Reader>) -> Option<Value> {
        let device = self.native.meter().cards().first()?.device();
        if !matches!(device.backend, Backend::NvmlCounter | Backend::NvmlPower) {
            return None;
        }
        let driver = Driver::shared();
        let listed = cards(&driver).ok()?;
        let card = listed.cards.iter().find(|card| card.uuid == device.uuid)?;
        open(&driver, card).read().ok().map(|reading| reading.value)
    }

    /// What its recorder shows, W; its first two rows are waited for.
    fn shown(&self) -> Option<f64> {
        let meter = self.native.meter();
        let is_read_by_library =
            meter.cards().iter().any(|card| card.device().backend != Backend::SmiSampler);
        let until = Instant::now() + ROWS;
        loop {
            let watts = meter.power();
            if watts.is_some() || is_read_by_library || meter.cards().is_empty() {
                return watts.filter(|_| !is_read_by_library);
            }
            if Instant::now() >= until {
                return None;
            }
            thread::sleep(STEP);
        }
    }
}

fn node_of_cards(node: &Bound<'_, PyAny>) -> PyResult<Option<NodeOfCards>> {
    let said = match node.cast::<Node>() {
        Ok(node) => node.get().said.clone(),
        Err(_) => Said::of(node)?,
    };
    let is_nothing = !said.is_local && said.power_endpoint.is_none();
    Ok((!is_nothing).then(|| Wanted::node(said, Asking::usual(0.0)).node_of_cards()))
}

/// The state of a card of this machine now: gpu, name, watts, memory_used_mib, memory_total_mib,
/// memory_free_mib, utilization_pct, compute_apps; each None where it cannot be read. None when
/// nothing can, which is not "fine". Asks the driver, in this thread.
#[pyfunction]
#[pyo3(text_signature = "(gpu_index=0)", signature = (gpu_index=Gpu::Index(0)))]
pub fn read_gpu_state(py: Python<'_>, gpu_index: Gpu) -> PyResult<Option<Bound<'_, PyAny>>> {
    let node = NodeOfCards::of(gpu_index.text());
    let state = py.detach(|| joulebook::probe_node(&node));
    state.map(|state| words::to_python(py, &state)).transpose()
}

/// Calls `then` with the state of a node's card.
#[pyfunction]
pub fn _probe_then(node: &Bound<'_, PyAny>, then: Py<PyAny>) -> PyResult<()> {
    let node = node_of_cards(node)?;
    let probe = move || node.and_then(|node| joulebook::probe_node(&node));
    bridge::run_apart(probe, |py, state| words::to_python(py, &state), then)
}

/// Calls `then` with a Fit.
#[pyfunction]
pub fn _fits_then(node: &Bound<'_, PyAny>, need_mib: u64, then: Py<PyAny>) -> PyResult<()> {
    let node = node_of_cards(node)?;
    let fits = move || node.map_or(Fit::Unknown, |node| joulebook::fits(&node, need_mib));
    bridge::run_apart(fits, FitForPython::give, then)
}

/// Whether so much memory is free on a card. True only for yes.
///
/// fits: True, False, or None where that cannot be seen. short_by_mib: what is missing, MiB.
/// held_by: who holds the memory, "name (N MiB)", as far as is known.
#[pyclass(module = "joulebook", name = "Fit", frozen, eq, get_all)]
#[derive(Default, PartialEq, Eq)]
pub struct FitForPython {
    fits: Option<bool>,
    short_by_mib: Option<u64>,
    held_by: Vec<String>,
}

impl FitForPython {
    fn give(py: Python<'_>, fit: Fit) -> PyResult<Bound<'_, PyAny>> {
        let fit = match fit {
            Fit::Yes => Self { fits: Some(true), ..Self::default() },
            Fit::No { short_by_mib, held_by } => {
                Self { fits: Some(false), short_by_mib: Some(short_by_mib), held_by }
            }
            Fit::Unknown => Self::default(),
        };
        fit.into_bound_py_any(py)
    }
}

#[pymethods]
impl FitForPython {
    #[new]
    #[pyo3(signature = (fits=None, short_by_mib=None, held_by=Vec::new()))]
    const fn new(fits: Option<bool>, short_by_mib: Option<u64>, held_by: Vec<String>) -> Self {
        Self { fits, short_by_mib, held_by }
    }

    fn __bool__(&self) -> bool {
        self.fits == Some(true)
    }

    fn __repr__(this: &Bound<'_, Self>) -> PyResult<String> {
        words::repr(this.as_any(), &["fits", "short_by_mib", "held_by"])
    }
}

/// Forgets which cards were found and what they do not support, so that the next meter looks anew.
#[pyfunction]
pub fn reset_probe_cache(py: Python<'_>) {
    py.detach(forget);
}
