//! A card's cumulative energy: from steps of a register, or readings of a gauge, to points of a
//! ring, and back to the stretch of points that a window needs.
//!
//! A counter adds a point per publish (not per poll): a repeated reading is no zero tick. A gauge
//! adds a point per reading, joined by the trapezoid; a stretch without readings is bridged and
//! marked up to [`LONGEST_BRIDGE_NS`], and a gap beyond it: the last power is never held over.
//!
//! The fine ring keeps the last few thousand points, the coarse one a point a second for a day.

use std::sync::Arc;

use crate::{
    fault::Fault,
    flags::Flags,
    register::{Bracket, Register, Step},
    ring::{Found, Point, Ring, Writer, ring},
    units::{Energy, Power},
};

/// Points in the fine ring: 13.6 minutes at 10 Hz.
pub const FINE_POINTS: usize = 8192;
/// Points in the coarse ring: a day at one a second, rounded up to a power of two.
pub const COARSE_POINTS: usize = 131_072;
/// The longest stretch without readings that the trapezoid may bridge.
pub const LONGEST_BRIDGE_NS: u64 = 30_000_000_000;
/// A stretch of up to this many polling gaps is no hole.
const SILENT_GAPS: u64 = 3;
const SECOND_NS: u64 = 1_000_000_000;
/// A power is told of a stretch that is so many times as long as its ends are uncertain, or of a
/// second.
const CERTAINTY: u64 = 20;
/// Marks of a tick that no power is told over.
const BROKEN: Flags = Flags::GAP
    .union(Flags::HOLE)
    .union(Flags::COUNTER_RESET)
    .union(Flags::COUNTER_SET)
    .union(Flags::COUNTER_GLITCH)
    .union(Flags::COUNTER_FROZEN);

/// The readers' side of a card's series.
#[derive(Debug)]
pub struct Series {
    fine: Arc<Ring>,
    coarse: Arc<Ring>,
}

/// The recorder's side.
#[derive(Debug)]
pub struct SeriesWriter {
    fine: Writer,
    coarse: Writer,
    coarse_at_ns: Option<u64>,
    coarse_flags: Flags,
    last: Option<Point>,
}

/// A series with the default depth.
pub fn series() -> (SeriesWriter, Arc<Series>) {
    series_of(FINE_POINTS, COARSE_POINTS)
}

/// A series that keeps this many points (each rounded up to a power of two).
pub fn series_of(fine_points: usize, coarse_points: usize) -> (SeriesWriter, Arc<Series>) {
    let (fine, fine_ring) = ring(fine_points);
    let (coarse, coarse_ring) = ring(coarse_points);
    let writer =
        SeriesWriter { fine, coarse, coarse_at_ns: None, coarse_flags: Flags::NONE, last: None };
    (writer, Arc::new(Series { fine: fine_ring, coarse: coarse_ring }))
}

impl SeriesWriter {
    /// Appends a point. A time before the newest one's is raised to it.
    pub fn push(&mut self, mut point: Point) {
        point.at_ns = point.at_ns.max(self.last.map_or(0, |last| last.at_ns));
        self.coarse_flags |= point.flags;
        let due = self.coarse_at_ns.is_none_or(|at| point.at_ns.saturating_sub(at) >= SECOND_NS);
        if due {
            self.coarse.push(Point { flags: self.coarse_flags, ..point });
            self.coarse_at_ns = Some(point.at_ns);
            self.coarse_flags = Flags::NONE;
        }
        self.fine.push(point);
        self.last = Some(point);
    }

    /// The newest point.
    pub fn last(&self) -> Option<Point> {
        self.last
    }
}

impl Series {
    /// The newest point.
    pub fn newest(&self) -> Option<Point> {
        self.fine.newest()
    }

