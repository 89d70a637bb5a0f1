//! Polls of one register, and what they showed: each publish between two polls.
//!
//! A counter goes through the library's own [`Register`], so that a glitch or a restart is no
//! energy here either; a gauge's publish is a value unlike the one before.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use joulebook::{
    Reader, Value,
    clock::now_ns,
    core::{
        Fault, Power,
        register::{Bracket, Modulus, Register, Scale, Step},
    },
};

/// Polls kept at most at full speed: a guard for memory, far above what a driver answers.
const MOST_PUBLISHES: usize = 1_000_000;

/// A new value, and when it can have come.
#[derive(Clone, Copy, Debug)]
pub struct Publish {
    pub at: Bracket,
    /// J counted so far, or W.
    pub value: f64,
}

/// What polling a register showed.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    pub publishes: Vec<Publish>,
    pub polls: u64,
    pub failed: u64,
    pub fault: Option<Fault>,
    /// Restarts, sets and glitches of a counter.
    pub odd: u64,
    /// A gauge's readings joined by the trapezoid, J.
    pub joined_j: f64,
    pub first_ns: u64,
    pub last_ns: u64,
    /// Half the last call's length, ns: when inside the call the value was taken is not known.
    slack_ns: u64,
}

/// Until when to poll.
#[derive(Clone, Copy)]
pub enum Until<'a> {
    Instant(u64),
    Told(&'a AtomicBool),
}

enum Track {
    Counter { register: Box<Register>, joules: f64 },
    Gauge { last: Option<(u64, f64)> },
}

/// Polls `reader` every `gap`, or as fast as it answers.
pub fn poll(reader: &mut dyn Reader, gap: Option<Duration>, until: Until<'_>) -> Trace {
    let mut trace = Trace { first_ns: now_ns(), ..Trace::default() };
    let mut track = None;
    let mut due_ns = trace.first_ns;
    loop {
        let begin_ns = now_ns();
        let reading = reader.read();
        let end_ns = now_ns();
        let (at_ns, slack_ns) = (begin_ns.midpoint(end_ns), (end_ns - begin_ns) / 2);
        trace.polls += 1;
        match reading {
            Ok(reading) => {
                // The polls on both sides of a publish count, so the slower of two calls.
                let slowest_ns = slack_ns.max(trace.slack_ns);
                trace.slack_ns = slack_ns;
                trace.take(&mut track, at_ns, slowest_ns, reading.value);
            }
            Err(fault) => {
                trace.failed += 1;
                trace.fault = Some(fault);
            }
        }
        trace.last_ns = at_ns;
        let is_over = match until {
            Until::Instant(until_ns) => at_ns >= until_ns,
            Until::Told(told) => told.load(Ordering::Relaxed),
        };
        if is_over || trace.publishes.len() >= MOST_PUBLISHES {
            return trace;
        }
        if let Some(gap) = gap {
            due_ns += gap.as_nanos() as u64;
            let now = now_ns();
            thread::sleep(Duration::from_nanos(due_ns.saturating_sub(now)));
            due_ns = due_ns.max(now);
        }
    }
}

impl Trace {
    fn take(&mut self, track: &mut Option<Track>, at_ns: u64, slack_ns: u64, value: Value) {
        let widened = |at: Bracket| Bracket {
            after_ns: at.after_ns.saturating_sub(slack_ns),
            by_ns: at.by_ns + slack_ns,
        };
        let track = track.get_or_insert_with(|| match value {
            Value::Counter(_) => Track::counter(),
            Value::Power(_) => Track::Gauge { last: None },
        });
        match (track, value) {
            (Track::Counter { register, joules }, Value::Counter(raw)) => {
                let advance = match register.advance(at_ns, Ok(raw)) {
                    Step::Advanced(advance) => advance,
                    Step::Restarted { then, .. } | Step::Set { then, .. } => {
                        self.odd += 1;
                        then
                    }
                    Step::Anchored(_) | Step::Unchanged | Step::Provisional | Step::Hole(_) => {
                        return;
                    }
                };
                self.odd += u64::from(advance.glitches);
                *joules += advance.delta.joules();
                self.publishes.push(Publish { at: widened(advance.published), value: *joules });
            }
            (Track::Gauge { last }, Value::Power(power)) => {
                let watts = power.watts();
                if let Some((last_ns, last_w)) = *last {
                    let seconds = at_ns.saturating_sub(last_ns) as f64 / 1e9;
                    self.joined_j += (last_w + watts) / 2.0 * seconds;
                    if watts != last_w {
                        let at = Bracket { after_ns: last_ns, by_ns: at_ns };
                        self.publishes.push(Publish { at: widened(at), value: watts });
                    }
                } else {
                    let at = Bracket { after_ns: at_ns, by_ns: at_ns };
                    self.publishes.push(Publish { at, value: watts });
                }
                *last = Some((at_ns, watts));
            }
            _ => self.failed += 1,
        }
    }

    /// The time the polls span, s.
    pub fn seconds(&self) -> f64 {
        self.last_ns.saturating_sub(self.first_ns) as f64 / 1e9
    }

    /// Whether any poll was answered.
    pub fn is_read(&self) -> bool {
        self.polls > self.failed
    }

    /// A gauge's mean over the span of its polls, W.
    pub fn mean_w(&self) -> Option<f64> {
        let seconds = self.seconds();
        (self.is_read() && seconds > 0.0).then(|| self.joined_j / seconds)
    }

    /// The publishes between two instants.
    pub fn between(&self, from_ns: u64, to_ns: u64) -> impl Iterator<Item = &Publish> {
        self.publishes.iter().filter(move |publish| {
            let at_ns = publish.at.middle_ns();
            at_ns >= from_ns && at_ns <= to_ns
        })
    }
}

impl Track {
    fn counter() -> Self {
        // No ceiling below which a card could be taken for broken: what it shows is the question.
        let ceiling = Power::from_microwatts(10_000_000_000);
        let register = Register::new(Scale::MILLIJOULES, Modulus::None, ceiling, 1_000_000_000);
        Self::Counter { register: Box::new(register), joules: 0.0 }
    }
}

/// The straight line of least squares through points (x, y): its slope and its value at `x = 0`.
pub fn line(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let count = points.len() as f64;
    let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / count;
    let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / count;
    let spread = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum::<f64>();
    let both = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum::<f64>();
    (points.len() >= 2 && spread > 0.0).then(|| (both / spread, mean_y - both / spread * mean_x))
}

/// From one instant to another, s; negative when it runs back.
pub fn seconds_from(from_ns: u64, to_ns: u64) -> f64 {
    (to_ns as f64 - from_ns as f64) / 1e9
}

/// The value of rank `share` (0 … 1) of them.
pub fn rank(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    sorted.get((last as f64 * share).round() as usize).copied()
}
