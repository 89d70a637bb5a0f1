//! A bounded, lock-free ring of points in time order: one writer, any number of readers.
//!
//! Invariants: readers never block the writer and never see a mix of two writes; a point is found
//! or reported as gone, never replaced by another. The words of a point are plain atomics, so there
//! is no unsafe code: a reader copies them, then looks at the head again, and throws the copy away
//! when the writer may have begun to overwrite the slot meanwhile.
//!
//! Written by hand because no kept crate offers a single-writer ring with a search by time.

use std::sync::Arc;
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering, fence};

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering, fence};

use crate::flags::Flags;

/// A card's cumulative energy at one publish.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Point {
    /// When it was published: the middle of the two polls around it, ns.
    pub at_ns: u64,
    /// Energy accepted since the series began, µJ.
    pub energy_uj: u64,
    /// Mean power since the point before (counter), or the reading itself (gauge), µW.
    pub power_uw: u64,
    /// How far the publish can lie from `at_ns`, ns (held at 4.29 s).
    pub uncertainty_ns: u32,
    /// What is to be said of the interval that ends here.
    pub flags: Flags,
}

/// A slot: half a cache line and never across two, so that a search that guesses well and the copy
/// that follows it touch the same one.
#[derive(Debug)]
#[repr(align(32))]
struct Slot {
    at_ns: AtomicU64,
    energy_uj: AtomicU64,
    power_uw: AtomicU64,
    meta: AtomicU64,
}

/// The shared ring. Made by [`ring`]; cheap to read from any thread.
#[derive(Debug)]
pub struct Ring {
    slots: Box<[Slot]>,
    /// Points ever pushed; point `i` lives in slot `i & mask`.
    head: AtomicU64,
    mask: u64,
}

/// The one writer of a ring.
#[derive(Debug)]
pub struct Writer {
    ring: Arc<Ring>,
    head: u64,
}

/// What a search by time found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The newest point at or before the instant, and its number.
    At(u64, Point),
    /// All that is kept is newer; the number of the oldest point that is kept.
    Older(u64),
    /// Nothing was pushed yet.
    Empty,
}

/// A ring that keeps the newest `capacity` − 1 points; `capacity` is rounded up to a power of two,
/// at least 2.
pub fn ring(capacity: usize) -> (Writer, Arc<Ring>) {
    let capacity = capacity.max(2).next_power_of_two();
    let ring = Arc::new(Ring {
        slots: (0..capacity)
            .map(|_| Slot {
                at_ns: AtomicU64::new(0),
                energy_uj: AtomicU64::new(0),
                power_uw: AtomicU64::new(0),
                meta: AtomicU64::new(0),
            })
            .collect(),
        head: AtomicU64::new(0),
        mask: capacity as u64 - 1,
    });
    (Writer { ring: Arc::clone(&ring), head: 0 }, ring)
}

impl Writer {
    /// Appends a point; its time must not be before the newest one's.
    pub fn push(&mut self, point: Point) {
        let ring = &*self.ring;
        if let Some(slot) = ring.slot(self.head) {
            // Whoever sees one of the words below also sees the head that was stored before them,
            // and so learns that this slot's old point is gone.
            fence(Ordering::Release);
            slot.at_ns.store(point.at_ns, Ordering::Relaxed);
            slot.energy_uj.store(point.energy_uj, Ordering::Relaxed);
            slot.power_uw.store(point.power_uw, Ordering::Relaxed);
            let meta = u64::from(point.uncertainty_ns) << 32 | u64::from(point.flags.bits());
            slot.meta.store(meta, Ordering::Relaxed);
        }
        self.head = self.head.wrapping_add(1);
        ring.head.store(self.head, Ordering::Release);
    }
}

impl Ring {
    /// How many points were ever pushed.
    pub fn pushed(&self) -> u64 {
        self.head.load(Ordering::Acquire)
    }

    /// The newest point.
    pub fn newest(&self) -> Option<Point> {
        loop {
            let last = self.pushed().checked_sub(1)?;
            // Overwritten while being copied: newer ones exist.
            if let Some(point) = self.get(last) {
                return Some(point);
            }
        }
    }

    /// Point number `index`, unless it is gone or not there yet.
    pub fn get(&self, index: u64) -> Option<Point> {
        if index >= self.pushed() {
            return None;
        }
        let slot = self.slot(index)?;
        let at_ns = slot.at_ns.load(Ordering::Relaxed);
        let energy_uj = slot.energy_uj.load(Ordering::Relaxed);
        let power_uw = slot.power_uw.load(Ordering::Relaxed);
        let meta = slot.meta.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        // At a distance of the full capacity the writer may be in this very slot.
        let kept = self.head.load(Ordering::Relaxed).wrapping_sub(index) <= self.mask;
        kept.then_some(Point {
            at_ns,
            energy_uj,
            power_uw,
            uncertainty_ns: (meta >> 32) as u32,
            flags: Flags::from_bits(meta as u32),
        })
    }