    /// The power up to a point, by a counter: over the tick that ends there, or over as many ticks
    /// before it, up to a second, as it takes until the instants of their publishes matter little. The
    /// tick alone says more about the polls than about the card where those come late.
    pub fn power_until(&self, point: Point) -> Power {
        let mut power_uw = point.power_uw;
        let mut to = point;
        let stretch = self.span(point.at_ns.saturating_sub(SECOND_NS), point.at_ns, 1, 1);
        for from in stretch.into_iter().rev().skip_while(|it| it.at_ns >= point.at_ns) {
            // Nor from a publish behind a stretch that was not seen: where in it that lay is not known.
            if to.flags.union(from.flags).intersects(BROKEN) {
                break;
            }
            let length_ns = point.at_ns.saturating_sub(from.at_ns);
            let energy_uj = u128::from(point.energy_uj.saturating_sub(from.energy_uj));
            let mean_uw = (energy_uj * u128::from(SECOND_NS)).checked_div(u128::from(length_ns));
            power_uw = mean_uw.and_then(|mean| u64::try_from(mean).ok()).unwrap_or(power_uw);
            let open_ns = u64::from(from.uncertainty_ns) + u64::from(point.uncertainty_ns);
            if length_ns >= SECOND_NS.min(CERTAINTY * open_ns) {
                break;
            }
            to = from;
        }
        Power::from_microwatts(power_uw)
    }

    /// How many points were ever pushed: a change tells that there is news.
    pub fn pushed(&self) -> u64 {
        self.fine.pushed()
    }

    /// Point number `number`, unless it is gone from the fine ring or not there yet.
    pub fn point(&self, number: u64) -> Option<Point> {
        self.fine.get(number)
    }

    /// The newest point at or before `at_ns`, from the coarse ring where the fine one is too short.
    pub fn at_or_before(&self, at_ns: u64) -> Option<Point> {
        match self.fine.at_or_before(at_ns) {
            Found::At(_, point) => Some(point),
            Found::Empty => None,
            Found::Older(_) => match self.coarse.at_or_before(at_ns) {
                Found::At(_, point) => Some(point),
                Found::Older(_) | Found::Empty => None,
            },
        }
    }

    /// Energy since the series began, read between two points, µJ; none outside the fine ring.
    pub fn energy_uj_at(&self, at_ns: u64) -> Option<f64> {
        let Found::At(index, from) = self.fine.at_or_before(at_ns) else { return None };
        if from.at_ns == at_ns {
            return Some(from.energy_uj as f64);
        }
        let to = self.fine.get(index.checked_add(1)?)?;
        let share = at_ns.saturating_sub(from.at_ns) as f64
            / to.at_ns.saturating_sub(from.at_ns).max(1) as f64;
        Some(from.energy_uj as f64 + to.energy_uj.saturating_sub(from.energy_uj) as f64 * share)
    }

    /// The points from the `before` ones at or before `from_ns` to the `after` ones at or after
    /// `to_ns`, in order. Where the fine ring does not reach back, coarse points lead up to it.
    pub fn span(&self, from_ns: u64, to_ns: u64, before: u64, after: u64) -> Vec<Point> {
        // Enough for a window of a second on a register that publishes each 100 ms.
        let mut points = Vec::with_capacity(24);
        let first = match self.fine.at_or_before(from_ns) {
            Found::At(index, _) => index.saturating_sub(before.saturating_sub(1)),
            Found::Older(oldest) => {
                self.coarse_lead(from_ns, oldest, before, &mut points);
                oldest
            }
            Found::Empty => return points,
        };
        let mut beyond = 0;
        for index in first..self.fine.pushed() {
            // A point that is gone already is older than the ring: the stretch then starts later.
            let Some(point) = self.fine.get(index) else { continue };
            points.push(point);
            if point.at_ns >= to_ns {
                beyond += 1;
                if beyond >= after {
                    break;
                }
            }
        }
        points
    }

    fn coarse_lead(&self, from_ns: u64, oldest: u64, before: u64, points: &mut Vec<Point>) {
        let until_ns = self.fine.get(oldest).map_or(u64::MAX, |point| point.at_ns);
        let first = match self.coarse.at_or_before(from_ns) {
            Found::At(index, _) => index.saturating_sub(before.saturating_sub(1)),
            Found::Older(first) => first,
            Found::Empty => return,
        };
        for index in first..self.coarse.pushed() {
            match self.coarse.get(index) {
                Some(point) if point.at_ns < until_ns => points.push(point),
                Some(_) => break,
                None => {}
            }
        }
    }
}

/// When a card was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Poll {
    /// The middle of the call, ns.
    pub at_ns: u64,
    /// Half the call's length, ns: when inside the call the value was taken is not known.
    pub slack_ns: u64,
}

impl Poll {
    /// A call that took no time: a recording, a simulated clock.
    pub const fn at(at_ns: u64) -> Self {
        Self { at_ns, slack_ns: 0 }
    }

    /// A call between two instants.
    pub const fn between(begin_ns: u64, end_ns: u64) -> Self {
        Self { at_ns: begin_ns.midpoint(end_ns), slack_ns: end_ns.saturating_sub(begin_ns) / 2 }
    }
}

