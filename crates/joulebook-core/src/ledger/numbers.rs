//! A hasher for numbers that we gave out ourselves, one after the other: nobody can choose them to
//! collide, so a multiplication is enough, and it is what a tick of ten thousand requests spends
//! its time on otherwise.

use std::hash::Hasher;

/// 2^64 ÷ the golden ratio: spreads consecutive numbers over all bits.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// The hasher.
#[derive(Clone, Copy, Debug, Default)]
pub struct Numbers(u64);

impl Hasher for Numbers {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(SPREAD);
    }
}
