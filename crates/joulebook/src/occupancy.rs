//! Whose windows were open on a card, and when: what siblings share, and whether a tick was quiet.
//!
//! Each opening and closing is a breakpoint. Between two breakpoints `n` windows are open and each
//! is charged 1/n of what the card drew; the running sum of that share is computed once for each
//! breakpoint, when the series has passed it, so a window's share is the difference of two sums
//! however many windows it overlapped.
//!
//! Child windows are no breakpoints: what happens inside a window is its own affair.

use std::{
    collections::VecDeque,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use joulebook_core::series::Series;

/// Breakpoints kept at most; older ones are forgotten, and windows that began before them keep
/// their whole energy, marked `partial`.
const MOST_BREAKPOINTS: usize = 65_536;
/// Breakpoints are kept this long after the last window closed, so that it can settle.
const KEEP_NS: u64 = 120_000_000_000;

#[derive(Debug, Default)]
pub(crate) struct Occupancy {
    /// Windows opened so far: a change since a window's opening tells that it was not alone.
    opened: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    points: VecDeque<Breakpoint>,
    /// How many breakpoints, from the front, know their sums.
    known: usize,
    open: u32,
}

#[derive(Clone, Copy, Debug)]
struct Breakpoint {
    at_ns: u64,
    /// Windows open from here on.
    open: u32,
    sums: Sums,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    energy_j: f64,
    seconds: f64,
    turns: f64,
    /// Stretches that the series does not hold (any more): no share can be told across one.
    lost: u32,
}

/// What a window is charged of a card it shared with siblings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Share {
    /// Its share of the energy, J.
    pub energy_j: f64,
    /// Its share of the time, s: what idle is subtracted by.
    pub seconds: f64,
    /// How many edges' errors may add up in it: each opening and closing counts by what it changes.
    pub edges: f64,
}

/// How a window found the card.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    opened: u64,
    crowded: bool,
}

impl Occupancy {
    /// A window opens.
    pub(crate) fn open(&self, at_ns: u64) -> Entry {
        let mut state = self.lock();
        let crowded = state.open > 0;
        state.step(at_ns, 1);
        let opened = self.opened.fetch_add(1, Ordering::Relaxed) + 1;
        Entry { opened, crowded }
    }

    /// A child of an open window opens: it is charged like its parent.
    pub(crate) fn open_inside(&self) -> Entry {
        let state = self.lock();
        Entry { opened: self.opened.load(Ordering::Relaxed), crowded: state.open > 1 }
    }

    /// True when others than itself, its parent and its children were open since it opened.
    pub(crate) fn is_overlapped(&self, entry: Entry) -> bool {
        entry.crowded || self.opened.load(Ordering::Relaxed) != entry.opened
    }

    /// A window that is no child closes.
    pub(crate) fn close(&self, at_ns: u64) {
        self.lock().step(at_ns, -1);
    }

    /// True when any window but the one of `own` (open, close) was open between two instants.
    pub(crate) fn occupied(&self, from_ns: u64, to_ns: u64, own: Option<(u64, u64)>) -> bool {
        let state = self.lock();
        let first = state.points.partition_point(|point| point.at_ns <= from_ns).saturating_sub(1);
        for (number, point) in state.points.iter().enumerate().skip(first) {
            let until_ns = state.points.get(number + 1).map_or(u64::MAX, |next| next.at_ns);
            if point.at_ns >= to_ns {
                break;
            }
            let own = own.is_some_and(|(begin, end)| point.at_ns >= begin && until_ns <= end);
            if until_ns > from_ns && point.open > u32::from(own) {
                return true;
            }
        }
        false
    }

