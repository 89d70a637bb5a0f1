//! A recorder on the lab's clock: it polls when the product's pace says so, and hands what it reads
//! to the product's tracks.

use std::sync::Arc;

use joulebook::{
    Reader, Value,
    core::{
        Flags, Power,
        estimate::{Facts, Span, settles_after_s},
        register::{self, Bracket, Modulus, Scale, Step},
        ring::Point,
        series::{CounterTrack, FINE_POINTS, GaugeTrack, Poll, Series, SeriesWriter, series_of},
    },
    pace::Pace,
};

use super::{CEILING_W, Cell, MS, Polls, Register, UNPROBED_GAP_NS};
use crate::{Clock, Shows, SimulatedCard, card::Model};

/// Points wanted before a window's opening and after its end.
const BESIDE: u64 = 8;

pub(super) struct Recorder {
    card: SimulatedCard,
    pace: Pace,
    track: Track,
    writer: SeriesWriter,
    series: Arc<Series>,
    last_ns: u64,
    next_ns: u64,
}

enum Track {
    Counter(Box<CounterTrack>),
    Gauge(GaugeTrack, Option<Power>),
}

impl Recorder {
    pub fn new(cell: &Cell, model: Arc<Model>) -> Self {
        let pace = match cell.polls {
            Polls::Unprobed => Pace::Fixed { gap_ns: UNPROBED_GAP_NS },
            Polls::Probed => Pace::for_period(cell.register.period_ns()),
        };
        let card = SimulatedCard::new(model, Clock::simulated());
        let (card, track) = match cell.register {
            Register::Counter { period_ns, .. } => {
                let known_ns = match cell.polls {
                    Polls::Unprobed => UNPROBED_GAP_NS,
                    Polls::Probed => period_ns,
                };
                let ceiling = Power::from_watts(CEILING_W).unwrap_or(register::DEFAULT_CEILING);
                let register =
                    register::Register::new(Scale::MILLIJOULES, Modulus::None, ceiling, known_ns);
                (card, Track::Counter(Box::new(CounterTrack::new(register, known_ns))))
            }
            Register::Gauge => {
                (card.shows(Shows::Average), Track::Gauge(GaugeTrack::new(pace.gap_ns()), None))
            }
        };
        let (writer, series) = series_of(FINE_POINTS, 2);
        Self { card, pace, track, writer, series, last_ns: 0, next_ns: 1_000 * MS }
    }

    /// Makes every poll that is due by then.
    pub fn run_until(&mut self, until_ns: u64) {
        while self.next_ns <= until_ns {
            self.poll();
        }
    }

    /// The next poll comes so long after the last one, whatever the pace says.
    pub fn shift(&mut self, after_ns: u64) {
        self.next_ns = self.last_ns + after_ns;
    }

    /// Makes the next poll.
    pub fn poll(&mut self) {
        let now_ns = self.next_ns;
        self.card.clock().set_ns(now_ns as i64);
        let reading = self.card.read().map(|reading| reading.value);
        let published = match (&mut self.track, reading) {
            (Track::Counter(track), reading) => {
                let raw = reading.and_then(|value| match value {
                    Value::Counter(raw) => Ok(raw),
                    Value::Power(_) => Err(joulebook::core::Fault::NotSupported),
                });
                match track.reading(Poll::at(now_ns), raw, Flags::NONE, &mut self.writer) {
                    Step::Advanced(advance) => Some(advance.published),
                    _ => None,
                }
            }
            (Track::Gauge(track, shown), Ok(Value::Power(power))) => {
                let seen = track.reading(now_ns, power, Flags::NONE, &mut self.writer).is_ok();
                let is_new = seen && shown.replace(power).is_some_and(|last| last != power);
                is_new.then_some(Bracket { after_ns: self.last_ns, by_ns: now_ns })
            }
            (Track::Gauge(..), _) => None,
        };
        if let Some(published) = published {
            self.pace.published(published);
        }
        self.last_ns = now_ns;
        self.next_ns = self.pace.next_ns(now_ns);
    }

    /// The newest point that polls have shown so far.
    pub fn newest(&self) -> Option<Point> {
        self.series.newest()
    }

    /// The points that a window needs, as far as they are there.
    pub fn around(&self, span: Span, facts: &Facts) -> Vec<Point> {
        let late_s = facts.lag_s
            + facts.lag_uncertainty_s
            + match self.track {
                Track::Counter(_) => 0.0,
                Track::Gauge(..) => settles_after_s(facts, facts.period_s),
            };
        let late_ns = (late_s * 1e9) as u64;
        self.series.span(span.open_ns, span.close_ns + late_ns, BESIDE, BESIDE)
    }
}
