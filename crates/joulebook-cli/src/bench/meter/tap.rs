//! A reader that writes down every reading on its way to its recorder.
//!
//! The recorder keeps what windows need; the integral of a gauge also wants each reading as it was,
//! with its flags known or unknown. The mean is written down where a card shows one beside the
//! instant: a power that is averaged over all the time between two readings misses nothing.

use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use std::sync::Arc;

use joulebook::{Device, Fault, Power, Reader, Reading, Value, clock::now_ns};

use crate::bench::gauge;

/// What was read.
#[derive(Debug, Default)]
pub(super) struct Log {
    readings: Mutex<Vec<gauge::Reading>>,
    refused: AtomicU64,
    mean: std::sync::atomic::AtomicBool,
    field: Mutex<Option<&'static str>>,
}

/// The reader.
pub(super) struct Tap<R> {
    inner: R,
    log: Arc<Log>,
    /// What a reading's value is called.
    field: fn(&R) -> Option<&'static str>,
}

impl Log {
    /// The readings between two instants.
    pub fn between(&self, from_ns: u64, to_ns: u64) -> Vec<gauge::Reading> {
        let readings = lock(&self.readings);
        let is_inside = |it: &&gauge::Reading| from_ns <= it.at_ns && it.at_ns <= to_ns;
        readings.iter().filter(is_inside).copied().collect()
    }

    /// True once there is a reading.
    pub fn has_any(&self) -> bool {
        !lock(&self.readings).is_empty()
    }

    /// Calls that gave no reading.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// What the readings are: a mean, or what the reader calls its value.
    pub fn field(&self) -> Option<&'static str> {
        if self.mean.load(Ordering::Relaxed) { Some("average") } else { *lock(&self.field) }
    }

    fn take(&self, at_ns: u64, reading: &Result<Reading, Fault>) {
        let Ok(Reading { value: Value::Power(value), mean, throttle }) = reading else {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return;
        };
        self.mean.store(mean.is_some(), Ordering::Relaxed);
        let power: Power = mean.map_or(*value, |mean| mean.power);
        let throttle = throttle.unwrap_or_default();
        let (capped, braked) = (throttle.power_capped, throttle.power_braked);
        lock(&self.readings).push(gauge::Reading { at_ns, power, capped, braked });
    }
}

impl<R: Reader> Tap<R> {
    pub fn new(inner: R, field: fn(&R) -> Option<&'static str>) -> (Self, Arc<Log>) {
        let log = Arc::<Log>::default();
        (Self { inner, log: Arc::clone(&log), field }, log)
    }
}

impl<R: Reader> Reader for Tap<R> {
    fn device(&self) -> Device {
        self.inner.device()
    }

    fn read(&mut self) -> Result<Reading, Fault> {
        let before_ns = now_ns();
        let reading = self.inner.read();
        let middle_ns = before_ns.midpoint(now_ns());
        self.log.take(self.inner.taken_ns().unwrap_or(middle_ns), &reading);
        *lock(&self.log.field) = (self.field)(&self.inner);
        reading
    }

    fn taken_ns(&self) -> Option<u64> {
        self.inner.taken_ns()
    }

    fn every_ns(&self) -> Option<u64> {
        self.inner.every_ns()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
