//! Where a meter's window stands, and what it came to.

use std::sync::{
    Arc,
    atomic::{AtomicU32, AtomicU64, Ordering},
};

use joulebook::{Measurement, Pending, Window, core::Flags};
use pyo3::prelude::*;

use super::Meter;
use crate::{
    native::Native,
    python,
    readings::{Closing, Readings},
};

/// A meter's window.
#[derive(Default)]
pub enum State {
    #[default]
    Fresh,
    Open(Box<Open>),
    Closed(Box<Closed>),
}

pub struct Open {
    pub native: Arc<Native>,
    pub window: Window,
    /// What reads a backend that Python brought.
    pub reader: Option<Reader>,
    pub outer: Option<Py<Meter>>,
    /// It is the window that the caller's code is in.
    pub is_current: bool,
    pub place: Place,
    pub children: Arc<Children>,
}

pub struct Closed {
    pub native: Arc<Native>,
    pub pending: Pending,
    /// What the readings of Python's backend were, up to the end.
    pub readings: Option<Closing>,
    pub outer: Option<Py<Meter>>,
    pub overlapped: bool,
}

/// What reads a backend of Python's for one window.
pub struct Reader {
    /// The thread or task, in Python.
    pub driver: Py<PyAny>,
    readings: Py<Readings>,
}

impl Reader {
    pub fn of(backend: &Bound<'_, PyAny>, interval_s: f64) -> PyResult<Self> {
        Self::driven_by(python::reader(backend, interval_s)?)
    }

    pub fn driven_by(driver: Bound<'_, PyAny>) -> PyResult<Self> {
        let readings = driver.getattr("readings")?.cast_into::<Readings>()?.unbind();
        Ok(Self { driver: driver.unbind(), readings })
    }

    /// What a window that ends then stands on.
    pub fn until(&self, close_ns: u64) -> Closing {
        self.readings.get().until(close_ns)
    }
}

/// The windows opened inside one. They take nothing from it, and the card's own book of windows does
/// not see them, so they have to see each other.
#[derive(Default)]
pub struct Children {
    open: AtomicU32,
    opened: AtomicU64,
}

/// A window's place among the children of the one around it.
#[derive(Default)]
pub struct Place {
    around: Option<Arc<Children>>,
    crowded: bool,
    number: u64,
}

impl Place {
    pub fn among(around: &Arc<Children>) -> Self {
        let crowded = around.open.fetch_add(1, Ordering::Relaxed) > 0;
        let number = around.opened.fetch_add(1, Ordering::Relaxed) + 1;
        Self { around: Some(Arc::clone(around)), crowded, number }
    }

    /// A sibling was open at the same time.
    pub fn is_overlapped(&self) -> bool {
        let opened = |around: &Arc<Children>| around.opened.load(Ordering::Relaxed);
        self.crowded || self.around.as_ref().is_some_and(|around| opened(around) != self.number)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(around) = &self.around {
            around.open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// With the mark of a window that was open beside siblings.
pub fn marked(mut measured: Measurement, overlapped: bool) -> Measurement {
    if overlapped {
        measured.flags |= Flags::OVERLAP;
        measured.stages.iter_mut().for_each(|(_, stage)| stage.flags |= Flags::OVERLAP);
    }
    measured
}
