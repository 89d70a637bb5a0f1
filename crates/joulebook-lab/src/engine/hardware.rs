//! What a step of the engine takes: its time and its power, from closed formulas.
//!
//! A decode step streams the weights once, whatever the number of sequences (the fixed part), and
//! adds a little for each; prefill costs by the token. Times are whole ns, powers W above idle.

/// An engine on its card, or on several as one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hardware {
    /// What a card draws at rest, W.
    pub idle_w: f64,
    /// A decode step without its sequences, ns.
    pub decode_fixed_ns: i64,
    /// What each sequence adds to a decode step, ns.
    pub decode_sequence_ns: i64,
    /// The power of a decode step without its sequences, W above idle.
    pub decode_fixed_w: f64,
    /// What very many sequences add to the power of a decode step, W.
    pub decode_rise_w: f64,
    /// So many sequences bring 63 % of that.
    pub decode_rise_sequences: f64,
    /// Prefill, ns a token.
    pub prefill_token_ns: i64,
    /// The least that a step without a decode part takes, ns.
    pub prefill_least_ns: i64,
    /// The power of prefill, W above idle.
    pub prefill_w: f64,
    /// The most tokens of a step, one for each decoding sequence among them.
    pub step_tokens: u32,
    /// The most sequences that are served at a time.
    pub sequences: usize,
}

impl Default for Hardware {
    /// A model of 8 billion parameters on a card of the H100's class.
    fn default() -> Self {
        Self {
            idle_w: 70.0,
            decode_fixed_ns: 6_400_000,
            decode_sequence_ns: 80_000,
            decode_fixed_w: 385.0,
            decode_rise_w: 235.0,
            decode_rise_sequences: 60.0,
            prefill_token_ns: 32_000,
            prefill_least_ns: 4_500_000,
            prefill_w: 620.0,
            step_tokens: 2048,
            sequences: 256,
        }
    }
}

impl Hardware {
    /// How long the decode part of a step takes, ns; without a sequence there is none.
    pub const fn decode_ns(&self, sequences: usize) -> i64 {
        if sequences == 0 {
            return 0;
        }
        self.decode_fixed_ns + self.decode_sequence_ns * sequences as i64
    }

    /// The power of the decode part, W above idle.
    pub fn decode_w(&self, sequences: usize) -> f64 {
        let rise = 1.0 - (-(sequences as f64) / self.decode_rise_sequences).exp();
        self.decode_fixed_w + self.decode_rise_w * rise
    }

    /// The energy of the decode part, J above idle.
    pub fn decode_joules(&self, sequences: usize) -> f64 {
        self.decode_ns(sequences) as f64 / 1e9 * self.decode_w(sequences)
    }

    /// The true cost of one decode token among so many sequences, J above idle: an equal share of
    /// the fixed part, and the marginal part, which is the same for each.
    pub fn decode_token_joules(&self, sequences: usize) -> f64 {
        let fixed = self.decode_fixed_ns as f64 / 1e9 * self.decode_fixed_w;
        let marginal = (self.decode_joules(sequences) - fixed) / sequences as f64;
        fixed / sequences as f64 + marginal
    }

    /// How long the prefill part of a step takes beside so many decoding sequences, ns.
    pub fn prefill_ns(&self, tokens: u32, sequences: usize) -> i64 {
        let least = if tokens > 0 && sequences == 0 { self.prefill_least_ns } else { 0 };
        (self.prefill_token_ns * i64::from(tokens)).max(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pure_decode_has_the_stated_energy_a_token() {
        let card = Hardware::default();
        for (sequences, stated) in [(8, 0.426), (32, 0.155), (64, 0.110), (256, 0.072)] {
            let idle = card.idle_w * card.decode_ns(sequences) as f64 / 1e9 / sequences as f64;
            let joules = card.decode_token_joules(sequences) + idle;
            assert!((joules - stated).abs() < 0.0005, "{sequences} sequences: {joules}");
        }
    }

    #[test]
    fn prefill_alone_has_a_least_time_and_beside_decode_has_none() {
        let card = Hardware::default();
        assert_eq!(card.prefill_ns(1, 0), 4_500_000);
        assert_eq!(card.prefill_ns(1, 1), 32_000);
        assert_eq!(card.prefill_ns(2048, 0), 65_536_000);
        assert_eq!(card.prefill_ns(0, 0), 0);
    }
}
