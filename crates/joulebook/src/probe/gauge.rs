//! Watches a power gauge from a thread of its own, and integrates what it showed.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use joulebook_core::{
    Fault,
    register::Bracket,
    series::{Poll, plausible_power},
};

use super::{
    Readable,
    publish::{Renewal, renewal},
};
use crate::{
    clock::now_ns,
    reader::{Reader, Value},
};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;
const GAUGE_GAP_NS: u64 = 10 * MS;

/// A gauge that is being watched by a thread of its own.
pub(super) struct GaugeWatch {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<GaugeSamples>,
}

/// What a gauge showed.
#[derive(Debug, Default)]
pub(super) struct GaugeSamples {
    /// When, ns, and what, W.
    readings: Vec<(u64, f64)>,
    changes: Vec<Bracket>,
    calls_ns: Vec<u64>,
    fault: Option<Fault>,
    /// Which call answered.
    field: &'static str,
}

/// What a gauge says was drawn.
pub(super) struct Drawn {
    pub joules: f64,
    /// What the gauge may have missed between its updates, J.
    pub standard_error_j: f64,
    /// Between the powers at both ends, W.
    pub edge_difference_w: f64,
}

impl GaugeWatch {
    /// Starts to watch.
    pub(super) fn start(mut gauge: crate::nvml::NvmlGauge) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut samples = GaugeSamples::default();
            let limit = gauge.device().limit;
            while !stopped.load(Ordering::Relaxed) {
                let begin_ns = now_ns();
                let reading = gauge.read();
                let end_ns = now_ns();
                let power = reading.and_then(|reading| match reading.value {
                    Value::Power(power) if plausible_power(power, limit) => Ok(power.watts()),
                    Value::Power(_) => Err(Fault::Implausible),
                    Value::Counter(_) => Err(Fault::MalformedRow),
                });
                samples.field = gauge.field();
                samples.take(Poll::between(begin_ns, end_ns).at_ns, end_ns - begin_ns, power);
                if samples.fault == Some(Fault::NotSupported) {
                    break;
                }
                let left_ns = (begin_ns + GAUGE_GAP_NS).saturating_sub(now_ns()).max(MS);
                thread::sleep(Duration::from_nanos(left_ns));
            }
            samples
        });
        Self { stop, thread }
    }

    /// What it has shown.
    pub(super) fn stop(self) -> GaugeSamples {
        self.stop.store(true, Ordering::Relaxed);
        let nothing = || GaugeSamples { fault: Some(Fault::Unknown), ..GaugeSamples::default() };
        self.thread.join().unwrap_or_else(|_| nothing())
    }
}

impl GaugeSamples {
    pub(super) fn take(&mut self, at_ns: u64, call_ns: u64, power: Result<f64, Fault>) {
        match power {
            Ok(watts) => {
                if let Some((last_ns, last)) = self.readings.last()
                    && *last != watts
                {
                    self.changes.push(Bracket { after_ns: *last_ns, by_ns: at_ns });
                }
                self.readings.push((at_ns, watts));
                self.calls_ns.push(call_ns);
                self.fault = None;
            }
            Err(fault) => self.fault = Some(fault),
        }
    }

    /// Readable at last, or why not.
    pub(super) fn outcome(&self) -> Result<(), Fault> {
        match self.fault {
            Some(fault) => Err(fault),
            None if self.readings.is_empty() => Err(Fault::NotReady),
            None => Ok(()),
        }
    }

    pub(super) fn renewal(&self) -> Option<Renewal> {
        renewal(&self.changes, GAUGE_GAP_NS)
    }

    pub(super) fn mean_watts(&self) -> Option<f64> {
        let count = self.readings.len() as f64;
        (count > 0.0).then(|| self.readings.iter().map(|(_, watts)| watts).sum::<f64>() / count)
    }

    pub(super) fn range_watts(&self) -> Option<(f64, f64)> {
        let watts = || self.readings.iter().map(|(_, watts)| *watts);
        Some((watts().min_by(f64::total_cmp)?, watts().max_by(f64::total_cmp)?))
    }

    pub(super) fn readable(&self) -> Readable {
        let newest = self.readings.last().map(|(_, watts)| format!("{watts:.1} W"));
        let now = match (newest, self.fault) {
            (_, Some(fault)) => Err(fault),
            (Some(_), None) if self.field == "usage" => Err(Fault::NotSupported),
            (Some(newest), None) => Ok(newest),
            (None, None) => Err(Fault::NotReady),
        };
        Readable::timed("instant", now, &self.calls_ns)
    }

    /// What it says was drawn between two instants; `None` where it did not see all of it.
    pub(super) fn integral(&self, begin_ns: u64, end_ns: u64) -> Option<Drawn> {
        let (first_ns, _) = *self.readings.first()?;
        let (last_ns, _) = *self.readings.last()?;
        if first_ns > begin_ns || last_ns < end_ns || begin_ns >= end_ns {
            return None;
        }
        let mut joules = 0.0;
        let mut unevenness = 0.0;
        let mut at_begin = None;
        let mut at_end = None;
        for pair in self.readings.windows(2) {
            let [(from_ns, from), (to_ns, to)] = *pair else { continue };
            let overlap_ns = end_ns.min(to_ns).saturating_sub(begin_ns.max(from_ns));
            if overlap_ns == 0 {
                continue;
            }
            joules += f64::midpoint(from, to) * overlap_ns as f64 / SECOND as f64;
            unevenness += (to - from).powi(2);
            at_begin.get_or_insert(from);
            at_end = Some(to);
        }
        let seconds = (end_ns - begin_ns) as f64 / SECOND as f64;
        let update_s = self.renewal().map_or(0.1, |renewal| renewal.period_s).max(0.01);
        let updates = (seconds / update_s).max(1.0);
        // Half the mean square of successive differences: a drift counts little, a flicker fully.
        let variance = unevenness / (2.0 * updates);
        Some(Drawn {
            joules,
            standard_error_j: (variance / updates).sqrt() * seconds,
            edge_difference_w: (at_end? - at_begin?).abs(),
        })
    }
}
