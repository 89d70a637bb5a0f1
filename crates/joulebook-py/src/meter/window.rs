//! Opening and closing: from a meter to its window, and on to what is pending.

use std::sync::{Arc, MutexGuard, PoisonError};

use joulebook::clock::now_ns;
use pyo3::{exceptions::PyException, prelude::*};

use super::{
    Inner, Meter,
    state::{Closed, Open, Place, Reader, State},
};
use crate::{backends::Card, current, native::Native, python};

impl Meter {
    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its native meter now: another one after a fork, or when what was probed has been forgotten.
    pub(super) fn native(&self) -> Arc<Native> {
        let mut inner = self.lock();
        if !inner.native.is_current() {
            inner.native = Native::of(&inner.wanted);
        }
        Arc::clone(&inner.native)
    }

    /// Waits for the first reading of a search that has just begun, where that keeps no event loop.
    pub(super) fn give_time(py: Python<'_>, native: &Native) -> PyResult<()> {
        if !native.is_ready() && python::may_wait(py)? {
            py.detach(|| native.wait());
        }
        python::tell(py, native.untold())
    }

    /// A reader for one window, where the backend can only be read through Python.
    pub(super) fn reader(&self, py: Python<'_>) -> PyResult<Option<Reader>> {
        let inner = self.lock();
        let Some(backend) = inner.backend.as_ref().map(|it| it.bind(py).clone()) else {
            return Ok(None);
        };
        let interval_s = inner.interval_s;
        drop(inner);
        if Card::behind(&backend)?.is_some() {
            return Ok(None);
        }
        Reader::of(&backend, interval_s).map(Some)
    }

    pub fn is_open(&self) -> bool {
        matches!(&self.lock().state, State::Open(open) if open.native.is_ours())
    }

    /// The window around this one's.
    pub fn outer(&self, py: Python<'_>) -> Option<Py<Self>> {
        let inner = self.lock();
        let outer = match &inner.state {
            State::Fresh => None,
            State::Open(open) => open.outer.as_ref(),
            State::Closed(closed) => closed.outer.as_ref(),
        };
        outer.map(|outer| outer.clone_ref(py))
    }

    /// The window, and its place where it lies inside another one on the same cards.
    fn window(native: &Native, outer: Option<&Self>) -> (joulebook::Window, Place) {
        if let Some(outer) = outer
            && let State::Open(open) = &outer.lock().state
            && let Some(window) = native.meter().open_inside(&open.window)
        {
            return (window, Place::among(&open.children));
        }
        (native.meter().open(), Place::default())
    }

    /// Opens the window; where `is_current`, code of the caller's is in it from here on.
    pub(super) fn open(
        this: &Bound<'_, Self>,
        reader: Option<Reader>,
        is_current: bool,
    ) -> PyResult<()> {
        let py = this.py();
        let me = this.get();
        let native = me.native();
        let around = current::current(py)?;
        let outer = match around {
            Some(around) if around.is(this) => me.outer(py),
            around => around,
        };
        let (window, place) = Self::window(&native, outer.as_ref().map(Py::get));
        let children = Arc::default();
        let open = Open { native, window, reader, outer, is_current, place, children };
        let before = std::mem::replace(&mut me.lock().state, State::Open(Box::new(open)));
        if let State::Open(open) = &before
            && let Some(reader) = open.reader.as_ref().filter(|_| open.native.is_ours())
        {
            reader.driver.call_method0(py, "_stop_reading")?;
        }
        // What it held may run code of its own when it goes.
        drop(before);
        if is_current { current::set(py, Some(this.as_unbound())) } else { Ok(()) }
    }

    /// Opens the window of a block or of start(): waits where that is due.
    pub(super) fn begin(this: &Bound<'_, Self>, is_current: bool) -> PyResult<()> {
        let py = this.py();
        Self::give_time(py, &this.get().native())?;
        let Some(reader) = this.get().reader(py)? else {
            return Self::open(this, None, is_current);
        };
        let driver = reader.driver.clone_ref(py);
        let opened = driver.call_method0(py, "open");
        let opened = opened.and_then(|_| Self::open(this, Some(reader), is_current));
        if opened.is_err() {
            // An interrupt: no window, and so nobody who would end what reads for it.
            driver.call_method0(py, "_stop_reading")?;
        }
        opened
    }

    /// Runs the caller's sync and stops the clock. An interrupt that comes meanwhile is handed back.
    pub(super) fn halt(&self, py: Python<'_>) -> (u64, Option<PyErr>) {
        let sync = self.lock().sync.as_ref().map(|sync| sync.clone_ref(py));
        let failed = sync.and_then(|sync| sync.call0(py).err());
        let interrupt = failed.filter(|error| !error.is_instance_of::<PyException>(py));
        (now_ns(), interrupt)
    }

    pub(super) fn close(&self, py: Python<'_>, close_ns: u64) -> PyResult<()> {
        let mut inner = self.lock();
        let open = match std::mem::take(&mut inner.state) {
            State::Open(open) => open,
            closed => {
                inner.state = closed;
                return Ok(());
            }
        };
        let Open { native, window, reader, outer, is_current, place, .. } = *open;
        let overlapped = place.is_overlapped();
        let pending = if native.is_ours() {
            window.close()
        } else {
            // The window of a fork's parent: its cards are not read here, and not ours to leave.
            std::mem::forget(window);
            native.blank().open().close()
        };
        let readings = reader.as_ref().map(|reader| reader.until(close_ns));
        let outer = outer.filter(|outer| !std::ptr::eq(outer.get(), self));
        drop(inner);
        let outer = outer.filter(|outer| outer.get().is_open());
        if is_current {
            current::set(py, outer.as_ref())?;
        }
        let closed = Closed { native, pending, readings, outer, overlapped };
        self.lock().state = State::Closed(Box::new(closed));
        Ok(())
    }

    /// The Python side of what reads the open window.
    pub(super) fn reading(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        match &self.lock().state {
            State::Open(open) => open.reader.as_ref().map(|reader| reader.driver.clone_ref(py)),
            State::Fresh | State::Closed(_) => None,
        }
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut Inner)) {
        let mut inner = self.lock();
        change(&mut inner);
        inner.native = Native::of(&inner.wanted);
    }
}
