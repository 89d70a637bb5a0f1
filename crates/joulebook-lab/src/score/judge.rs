//! A rule's charges beside the truth, over the requests of a load that ended while others came.
//!
//! An error is a request's charge less its true joules, as a share of these; errors of several
//! seeds are judged together, and the seed with the largest is kept beside. Bias is the sum of the
//! charges over the sum of the truths, less one.

use super::{Accounts, Card, Charge, Knowledge, Load, Name, Rho, Seen, card::cards};
use crate::{
    draw::Draw,
    engine::{Engine, Run},
};

/// How far a rule lies from the truth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Sum of charges over sum of truths, less 1.
    pub bias: f64,
    /// The median of |error|.
    pub median: f64,
    /// What 95 % of |error| are below.
    pub p95: f64,
}

/// A charge and the truth, J.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// What the rule says.
    pub charged: f64,
    /// What it was.
    pub truth: f64,
}

/// What receipts say beside a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranges {
    /// The share of requests that have a figure.
    pub told: f64,
    /// The share whose truth lies in the range that their receipt gives.
    pub hold: f64,
    /// The median width of that range, as a share of the truth.
    pub width: f64,
}

/// What came out for a rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Which.
    pub rule: Name,
    /// What it was told.
    pub knowledge: Knowledge,
    /// Over all seeds.
    pub figures: Figures,
    /// The largest of each over single seeds, by size.
    pub worst: Figures,
    /// What is booked less what the register counted, µJ; none for rules that keep no books.
    pub residual_uj: Option<i128>,
    /// What receipts say beside; none for rules that give none.
    pub ranges: Option<Ranges>,
    /// All charges.
    pub samples: Vec<Sample>,
}

/// What came out for a load.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// Which.
    pub load: Load,
    /// Requests, of all seeds.
    pub requests: usize,
    /// How many were in flight on average.
    pub in_flight: f64,
    /// For each observer and rule.
    pub verdicts: Vec<Verdict>,
}

impl Judged {
    /// What came out for a rule that was told that.
    pub fn verdict(&self, rule: Name, knowledge: Knowledge) -> Option<&Verdict> {
        self.verdicts.iter().find(|it| it.rule == rule && it.knowledge == knowledge)
    }
}

impl Figures {
    /// Of samples; none without any.
    pub fn of(samples: &[Sample]) -> Option<Self> {
        let mut errors: Vec<f64> =
            samples.iter().map(|it| (it.charged / it.truth - 1.0).abs()).collect();
        errors.sort_by(f64::total_cmp);
        let charged: f64 = samples.iter().map(|it| it.charged).sum();
        let truth: f64 = samples.iter().map(|it| it.truth).sum();
        Some(Self {
            bias: charged / truth - 1.0,
            median: quantile(&errors, 0.5)?,
            p95: quantile(&errors, 0.95)?,
        })
    }

    fn worse(self, other: Self) -> Self {
        let bias = if self.bias.abs() > other.bias.abs() { self.bias } else { other.bias };
        Self { bias, median: self.median.max(other.median), p95: self.p95.max(other.p95) }
    }
}

/// The value that a share of sorted values lies at or below.
pub fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let at = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(at.max(1) - 1).copied()
}

/// What a rule made of the runs of a load, one after the other.
struct Charges {
    rule: Name,
    knowledge: Knowledge,
    /// Requests without a figure are left out.
    seeds: Vec<Vec<Sample>>,
    /// What the receipts of all seeds say, beside the truth.
    said: Vec<(Charge, f64)>,
    residual_uj: Option<i128>,
}

