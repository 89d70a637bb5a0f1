//! What a window runs on, as Python says it: our own [`Node`], or any object with its attributes.

use std::{
    hash::{Hash, Hasher},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use joulebook::Idle;
use pyo3::{
    IntoPyObjectExt,
    exceptions::{PyTypeError, PyValueError},
    intern,
    prelude::*,
    types::{PyDict, PyString, PyTuple},
};

use crate::native::{Asking, Native, Wanted};

/// The card a window is metering, and what it draws at rest.
///
/// name: what receipts and reports call it.
/// gpu_index: the driver's (NVML's) index of the card, not CUDA's; or a UUID, a PCI address or
/// "cuda:N" as a string.
/// idle_w: what the cards draw at rest, W. Declared, never guessed: 0.0 where it is left out and
/// only gpu_index is given, as in giul. None: the floor that `joulebook idle` has stored. With gpus:
/// their sum, or one for each; left out: the stored floors.
/// is_local: the card is in this machine. True where it is left out and gpus is given.
/// power_endpoint: the agent on the card's own machine, "http://host:9402".
/// serving_match: a part of the name of your own serving process (any case); whoever else is
/// resident makes a window contended. Left out, the card is taken for dedicated.
/// contention_floor_mib: a process that holds less memory is no tenant.
/// contention_ignore: parts of names that never are.
/// gpus: the cards of work that spans several, as gpu_index.
/// serving_pid, serving_port: your own serving process, by its id or the TCP port it listens on, on
/// the cards' machine.
/// token_file: the file that holds the agent's token.
///
/// Raises ValueError where a power or an index is no such thing.
#[pyclass(module = "joulebook", frozen, eq, hash)]
#[derive(Debug)]
pub struct Node {
    pub said: Said,
    cached: Mutex<Option<Arc<Native>>>,
}

/// What was said of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    pub name: String,
    pub gpu: Gpu,
    pub idle: IdleFloor,
    pub is_local: bool,
    pub power_endpoint: Option<String>,
    pub serving_match: Option<String>,
    pub contention_floor_mib: u64,
    pub contention_ignore: Vec<String>,
    pub gpus: Option<Vec<Gpu>>,
    pub serving_pid: Option<u32>,
    pub serving_port: Option<u16>,
    pub token_file: Option<PathBuf>,
}

/// A card as it is named.
#[derive(Clone, Debug, PartialEq, Eq, Hash, FromPyObject, IntoPyObject, IntoPyObjectRef)]
pub enum Gpu {
    /// The driver's index.
    Index(u32),
    /// A UUID, an address, `cuda:N`, or an index as text.
    Name(String),
}

/// An idle floor as it is said.
#[derive(Clone, Debug, PartialEq)]
pub enum IdleFloor {
    /// Not at all.
    LeftOut,
    /// `None`: what is stored.
    Stored,
    /// A power, W.
    Sum(f64),
    /// One a card, W.
    Each(Vec<f64>),
}

impl FromPyObject<'_, '_> for IdleFloor {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if given.is_none() {
            return Ok(Self::Stored);
        }
        if let Ok(watts) = given.extract::<f64>() {
            return Ok(Self::Sum(watts));
        }
        given.extract::<Vec<f64>>().map(Self::Each).map_err(|_| {
            PyTypeError::new_err("idle_w: watts, one for each of several cards, or None")
        })
    }
}

impl IdleFloor {
    pub fn check(&self) -> PyResult<()> {
        let each = match self {
            Self::LeftOut | Self::Stored => &[][..],
            Self::Sum(watts) => std::slice::from_ref(watts),
            Self::Each(each) => each,
        };
        match each.iter().find(|watts| !(watts.is_finite() && **watts >= 0.0)) {
            Some(watts) => Err(PyValueError::new_err(format!(
                "idle_w: {watts} is no power; give watts of 0 or more, or None for the stored floor"
            ))),
            None => Ok(()),
        }
    }
}

impl Gpu {
    pub fn text(&self) -> String {
        match self {
            Self::Index(index) => index.to_string(),
            Self::Name(name) => name.clone(),
        }
    }
}

impl Default for Said {
    fn default() -> Self {
        Self {
            name: String::new(),
            gpu: Gpu::Index(0),
            idle: IdleFloor::LeftOut,
            is_local: false,
            power_endpoint: None,
            serving_match: None,
            contention_floor_mib: 512,
            contention_ignore: Vec::new(),
            gpus: None,
            serving_pid: None,
            serving_port: None,
            token_file: None,
        }
    }
}

