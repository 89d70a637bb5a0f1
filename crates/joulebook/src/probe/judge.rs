//! What the comparison says of the counter: which register is to be trusted, and with what marks.

use joulebook_core::{Fault, Scope};
use serde::Serialize;

use super::compare::Ratio;
use crate::profile::Trust;

/// The counter is marked beyond this.
const MISMATCH: f64 = 0.1;
/// The counter is rejected beyond this.
const REJECTED: f64 = 0.3;
/// The slope may depend on the rate of reading by as much.
const POLL_SENSITIVE: f64 = 0.03;

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// Counter and gauge agree.
    Agrees,
    /// They differ by more than 10 %.
    Mismatch,
    /// They differ by more than 30 %: the counter is not used.
    Rejected,
    /// The counter shows another slope the more often it is read.
    PollSensitive,
    /// The counter stands still while power is drawn.
    Constant,
    /// The card has no counter.
    NoCounter,
    /// The counter could not be read now.
    CounterUnreadable,
    /// The card has no power gauge, so the counter could not be checked.
    NoGauge,
    /// The gauge could not be read now.
    GaugeUnreadable,
    /// The load was too uneven to compare them.
    Uneven,
    /// The counter restarted or was set meanwhile.
    Reset,
}

/// Which register is to be trusted, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// The register.
    pub trust: Trust,
    /// What was found.
    pub findings: Vec<Finding>,
    /// Worth keeping: it rests on readings, not on a failure that may pass.
    pub lasting: bool,
}

/// What is judged.
pub(super) struct Evidence {
    pub counter: Result<(), Fault>,
    pub moved: bool,
    pub resets: u32,
    pub gauge: Result<(), Fault>,
    /// The ratio by which the counter is judged, read once a second.
    pub slow: Option<Ratio>,
    /// The same read faster.
    pub faster: [Option<Ratio>; 2],
    pub drawing: bool,
}

impl Verdict {
    /// True when this was found.
    pub fn has(&self, finding: Finding) -> bool {
        self.findings.contains(&finding)
    }
}

/// The verdict.
pub(super) fn verdict(evidence: &Evidence) -> Verdict {
    let mut findings = Vec::new();
    let gauge = match evidence.gauge {
        Ok(()) => true,
        Err(Fault::NotSupported) => {
            findings.push(Finding::NoGauge);
            false
        }
        Err(_) => {
            findings.push(Finding::GaugeUnreadable);
            false
        }
    };
    let gauge_else = |trust| if gauge { Trust::Gauge } else { trust };
    match evidence.counter {
        Err(Fault::NotSupported) => {
            findings.push(Finding::NoCounter);
            let lasting = gauge || evidence.gauge == Err(Fault::NotSupported);
            return Verdict { trust: gauge_else(Trust::Nothing), findings, lasting };
        }
        Err(_) if !evidence.moved => {
            findings.push(Finding::CounterUnreadable);
            return Verdict { trust: gauge_else(Trust::Nothing), findings, lasting: false };
        }
        _ if !evidence.moved => {
            findings.push(Finding::Constant);
            let trust = gauge_else(Trust::Nothing);
            return Verdict { trust, findings, lasting: gauge && evidence.drawing };
        }
        _ => {}
    }
    if evidence.resets > 0 {
        findings.push(Finding::Reset);
    }
    let Some(slow) = evidence.slow.filter(|_| evidence.resets == 0) else {
        if gauge && evidence.resets == 0 {
            findings.push(Finding::CounterUnreadable);
        }
        let lasting = evidence.gauge == Err(Fault::NotSupported);
        return Verdict { trust: Trust::Counter, findings, lasting };
    };
    if slow.strays_beyond(REJECTED) {
        findings.push(Finding::Rejected);
        findings.push(Finding::Mismatch);
        return Verdict { trust: Trust::Gauge, findings, lasting: true };
    }
    if evidence.faster.iter().flatten().any(|ratio| ratio.differs_from(slow, POLL_SENSITIVE)) {
        findings.push(Finding::PollSensitive);
    }
    if slow.strays_beyond(MISMATCH) {
        findings.push(Finding::Mismatch);
    } else if slow.is_vague(MISMATCH) {
        findings.push(Finding::Uneven);
    } else {
        findings.push(Finding::Agrees);
    }
    Verdict { trust: Trust::Counter, findings, lasting: true }
}

/// The shortest time over which a counter is held against a gauge, s.
const SHORTEST_S: f64 = 2.0;