/// Lets every rule settle a load, once for each seed. A request that truly cost nothing, having
/// left before its prompt was begun, has no error and is left out.
pub fn judge(load: &Load, seeds: &[u64], rules: &[Name], rho: Rho) -> Judged {
    let runs: Vec<(Run, Vec<Card>)> = seeds
        .iter()
        .map(|seed| {
            let run = Engine::run(load.settings(*seed));
            let mut draw = Draw::new(*seed);
            draw.turn(u64::from_le_bytes(*b"register"));
            let cards = cards(load, &run, &mut draw);
            (run, cards)
        })
        .collect();
    let mut verdicts = Vec::new();
    for knowledge in [Knowledge::Admission, Knowledge::Arrival] {
        let wanted = Name::ALL.into_iter().filter(|rule| rules.contains(rule));
        let all = wanted.map(|rule| settle(&runs, rule, knowledge, load, rho));
        verdicts.extend(all.filter_map(Charges::verdict));
    }
    let requests = runs.iter().map(|(run, _)| run.judged().count()).sum();
    let in_flight =
        runs.iter().map(|(run, _)| run.mean_in_flight()).sum::<f64>() / runs.len().max(1) as f64;
    Judged { load: *load, requests, in_flight, verdicts }
}

fn settle(
    runs: &[(Run, Vec<Card>)],
    rule: Name,
    knowledge: Knowledge,
    load: &Load,
    rho: Rho,
) -> Charges {
    let floor_w = load.settings(0).hardware.idle_w;
    let (seeds, said) = (Vec::new(), Vec::new());
    let mut charges = Charges { rule, knowledge, seeds, said, residual_uj: None };
    for (run, cards) in runs {
        let seen: Vec<Seen> =
            run.requests.iter().filter_map(|it| Seen::of(it, knowledge)).collect();
        let accounts: Accounts = rule.rule(floor_w, rho).settle_all(cards, &seen);
        if let Some(residual_uj) = accounts.residual_uj {
            charges.residual_uj = Some(charges.residual_uj.unwrap_or(0) + residual_uj.abs());
        }
        let mut samples = Vec::new();
        for (at, request) in run.requests.iter().enumerate() {
            let truth = request.truth.joules();
            let in_time = request.ended_ns.is_some_and(|ended_ns| ended_ns <= run.stopped_ns);
            let Some(charged) = accounts.requests.get(at).filter(|_| in_time && truth > 0.0) else {
                continue;
            };
            let said = accounts.charges.get(at);
            charges.said.extend(said.map(|said| (*said, truth)));
            if said.is_none_or(|said| said.joules.is_some()) {
                samples.push(Sample { charged: *charged, truth });
            }
        }
        charges.seeds.push(samples);
    }
    charges
}

impl Ranges {
    fn of(said: &[(Charge, f64)]) -> Option<Self> {
        let share = |count: usize| count as f64 / said.len().max(1) as f64;
        let told = said.iter().filter(|(charge, _)| charge.joules.is_some()).count();
        // A request that was alone costs the same by all rules: down to the register's quantum.
        let holds = |(charge, truth): &&(Charge, f64)| {
            let range = charge.range.map(|(low, high)| low - 0.002..=high + 0.002);
            range.is_some_and(|range| range.contains(truth))
        };
        let hold = said.iter().filter(holds).count();
        let width =
            |(charge, truth): &(Charge, f64)| charge.range.map(|(low, high)| (high - low) / truth);
        let mut widths: Vec<f64> = said.iter().filter_map(width).collect();
        widths.sort_by(f64::total_cmp);
        let width = quantile(&widths, 0.5)?;
        Some(Self { told: share(told), hold: share(hold), width })
    }
}

impl Charges {
    fn verdict(self) -> Option<Verdict> {
        let each: Vec<Figures> = self.seeds.iter().filter_map(|it| Figures::of(it)).collect();
        let samples = self.seeds.concat();
        Some(Verdict {
            rule: self.rule,
            knowledge: self.knowledge,
            figures: Figures::of(&samples)?,
            worst: each.into_iter().reduce(Figures::worse)?,
            residual_uj: self.residual_uj,
            ranges: Ranges::of(&self.said),
            samples,
        })
    }
}