/// An attribute, where there is one that is not None.
fn said<'py, T>(node: &Bound<'py, PyAny>, name: &Bound<'py, PyString>) -> PyResult<Option<T>>
where
    T: for<'a> FromPyObject<'a, 'py>,
{
    let given = node.getattr_opt(name)?.filter(|it| !it.is_none());
    given.map(|it| it.extract::<T>().map_err(Into::into)).transpose()
}

impl Said {
    /// What any object says that has a node's attributes; those it lacks take the defaults.
    pub fn of(node: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = node.py();
        let blank = Self::default();
        let gpus: Option<Vec<Gpu>> = said(node, intern!(py, "gpus"))?;
        let idle = node.getattr_opt(intern!(py, "idle_w"))?;
        let is_local = node.getattr_opt(intern!(py, "is_local"))?;
        Ok(Self {
            name: said(node, intern!(py, "name"))?.unwrap_or_default(),
            gpu: said(node, intern!(py, "gpu_index"))?.unwrap_or(blank.gpu),
            idle: idle.map_or(Ok(IdleFloor::LeftOut), |it| it.extract())?,
            is_local: is_local.map_or(Ok(gpus.is_some()), |it| it.is_truthy())?,
            power_endpoint: said(node, intern!(py, "power_endpoint"))?,
            serving_match: said(node, intern!(py, "serving_match"))?,
            contention_floor_mib: said(node, intern!(py, "contention_floor_mib"))?
                .unwrap_or(blank.contention_floor_mib),
            contention_ignore: said(node, intern!(py, "contention_ignore"))?.unwrap_or_default(),
            gpus,
            serving_pid: said(node, intern!(py, "serving_pid"))?,
            serving_port: said(node, intern!(py, "serving_port"))?,
            token_file: said(node, intern!(py, "token_file"))?,
        })
    }

    /// True where the node names its own work, so that others make a window contended.
    pub fn watches_contention(&self) -> bool {
        let named = self.serving_match.as_ref().is_some_and(|name| !name.trim().is_empty());
        named || self.serving_pid.is_some() || self.serving_port.is_some()
    }

    /// The floor in force: 0 W is declared where one card is named the way of giul.
    pub fn idle(&self) -> Idle {
        match (&self.idle, &self.gpus) {
            (IdleFloor::LeftOut, None) => Idle::Sum(0.0),
            (IdleFloor::LeftOut, Some(_)) | (IdleFloor::Stored, _) => Idle::Stored,
            (IdleFloor::Sum(watts), _) => Idle::Sum(*watts),
            (IdleFloor::Each(each), _) => Idle::Each(each.clone()),
        }
    }

    pub fn gpus(&self) -> Vec<String> {
        match &self.gpus {
            Some(gpus) => gpus.iter().map(Gpu::text).collect(),
            None => vec![self.gpu.text()],
        }
    }

    /// The same cards by another node's rules of whose work is ours.
    pub fn with_rules_of(self, rules: &Self) -> Self {
        Self {
            name: rules.name.clone(),
            serving_match: rules.serving_match.clone(),
            contention_floor_mib: rules.contention_floor_mib,
            contention_ignore: rules.contention_ignore.clone(),
            serving_pid: rules.serving_pid,
            serving_port: rules.serving_port,
            ..self
        }
    }
}

impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.said == other.said
    }
}

impl Hash for Node {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.said.name.hash(state);
        self.said.gpu.hash(state);
        self.said.power_endpoint.hash(state);
    }
}

impl Node {
    /// Its native meter, as it was found before where that still holds.
    pub fn native(&self, asked: &Asking) -> Arc<Native> {
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(native) = &*cached
            && native.is_current()
            && native.wanted.is_asked_so(asked)
        {
            return Arc::clone(native);
        }
        Arc::clone(cached.insert(Native::of(&Wanted::node(self.said.clone(), *asked))))
    }
}