/// A counter's readings on their way into a series.
#[derive(Debug)]
pub struct CounterTrack {
    register: Register,
    period_ns: u64,
    energy_uj: u64,
    /// Where the last point was seen to lie.
    at: Bracket,
    slack_ns: u64,
    stamped: bool,
}

impl CounterTrack {
    /// A track of `register`, whose publish period (or polling gap) is `period_ns`.
    pub fn new(register: Register, period_ns: u64) -> Self {
        let at = Bracket { after_ns: 0, by_ns: 0 };
        Self { register, period_ns, energy_uj: 0, at, slack_ns: 0, stamped: false }
    }

    /// The same for readings whose stamps are the instants that the values stand for (a recording
    /// that was stamped by its source), not those of polls that found them.
    #[must_use]
    pub fn stamped(self) -> Self {
        Self { stamped: true, ..self }
    }

    /// The ceiling or period learnt later.
    pub fn learn(&mut self, ceiling: Power, period_ns: u64) {
        self.period_ns = period_ns;
        self.register.learn(ceiling, period_ns);
    }

    /// How long the register has stood still at `now_ns`, ns.
    pub fn still_ns(&self, now_ns: u64) -> u64 {
        self.register.moved_ns().map_or(0, |moved| now_ns.saturating_sub(moved))
    }

    /// One reading; its points go into `writer` with `marks` added. Returns what it meant.
    pub fn reading(
        &mut self,
        poll: Poll,
        reading: Result<u64, Fault>,
        marks: Flags,
        writer: &mut SeriesWriter,
    ) -> Step {
        // The polls on both sides of a publish count, so the slower of two calls.
        let slowest_ns = self.slack_ns.max(poll.slack_ns);
        let step = self.register.advance_within(poll.at_ns, poll.slack_ns, reading);
        self.slack_ns = slowest_ns;
        match step {
            Step::Anchored(published) => {
                // Nobody saw it come: it may stand since a period ago.
                let after_ns = published.by_ns.saturating_sub(self.period_ns);
                self.push(Bracket { after_ns, ..published }, Energy::ZERO, marks, writer);
            }
            Step::Advanced(advance) => {
                let mut flags = marks;
                for (mark, holds) in [
                    (Flags::COUNTER_WRAPPED, advance.wrapped),
                    (Flags::COUNTER_GLITCH, advance.glitches > 0),
                    (Flags::HOLE, advance.holes > 0),
                ] {
                    if holds {
                        flags |= mark;
                    }
                }
                self.push(advance.published, advance.delta, flags, writer);
            }
            Step::Restarted { restarted, counted, then } => {
                let why = match counted {
                    Some(_) => Flags::COUNTER_RESET,
                    None => Flags::COUNTER_RESET | Flags::AMBIGUOUS_WRAP,
                };
                let counted = counted.unwrap_or_default();
                self.push(restarted, counted, marks | why | Flags::GAP, writer);
                self.push(then.published, then.delta, marks, writer);
            }
            Step::Set { set, then } => {
                let flags = marks | Flags::COUNTER_SET | Flags::GAP;
                self.push(set, Energy::ZERO, flags, writer);
                self.push(then.published, then.delta, marks, writer);
            }
            Step::Unchanged | Step::Provisional | Step::Hole(_) => {}
        }
        self.slack_ns = poll.slack_ns;
        step
    }

    fn push(&mut self, at: Bracket, delta: Energy, flags: Flags, writer: &mut SeriesWriter) {
        let at = if self.stamped { Bracket { after_ns: at.by_ns, ..at } } else { at };
        let at_ns = at.middle_ns();
        self.energy_uj = self.energy_uj.saturating_add(delta.microjoules());
        let power_uw = mean_power_uw(delta.microjoules(), self.elapsed_ns(at));
        self.at = at;
        let uncertainty_ns =
            u32::try_from(at.uncertainty_ns().saturating_add(self.slack_ns)).unwrap_or(u32::MAX);
        writer.push(Point { at_ns, energy_uj: self.energy_uj, power_uw, uncertainty_ns, flags });
    }

