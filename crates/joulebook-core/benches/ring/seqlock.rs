//! The peer: a ring of slots, each behind a sequence number that is odd while it is written, and a
//! binary search that reads its probes through them.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use joulebook_core::{Flags, ring::Point};

pub struct Ring {
    slots: Vec<Slot>,
    head: AtomicU64,
}

#[derive(Default)]
struct Slot {
    sequence: AtomicU64,
    words: [AtomicU64; 4],
}

impl Ring {
    /// `capacity` is a power of two.
    pub fn new(capacity: usize) -> Self {
        let slots = (0..capacity).map(|_| Slot::default()).collect();
        Self { slots, head: AtomicU64::new(0) }
    }

    fn slot(&self, number: u64) -> &Slot {
        self.slots.get(number as usize & (self.slots.len() - 1)).unwrap()
    }

    pub fn push(&self, point: Point) {
        let head = self.head.load(Ordering::Relaxed);
        let slot = self.slot(head);
        let sequence = slot.sequence.load(Ordering::Relaxed);
        slot.sequence.store(sequence + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        let meta = u64::from(point.uncertainty_ns) << 32 | u64::from(point.flags.bits());
        for (word, value) in
            slot.words.iter().zip([point.at_ns, point.energy_uj, point.power_uw, meta])
        {
            word.store(value, Ordering::Relaxed);
        }
        slot.sequence.store(sequence + 2, Ordering::Release);
        self.head.store(head + 1, Ordering::Release);
    }

    fn read(&self, number: u64) -> Point {
        let slot = self.slot(number);
        loop {
            let sequence = slot.sequence.load(Ordering::Acquire);
            let [at_ns, energy_uj, power_uw, meta] =
                slot.words.each_ref().map(|word| word.load(Ordering::Relaxed));
            fence(Ordering::Acquire);
            if sequence.is_multiple_of(2) && slot.sequence.load(Ordering::Relaxed) == sequence {
                return Point {
                    at_ns,
                    energy_uj,
                    power_uw,
                    uncertainty_ns: (meta >> 32) as u32,
                    flags: Flags::from_bits(meta as u32),
                };
            }
        }
    }

    pub fn at_or_before(&self, at_ns: u64) -> Option<Point> {
        let head = self.head.load(Ordering::Acquire);
        let (mut low, mut high) = (head.saturating_sub(self.slots.len() as u64 - 1), head);
        while low < high {
            let middle = low.midpoint(high);
            if self.read(middle).at_ns <= at_ns {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low.checked_sub(1).map(|number| self.read(number))
    }
}
