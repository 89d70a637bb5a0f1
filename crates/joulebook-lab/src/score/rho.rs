//! What a decode token costs, in prefill tokens.
//!
//! A step streams the weights once for all sequences in it, so the fewer share it, the dearer each
//! token. [`calibrate`] finds that from isolated points: so many answers in progress and nothing
//! else; one long prompt and nothing else. Never from a mixed load: there both go together.

use crate::engine::{Arrivals, Engine, Job, Settings};

/// The weight of a decode token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rho {
    /// The same, whoever else is there.
    Constant(f64),
    /// `a + b / B` among `B` that emit.
    Shared {
        /// With very many.
        a: f64,
        /// What a single one has more.
        b: f64,
    },
}

impl Rho {
    /// Its value when so many emit.
    pub fn at(self, emitters: usize) -> f64 {
        match self {
            Self::Constant(rho) => rho,
            Self::Shared { a, b } => a + b / emitters.max(1) as f64,
        }
    }
}

/// Finds the weight for an engine from what its card draws at isolated points.
pub fn calibrate(settings: &Settings) -> Rho {
    let prefill = joules_a_token(settings, 1, 16_384, 1);
    let points = [1, 2, 4, 8, 16, 32, 64, 128].map(|sequences| {
        let rho = joules_a_token(settings, sequences, 1, 201) / prefill;
        (1.0 / sequences as f64, rho)
    });
    // A straight line over 1/B, every point as far off as any other in per cent.
    let sum = |of: &dyn Fn(f64, f64) -> f64| points.iter().map(|&(x, y)| of(x, y) / (y * y)).sum();
    let (n, x, y): (f64, f64, f64) = (sum(&|_, _| 1.0), sum(&|x, _| x), sum(&|_, y| y));
    let (xx, xy): (f64, f64) = (sum(&|x, _| x * x), sum(&|x, y| x * y));
    let b = (n * xy - x * y) / (n * xx - x * x);
    Rho::Shared { a: (y - b * x) / n, b }
}

/// The joules above idle of a prompt token (for answers of one token), else of a decode token.
fn joules_a_token(settings: &Settings, sequences: u32, prompt: u32, answer: u32) -> f64 {
    let mut engine = Engine::new(Settings { arrivals: Arrivals::None, ..settings.clone() });
    for _ in 0..sequences {
        let (cached_tokens, patience_ns, parent) = (0, None, None);
        let job = Job {
            prompt_tokens: prompt,
            cached_tokens,
            answer_tokens: answer,
            patience_ns,
            parent,
        };
        engine.submit(0, job);
    }
    while engine.step(&mut Vec::new()) {}
    let run = engine.finish();
    let first_ns = run.requests.iter().filter_map(|it| Some(it.emissions.first()?.t_ns)).max();
    let first_ns = first_ns.unwrap_or(0);
    let (from_ns, to_ns, tokens) = match answer {
        1 => (0, first_ns, prompt * sequences),
        answer => (first_ns, run.end_ns, (answer - 1) * sequences),
    };
    let drawn: f64 = run.curves.iter().map(|it| it.joules(to_ns) - it.joules(from_ns)).sum();
    let idle_w = settings.hardware.idle_w * run.curves.len() as f64;
    (drawn - idle_w * (to_ns - from_ns) as f64 / 1e9) / f64::from(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn isolated_points_give_the_weight_of_the_formulas() {
        let settings = Settings::default();
        let rho = calibrate(&settings);
        let Rho::Shared { a, b } = rho else { panic!("{rho:?}") };
        assert!((a - 2.9).abs() < 0.1 && (b - 124.0).abs() < 1.0, "{a} + {b} / B");
        let prefill = 32e-6 * settings.hardware.prefill_w;
        for sequences in [1, 3, 8, 50, 100] {
            let true_rho = settings.hardware.decode_token_joules(sequences) / prefill;
            assert!((rho.at(sequences) / true_rho - 1.0).abs() < 0.02, "{sequences}");
        }
    }
}
