//! What is asked of the engine: when requests come, how long they are, and what goes wrong.

use crate::{
    draw::Draw,
    scenario::{Resident, Span},
};

/// How long prompts and answers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mix {
    /// Short prompts and answers of some hundred tokens.
    Chat,
    /// 70 % chat, 30 % long prompts with short answers.
    Mixed,
}

/// When requests come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// At random, so many a second.
    Poisson(f64),
    /// At random, so many a second on average: three times as many for 5 s, a third for 15 s.
    Bursty(f64),
    /// One after the other at equal distances, so many a second.
    Steady(f64),
    /// Exactly so many in flight: whenever one ends, the next one comes.
    Closed(usize),
    /// None but those that are submitted.
    None,
}

/// The part of some prompts that is in the cache already.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrefixCache {
    /// The share of requests that find something.
    pub hits: f64,
    /// The share of the prompt that they find.
    pub share: f64,
}

/// Clients that leave before their answer is complete.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cancels {
    /// The share of requests whose client may leave.
    pub share: f64,
    /// How long such a client stays on average, s.
    pub patience_s: f64,
    /// The share of those who left that ask the same again.
    pub retries: f64,
    /// After that pause, s.
    pub pause_s: f64,
}

/// Somebody else on a card of ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Foreign {
    /// Which card.
    pub card: usize,
    /// The process.
    pub pid: u32,
    /// The memory it holds, MiB.
    pub used_mib: u64,
    /// From when, ns.
    pub start_ns: i64,
    /// Until when, ns.
    pub end_ns: i64,
    /// What it adds, W.
    pub watts: f64,
}

/// One piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// Of these in the cache already; one at least is always computed.
    pub cached_tokens: u32,
    /// Tokens of the answer.
    pub answer_tokens: u32,
    /// The client leaves so long after it came, ns.
    pub patience_ns: Option<i64>,
    /// The first attempt, if this is another one.
    pub parent: Option<u64>,
}

/// The next arrivals, in order of time.
#[derive(Clone, Debug)]
pub(super) struct Coming {
    arrivals: Arrivals,
    next_s: f64,
}

impl Foreign {
    /// What it draws between two instants, J.
    pub fn joules(&self, from_ns: i64, to_ns: i64) -> f64 {
        let inside_ns = self.end_ns.min(to_ns) - self.start_ns.max(from_ns);
        inside_ns.max(0) as f64 / 1e9 * self.watts
    }

    /// The process that a simulated card shows for it.
    pub fn resident(&self) -> Resident {
        Resident {
            span: Span { start_ns: self.start_ns, end_ns: self.end_ns },
            pid: self.pid,
            used_mib: Some(self.used_mib),
            sm_percent: None,
            name: "foreign".to_owned(),
        }
    }
}

impl Mix {
    /// A prompt and an answer, tokens.
    pub(super) fn lengths(self, draw: &mut Draw) -> (u32, u32) {
        if self == Self::Mixed && draw.share() <= 0.3 {
            let prompt = draw.log_normal(4000.0, 0.6).clamp(500.0, 16_000.0);
            let answer = draw.log_normal(60.0, 0.6).max(4.0);
            return (prompt as u32, answer as u32);
        }
        let prompt = draw.log_normal(200.0, 0.9).max(8.0);
        let answer = draw.log_normal(300.0, 0.8).clamp(4.0, 2000.0);
        (prompt as u32, answer as u32)
    }
}

impl Coming {
    pub(super) fn new(arrivals: Arrivals, draw: &mut Draw) -> Self {
        let mut coming = Self { arrivals, next_s: 0.0 };
        coming.pass(draw);
        coming
    }

    /// When the next request comes, ns; none where nobody comes by himself.
    pub(super) fn next_ns(&self) -> Option<i64> {
        match self.arrivals {
            Arrivals::Poisson(_) | Arrivals::Bursty(_) | Arrivals::Steady(_) => {
                self.next_s.is_finite().then_some((self.next_s * 1e9) as i64)
            }
            Arrivals::Closed(_) | Arrivals::None => None,
        }
    }

    /// On to the one after.
    pub(super) fn pass(&mut self, draw: &mut Draw) {
        self.next_s = match self.arrivals {
            Arrivals::Poisson(rate) => self.next_s + draw.exponential(1.0 / rate),
            Arrivals::Bursty(rate) => after_burst(self.next_s, draw.exponential(1.0 / rate)),
            Arrivals::Steady(rate) => self.next_s + 1.0 / rate,
            Arrivals::Closed(_) | Arrivals::None => f64::INFINITY,
        };
    }
}

/// Lets a wait pass, s, which runs three times as fast in the first 5 s of each 20, else at a third.
fn after_burst(now_s: f64, mut wait: f64) -> f64 {
    let mut now_s = now_s;
    loop {
        let phase = now_s.rem_euclid(20.0);
        let (pace, left) = if phase < 5.0 { (3.0, 5.0 - phase) } else { (1.0 / 3.0, 20.0 - phase) };
        if wait <= left * pace {
            return now_s + wait / pace;
        }
        wait -= left * pace;
        now_s += left;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_nine_times_the_lull_and_the_mean_stays() {
        let mut draw = Draw::new(3);
        let mut coming = Coming::new(Arrivals::Bursty(4.0), &mut draw);
        let (mut burst, mut lull) = (0, 0);
        while let Some(t_ns) = coming.next_ns().filter(|t_ns| *t_ns < 4_000_000_000_000) {
            let in_burst = t_ns % 20_000_000_000 < 5_000_000_000;
            *(if in_burst { &mut burst } else { &mut lull }) += 1;
            coming.pass(&mut draw);
        }
        assert!((f64::from(burst) / 12_000.0 - 1.0).abs() < 0.05, "{burst}");
        assert!((f64::from(lull) / 4_000.0 - 1.0).abs() < 0.06, "{lull}");
    }

    #[test]
    fn lengths_keep_to_their_limits() {
        let mut draw = Draw::new(5);
        for _ in 0..5000 {
            let (prompt, answer) = Mix::Mixed.lengths(&mut draw);
            assert!(prompt >= 8 && (4..=2000).contains(&answer), "{prompt} {answer}");
        }
    }
}
