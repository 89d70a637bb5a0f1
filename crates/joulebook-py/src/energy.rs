//! What a window cost, as Python reads it: a [`Measurement`] behind giul's names, and beside them
//! what giul does not know.
//!
//! giul's shape alone says 0.0 for what is not known; [`Energy::known_joules`] and the extended form
//! say none.

use joulebook::{
    Measurement, Method, Source, Tenancy,
    core::{Flags, estimate::Rule, measurement::Scope},
};
use pyo3::{
    exceptions::PyValueError,
    prelude::*,
    types::{PyDict, PyTuple},
};

use crate::words::{self, interned, word};

/// What a window cost, and how that is known. Immutable.
///
/// joules: energy above idle, J; the estimate where method is "estimated"; 0.0 where it is
/// "unknown" (known_joules is None then).
/// method: "sampled" (measured by a real card), "estimated" (tokens × hint) or "unknown".
/// seconds: length of the window. samples: sensor updates the figure stands on. mean_watts: gross
/// mean power seen. idle_watts: the floor that was subtracted.
/// source: "local", "remote" or "none". backend: what read the card, or tried to.
/// stages: an Energy for each mark. contended, contended_by: others were on the card, and who.
#[pyclass(module = "joulebook", frozen, eq)]
#[derive(Clone, Debug, PartialEq)]
pub struct Energy {
    pub measured: Measurement,
    /// A source that is none of the three words.
    pub named_source: Option<&'static str>,
}

impl From<Measurement> for Energy {
    fn from(measured: Measurement) -> Self {
        Self { measured, named_source: None }
    }
}

impl Energy {
    /// The same, with the source and the name of a backend that Python brought.
    pub fn read_by(mut self, backend: &'static str, source: &'static str) -> Self {
        let known = known_source(source);
        for (_, stage) in &mut self.measured.stages {
            stage.backend = backend;
            stage.source = known.unwrap_or_default();
        }
        self.measured.backend = backend;
        self.with_source(source)
    }

    pub fn with_source(mut self, source: &'static str) -> Self {
        let known = known_source(source);
        self.measured.source = known.unwrap_or_default();
        self.named_source = known.is_none().then_some(source);
        self
    }
}

fn known_source(word: &str) -> Option<Source> {
    match word {
        "local" => Some(Source::Local),
        "remote" => Some(Source::Remote),
        "none" => Some(Source::None),
        _ => None,
    }
}

fn tenancy_of(word: &str) -> PyResult<Tenancy> {
    [Tenancy::Alone, Tenancy::Foreign, Tenancy::Unknown]
        .into_iter()
        .find(|it| words::word(it) == word)
        .ok_or_else(|| PyValueError::new_err(format!("'{word}' is no tenancy")))
}

fn method_of(word: &str) -> PyResult<Method> {
    [Method::Sampled, Method::Estimated, Method::Unknown]
        .into_iter()
        .find(|it| words::word(it) == word)
        .ok_or_else(|| {
            PyValueError::new_err(format!(
                "method: '{word}' is none of 'sampled', 'estimated', 'unknown'"
            ))
        })
}

fn flags_of(words: &[String]) -> PyResult<Flags> {
    let single = |bit: u32| Flags::from_bits(1 << bit);
    words.iter().try_fold(Flags::NONE, |flags, word| {
        let known = (0..u32::BITS).map(single).find(|it| it.words().any(|name| name == word));
        known
            .map(|known| flags | known)
            .ok_or_else(|| PyValueError::new_err(format!("'{word}' is no flag")))
    })
}

