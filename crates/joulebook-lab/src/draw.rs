//! Numbers that look random and come out the same for the same seed.

/// A stream of numbers (SplitMix64).
#[derive(Clone, Debug)]
pub struct Draw(u64);

impl Draw {
    /// The stream of a seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Turns to the stream that belongs to a word: streams of different words share nothing.
    pub fn turn(&mut self, word: u64) {
        self.0 ^= word;
        self.0 = self.word();
    }

    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let value = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    /// A number from 0 to one less than `end`, each as likely.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.word()) * u128::from(end)) >> 64) as u64
    }

    /// A number above 0 and at most 1.
    pub fn share(&mut self) -> f64 {
        ((self.word() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// The wait for the next of events that come at a mean distance, whenever the last one was.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * self.share().ln()
    }

    /// A number whose logarithm is normal, with that median and standard deviation.
    pub fn log_normal(&mut self, median: f64, sigma: f64) -> f64 {
        let radius = (-2.0 * self.share().ln()).sqrt();
        let normal = radius * (std::f64::consts::TAU * self.share()).cos();
        median * (sigma * normal).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_is_the_same_stream_and_a_turn_is_another() {
        let of = |turn| {
            let mut draw = Draw::new(7);
            draw.turn(turn);
            (0..8).map(|_| draw.below(1_000_000)).collect::<Vec<_>>()
        };
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }

    #[test]
    fn each_kind_has_its_mean_and_median() {
        let mut draw = Draw::new(1);
        let mean = (0..40_000).map(|_| draw.exponential(2.0)).sum::<f64>() / 40_000.0;
        assert!((mean - 2.0).abs() < 0.05, "{mean}");
        let mut sizes: Vec<f64> = (0..40_000).map(|_| draw.log_normal(200.0, 0.9)).collect();
        sizes.sort_by(f64::total_cmp);
        assert!((sizes[20_000] - 200.0).abs() < 6.0, "{}", sizes[20_000]);
        // Of a normal logarithm, 84.13 % lie below one standard deviation.
        assert!((sizes[33_653] / 200.0 / 0.9_f64.exp() - 1.0).abs() < 0.04, "{}", sizes[33_653]);
    }
}