    /// The newest point at or before `at_ns`.
    pub fn at_or_before(&self, at_ns: u64) -> Found {
        loop {
            let head = self.pushed();
            let Some(last) = head.checked_sub(1) else { return Found::Empty };
            let first = head.saturating_sub(self.mask);
            match self.search(first, last, at_ns) {
                Some(index) => {
                    if let Some(point) = self.get(index).filter(|point| point.at_ns <= at_ns) {
                        return Found::At(index, point);
                    }
                }
                None => {
                    if self.get(first).is_some_and(|point| point.at_ns > at_ns) {
                        return Found::Older(first);
                    }
                }
            }
            // The writer went round the ring meanwhile; what the search saw may be torn.
        }
    }

    /// The number of the newest point at or before `at_ns` among `first..=last`. Publishes are
    /// nearly regular, so a guess by proportion lands next to it and a few steps finish.
    fn search(&self, first: u64, last: u64, at_ns: u64) -> Option<u64> {
        let newest = self.time(last);
        if newest <= at_ns {
            return Some(last);
        }
        let oldest = self.time(first);
        if oldest > at_ns {
            return None;
        }
        let span = newest.saturating_sub(oldest).max(1) as f64;
        let share = at_ns.saturating_sub(oldest) as f64 / span;
        let guess = first + (share * last.saturating_sub(first) as f64) as u64;
        // Invariant: time(low) <= at_ns < time(high).
        let (mut low, mut high) = (first, last);
        let mut step = 1;
        let mut probe = guess.clamp(first, last);
        if self.time(probe) <= at_ns {
            loop {
                low = probe;
                probe = probe.saturating_add(step);
                if probe >= high {
                    break;
                }
                if self.time(probe) > at_ns {
                    high = probe;
                    break;
                }
                step <<= 1;
            }
        } else {
            loop {
                high = probe;
                probe = probe.saturating_sub(step);
                if probe <= low {
                    break;
                }
                if self.time(probe) <= at_ns {
                    low = probe;
                    break;
                }
                step <<= 1;
            }
        }
        while high.saturating_sub(low) > 1 {
            let middle = low.midpoint(high);
            if self.time(middle) <= at_ns {
                low = middle;
            } else {
                high = middle;
            }
        }
        Some(low)
    }

    fn time(&self, index: u64) -> u64 {
        self.slot(index).map_or(0, |slot| slot.at_ns.load(Ordering::Relaxed))
    }

    fn slot(&self, index: u64) -> Option<&Slot> {
        self.slots.get((index & self.mask) as usize)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn point(at_ns: u64) -> Point {
        Point { at_ns, energy_uj: at_ns * 3, power_uw: at_ns * 5, ..Point::default() }
    }

    proptest! {
        #[test]
        fn a_search_agrees_with_a_scan(
            gaps in proptest::collection::vec(0u64..50, 0..200),
            asked in proptest::collection::vec(0u64..6000, 1..50),
        ) {
            let (mut writer, ring) = ring(64);
            let mut all = Vec::new();
            let mut now = 100;
            for gap in gaps {
                now += gap;
                writer.push(point(now));
                all.push(point(now));
            }
            let kept = all.get(all.len().saturating_sub(63)..).unwrap_or_default();
            for at_ns in asked {
                let expected = kept.iter().rev().find(|point| point.at_ns <= at_ns);
                match ring.at_or_before(at_ns) {
                    Found::At(_, found) => prop_assert_eq!(Some(&found), expected),
                    Found::Older(_) => prop_assert!(expected.is_none() && !kept.is_empty()),
                    Found::Empty => prop_assert!(kept.is_empty()),
                }
            }
        }
    }

    #[test]
    fn readers_never_see_a_mix_while_the_writer_laps_them() {
        let (mut writer, ring) = ring(8);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while ring.pushed() < 200_000 {
                        if let Some(seen) = ring.newest() {
                            assert_eq!(
                                (seen.energy_uj, seen.power_uw),
                                (seen.at_ns * 3, seen.at_ns * 5)
                            );
                            if let Found::At(_, older) =
                                ring.at_or_before(seen.at_ns.saturating_sub(3))
                            {
                                assert!(older.at_ns + 3 <= seen.at_ns);
                                assert_eq!(older.energy_uj, older.at_ns * 3);
                            }
                        }
                    }
                });
            }
            for at_ns in 1..=200_000 {
                writer.push(point(at_ns));
            }
        });
    }
}
