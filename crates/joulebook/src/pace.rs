//! When to read a register next.
//!
//! Unprobed, a card is read at a fixed gap. Once its publish period is known, three reads a period
//! (at most 150 a second) are placed by the grid of its publishes: just before the next is expected,
//! when it is, and just after. A publish between two of them is known to within their distance,
//! which the polls themselves prove; the grid only places them, so that a wrong grid costs
//! precision and never truth. Which half it fell in steers the grid. Of a register whose period is long
//! a publish that is missed would be known to within that period only: there is one more read a little
//! before, in case it is early or the read is late, and reads go on until it is seen, each as long after
//! the one before as it is overdue.

use std::collections::VecDeque;

use joulebook_core::register::Bracket;

/// Reads per second at most, however short the period.
const MOST_READS_PER_SECOND: u64 = 150;
/// How far the outer two reads lie from the expected publish: at first, and at best.
const FIRST_MARGIN_NS: u64 = 1_500_000;
const LEAST_MARGIN_NS: u64 = 500_000;
/// Publishes that the grid is fitted to.
const FITTED: usize = 64;
/// Hits in a row after which the margin shrinks: a miss costs the windows around it more than a
/// slightly wider margin costs all of them.
const SHRINK_AFTER: u32 = 512;
/// Misses in a row after which the phase is sought anew.
const LOST: u32 = 6;
/// A period that has room for more than three reads.
const LONG_NS: u64 = 200_000_000;
/// How far apart reads are at most before the first publish.
const SEEK_NS: u64 = 50_000_000;
const SECOND_NS: u64 = 1_000_000_000;

/// When to read next.
#[derive(Debug)]
pub enum Pace {
    /// Every so many ns.
    Fixed {
        /// The gap, ns.
        gap_ns: u64,
    },
    /// By the grid of the register's publishes.
    Grid(Grid),
}

impl Pace {
    /// The pace for a register of this publish period.
    pub fn for_period(period_ns: u64) -> Self {
        let least_gap_ns = SECOND_NS / MOST_READS_PER_SECOND;
        // Shorter periods have no room for three reads.
        if period_ns >= 3 * least_gap_ns - least_gap_ns / 8 {
            Self::Grid(Grid::new(period_ns))
        } else {
            Self::Fixed { gap_ns: least_gap_ns }
        }
    }

    /// The instant of the next read after one at `now_ns`.
    pub fn next_ns(&self, now_ns: u64) -> u64 {
        match self {
            Self::Fixed { gap_ns } => now_ns.saturating_add(*gap_ns),
            Self::Grid(grid) => grid.next_ns(now_ns),
        }
    }

    /// The longest time between two reads, ns.
    pub fn gap_ns(&self) -> u64 {
        match self {
            Self::Fixed { gap_ns } => *gap_ns,
            Self::Grid(grid) => grid.period_ns,
        }
    }

    /// A publish was seen.
    pub fn published(&mut self, at: Bracket) {
        if let Self::Grid(grid) = self {
            grid.published(at);
        }
    }
}

/// The publishes of a register as a grid of instants.
#[derive(Debug)]
pub struct Grid {
    period_ns: u64,
    margin_ns: u64,
    /// Middles of the last publishes, with their number on the grid.
    seen: VecDeque<(i64, u64)>,
    /// Where publish number 0 of the fit lies, and the fitted period.
    fitted: Option<(f64, f64, u64)>,
    /// Where the last publish can have been, by all polls since the phase was last lost.
    phase: Option<Bracket>,
    hits: u32,
    misses: u32,
}

impl Grid {
    /// A grid of this period (not 0), its phase not known yet.
    fn new(period_ns: u64) -> Self {
        Self {
            period_ns,
            margin_ns: FIRST_MARGIN_NS.min(period_ns / 8),
            seen: VecDeque::with_capacity(FITTED),
            fitted: None,
            phase: None,
            hits: 0,
            misses: 0,
        }
    }

