//! The one place where a result gets its label.
//!
//! An estimate of energy, the idle floor and what is known of the tenants go in; a [`Measurement`]
//! comes out that is `sampled` only when a real card showed more than its idle draw and nobody
//! else was on it. Whatever fails that becomes `estimated` where tokens and a hint were given, else
//! `unknown`; a fabricated zero is impossible. Nothing turns an estimate into a measurement.

use crate::{
    estimate::{Estimate, Estimated, Missing, Rule},
    fault::Fault,
    flags::Flags,
    measurement::{Measurement, Method, Scope, Source, Tenancy},
};

/// What is known beside the energy.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// Length of the window, s.
    pub seconds: f64,
    /// The time that idle is charged for, s: its length, or its share of it among siblings.
    pub idle_seconds: f64,
    /// The idle floor of all its cards, W; none known, nothing can be charged above it.
    pub idle_w: Option<f64>,
    /// Whose reading it is.
    pub source: Source,
    /// What read it, or tried to.
    pub backend: &'static str,
    /// Who was on the card.
    pub tenancy: Tenancy,
    /// Who else was, where the node named its own: the window is then demoted.
    pub contended_by: Option<String>,
    /// What the register covers.
    pub scope: Scope,
    /// False for the answer at once.
    pub settled: bool,
    /// Polls made meanwhile.
    pub polls: u64,
    /// Polls refused or failed meanwhile.
    pub rejected: u64,
    /// Marks of the window itself.
    pub flags: Flags,
}

/// Tokens and what they cost by the owner's own estimate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Hint {
    /// Tokens the window produced.
    pub tokens: u64,
    /// J per 1000 tokens; 0 for none.
    pub joules_per_1k: f64,
}

impl Hint {
    /// The estimate, where there is one.
    fn joules(self) -> Option<f64> {
        let joules = self.joules_per_1k * self.tokens as f64 / 1000.0;
        (self.tokens > 0 && joules.is_finite() && joules > 0.0).then_some(joules)
    }
}

/// Labels a result.
pub fn grade(estimated: &Estimated, context: &Context, hint: Hint) -> Measurement {
    match estimated {
        Ok(estimate) => grade_estimate(estimate, context, hint),
        Err(missing) => grade_missing(missing, context, hint),
    }
}

fn grade_estimate(estimate: &Estimate, context: &Context, hint: Hint) -> Measurement {
    let base = seen(estimate, context);
    let Some(idle_w) = context.idle_w else {
        return demoted(base, Fault::NoBaseline, hint);
    };
    if context.contended_by.is_some() {
        return demoted(base, Fault::SharedDevice, hint);
    }
    let idle_j = idle_w * context.idle_seconds;
    let joules = estimate.gross_j - idle_j;
    if !(joules > 0.0 && joules.is_finite()) {
        // Two updates, and less than the floor by more than a resting card strays: the floor is
        // wrong, or the sensor is.
        let strays_j = (0.03 * idle_w).max(2.0) * context.idle_seconds;
        let suspect = estimate.samples > 1 && estimate.gross_j > 0.0 && joules < -strays_j;
        let fault =
            if estimate.gross_j > 0.0 { Fault::BelowIdle } else { Fault::WindowBelowResolution };
        let flags = if suspect { base.flags | Flags::BASELINE_SUSPECT } else { base.flags };
        return demoted(Measurement { flags, ..base }, fault, hint);
    }
    let unresolved = estimate.bound_j > joules;
    let (low, high) = (estimate.range_j.0 - idle_j, estimate.range_j.1 - idle_j);
    Measurement {
        joules: Some(joules),
        method: Method::Sampled,
        bound_joules: Some(estimate.bound_j),
        low_joules: unresolved.then_some(low),
        high_joules: unresolved.then_some(high),
        flags: if unresolved { base.flags | Flags::UNRESOLVED } else { base.flags },
        ..base
    }
}

fn grade_missing(missing: &Missing, context: &Context, hint: Hint) -> Measurement {
    let base = match &missing.seen {
        Some(estimate) => {
            let base = seen(estimate, context);
            let idle_j = context.idle_w.map(|idle_w| idle_w * context.idle_seconds);
            Measurement {
                low_joules: idle_j.map(|idle_j| estimate.range_j.0 - idle_j),
                high_joules: idle_j.map(|idle_j| estimate.range_j.1 - idle_j),
                ..base
            }
        }
        None => Measurement {
            flags: missing.flags | context.flags,
            samples: missing.samples,
            ..blank(context)
        },
    };
    let base = Measurement { lower_bound_joules: missing.lower_bound_j, ..base };
    demoted(base, missing.fault, hint)
}

