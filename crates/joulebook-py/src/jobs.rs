//! What is waited for: a card's first reading, a window that settles, a receipt.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use joulebook::{Pending, books::PendingReceipt};
use pyo3::{IntoPyObjectExt, prelude::*};

use crate::{bridge::Job, energy::Energy, meter::Asked, native::Native, receipt::Receipt};

/// A card's first reading, while that is worth waiting for.
pub struct FirstReading(pub Arc<Native>);

impl Job for FirstReading {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        // Before the look, so that what comes after it is not missed.
        self.0.register(context.waker());
        if self.0.is_ready() { Poll::Ready(()) } else { Poll::Pending }
    }

    fn prepare(&mut self) {}

    fn hand_over<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(py.None().into_bound(py))
    }
}

/// A window on its way to its settled figure.
pub struct Settling {
    pub pending: Pending,
    pub asked: Asked,
    pub energy: Option<Energy>,
}

impl Job for Settling {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.pending).poll(context).map(drop)
    }

    fn prepare(&mut self) {
        self.energy = Some(self.asked.energy(&self.pending, Some(Duration::ZERO)));
    }

    fn hand_over<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.energy.clone().into_bound_py_any(py)
    }
}

/// A request on its way to its final receipt.
pub struct Receiving {
    pub pending: PendingReceipt,
    pub receipt: Option<Receipt>,
}

impl Job for Receiving {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.pending).poll(context).map(drop)
    }

    fn prepare(&mut self) {
        self.receipt = Some(Receipt(self.pending.now()));
    }

    fn hand_over<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.receipt.clone().into_bound_py_any(py)
    }
}
