//! A sensor that shows one value while its card works.
//!
//! A value may stand still because the card does. It is called frozen when it stood for ten update
//! periods and three seconds while the card warmed up or its utilisation went up and down; what
//! comes within two seconds of the last change is left out, since utilisation is a mean and
//! follows late.

use joulebook_core::Power;

use super::Activity;

const LEAST_S: f64 = 3.0;
const LEAST_PERIODS: f64 = 10.0;
const LEAST_ROWS: usize = 10;
const FOLLOWS_NS: u64 = 2_000_000_000;
/// Degrees that a card at rest does not warm up by.
const WARMED: f64 = 5.0;
/// Per cent that utilisation does not move by at rest.
const WORKED: f64 = 50.0;

/// One good reading, and what the row tells beside it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub at_ns: u64,
    pub power: Power,
    pub activity: Activity,
}

/// A run of one value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Run {
    pub from_ns: u64,
    pub to_ns: u64,
    pub rows: usize,
    pub power: Power,
    /// What the card did meanwhile; `None` when nothing shows that it worked.
    pub work: Option<String>,
}

/// Runs that are frozen, and a run over the whole of a recording in any case.
pub(super) fn runs(seen: &[Seen], update_s: f64) -> Vec<Run> {
    let same = seen.chunk_by(|from, to| from.power == to.power);
    let run = |rows: &[Seen]| {
        let (first, last) = (rows.first()?, rows.last()?);
        let length_s = last.at_ns.saturating_sub(first.at_ns) as f64 / 1e9;
        if rows.len() < LEAST_ROWS || length_s < LEAST_S.max(LEAST_PERIODS * update_s) {
            return None;
        }
        let work = work(rows, first.at_ns.saturating_add(FOLLOWS_NS));
        (work.is_some() || rows.len() == seen.len()).then_some(Run {
            from_ns: first.at_ns,
            to_ns: last.at_ns,
            rows: rows.len(),
            power: first.power,
            work,
        })
    };
    same.filter_map(run).collect()
}

fn work(rows: &[Seen], from_ns: u64) -> Option<String> {
    let late = || rows.iter().filter(|row| row.at_ns >= from_ns).map(|row| row.activity);
    let mut coldest = f64::INFINITY;
    let mut warmed = (0.0, 0.0, 0.0);
    for temperature in late().filter_map(|activity| activity.temperature) {
        coldest = coldest.min(temperature);
        if temperature - coldest > warmed.0 {
            warmed = (temperature - coldest, coldest, temperature);
        }
    }
    if warmed.0 >= WARMED {
        return Some(format!("the card warmed up from {} to {} °C", warmed.1, warmed.2));
    }
    let used = || late().filter_map(|activity| activity.utilisation);
    let (least, most) =
        (used().fold(f64::INFINITY, f64::min), used().fold(f64::NEG_INFINITY, f64::max));
    (most - least >= WORKED)
        .then(|| format!("the card's utilisation went between {least} and {most} %"))
}
