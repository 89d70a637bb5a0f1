//! Rules that divide each tick by what each request did in it: ours, and the baselines of that kind.
//!
//! Of a tick's energy the floor goes to idle, never more than there is; what is missing is carried
//! to the next one. The rest is divided by weights; where nobody present has one, by the time each
//! was there; where nobody is there it is idle within 3 % or 2 W of the floor, else unattributed.
//! Invariant: what is booked sums to the ticks.

use super::{
    Accounts, Rule, Seen, Tick,
    rho::Rho,
    sweep::{Present, Sweep},
};

/// A rule of this kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Split {
    /// What a tick is divided by.
    pub weigh: Weigh,
    /// What the card draws at rest, W.
    pub floor_w: f64,
    /// How far the energy seen of one publish may be off, J.
    pub edge_joules: f64,
}

/// What a tick is divided by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Weigh {
    /// Prompt tokens and decode tokens times ρ: ours.
    Weighted(Rho),
    /// The time that each was there.
    Time,
    /// The tokens that each emitted.
    Token,
    /// Heads.
    Equal,
    /// The tokens that each emitted, and where nobody did, heads.
    Output,
}

/// What is carried from tick to tick.
#[derive(Default)]
pub(super) struct Floor {
    deficit: f64,
}

impl Rule for Split {
    fn settle(&mut self, ticks: &[Tick], requests: &[Seen]) -> Accounts {
        let mut sweep = Sweep::new(requests);
        let mut floor = Floor::default();
        let mut accounts = Accounts { requests: vec![0.0; requests.len()], ..Accounts::default() };
        // Each request's last share, and how far its share has gone up and down in all.
        let mut paths = vec![(0.0_f64, 0.0_f64); requests.len()];
        for tick in ticks {
            let present = sweep.tick(tick);
            let idle = floor.idle(tick, self.floor_w, present.is_empty());
            accounts.idle += idle;
            let active = tick.joules() - idle;
            if present.is_empty() {
                accounts.unattributed += active;
            }
            for (who, share) in shares(self.weigh, &present) {
                if let Some(account) = accounts.requests.get_mut(who) {
                    *account += active * share;
                }
                if let Some((last, way)) = paths.get_mut(who) {
                    *way += (share - *last).abs();
                    *last = share;
                }
            }
        }
        let bound = |(last, way): &(f64, f64)| (way + last.abs()) * self.edge_joules + 1e-6;
        accounts.bounds = paths.iter().map(bound).collect();
        accounts
    }
}

impl Floor {
    /// What of a tick is idle, J.
    pub(super) fn idle(&mut self, tick: &Tick, floor_w: f64, nobody: bool) -> f64 {
        let joules = tick.joules();
        let floor = floor_w * tick.seconds();
        let quiet = floor_w + (0.03 * floor_w).max(2.0);
        if nobody && joules <= quiet * tick.seconds() {
            self.deficit = 0.0;
            return joules;
        }
        let idle = (floor + self.deficit).min(joules);
        self.deficit = (floor + self.deficit - idle).min(floor);
        idle
    }
}

/// Each one's share of a tick; they sum to 1 where somebody is there.
fn shares(weigh: Weigh, present: &[Present]) -> Vec<(usize, f64)> {
    let emitters = present.iter().filter(|it| it.decode_tokens > 0).count();
    let weight = |it: &Present| match weigh {
        Weigh::Weighted(rho) => it.prompt_tokens + f64::from(it.decode_tokens) * rho.at(emitters),
        Weigh::Time => it.resident_ns as f64,
        Weigh::Token | Weigh::Output => f64::from(it.tokens),
        Weigh::Equal => 1.0,
    };
    let by = |weight: &dyn Fn(&Present) -> f64| {
        let sum: f64 = present.iter().map(weight).sum();
        (sum > 0.0)
            .then(|| present.iter().map(|it| (it.request, weight(it) / sum)).collect::<Vec<_>>())
    };
    by(&weight)
        .or_else(|| by(&|it| it.resident_ns as f64).filter(|_| weigh != Weigh::Output))
        // All of them are known to wait in the queue.
        .or_else(|| by(&|_| 1.0))
        .unwrap_or_default()
}