#[pymethods]
impl Node {
    #[new]
    #[pyo3(text_signature = "(name='', gpu_index=0, idle_w=0.0, is_local=False, power_endpoint=None, \
        serving_match=None, contention_floor_mib=512, contention_ignore=(), *, gpus=None, \
        serving_pid=None, serving_port=None, token_file=None)",
        signature = (name=String::new(), gpu_index=Gpu::Index(0), idle_w=IdleFloor::LeftOut,
        is_local=None, power_endpoint=None, serving_match=None, contention_floor_mib=512,
        contention_ignore=Vec::new(), *, gpus=None, serving_pid=None, serving_port=None,
        token_file=None))]
    #[allow(clippy::too_many_arguments)] // one for each thing that can be said
    fn new(
        name: String,
        gpu_index: Gpu,
        idle_w: IdleFloor,
        is_local: Option<bool>,
        power_endpoint: Option<String>,
        serving_match: Option<String>,
        contention_floor_mib: u64,
        contention_ignore: Vec<String>,
        gpus: Option<Vec<Gpu>>,
        serving_pid: Option<u32>,
        serving_port: Option<u16>,
        token_file: Option<PathBuf>,
    ) -> PyResult<Self> {
        idle_w.check()?;
        let said = Said {
            name,
            gpu: gpu_index,
            idle: idle_w,
            is_local: is_local.unwrap_or(gpus.is_some()),
            power_endpoint,
            serving_match,
            contention_floor_mib,
            contention_ignore,
            gpus,
            serving_pid,
            serving_port,
            token_file,
        };
        Ok(Self { said, cached: Mutex::default() })
    }

    /// What receipts and reports call it.
    #[getter]
    fn name(&self) -> &str {
        &self.said.name
    }

    /// The driver's index of the card, or its name.
    #[getter]
    fn gpu_index(&self) -> Gpu {
        self.said.gpu.clone()
    }

    /// What the cards draw at rest, W; None: the stored floor.
    #[getter]
    fn idle_w<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.said.idle() {
            Idle::Stored => Ok(py.None().into_bound(py)),
            Idle::Sum(watts) => watts.into_bound_py_any(py),
            Idle::Each(each) => PyTuple::new(py, each).map(Bound::into_any),
        }
    }

    /// The card is in this machine.
    #[getter]
    fn is_local(&self) -> bool {
        self.said.is_local
    }

    /// The agent on the card's own machine.
    #[getter]
    fn power_endpoint(&self) -> Option<&str> {
        self.said.power_endpoint.as_deref()
    }

    /// A part of the name of our own serving process.
    #[getter]
    fn serving_match(&self) -> Option<&str> {
        self.said.serving_match.as_deref()
    }

    /// A process that holds less memory is no tenant, MiB.
    #[getter]
    fn contention_floor_mib(&self) -> u64 {
        self.said.contention_floor_mib
    }

    /// Parts of names that are never tenants.
    #[getter]
    fn contention_ignore<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.said.contention_ignore)
    }

    /// The cards of work that spans several; None: the one of gpu_index.
    #[getter]
    fn gpus<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.said.gpus.as_ref().map(|gpus| PyTuple::new(py, gpus)).transpose()
    }

    /// Our own serving process.
    #[getter]
    fn serving_pid(&self) -> Option<u32> {
        self.said.serving_pid
    }

    /// The TCP port our own serving process listens on.
    #[getter]
    fn serving_port(&self) -> Option<u16> {
        self.said.serving_port
    }

    /// The file that holds the agent's token.
    #[getter]
    fn token_file(&self) -> Option<&Path> {
        self.said.token_file.as_deref()
    }

    /// The same node with some things said otherwise.
    #[pyo3(signature = (**changes))]
    fn __replace__<'py>(
        this: &Bound<'py, Self>,
        changes: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let said = Self::__getnewargs_ex__(this)?.1;
        if let Some(changes) = changes {
            said.update(changes.as_mapping())?;
        }
        this.get_type().call((), Some(&said))
    }

    fn __getnewargs_ex__<'py>(
        this: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        let py = this.py();
        let said = PyDict::new(py);
        for name in FIELDS {
            // What was left out may mean something else beside what is changed.
            let left_out = *name == "idle_w" && this.get().said.idle == IdleFloor::LeftOut;
            if !left_out {
                said.set_item(name, this.getattr(*name)?)?;
            }
        }
        Ok((PyTuple::empty(py), said))
    }

    #[classattr]
    fn __match_args__(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
        PyTuple::new(py, FIELDS)
    }

    fn __repr__(this: &Bound<'_, Self>) -> PyResult<String> {
        crate::words::repr(this.as_any(), FIELDS)
    }
}

/// Its fields, giul's first and in its order.
const FIELDS: &[&str] = &[
    "name",
    "gpu_index",
    "idle_w",
    "is_local",
    "power_endpoint",
    "serving_match",
    "contention_floor_mib",
    "contention_ignore",
    "gpus",
    "serving_pid",
    "serving_port",
    "token_file",
];
