//! The gauge beside a counter that publishes slowly: it shows when inside a tick the energy was drawn.
//!
//! Decides how often the gauge is read, and where in time a reading stands: half an update before
//! the poll that found it, since that is how old it is on average. A counter is slow when its period
//! is known to be, or when two of its ticks in a row have been long, those behind a hole aside; a card
//! that has no gauge to show is not asked again.

use std::sync::Arc;

use joulebook_core::{
    Fault, Flags, Power,
    series::{GaugeTrack, Series, SeriesWriter, plausible_power, series_of},
};

use super::{SECOND, Updates};

/// A counter whose ticks are this long has its gauge read beside it, ns.
pub(crate) const SLOW_NS: u64 = 500_000_000;
/// How often.
const GAP_NS: u64 = 50_000_000;
/// What an update is taken to be before a few have been seen, and at most.
const UPDATE_NS: u64 = 100_000_000;
/// Samples that are kept: 25 seconds.
const KEPT: usize = 512;
const LONG_TICKS: u32 = 2;

/// The gauge of one card's counter.
pub(super) struct Shape {
    due_ns: u64,
    state: State,
    updates: Updates,
    update_ns: u64,
}

enum State {
    /// The counter is fast, as far as has been seen: so many long ticks in a row.
    Fast(u32),
    /// Nothing has been read yet.
    Begun,
    Read(Box<(GaugeTrack, SeriesWriter)>),
    /// There is nothing to read.
    Refused,
}

impl Shape {
    pub fn new(is_slow: bool, now_ns: u64) -> Self {
        let (state, due_ns) =
            if is_slow { (State::Begun, now_ns) } else { (State::Fast(0), u64::MAX) };
        Self { due_ns, state, updates: Updates::default(), update_ns: UPDATE_NS }
    }

    /// No gauge is to be read.
    pub fn refused() -> Self {
        Self { state: State::Refused, ..Self::new(false, 0) }
    }

    /// When it is to be read next, ns.
    pub fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// Not before then.
    pub fn postpone(&mut self, until_ns: u64) {
        self.due_ns = self.due_ns.max(until_ns);
    }

    /// The counter has shown a tick of this length.
    pub fn ticked(&mut self, length_ns: u64, now_ns: u64) {
        let State::Fast(long) = &mut self.state else { return };
        *long = if length_ns >= SLOW_NS { *long + 1 } else { 0 };
        if *long >= LONG_TICKS {
            (self.state, self.due_ns) = (State::Begun, now_ns);
        }
    }

    /// It was read at `at_ns`. Returns the series when this is its first reading.
    pub fn reading(
        &mut self,
        at_ns: u64,
        power: Result<Power, Fault>,
        limit: Option<Power>,
    ) -> Option<Arc<Series>> {
        self.due_ns = at_ns.saturating_add(GAP_NS);
        let power = match power {
            Ok(power) if plausible_power(power, limit) => power,
            Err(Fault::NotSupported) => {
                (self.state, self.due_ns) = (State::Refused, u64::MAX);
                return None;
            }
            // A hole, which the next reading bridges.
            Ok(_) => return None,
            Err(_) => {
                self.due_ns = at_ns.saturating_add(SECOND);
                return None;
            }
        };
        let mut first = None;
        if matches!(self.state, State::Begun) {
            let (writer, series) = series_of(KEPT, 2);
            self.state = State::Read(Box::new((GaugeTrack::new(GAP_NS), writer)));
            first = Some(series);
        }
        let State::Read(read) = &mut self.state else { return None };
        let (track, writer) = &mut **read;
        // One that would stand before the last says nothing more.
        let _ = track.reading(at_ns.saturating_sub(self.update_ns / 2), power, Flags::NONE, writer);
        let repeated = writer.last().is_some_and(|last| last.flags.contains(Flags::REPEATED));
        if !repeated && let Some(update_ns) = self.updates.changed(at_ns) {
            self.update_ns = update_ns.min(UPDATE_NS);
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn watts(watts: f64) -> Power {
        Power::from_watts(watts).unwrap()
    }

    #[test]
    fn two_long_ticks_in_a_row_make_a_slow_counter() {
        let mut shape = Shape::new(false, 0);
        for length_ms in [100, 900, 100, 900] {
            shape.ticked(length_ms * MS, 7);
            assert_eq!(shape.due_ns(), u64::MAX);
        }
        shape.ticked(900 * MS, 7);
        assert_eq!(shape.due_ns(), 7);
        assert!(shape.reading(7, Ok(watts(70.0)), None).is_some());
        shape.ticked(100 * MS, 8);
        assert_eq!(shape.due_ns(), 7 + GAP_NS);
    }

    #[test]
    fn a_reading_stands_half_an_update_before_its_poll() {
        let mut shape = Shape::new(true, 0);
        let series = shape.reading(1000 * MS, Ok(watts(70.0)), None).unwrap();
        assert_eq!(series.newest().map(|point| point.at_ns), Some(950 * MS));
        // Updates of 40 ms: known after a few.
        for number in 1..10u32 {
            let power = watts(70.0 + f64::from(number));
            assert!(shape.reading((1000 + 40 * u64::from(number)) * MS, Ok(power), None).is_none());
        }
        assert_eq!(series.newest().map(|point| point.at_ns), Some(1340 * MS));
    }

    #[test]
    fn what_cannot_be_read_is_not_asked_again_and_what_fails_is() {
        let mut shape = Shape::new(true, 0);
        assert!(shape.reading(0, Err(Fault::Timeout), None).is_none());
        assert_eq!(shape.due_ns(), SECOND);
        // A word that was never written is no power.
        assert!(shape.reading(SECOND, Ok(watts(9e6)), Some(watts(700.0))).is_none());
        assert!(shape.reading(2 * SECOND, Ok(watts(90.0)), Some(watts(700.0))).is_some());
        shape.reading(3 * SECOND, Err(Fault::NotSupported), None);
        assert_eq!(shape.due_ns(), u64::MAX);
        shape.ticked(SECOND, 0);
        shape.ticked(SECOND, 0);
        assert_eq!(shape.due_ns(), u64::MAX);
    }
}