    fn next_ns(&self, now_ns: u64) -> u64 {
        let Some(phase) = self.phase else {
            // Nothing was published yet: read evenly until it is.
            let gap_ns = (self.period_ns / 3).min(SEEK_NS);
            return now_ns + gap_ns.max(SECOND_NS / MOST_READS_PER_SECOND);
        };
        let open_ns = phase.by_ns.saturating_sub(phase.after_ns) / 2;
        let reach_ns =
            if self.fitted.is_some() { self.margin_ns } else { open_ns + self.margin_ns };
        let reach_ns = reach_ns.min(self.period_ns / 3);
        // A read that is due within a hair of the one just made is that one.
        let hair_ns = reach_ns / 4;
        let due_ns = self.expected_after(phase.middle_ns().saturating_add(self.period_ns / 2));
        let overdue_ns = now_ns.saturating_sub(due_ns);
        let is_long = self.period_ns >= LONG_NS;
        if is_long
            && overdue_ns.saturating_add(hair_ns) >= reach_ns
            && overdue_ns < self.period_ns / 2
        {
            return now_ns.saturating_add(overdue_ns);
        }
        let guard_ns = if is_long { (8 * reach_ns).max(self.period_ns / 50) } else { reach_ns };
        let guard_ns = guard_ns.min(self.period_ns / 3);
        let expected_ns = self.expected_after(now_ns.saturating_sub(reach_ns));
        let next_ns = expected_ns.saturating_add(self.period_ns);
        [expected_ns, next_ns]
            .into_iter()
            .flat_map(|at| {
                let before = [at.saturating_sub(guard_ns), at.saturating_sub(reach_ns)];
                before.into_iter().chain([at, at.saturating_add(reach_ns)])
            })
            .find(|at| *at > now_ns.saturating_add(hair_ns))
            .unwrap_or(next_ns)
    }

    fn published(&mut self, at: Bracket) {
        let hit = at.by_ns.saturating_sub(at.after_ns) <= self.margin_ns + self.margin_ns / 2;
        self.adapt(hit);
        let phase = self.narrowed(at);
        self.phase = Some(phase);
        if self.misses >= LOST {
            self.seen.clear();
            self.fitted = None;
        }
        // What the polls could not tell apart would drag the fit.
        if phase.by_ns.saturating_sub(phase.after_ns) > 4 * self.margin_ns {
            return;
        }
        let middle_ns = phase.middle_ns();
        let number = match self.seen.back() {
            None => 0,
            Some((number, last_ns)) => number + self.steps(middle_ns.saturating_sub(*last_ns)),
        };
        if self.seen.len() == FITTED {
            self.seen.pop_front();
        }
        self.seen.push_back((number, middle_ns));
        self.fit();
    }

    /// The bracket of a publish, cut to where the one before lets it be: each read at the middle of
    /// what is open halves it.
    fn narrowed(&self, at: Bracket) -> Bracket {
        let Some(last) = self.phase else { return at };
        let slack_ns = self.margin_ns;
        // The first publish since then that these polls leave room for.
        let behind_ns = at.after_ns.saturating_sub(last.by_ns.saturating_add(slack_ns));
        let shift_ns = behind_ns.div_ceil(self.period_ns).max(1).saturating_mul(self.period_ns);
        let after_ns = last.after_ns.saturating_add(shift_ns).saturating_sub(slack_ns);
        let by_ns = last.by_ns.saturating_add(shift_ns).saturating_add(slack_ns);
        let both = Bracket { after_ns: after_ns.max(at.after_ns), by_ns: by_ns.min(at.by_ns) };
        if both.after_ns < both.by_ns { both } else { at }
    }

    fn steps(&self, elapsed_ns: u64) -> i64 {
        (elapsed_ns as f64 / self.period_ns as f64).round() as i64
    }

    /// Margins grow at a miss and shrink slowly while all goes well.
    fn adapt(&mut self, hit: bool) {
        if hit {
            self.misses = 0;
            self.hits = self.hits.saturating_add(1);
            if self.hits.is_multiple_of(SHRINK_AFTER) {
                self.margin_ns = (self.margin_ns * 31 / 32).max(LEAST_MARGIN_NS);
            }
        } else {
            self.misses = self.misses.saturating_add(1);
            if self.hits > 0 {
                self.margin_ns = (self.margin_ns * 5 / 4).min(self.period_ns / 6);
            }
            self.hits = 0;
        }
    }

    /// Least squares of instant over number.
    fn fit(&mut self) {
        let Some((first_number, first_ns)) = self.seen.front().copied() else { return };
        let count = self.seen.len() as f64;
        let pairs = || {
            self.seen.iter().map(|(number, at_ns)| {
                ((number - first_number) as f64, at_ns.saturating_sub(first_ns) as f64)
            })
        };
        let mean_x = pairs().map(|(x, _)| x).sum::<f64>() / count;
        let mean_y = pairs().map(|(_, y)| y).sum::<f64>() / count;
        let spread = pairs().map(|(x, _)| (x - mean_x).powi(2)).sum::<f64>();
        let slope = if spread > 0.0 && self.seen.len() >= 8 {
            pairs().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum::<f64>() / spread
        } else {
            self.period_ns as f64
        };
        self.fitted = Some((mean_y - slope * mean_x, slope, first_ns));
    }

