//! Between Rust's words and values and Python's.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use pyo3::{exceptions::PyValueError, prelude::*, sync::PyOnceLock};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

/// A word that lives as long as the process, kept once. Names of backends and the like are few.
pub fn interned(word: &str) -> &'static str {
    static WORDS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut words = WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = words.get(word) {
        return known;
    }
    let kept: &'static str = Box::leak(word.to_owned().into_boxed_str());
    words.insert(kept);
    kept
}

/// The word of a value that serialises as one.
pub fn word(of: &impl Serialize) -> String {
    match serde_json::to_value(of) {
        Ok(Value::String(word)) => word,
        _ => String::new(),
    }
}

/// The value of a word; what it was for stands in the error.
pub fn value<T: DeserializeOwned>(word: &str, what: &str) -> PyResult<T> {
    serde_json::from_value(Value::String(word.to_owned()))
        .map_err(|_| PyValueError::new_err(format!("'{word}' is no {what}")))
}

/// The same data as Python's own dicts, lists, numbers and strings, keys in order.
pub fn to_python<'py>(py: Python<'py>, of: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    static LOADS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let text = serde_json::to_string(of)
        .map_err(|error| PyValueError::new_err(format!("not to be written as JSON: {error}")))?;
    LOADS.import(py, "json", "loads")?.call1((text,))
}

/// `Type(name=value, …)`, as a dataclass shows itself.
pub fn repr(of: &Bound<'_, PyAny>, names: &[&str]) -> PyResult<String> {
    let field = |name: &&str| Ok(format!("{name}={}", of.getattr(*name)?.repr()?));
    let fields: PyResult<Vec<String>> = names.iter().map(field).collect();
    Ok(format!("{}({})", of.get_type().name()?, fields?.join(", ")))
}
