//! A rule's charges beside the truth, over the requests of a load that ended while others came.
//!
//! An error is a request's charge less its true joules, as a share of these; errors of several
//! seeds are judged together, and the seed with the largest is kept beside. Bias is the sum of the
//! charges over the sum of the truths, less one.

use joulebook_core::ledger::settle;

use super::{
    Accounts, Books, Knowledge, Lifetime, Load, Register, Rho, Rule, Seen, Snapshot, Split, Steps,
    Tick, Weigh,
};
use crate::{
    draw::Draw,
    engine::{Engine, Run},
};

/// A rule by the name that people know it by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Name {
    /// Ours, calibrated for the engine.
    Calibrated,
    /// Ours, with ρ = 8.
    Eight,
    /// Ours, calibrated, by the steps inside the tick.
    Steps,
    /// Time in the tick.
    Time,
    /// Tokens in the tick; by time where nobody emits.
    Token,
    /// Heads in the tick.
    Equal,
    /// Tokens in the tick; by heads where nobody emits.
    Output,
    /// The share of all tokens that came in a request's time.
    Lifetime,
    /// All that was drawn in a request's time.
    Snapshot,
}

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
    /// Of each kind of observer: the share of requests whose truth lies within what time, token and
    /// calibrated weights say; only if all three were asked for.
    pub in_range: Vec<(Knowledge, f64)>,
    /// For each observer and rule.
    pub verdicts: Vec<Verdict>,
}

impl Judged {
    /// What came out for a rule that was told that.
    pub fn verdict(&self, rule: Name, knowledge: Knowledge) -> Option<&Verdict> {
        self.verdicts.iter().find(|it| it.rule == rule && it.knowledge == knowledge)
    }
}

impl Name {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Calibrated,
        Self::Eight,
        Self::Steps,
        Self::Time,
        Self::Token,
        Self::Equal,
        Self::Output,
        Self::Lifetime,
        Self::Snapshot,
    ];

    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Calibrated => "weighted, calibrated",
            Self::Eight => "weighted, ρ = 8",
            Self::Steps => "steps, calibrated",
            Self::Time => "time",
            Self::Token => "token",
            Self::Equal => "equal split",
            Self::Output => "output-token split",
            Self::Lifetime => "lifetime token share",
            Self::Snapshot => "snapshot",
        }
    }

    /// As an argument.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Calibrated => "calibrated",
            Self::Eight => "rho8",
            Self::Steps => "steps",
            Self::Time => "time",
            Self::Token => "token",
            Self::Equal => "equal",
            Self::Output => "output-token",
            Self::Lifetime => "lifetime",
            Self::Snapshot => "snapshot",
        }
    }

    /// The rule, for a card with that floor and that weight.
    pub fn rule(self, floor_w: f64, rho: Rho) -> Box<dyn Rule> {
        let split = |weigh| Box::new(Split { weigh, floor_w, edge_joules: 0.0 });
        let books = |split, rho| Box::new(Books { split, rho, floor_w });
        match self {
            Self::Calibrated => books(settle::Split::Weighted, rho),
            Self::Eight => books(settle::Split::Weighted, Rho::Constant(8.0)),
            Self::Steps => Box::new(Steps { rho, floor_w }),
            Self::Time => books(settle::Split::Time, rho),
            Self::Token => books(settle::Split::Token, rho),
            Self::Equal => split(Weigh::Equal),
            Self::Output => split(Weigh::Output),
            Self::Lifetime => Box::new(Lifetime { floor_w }),
            Self::Snapshot => Box::new(Snapshot { floor_w }),
        }
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
    seeds: Vec<Vec<Sample>>,
    residual_uj: Option<i128>,
}

/// Lets every rule settle a load, once for each seed. A request that truly cost nothing, having
/// left before its prompt was begun, has no error and is left out.
pub fn judge(load: &Load, seeds: &[u64], rules: &[Name], rho: Rho) -> Judged {
    let runs: Vec<(Run, Vec<Tick>)> = seeds
        .iter()
        .map(|seed| {
            let run = Engine::run(load.settings(*seed));
            let mut draw = Draw::new(*seed);
            draw.turn(u64::from_le_bytes(*b"register"));
            let curve = run.curves.first().cloned().unwrap_or_default();
            let ticks = Register::default().ticks(&curve, run.end_ns, &mut draw);
            (run, ticks.into_iter().map(|(tick, _)| tick).collect())
        })
        .collect();
    let range = [Name::Time, Name::Token, Name::Calibrated];
    let mut verdicts = Vec::new();
    let mut in_range = Vec::new();
    for knowledge in [Knowledge::Admission, Knowledge::Arrival] {
        let all: Vec<Charges> = Name::ALL
            .into_iter()
            .filter(|rule| rules.contains(rule))
            .map(|rule| settle(&runs, rule, knowledge, load, rho))
            .collect();
        let edges: Vec<&Charges> = all.iter().filter(|it| range.contains(&it.rule)).collect();
        if edges.len() == range.len() {
            in_range.push((knowledge, share_in_range(&edges)));
        }
        verdicts.extend(all.into_iter().filter_map(Charges::verdict));
    }
    let requests = runs.iter().map(|(run, _)| run.judged().count()).sum();
    let in_flight =
        runs.iter().map(|(run, _)| run.mean_in_flight()).sum::<f64>() / runs.len().max(1) as f64;
    Judged { load: *load, requests, in_flight, in_range, verdicts }
}

fn settle(
    runs: &[(Run, Vec<Tick>)],
    rule: Name,
    knowledge: Knowledge,
    load: &Load,
    rho: Rho,
) -> Charges {
    let floor_w = load.settings(0).hardware.idle_w;
    let mut charges = Charges { rule, knowledge, seeds: Vec::new(), residual_uj: None };
    for (run, ticks) in runs {
        let seen: Vec<Seen> =
            run.requests.iter().filter_map(|it| Seen::of(it, knowledge)).collect();
        let accounts: Accounts = rule.rule(floor_w, rho).settle(ticks, &seen);
        if let Some(residual_uj) = accounts.residual_uj {
            charges.residual_uj = Some(charges.residual_uj.unwrap_or(0) + residual_uj.abs());
        }
        let judged = run.requests.iter().zip(&accounts.requests).filter(|(request, _)| {
            request.ended_ns.is_some_and(|ended_ns| ended_ns <= run.stopped_ns)
        });
        let samples =
            judged.map(|(it, charged)| Sample { charged: *charged, truth: it.truth.joules() });
        charges.seeds.push(samples.filter(|sample| sample.truth > 0.0).collect());
    }
    charges
}

/// The share of requests whose truth lies between the least and the most that rules say.
fn share_in_range(rules: &[&Charges]) -> f64 {
    let columns: Vec<Vec<Sample>> = rules.iter().map(|it| it.seeds.concat()).collect();
    let Some((first, others)) = columns.split_first() else { return 0.0 };
    let within = first.iter().enumerate().filter(|(at, sample)| {
        let says = others.iter().filter_map(|column| column.get(*at)).map(|it| it.charged);
        let (low, high) = says.fold((sample.charged, sample.charged), |(low, high), says| {
            (f64::min(low, says), f64::max(high, says))
        });
        // A request that was alone costs the same by all rules: down to the register's quantum.
        (low - 0.002..=high + 0.002).contains(&sample.truth)
    });
    within.count() as f64 / first.len().max(1) as f64
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
            samples,
        })
    }
}