/// A measurement that says what was seen, not yet what it is worth.
fn seen(estimate: &Estimate, context: &Context) -> Measurement {
    let mean_watts = if context.seconds > 0.0 { estimate.gross_j / context.seconds } else { 0.0 };
    Measurement {
        samples: estimate.samples,
        mean_watts,
        rule: Some(estimate.rule),
        gross_joules: Some(estimate.gross_j),
        bridged_joules: (estimate.bridged_j > 0.0).then_some(estimate.bridged_j),
        flags: estimate.flags | context.flags,
        ..blank(context)
    }
}

fn blank(context: &Context) -> Measurement {
    Measurement {
        joules: None,
        method: Method::Unknown,
        seconds: context.seconds,
        samples: 0,
        mean_watts: 0.0,
        idle_watts: context.idle_w,
        source: context.source,
        backend: context.backend,
        stages: Vec::new(),
        contended_by: context.contended_by.clone(),
        settled: context.settled,
        rule: None,
        bound_joules: None,
        low_joules: None,
        high_joules: None,
        gross_joules: None,
        lower_bound_joules: None,
        bridged_joules: None,
        tenancy: context.tenancy,
        scope: context.scope,
        polls: context.polls,
        rejected: context.rejected,
        error: None,
        flags: context.flags,
    }
}

/// Out of `sampled`: the estimate where there is one, else unknown.
fn demoted(base: Measurement, fault: Fault, hint: Hint) -> Measurement {
    let joules = hint.joules();
    let method = if joules.is_some() { Method::Estimated } else { Method::Unknown };
    Measurement { joules, method, error: Some(fault), ..base }
}

/// Several cards' energies as one: sums of figures and of bounds. Where one is missing the sum is
/// unknown, and what the others show is a lower bound.
pub fn combine(parts: &[Estimated]) -> Estimated {
    let [first, rest @ ..] = parts else { return Err(Missing::of(Fault::Absent)) };
    if rest.is_empty() {
        return *first;
    }
    let all: Result<Vec<&Estimate>, _> = parts.iter().map(Result::as_ref).collect();
    if let Ok(all) = all {
        let sum = |figure: fn(&Estimate) -> f64| all.iter().map(|part| figure(part)).sum();
        return Ok(Estimate {
            rule: worst_rule(&all),
            gross_j: sum(|part| part.gross_j),
            bound_j: sum(|part| part.bound_j),
            range_j: (sum(|part| part.range_j.0), sum(|part| part.range_j.1)),
            samples: all.iter().map(|part| part.samples).min().unwrap_or(0),
            bridged_j: sum(|part| part.bridged_j),
            flags: all.iter().fold(Flags::NONE, |flags, part| flags | part.flags),
        });
    }
    let mut known_j = 0.0;
    let mut flags = Flags::PARTIAL;
    for part in parts {
        match part {
            Ok(estimate) => {
                known_j += estimate.range_j.0;
                flags |= estimate.flags;
            }
            Err(missing) => {
                known_j += missing.lower_bound_j.unwrap_or(0.0);
                flags |= missing.flags;
            }
        }
    }
    let fault = one_fault(parts).unwrap_or(Fault::PartialDevices);
    let lower_bound_j = (known_j > 0.0).then_some(known_j);
    Err(Missing { lower_bound_j, flags, ..Missing::of(fault) })
}

/// The fault that all parts have.
fn one_fault(parts: &[Estimated]) -> Option<Fault> {
    let fault = |part: &Estimated| part.err().map(|missing| missing.fault);
    let first = fault(parts.first()?)?;
    parts.iter().all(|part| fault(part) == Some(first)).then_some(first)
}

/// The rule that promises least.
fn worst_rule(parts: &[&Estimate]) -> Rule {
    let order = [Rule::Gauge, Rule::Raw, Rule::Shared];
    let named = |rule: &Rule| parts.iter().any(|part| part.rule == *rule);
    order.into_iter().find(named).unwrap_or(Rule::Alone)
}

#[cfg(test)]
#[path = "grade_tests.rs"]
mod tests;
