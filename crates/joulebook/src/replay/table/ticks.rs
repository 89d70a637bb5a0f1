//! Rows of one tick: which column tells their cards apart, and what one stamp for all of them means.

use std::collections::{HashMap, HashSet};

use super::{Line, MOST_DOUBLED, columns::Columns};
use crate::replay::{Log, Row, Warning};

/// Rows that have the stamp of their card's row before.
pub(super) struct Doubled {
    pub rows: usize,
    /// The first one's line, and that of the row before.
    pub first: Option<(usize, usize)>,
}

/// The column that tells cards apart: the surest under which hardly a stamp has a card twice. A
/// word where that is not the surest of all.
pub(super) fn identity(
    columns: &Columns,
    lines: &[Line<'_>],
    width: usize,
) -> (Option<usize>, Option<Warning>) {
    let candidates = || columns.identities.iter().copied().filter(|at| *at < width);
    let rows = || lines.iter().filter(|(_, cells)| cells.len() == width);
    let clashes = |at: usize| {
        let (mut stamp, mut seen, mut clashes) = ("", HashSet::new(), 0);
        for (_, cells) in rows() {
            let (Some(now), Some(key)) = (cells.get(columns.time), cells.get(at)) else { continue };
            if *now != stamp {
                (stamp, seen) = (*now, HashSet::new());
            }
            clashes += usize::from(!seen.insert(*key));
        }
        clashes
    };
    let first = candidates().next();
    let told = candidates().find(|at| clashes(*at) * MOST_DOUBLED < rows().count());
    let name = |at: usize| columns.names.get(at).cloned().unwrap_or_default();
    match (first, told) {
        (Some(first), Some(told)) if first != told => {
            let (named, used) = (name(first), name(told));
            (Some(told), Some(Warning::HeaderMisnamed { named, used }))
        }
        (first, told) => (told.or(first), None),
    }
}

/// Rows of one card with one stamp.
pub(super) fn doubled(log: &Log) -> Doubled {
    let mut last: HashMap<usize, &Row> = HashMap::new();
    let mut doubled = Doubled { rows: 0, first: None };
    for row in &log.rows {
        if let Some(before) = last.insert(row.card, row)
            && before.at_ns == row.at_ns
        {
            doubled.rows += 1;
            doubled.first = doubled.first.or(Some((row.line, before.line)));
        }
    }
    doubled
}

/// The shortest turn of a loop whose ticks have one stamp for several cards, s.
pub(super) fn turn_s(log: &Log) -> Option<f64> {
    let pairs = || {
        log.rows.windows(2).filter_map(|pair| match pair {
            [from, to] => Some((from, to)),
            _ => None,
        })
    };
    let shared = pairs().filter(|(from, to)| from.at_ns == to.at_ns && from.card != to.card);
    if shared.count() * 2 < log.rows.len() || log.cards.len() < 2 {
        return None;
    }
    let turns = pairs().filter_map(|(from, to)| to.at_ns.checked_sub(from.at_ns));
    turns.filter(|turn| *turn > 0).min().map(|turn| turn as f64 / 1e9)
}

/// How many rows come at a time, where they come several at a time like clockwork: one poll of as
/// many cards looks so.
pub(super) fn cluster(rows: &[Row]) -> Option<usize> {
    let gaps: Vec<u64> = rows
        .windows(2)
        .filter_map(|pair| match pair {
            [from, to] => to.at_ns.checked_sub(from.at_ns),
            _ => None,
        })
        .collect();
    let mean =
        gaps.iter().fold(0, |sum: u64, gap| sum.saturating_add(*gap)) / (gaps.len() as u64).max(1);
    let mut short: Vec<u64> = gaps.iter().copied().filter(|gap| *gap <= mean).collect();
    short.sort_unstable();
    let within = *short.get(short.len() / 2)?;
    let long: Vec<usize> = gaps
        .iter()
        .enumerate()
        .filter(|(_, gap)| **gap > mean && **gap / 4 > within)
        .map(|(at, _)| at)
        .collect();
    let steps: Vec<usize> = long
        .windows(2)
        .map(|pair| match pair {
            [from, to] => to - from,
            _ => 0,
        })
        .collect();
    let first = *steps.first()?;
    let regular = steps.iter().filter(|step| **step == first).count();
    (first >= 2 && steps.len() >= 5 && regular * 10 >= steps.len() * 9).then_some(first)
}
