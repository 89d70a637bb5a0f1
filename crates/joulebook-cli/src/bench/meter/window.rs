//! A window of all cards: opened and closed with the load's, and what it came to.

use std::time::{Duration, Instant};

use joulebook::{Measurement, Pending, Window, clock::now_ns, core::estimate::Span};

use super::Energy;
use crate::bench::{gauge, record::Counter};

/// How long a counter's last publish may take to come.
const SETTLE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(20);

/// A window that is open.
#[derive(Debug)]
pub struct Opened {
    counters: Vec<Window>,
    open_ns: u64,
}

/// One that has closed.
#[derive(Debug)]
pub struct Closed {
    counters: Vec<Pending>,
    /// Its ends.
    pub span: Span,
}

/// What it came to, card by card. None where a card was not read.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    gauges: Vec<Option<gauge::Window>>,
    sum: Option<gauge::Window>,
    counters: Vec<Option<Counter>>,
}

impl Energy {
    /// Opens a window now.
    pub fn open(&self) -> Opened {
        let counters = self.rails.iter().flat_map(|rails| &rails.counters);
        Opened { open_ns: now_ns(), counters: counters.map(joulebook::Meter::open).collect() }
    }

    /// What a window came to, once the registers have shown its end.
    pub async fn settle(&self, closed: Closed) -> Figures {
        let mut counters = Vec::new();
        for pending in closed.counters {
            let measured = settled(&pending).await;
            let microjoules = |joules: f64| (joules * 1e6).round() as u64;
            counters.push(measured.gross_joules.filter(|joules| *joules >= 0.0).map(|joules| {
                Counter {
                    energy_uj: microjoules(joules),
                    window_ns: closed.span.close_ns - closed.span.open_ns,
                    samples: measured.samples,
                    bound_uj: measured.bound_joules.map(microjoules),
                }
            }));
        }
        let rails = self.rails.as_ref();
        let gauges = rails.map(|rails| rails.gauges.as_slice()).unwrap_or_default();
        let readings: Vec<Vec<gauge::Reading>> = gauges
            .iter()
            .map(|gauge| gauge.between(closed.span.open_ns, closed.span.close_ns))
            .collect();
        let all: Vec<&[gauge::Reading]> = readings.iter().map(Vec::as_slice).collect();
        Figures {
            gauges: all.iter().map(|one| gauge::hold_forward(one, closed.span)).collect(),
            sum: gauge::hold_forward_cards(&all, closed.span),
            counters,
        }
    }
}

/// A counter's figure once its register has shown the window's end. A reader that is held up (a
/// host that is overloaded) is waited for longer than a window by itself would: the figure at once
/// misses what was drawn since the last publish.
async fn settled(pending: &Pending) -> Measurement {
    let until = Instant::now() + SETTLE;
    loop {
        let measured = pending.settle(Duration::ZERO);
        if measured.settled || Instant::now() >= until {
            return measured;
        }
        tokio::time::sleep(LOOK).await;
    }
}

impl Opened {
    /// Closes it now.
    pub fn close(self) -> Closed {
        let close_ns = now_ns();
        let counters = self.counters.into_iter().map(Window::close).collect();
        Closed { counters, span: Span { open_ns: self.open_ns, close_ns } }
    }

    /// When it was opened.
    pub const fn open_ns(&self) -> u64 {
        self.open_ns
    }
}

impl Figures {
    /// By the gauges, all cards together.
    pub const fn gauge(&self) -> Option<gauge::Window> {
        self.sum
    }

    /// By the counters, all cards together; none where one is missing.
    pub fn counter(&self) -> Option<Counter> {
        let all: Option<Vec<Counter>> = self.counters.iter().copied().collect();
        all?.into_iter().reduce(|sum, one| Counter {
            // The cards of one window: their energies add, its time does not.
            window_ns: sum.window_ns,
            ..sum.then(one)
        })
    }

    /// The mean power of each card: its counter's, else its gauge's.
    pub(super) fn watts(&self) -> Vec<Option<f64>> {
        let cards = self.counters.len().max(self.gauges.len());
        let of = |card: usize| {
            let counter = self.counters.get(card).copied().flatten();
            let gauge = self.gauges.get(card).copied().flatten();
            let by_counter = counter.and_then(Counter::mean_watts);
            by_counter.or_else(|| gauge.and_then(gauge::Window::mean_watts))
        };
        (0..cards).map(of).collect()
    }
}
