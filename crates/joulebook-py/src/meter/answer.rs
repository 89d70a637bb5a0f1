//! What a window came to.

use std::{sync::Arc, time::Duration};

use joulebook::{
    Pending, Source,
    core::{
        Flags,
        grade::{Context, Hint},
        measurement::Scope,
    },
};
use pyo3::prelude::*;

use super::{
    Meter,
    state::{State, marked},
};
use crate::{energy::Energy, native::Native, readings::Closing};

/// How a window's figure is asked for: all that is known of it besides the window.
#[derive(Clone)]
pub struct Asked {
    native: Arc<Native>,
    /// Where it was said.
    source: Option<&'static str>,
    /// The name of Python's backend.
    backend: Option<&'static str>,
    readings: Option<Closing>,
    overlapped: bool,
    tokens: u64,
}

impl Asked {
    /// The figure at once, or settled when `pending` has within this time.
    pub fn energy(&self, pending: &Pending, settled: Option<Duration>) -> Energy {
        if let (Some(readings), Some(backend)) = (&self.readings, self.backend) {
            return self.read_by_python(readings, backend, pending);
        }
        let measured = settled.map_or_else(|| pending.now(), |timeout| pending.settle(timeout));
        let energy = Energy::from(marked(measured, self.overlapped));
        match (self.source, self.backend) {
            (source, Some(backend)) => energy.read_by(backend, source.unwrap_or("none")),
            (Some(source), None) => energy.with_source(source),
            // An agent that cannot be reached is still what was asked.
            (None, None) if self.native.wanted.is_remote() && energy.measured.backend == "none" => {
                energy.read_by(self.native.backend(), self.native.source())
            }
            (None, None) => energy,
        }
    }

    fn read_by_python(
        &self,
        readings: &Closing,
        backend: &'static str,
        pending: &Pending,
    ) -> Energy {
        // The native window has watched who else was there.
        let seen = pending.now();
        let context = Context {
            seconds: 0.0,
            idle_seconds: 0.0,
            idle_w: self.native.idle_watts(),
            source: Source::None,
            backend,
            tenancy: seen.tenancy,
            contended_by: seen.contended_by,
            scope: Scope::Gpu,
            settled: false,
            polls: 0,
            rejected: 0,
            flags: Flags::NONE,
        };
        let joules_per_1k = self.native.wanted.asking.joules_per_1k_hint;
        let measured = readings.measurement(&context, Hint { tokens: self.tokens, joules_per_1k });
        let energy = Energy::from(marked(measured, self.overlapped));
        energy.read_by(backend, self.source.unwrap_or("none"))
    }
}

impl Meter {
    /// The window's end, or where it stands, and how it is asked.
    pub(super) fn pending(&self, py: Python<'_>, tokens: Option<i64>) -> (Pending, Asked) {
        let tokens = tokens.and_then(|tokens| u64::try_from(tokens).ok()).unwrap_or(0);
        // Asking Python's backend its name may run code of its own: not under the lock.
        let backend = self.is_read_by_python().then(|| self.name_of_backend(py));
        let inner = self.lock();
        let (pending, native, readings, overlapped) = match &inner.state {
            State::Fresh => (inner.native.blank().open().so_far(), &inner.native, None, false),
            State::Open(open) => {
                let readings = open.reader.as_ref().map(|it| it.until(joulebook::clock::now_ns()));
                (open.window.so_far(), &open.native, readings, open.place.is_overlapped())
            }
            State::Closed(closed) => {
                let readings = closed.readings.clone();
                (closed.pending.clone(), &closed.native, readings, closed.overlapped)
            }
        };
        let native = Arc::clone(native);
        let asked = Asked { native, source: inner.source, backend, readings, overlapped, tokens };
        drop(inner);
        (pending.tokens(tokens), asked)
    }

    fn is_read_by_python(&self) -> bool {
        let inner = self.lock();
        match &inner.state {
            State::Fresh => inner.backend.is_some(),
            State::Open(open) => open.reader.is_some(),
            State::Closed(closed) => closed.readings.is_some(),
        }
    }
}
