//! What the rules are to reach, and whether they do.

use super::{Judged, Knowledge, Name, Verdict};

/// An aim on a load.
#[derive(Clone, Debug, PartialEq)]
pub struct Aim {
    /// What is to be reached.
    pub words: &'static str,
    /// On which load.
    pub load: String,
    /// What was reached.
    pub figure: f64,
    /// The limit; as a share, a factor or µJ, as the words have it.
    pub limit: f64,
    /// Whether it was reached.
    pub met: bool,
}

/// So many in flight are the most for which ρ = 8 has an aim.
const EIGHT_IN_FLIGHT: f64 = 32.0;
/// From so many in flight on, a mixed load is compared with the baselines.
const COMPARED_IN_FLIGHT: f64 = 10.0;

/// All aims on these loads; an overload has that of its books only.
pub fn aims(judged: &[Judged]) -> Vec<Aim> {
    judged.iter().flat_map(of_load).collect()
}

fn of_load(judged: &Judged) -> Vec<Aim> {
    let mut aims = Vec::new();
    let load = judged.load.words();
    let at_most = |words, figure: f64, limit: f64| Aim {
        words,
        load: load.clone(),
        figure,
        limit,
        met: figure <= limit,
    };
    let residuals = judged.verdicts.iter().filter_map(|it| it.residual_uj);
    if let Some(worst) = residuals.max() {
        aims.push(at_most("books: residual, µJ", worst as f64, 0.0));
    }
    if judged.load.overload {
        return aims;
    }
    let told = |rule| judged.verdict(rule, Knowledge::Admission);
    if let Some(Verdict { figures, .. }) = told(Name::Calibrated) {
        aims.push(at_most("calibrated: median ≤ 3 %", figures.median, 0.03));
        aims.push(at_most("calibrated: p95 ≤ 25 %", figures.p95, 0.25));
    }
    if let Some(Verdict { figures, .. }) =
        told(Name::Eight).filter(|_| judged.in_flight <= EIGHT_IN_FLIGHT)
    {
        aims.push(at_most("ρ = 8: median ≤ 6 %", figures.median, 0.06));
    }
    if !(judged.load.name.ends_with("mixed") && judged.in_flight >= COMPARED_IN_FLIGHT) {
        return aims;
    }
    for (ours, baseline, words) in [
        (Name::Calibrated, Name::Equal, "calibrated: ≥ 4 × nearer than equal split"),
        (Name::Calibrated, Name::Output, "calibrated: ≥ 4 × nearer than output-token split"),
        (Name::Eight, Name::Equal, "ρ = 8: ≥ 4 × nearer than equal split"),
        (Name::Eight, Name::Output, "ρ = 8: ≥ 4 × nearer than output-token split"),
    ] {
        if let (Some(ours), Some(baseline)) = (told(ours), told(baseline)) {
            let figure = baseline.figures.median / ours.figures.median;
            let (load, limit) = (load.clone(), 4.0);
            aims.push(Aim { words, load, figure, limit, met: figure >= limit });
        }
    }
    aims
}