/// Holds what a counter showed over a while against the integral of power, both in J and free of
/// what timing leaves open: the ratio, and the verdict.
pub fn compared(
    counted_j: Result<f64, Fault>,
    drawn_j: Result<f64, Fault>,
    seconds: f64,
) -> (Option<f64>, Verdict) {
    let known = counted_j.ok().zip(drawn_j.ok()).filter(|(_, drawn_j)| *drawn_j > 0.0);
    let value = known.map(|(counted_j, drawn_j)| counted_j / drawn_j);
    // Below that the comparison tells nothing.
    let uncertainty = if seconds >= SHORTEST_S { 0.0 } else { f64::INFINITY };
    let ratio = |value| Ratio { value, uncertainty, seconds, reads_per_second: 0.0 };
    let verdict = verdict(&Evidence {
        counter: counted_j.map(|_| ()),
        moved: counted_j.is_ok_and(|counted_j| counted_j > 0.0),
        resets: 0,
        gauge: drawn_j.map(|_| ()),
        slow: value.map(ratio),
        faster: [None, None],
        drawing: drawn_j.is_ok_and(|drawn_j| drawn_j > 0.0),
    });
    (value, verdict)
}

/// What the counter covers: what it agrees with, where it can be held against the module and the
/// GPU and agrees with one of them; else the driver's word.
pub(super) fn scope(word: Scope, gpu: Option<Ratio>, module: Option<Ratio>) -> Scope {
    let agrees = |ratio: Ratio| (ratio.value - 1.0).abs() <= MISMATCH && !ratio.is_vague(MISMATCH);
    match (gpu, module) {
        (Some(gpu), Some(module)) if agrees(gpu) != agrees(module) => {
            if agrees(gpu) {
                Scope::Gpu
            } else {
                Scope::Module
            }
        }
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(value: f64, uncertainty: f64) -> Option<Ratio> {
        Some(Ratio { value, uncertainty, seconds: 3.0, reads_per_second: 1.0 })
    }

    fn judged(slow: f64, faster: f64, uncertainty: f64) -> Verdict {
        verdict(&Evidence {
            counter: Ok(()),
            moved: true,
            resets: 0,
            gauge: Ok(()),
            slow: ratio(slow, uncertainty),
            faster: [ratio(faster, uncertainty), None],
            drawing: true,
        })
    }

    #[test]
    fn a_ratio_decides() {
        for (slow, faster, uncertainty, trust, findings) in [
            (1.0, 1.01, 0.005, Trust::Counter, vec![Finding::Agrees]),
            (0.85, 0.85, 0.005, Trust::Counter, vec![Finding::Mismatch]),
            (0.5, 0.5, 0.005, Trust::Gauge, vec![Finding::Rejected, Finding::Mismatch]),
            (1.4, 1.4, 0.005, Trust::Gauge, vec![Finding::Rejected, Finding::Mismatch]),
            (1.0, 0.87, 0.005, Trust::Counter, vec![Finding::PollSensitive, Finding::Agrees]),
            // What the load explains is held against nobody.
            (0.5, 0.9, 0.4, Trust::Counter, vec![Finding::Uneven]),
        ] {
            let verdict = judged(slow, faster, uncertainty);
            assert_eq!((verdict.trust, verdict.findings), (trust, findings), "{slow} {faster}");
            assert!(verdict.lasting);
        }
    }

    #[test]
    fn a_failure_that_may_pass_is_not_kept() {
        let none = |counter, gauge, moved, drawing| {
            let (slow, faster) = (None, [None, None]);
            let found =
                verdict(&Evidence { counter, moved, resets: 0, gauge, slow, faster, drawing });
            (found.trust, found.lasting)
        };
        let no = Err(Fault::NotSupported);
        let now = Err(Fault::Timeout);
        assert_eq!(none(no, Ok(()), false, true), (Trust::Gauge, true));
        assert_eq!(none(no, no, false, false), (Trust::Nothing, true));
        assert_eq!(none(no, now, false, false), (Trust::Nothing, false));
        assert_eq!(none(now, Ok(()), false, true), (Trust::Gauge, false));
        // Constant: believed only while power is seen to be drawn.
        assert_eq!(none(Ok(()), Ok(()), false, true), (Trust::Gauge, true));
        assert_eq!(none(Ok(()), Ok(()), false, false), (Trust::Gauge, false));
        // A counter that nothing can check.
        assert_eq!(none(Ok(()), no, true, false), (Trust::Counter, true));
    }

    #[test]
    fn the_scope_is_what_the_counter_agrees_with() {
        let (word, yes, no) = (Scope::Gpu, ratio(1.0, 0.01), ratio(1.8, 0.02));
        assert_eq!(scope(word, no, yes), Scope::Module);
        assert_eq!(scope(Scope::Module, yes, no), Scope::Gpu);
        assert_eq!(scope(Scope::Module, yes, yes), Scope::Module, "both fit: the driver's word");
        assert_eq!(scope(word, yes, None), Scope::Gpu);
    }
}