    /// What the span from `open_ns` to `close_ns` is charged, once the series has passed it; none
    /// where the series does not hold all of it. The edges need be no breakpoints: a stage or a
    /// child is charged like the windows around it.
    pub(crate) fn share(
        &self,
        open_ns: u64,
        close_ns: u64,
        lag_ns: u64,
        series: &Series,
    ) -> Option<Share> {
        let mut state = self.lock();
        state.advance(lag_ns, series);
        let from = state.sums_at(open_ns, open_ns.saturating_add(1), lag_ns, series)?;
        let to = state.sums_at(close_ns, close_ns, lag_ns, series)?;
        (from.sums.lost == to.sums.lost).then(|| Share {
            energy_j: to.sums.energy_j - from.sums.energy_j,
            seconds: to.sums.seconds - from.sums.seconds,
            edges: 1.0 / f64::from(from.open.max(1))
                + 1.0 / f64::from(to.open.max(1))
                + (to.sums.turns - from.sums.turns),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn step(&mut self, at_ns: u64, by: i32) {
        self.open = self.open.saturating_add_signed(by);
        // Two callers may read the clock in one order and get here in the other.
        let at_ns = at_ns.max(self.points.back().map_or(0, |last| last.at_ns));
        self.points.push_back(Breakpoint { at_ns, open: self.open, sums: Sums::default() });
        self.forget(at_ns);
    }

    /// Lets go of what no window that is open, or that may still settle, began in.
    fn forget(&mut self, now_ns: u64) {
        let mut gone = self.points.len().saturating_sub(MOST_BREAKPOINTS);
        // Looked for when the card's first window opens after a pause: seldom enough.
        let newest = self.points.len().checked_sub(2).and_then(|last| self.points.get(last));
        if newest.is_some_and(|newest| newest.open == 0) {
            let old = self.points.partition_point(|it| now_ns.saturating_sub(it.at_ns) > KEEP_NS);
            // All windows before a pause have closed before it.
            let pause = self.points.range(..old).rposition(|point| point.open == 0);
            gone = gone.max(pause.unwrap_or(0));
        }
        self.points.drain(..gone);
        self.known = self.known.saturating_sub(gone);
    }

    /// Extends the sums to all breakpoints that the series has passed.
    fn advance(&mut self, lag_ns: u64, series: &Series) {
        while let Some(next) = self.points.get(self.known).copied() {
            let passed_ns = next.at_ns.saturating_add(lag_ns);
            if series.newest().is_none_or(|newest| newest.at_ns < passed_ns) {
                return;
            }
            let energy = |at_ns: u64| series.energy_uj_at(at_ns.saturating_add(lag_ns));
            let previous =
                self.known.checked_sub(1).and_then(|last| self.points.get(last)).copied();
            let sums = match previous {
                None => Sums::default(),
                Some(previous) if previous.open == 0 => previous.sums,
                Some(previous) => {
                    let each = 1.0 / f64::from(previous.open);
                    let after = if next.open == 0 { 0.0 } else { 1.0 / f64::from(next.open) };
                    let drawn = energy(previous.at_ns).zip(energy(next.at_ns));
                    let (drawn_uj, lost) = drawn.map_or((0.0, 1), |(from, to)| (to - from, 0));
                    Sums {
                        energy_j: previous.sums.energy_j + drawn_uj / 1e6 * each,
                        seconds: previous.sums.seconds
                            + next.at_ns.saturating_sub(previous.at_ns) as f64 / 1e9 * each,
                        turns: previous.sums.turns + (after - each).abs(),
                        lost: previous.sums.lost + lost,
                    }
                }
            };
            if let Some(point) = self.points.get_mut(self.known) {
                point.sums = sums;
            }
            self.known += 1;
        }
    }

    /// The running sums at an instant, going on from the last breakpoint before `before_ns`.
    fn sums_at(
        &self,
        at_ns: u64,
        before_ns: u64,
        lag_ns: u64,
        series: &Series,
    ) -> Option<Breakpoint> {
        let last = self.points.partition_point(|point| point.at_ns < before_ns).checked_sub(1)?;
        let from = self.points.get(last).filter(|_| last < self.known)?;
        if from.open == 0 || from.at_ns == at_ns {
            return Some(*from);
        }
        let energy = |at_ns: u64| series.energy_uj_at(at_ns.saturating_add(lag_ns));
        let each = 1.0 / f64::from(from.open);
        let energy_j = (energy(at_ns)? - energy(from.at_ns)?) / 1e6 * each;
        let seconds = at_ns.saturating_sub(from.at_ns) as f64 / 1e9 * each;
        let sums = Sums {
            energy_j: from.sums.energy_j + energy_j,
            seconds: from.sums.seconds + seconds,
            ..from.sums
        };
        Some(Breakpoint { sums, ..*from })
    }
}

#[cfg(test)]
mod tests {
    use joulebook_core::{
        ring::Point,
        series::{SeriesWriter, series_of},
    };

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// 100 W from 0 to 100 s.
    fn steady() -> (SeriesWriter, std::sync::Arc<Series>) {
        let (mut writer, series) = series_of(1024, 1024);
        for second in 0..=100u64 {
            writer.push(Point {
                at_ns: second * SECOND,
                energy_uj: second * 100_000_000,
                ..Point::default()
            });
        }
        (writer, series)
    }

    #[test]
    fn siblings_share_what_they_overlap_and_the_sum_is_the_cards() {
        let (_writer, series) = steady();
        let occupancy = Occupancy::default();
        // a: 10–20, b: 15–30, c: 16–18
        let a = occupancy.open(10 * SECOND);
        let b = occupancy.open(15 * SECOND);
        let c = occupancy.open(16 * SECOND);
        occupancy.close(18 * SECOND);
        occupancy.close(20 * SECOND);
        occupancy.close(30 * SECOND);
        assert!([a, b, c].into_iter().all(|entry| occupancy.is_overlapped(entry)));
        let share =
            |from: u64, to: u64| occupancy.share(from * SECOND, to * SECOND, 0, &series).unwrap();
        let (a, b, c) = (share(10, 20), share(15, 30), share(16, 18));
        let close = |got: f64, want: f64| assert!((got - want).abs() < 1e-6, "{got} is not {want}");
        close(c.energy_j, 200.0 / 3.0);
        close(a.energy_j, 500.0 + 50.0 + 200.0 / 3.0 + 100.0);
        close(a.energy_j + b.energy_j + c.energy_j, 2000.0);
        close(a.seconds + b.seconds + c.seconds, 20.0);
        // Its ends at 1 and 1/2, and what changes between: 1 → 1/2 → 1/3 → 1/2.
        close(a.edges, 1.5 + 0.5 + 2.0 / 6.0);
    }

    #[test]
    fn a_window_alone_keeps_all_of_it() {
        let (_writer, series) = steady();
        let occupancy = Occupancy::default();
        let entry = occupancy.open(10 * SECOND);
        let child = occupancy.open_inside();
        occupancy.close(12 * SECOND);
        assert!(!occupancy.is_overlapped(entry) && !occupancy.is_overlapped(child));
        let share = occupancy.share(10 * SECOND, 12 * SECOND, 0, &series).unwrap();
        assert!((share.energy_j - 200.0).abs() < 1e-9, "{share:?}");
    }

    #[test]
    fn what_has_long_closed_is_let_go_and_what_is_open_is_kept() {
        let occupancy = Occupancy::default();
        let held = || occupancy.lock().points.len();
        for second in 0..1000 {
            occupancy.open(second * SECOND);
            occupancy.close(second * SECOND + SECOND / 2);
        }
        assert!(held() <= 2 * 122, "{} breakpoints of the last two minutes", held());
        occupancy.open(1000 * SECOND);
        for second in 1000..2000 {
            occupancy.open(second * SECOND + 1);
            occupancy.close(second * SECOND + SECOND / 2);
        }
        assert!(occupancy.occupied(1000 * SECOND, 1001 * SECOND, None));
        occupancy.close(2000 * SECOND);
        assert!(occupancy.occupied(1000 * SECOND, 1001 * SECOND, None), "it may still settle");
        occupancy.open(2200 * SECOND);
        assert!(held() <= 2, "{}", held());
    }

    #[test]
    fn what_the_series_does_not_hold_costs_its_own_windows_their_share_and_no_others() {
        let (mut writer, series) = series_of(64, 64);
        let occupancy = Occupancy::default();
        // Before the first reading.
        occupancy.open(SECOND);
        occupancy.open(2 * SECOND);
        occupancy.close(3 * SECOND);
        occupancy.close(4 * SECOND);
        occupancy.open(20 * SECOND);
        occupancy.open(21 * SECOND);
        occupancy.close(22 * SECOND);
        occupancy.close(23 * SECOND);
        for second in 10..=100u64 {
            let energy_uj = second * 100_000_000;
            writer.push(Point { at_ns: second * SECOND, energy_uj, ..Point::default() });
            if second == 25 {
                let share = occupancy.share(20 * SECOND, 22 * SECOND, 0, &series).unwrap();
                assert!((share.energy_j - 150.0).abs() < 1e-6, "{share:?}");
            }
        }
        assert_eq!(occupancy.share(SECOND, 3 * SECOND, 0, &series), None);
        // The ring is past them.
        occupancy.open(30 * SECOND);
        occupancy.open(31 * SECOND);
        occupancy.close(32 * SECOND);
        occupancy.close(33 * SECOND);
        assert_eq!(occupancy.share(30 * SECOND, 32 * SECOND, 0, &series), None);
        occupancy.open(90 * SECOND);
        occupancy.open(91 * SECOND);
        occupancy.close(92 * SECOND);
        occupancy.close(93 * SECOND);
        let share = occupancy.share(90 * SECOND, 92 * SECOND, 0, &series).unwrap();
        assert!((share.energy_j - 150.0).abs() < 1e-6, "{share:?}");
    }

    #[test]
    fn occupied_leaves_the_asking_window_out() {
        let occupancy = Occupancy::default();
        occupancy.open(10);
        occupancy.close(20);
        occupancy.open(30);
        assert!(!occupancy.occupied(5, 25, Some((10, 20))));
        assert!(occupancy.occupied(5, 25, None));
        assert!(occupancy.occupied(5, 35, Some((10, 20))));
        assert!(!occupancy.occupied(20, 30, Some((10, 20))));
        occupancy.close(40);
        assert!(!occupancy.occupied(40, 50, None));
    }
}