    /// The time that a point's energy was drawn in: between the middles of where it and the one before
    /// were seen to lie. Behind a stretch without polls a middle is far from either end; there it is
    /// the time between the polls that found them.
    fn elapsed_ns(&self, at: Bracket) -> u64 {
        let wide_ns = self.period_ns.saturating_mul(SILENT_GAPS);
        let is_wide = |at: Bracket| at.by_ns.saturating_sub(at.after_ns) > wide_ns;
        if is_wide(at) || is_wide(self.at) {
            at.by_ns.saturating_sub(self.at.by_ns)
        } else {
            at.middle_ns().saturating_sub(self.at.middle_ns())
        }
    }
}

/// A gauge's readings on their way into a series.
#[derive(Debug, Default)]
pub struct GaugeTrack {
    /// The polling gap, ns: what a hole is measured by.
    gap_ns: u64,
    energy_uj: u64,
    /// Remainder of the last trapezoid, in 1/(2·10⁹) µJ.
    carry: u128,
    last: Option<(u64, Power)>,
}

impl GaugeTrack {
    /// A track of a gauge that is read every `gap_ns`.
    pub fn new(gap_ns: u64) -> Self {
        Self { gap_ns, ..Self::default() }
    }

    /// A track that goes on where another one has stopped, with so much energy behind it.
    pub fn going_on(gap_ns: u64, energy_uj: u64) -> Self {
        Self { energy_uj, ..Self::new(gap_ns) }
    }

    /// The polling gap learnt later, ns.
    pub fn learn(&mut self, gap_ns: u64) {
        self.gap_ns = gap_ns;
    }

    /// One good reading; its point goes into `writer` with `marks` added. Readings in time order:
    /// one that stands before the last is refused.
    pub fn reading(
        &mut self,
        at_ns: u64,
        power: Power,
        marks: Flags,
        writer: &mut SeriesWriter,
    ) -> Result<(), Fault> {
        self.reading_within(Poll::at(at_ns), power, marks, writer)
    }

    /// The same for a reading whose call took so long that when inside it the value was taken
    /// matters (one that comes over a network).
    pub fn reading_within(
        &mut self,
        poll: Poll,
        power: Power,
        marks: Flags,
        writer: &mut SeriesWriter,
    ) -> Result<(), Fault> {
        let at_ns = poll.at_ns;
        let mut flags = marks;
        if let Some((last_ns, last)) = self.last {
            let gap_ns = at_ns.checked_sub(last_ns).ok_or(Fault::NonMonotonic)?;
            if gap_ns > LONGEST_BRIDGE_NS.max(self.gap_ns.saturating_mul(SILENT_GAPS)) {
                flags |= Flags::GAP;
            } else {
                if gap_ns > self.gap_ns.saturating_mul(SILENT_GAPS) {
                    flags |= Flags::BRIDGED;
                }
                self.trapezoid(last, power, gap_ns);
            }
            if power == last {
                flags |= Flags::REPEATED;
            }
        }
        self.last = Some((at_ns, power));
        writer.push(Point {
            at_ns,
            energy_uj: self.energy_uj,
            power_uw: power.microwatts(),
            uncertainty_ns: u32::try_from(poll.slack_ns).unwrap_or(u32::MAX),
            flags,
        });
        Ok(())
    }

    fn trapezoid(&mut self, from: Power, to: Power, gap_ns: u64) {
        const HALF_SECONDS: u128 = 2_000_000_000;
        let sum = u128::from(from.microwatts()).saturating_add(u128::from(to.microwatts()));
        let total = sum.saturating_mul(u128::from(gap_ns)).saturating_add(self.carry);
        self.carry = total % HALF_SECONDS;
        let whole = u64::try_from(total / HALF_SECONDS).unwrap_or(u64::MAX);
        self.energy_uj = self.energy_uj.saturating_add(whole);
    }
}

/// A reading above three times the card's limit is no reading (a driver call that returned success
/// and an uninitialised word).
pub fn plausible_power(power: Power, limit: Option<Power>) -> bool {
    limit.is_none_or(|limit| power.microwatts() <= limit.microwatts().saturating_mul(3))
}

/// Mean power of `energy_uj` over `elapsed_ns`, µW; 0 for no time.
fn mean_power_uw(energy_uj: u64, elapsed_ns: u64) -> u64 {
    u128::from(energy_uj)
        .saturating_mul(u128::from(SECOND_NS))
        .checked_div(u128::from(elapsed_ns))
        .map_or(0, |power| u64::try_from(power).unwrap_or(u64::MAX))
}

#[cfg(test)]
#[path = "series_tests.rs"]
mod tests;