    /// The first expected publish after `at_ns`.
    fn expected_after(&self, at_ns: u64) -> u64 {
        if let Some((offset, period, base_ns)) = self.fitted {
            let since = at_ns.saturating_sub(base_ns) as f64 - offset;
            let number = (since / period).floor() + 1.0;
            return base_ns.saturating_add_signed((offset + number * period) as i64);
        }
        let last_ns = self.phase.map_or(at_ns, Bracket::middle_ns);
        let steps = at_ns.saturating_sub(last_ns) / self.period_ns + 1;
        last_ns.saturating_add(steps.saturating_mul(self.period_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Polls a register that publishes each `period_ns` from `phase_ns`, each displaced by up to
    /// `jitter_ns`; returns the widths of the brackets seen in the last half.
    fn widths(
        grid_period_ns: u64,
        period_ns: u64,
        phase_ns: u64,
        jitter_ns: u64,
    ) -> (Vec<u64>, f64) {
        let mut pace = Pace::Grid(Grid::new(grid_period_ns));
        let publish = |number: u64| {
            let noise = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33;
            let displaced = noise % (2 * jitter_ns + 1);
            phase_ns + number * period_ns + displaced - jitter_ns
        };
        let (mut now, mut polls, mut widths) = (SECOND_NS, 0u64, Vec::new());
        let mut shown = (0..).take_while(|number| publish(*number) <= now).last().unwrap_or(0);
        let mut last_ns = now;
        let end = now + 60 * SECOND_NS;
        while now < end {
            now = pace.next_ns(now);
            polls += 1;
            let mut newest = shown;
            while publish(newest + 1) <= now {
                newest += 1;
            }
            if newest != shown {
                let at = Bracket { after_ns: last_ns, by_ns: now };
                pace.published(at);
                if now > end - 30 * SECOND_NS {
                    widths.push(at.by_ns - at.after_ns);
                }
                shown = newest;
            }
            last_ns = now;
        }
        widths.sort_unstable();
        (widths, polls as f64 / 60.0)
    }

    #[test]
    fn the_grid_is_found_and_each_publish_pinned() {
        for (period_ms, jitter_ns) in [(100, 0), (100, MS), (20, 0), (20, 500_000), (50, 200_000)] {
            let period_ns = period_ms * MS;
            let (widths, per_second) = widths(period_ns, period_ns, 37 * MS, jitter_ns);
            let median = widths[widths.len() / 2];
            assert!(median <= 2 * MS, "{period_ms} ms: {median} ns");
            assert!(per_second <= 151.0, "{period_ms} ms: {per_second} reads a second");
        }
    }

    #[test]
    fn of_a_long_period_no_publish_is_missed_by_much() {
        for (period_ns, jitter_ns) in [(SECOND_NS, 0), (SECOND_NS, 8 * MS), (500 * MS, 4 * MS)] {
            let (widths, per_second) = widths(period_ns, period_ns, 137 * MS, jitter_ns);
            let (median, worst) = (widths[widths.len() / 2], widths[widths.len() - 1]);
            assert!(median <= 2 * MS + 2 * jitter_ns, "{period_ns} ns: {median} ns");
            assert!(worst <= 4 * (FIRST_MARGIN_NS + 2 * jitter_ns), "{period_ns} ns: {worst} ns");
            assert!(per_second <= 16.0, "{period_ns} ns: {per_second} reads a second");
        }
    }

    #[test]
    fn a_period_known_to_a_part_in_a_thousand_is_good_enough() {
        let (widths, _) = widths(100 * MS, 100_080_000, 5 * MS, 100_000);
        assert!(widths[widths.len() / 2] <= 2 * MS, "{:?}", widths[widths.len() / 2]);
    }

    #[test]
    fn a_fixed_pace_is_a_fixed_pace() {
        let pace = Pace::Fixed { gap_ns: 100 * MS };
        assert_eq!((pace.next_ns(7), pace.gap_ns()), (7 + 100 * MS, 100 * MS));
    }
}
