//! Rules that look at a request's whole time at once. Both book energy twice or not at all; they
//! are here to be compared with.

use super::{Accounts, Rule, Seen, Tick};

/// All energy above idle between a request's arrival and its end is the request's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Snapshot {
    /// What the card draws at rest, W.
    pub floor_w: f64,
}

/// A request's share of that energy is its share of all tokens that came in that time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lifetime {
    /// What the card draws at rest, W.
    pub floor_w: f64,
}

/// Something that adds up over time, with straight lines between its points.
struct Sum(Vec<(i64, f64)>);

impl Rule for Snapshot {
    fn settle(&mut self, ticks: &[Tick], requests: &[Seen]) -> Accounts {
        let energy = Sum::above_idle(ticks, self.floor_w);
        let window = |it: &Seen| energy.at(it.ended_ns) - energy.at(it.arrived_ns);
        Accounts { requests: requests.iter().map(window).collect(), ..Accounts::default() }
    }
}

impl Rule for Lifetime {
    fn settle(&mut self, ticks: &[Tick], requests: &[Seen]) -> Accounts {
        let energy = Sum::above_idle(ticks, self.floor_w);
        let mut emissions: Vec<(i64, u32)> = requests
            .iter()
            .flat_map(|it| it.emissions.iter().map(|emission| (emission.t_ns, emission.tokens)))
            .collect();
        emissions.sort_unstable();
        let mut sum = 0;
        let counts: Vec<(i64, u64)> = emissions
            .into_iter()
            .map(|(t_ns, tokens)| {
                sum += u64::from(tokens);
                (t_ns, sum)
            })
            .collect();
        let until = |t_ns: i64| {
            let after = counts.partition_point(|(at_ns, _)| *at_ns <= t_ns);
            after.checked_sub(1).and_then(|at| counts.get(at)).map_or(0, |(_, sum)| *sum)
        };
        let share = |it: &Seen| {
            let own: u64 = it.emissions.iter().map(|emission| u64::from(emission.tokens)).sum();
            let all = until(it.ended_ns) - until(it.arrived_ns);
            let window = energy.at(it.ended_ns) - energy.at(it.arrived_ns);
            if all == 0 { 0.0 } else { window * own as f64 / all as f64 }
        };
        Accounts { requests: requests.iter().map(share).collect(), ..Accounts::default() }
    }
}

impl Sum {
    fn above_idle(ticks: &[Tick], floor_w: f64) -> Self {
        let mut sum = 0.0;
        let mut points: Vec<(i64, f64)> =
            ticks.first().map(|tick| (tick.start_ns, 0.0)).into_iter().collect();
        points.extend(ticks.iter().map(|tick| {
            sum += tick.joules() - floor_w * tick.seconds();
            (tick.end_ns, sum)
        }));
        Self(points)
    }

    fn at(&self, t_ns: i64) -> f64 {
        let after = self.0.partition_point(|(at_ns, _)| *at_ns <= t_ns);
        let before = after.checked_sub(1).and_then(|at| self.0.get(at));
        match (before, self.0.get(after)) {
            (Some(&(t0, sum0)), Some(&(t1, sum1))) => {
                sum0 + (sum1 - sum0) * (t_ns - t0) as f64 / (t1 - t0) as f64
            }
            (Some(&(_, sum)), None) => sum,
            (None, _) => 0.0,
        }
    }
}