#[pymethods]
impl Energy {
    #[new]
    #[pyo3(signature = (joules, method, seconds, samples=0, mean_watts=0.0, idle_watts=0.0,
        source="none", backend="none", stages=None, contended=false, contended_by="", *,
        settled=false, rule=None, bound_joules=None, low_joules=None, high_joules=None,
        gross_joules=None, lower_bound_joules=None, bridged_joules=None, tenancy="unknown",
        scope="gpu", polls=0, rejected=0, error=None, flags=Vec::new()))]
    #[allow(clippy::too_many_arguments)] // one for each field
    fn new(
        joules: f64,
        method: &str,
        seconds: f64,
        samples: u64,
        mean_watts: f64,
        idle_watts: Option<f64>,
        source: &str,
        backend: &str,
        stages: Option<&Bound<'_, PyAny>>,
        contended: bool,
        contended_by: &str,
        settled: bool,
        rule: Option<&str>,
        bound_joules: Option<f64>,
        low_joules: Option<f64>,
        high_joules: Option<f64>,
        gross_joules: Option<f64>,
        lower_bound_joules: Option<f64>,
        bridged_joules: Option<f64>,
        tenancy: &str,
        scope: &str,
        polls: u64,
        rejected: u64,
        error: Option<&str>,
        flags: Vec<String>,
    ) -> PyResult<Self> {
        let method = method_of(method)?;
        let stages = stages.map(stages_of).transpose()?.unwrap_or_default();
        let measured = Measurement {
            joules: (method != Method::Unknown || joules != 0.0).then_some(joules),
            method,
            seconds,
            samples,
            mean_watts,
            idle_watts,
            source: Source::None,
            backend: interned(backend),
            stages,
            contended_by: contended.then(|| contended_by.to_owned()),
            settled,
            rule: rule.map(|it| words::value::<Rule>(it, "rule")).transpose()?,
            bound_joules,
            low_joules,
            high_joules,
            gross_joules,
            lower_bound_joules,
            bridged_joules,
            tenancy: tenancy_of(tenancy)?,
            scope: words::value::<Scope>(scope, "scope")?,
            polls,
            rejected,
            error: error.map(|it| words::value(it, "error word")).transpose()?,
            flags: flags_of(&flags)?,
        };
        Ok(Self::from(measured).with_source(interned(source)))
    }

    /// Energy above idle, J; the estimate where method is "estimated", 0.0 where it is "unknown".
    #[getter]
    fn joules(&self) -> f64 {
        self.measured.joules.unwrap_or(0.0)
    }

    /// The same, and None where it is not known.
    #[getter]
    fn known_joules(&self) -> Option<f64> {
        self.measured.joules
    }

    /// "sampled", "estimated" or "unknown".
    #[getter]
    fn method(&self) -> &'static str {
        match self.measured.method {
            Method::Sampled => "sampled",
            Method::Estimated => "estimated",
            Method::Unknown => "unknown",
        }
    }

    /// Length of the window, s.
    #[getter]
    fn seconds(&self) -> f64 {
        self.measured.seconds
    }

    /// Sensor updates the figure stands on.
    #[getter]
    fn samples(&self) -> u64 {
        self.measured.samples
    }

    /// Gross mean power seen, W; 0.0 when nothing was seen.
    #[getter]
    fn mean_watts(&self) -> f64 {
        self.measured.mean_watts
    }

    /// The idle floor that was subtracted, W; 0.0 where none is known.
    #[getter]
    fn idle_watts(&self) -> f64 {
        self.measured.idle_watts.unwrap_or(0.0)
    }

    /// Whose reading it is: "local", "remote" or "none".
    #[getter]
    fn source(&self) -> &'static str {
        self.named_source.unwrap_or(match self.measured.source {
            Source::Local => "local",
            Source::Remote => "remote",
            Source::None => "none",
        })
    }

    /// What read the card, or tried to.
    #[getter]
    fn backend(&self) -> &'static str {
        self.measured.backend
    }

    /// An Energy for each mark, in order of their first.
    #[getter]
    fn stages<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stages = PyDict::new(py);
        for (name, stage) in &self.measured.stages {
            let named_source = self.named_source;
            stages.set_item(name, Self { measured: stage.clone(), named_source })?;
        }
        Ok(stages)
    }

    /// Somebody else was on the card, where the node names its own work.
    #[getter]
    fn contended(&self) -> bool {
        self.measured.contended_by.is_some()
    }

    /// Who: "name (N MiB)" of each, joined by ", ".
    #[getter]
    fn contended_by(&self) -> &str {
        self.measured.contended_by.as_deref().unwrap_or("")
    }

    /// False for the answer at once, which later readings may sharpen.
    #[getter]
    fn settled(&self) -> bool {
        self.measured.settled
    }

    /// What the figure was made by: "raw", "alone", "shared", "gauge"; None without one.
    #[getter]
    fn rule(&self) -> Option<String> {
        self.measured.rule.as_ref().map(word)
    }

    /// Worst-case measurement error of joules, J; None without a measurement.
    #[getter]
    fn bound_joules(&self) -> Option<f64> {
        self.measured.bound_joules
    }

    /// The least it can be, J, where the bound exceeds the value.
    #[getter]
    fn low_joules(&self) -> Option<f64> {
        self.measured.low_joules
    }

    /// The most it can be, J, where the bound exceeds the value.
    #[getter]
    fn high_joules(&self) -> Option<f64> {
        self.measured.high_joules
    }

    /// Energy before idle was subtracted, J.
    #[getter]
    fn gross_joules(&self) -> Option<f64> {
        self.measured.gross_joules
    }

    /// What is certainly known when the rest is not, J.
    #[getter]
    fn lower_bound_joules(&self) -> Option<f64> {
        self.measured.lower_bound_joules
    }

    /// Joules of it that bridge a stretch without readings.
    #[getter]
    fn bridged_joules(&self) -> Option<f64> {
        self.measured.bridged_joules
    }

    /// Who was on the card: "alone", "foreign" or "unknown".
    #[getter]
    fn tenancy(&self) -> String {
        word(&self.measured.tenancy)
    }

    /// What the register covers: "gpu", "module", "package" or "machine".
    #[getter]
    fn scope(&self) -> String {
        word(&self.measured.scope)
    }

    /// Readings made while the window was open.
    #[getter]
    fn polls(&self) -> u64 {
        self.measured.polls
    }

    /// Readings refused or failed meanwhile.
    #[getter]
    fn rejected(&self) -> u64 {
        self.measured.rejected
    }

    /// Why the figure is missing, in one word; None where it is not.
    #[getter]
    fn error(&self) -> Option<&'static str> {
        self.measured.error.map(|fault| fault.word())
    }

    /// What else is to be said, in words.
    #[getter]
    fn flags<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.measured.flags.words().collect::<Vec<_>>())
    }

    /// J per token; None for no tokens. 0.0 where the joules are not known, as in giul.
    fn per_token(&self, tokens: i64) -> Option<f64> {
        (tokens > 0).then(|| self.joules() / tokens as f64)
    }

    /// giul's form: its keys and its roundings. With extended=True ours: full figures, None for what
    /// is not known, and all the fields above.
    #[pyo3(signature = (tokens=0, *, extended=false))]
    fn as_dict<'py>(
        &self,
        py: Python<'py>,
        tokens: i64,
        extended: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let tokens = u64::try_from(tokens).unwrap_or(0);
        let form = if extended {
            words::to_python(py, &self.measured.form(tokens))?
        } else {
            words::to_python(py, &self.measured.giul_form(tokens))?
        };
        if let Some(source) = self.named_source {
            form.set_item("source", source)?;
            if let Ok(stages) = form.get_item("stages") {
                for stage in stages.call_method0("values")?.try_iter()? {
                    stage?.set_item("source", source)?;
                }
            }
        }
        Ok(form)
    }

    #[pyo3(signature = (**changes))]
    fn __replace__<'py>(
        this: &Bound<'py, Self>,
        changes: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let fields = Self::__getnewargs_ex__(this)?.1;
        if let Some(changes) = changes {
            fields.update(changes.as_mapping())?;
        }
        this.get_type().call((), Some(&fields))
    }

    fn __getnewargs_ex__<'py>(
        this: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        let fields = PyDict::new(this.py());
        for name in FIELDS.iter().chain(EXTENDED) {
            fields.set_item(name, this.getattr(*name)?)?;
        }
        // None is another thing than 0 W.
        fields.set_item("idle_watts", this.get().measured.idle_watts)?;
        Ok((PyTuple::empty(this.py()), fields))
    }

    #[classattr]
    fn __match_args__(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
        PyTuple::new(py, FIELDS)
    }

    fn __repr__(this: &Bound<'_, Self>) -> PyResult<String> {
        words::repr(this.as_any(), FIELDS)
    }
}

/// The fields beyond giul's.
const EXTENDED: &[&str] = &[
    "settled",
    "rule",
    "bound_joules",
    "low_joules",
    "high_joules",
    "gross_joules",
    "lower_bound_joules",
    "bridged_joules",
    "tenancy",
    "scope",
    "polls",
    "rejected",
    "error",
    "flags",
];

fn stages_of(given: &Bound<'_, PyAny>) -> PyResult<Vec<(String, Measurement)>> {
    let items = given.call_method0("items")?;
    let stage = |item: PyResult<Bound<'_, PyAny>>| {
        let (name, stage): (String, Bound<'_, Energy>) = item?.extract()?;
        Ok((name, stage.get().measured.clone()))
    };
    items.try_iter()?.map(stage).collect()
}

/// giul's fields, in its order.
const FIELDS: &[&str] = &[
    "joules",
    "method",
    "seconds",
    "samples",
    "mean_watts",
    "idle_watts",
    "source",
    "backend",
    "stages",
    "contended",
    "contended_by",
];
