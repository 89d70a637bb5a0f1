//! Windows of each length around a piece of work, by the library's own meter: both answers.

use std::{thread, time::Duration};

use joulebook::{Measurement, Meter};

use super::work::Work;

/// One window around one piece of work.
#[derive(Clone, Debug)]
pub struct Window {
    pub wanted_ms: u64,
    /// Between the edges of the work, s.
    pub worked_s: f64,
    pub at_once: Measurement,
    pub settled: Measurement,
    /// The truth of the window above idle, J, where it is known.
    pub truth_j: Option<f64>,
}

/// Opens a window, works for so long, closes it, and asks for both answers.
pub fn around(
    meter: &Meter,
    work: &mut dyn Work,
    wanted: Duration,
    idle_w: f64,
) -> Result<Window, String> {
    let window = meter.open();
    let open_ns = joulebook::clock::now_ns();
    let begin_ns = work.begin()?;
    thread::sleep(wanted);
    let end_ns = work.end()?;
    let pending = window.close();
    let close_ns = joulebook::clock::now_ns();
    let at_once = pending.now();
    let settled = pending.settle(Duration::from_secs(5));
    let truth_j = work
        .truth_j(open_ns, close_ns)
        .map(|joules| joules - idle_w * (close_ns - open_ns) as f64 / 1e9);
    Ok(Window {
        wanted_ms: u64::try_from(wanted.as_millis()).unwrap_or(u64::MAX),
        worked_s: end_ns.saturating_sub(begin_ns) as f64 / 1e9,
        at_once,
        settled,
        truth_j,
    })
}
