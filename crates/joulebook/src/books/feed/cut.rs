//! A long tick, cut where its card's gauge was read.
//!
//! A counter that publishes once a second says how much was drawn in that second and not when in it.
//! The gauge beside it says when: the tick is cut at the gauge's readings, and its energy is divided
//! among the pieces in proportion to what the gauge integrates to in each, exactly. Totals stay the
//! counter's, so a gauge that is off by a factor changes nothing.
//!
//! Above the floor, pieces in which no request was there get nothing as long as there are others: what
//! the gauge shows there is its own lateness (a reading is an update old), and a request that is alone
//! in its tick is charged all of it, cut or not.
//!
//! The error of a cut: inside a tick nothing but the card's ceiling, its deepest rest and the tick's
//! own energy is certain, so how far the energy up to the cut can be from what it was given is known by
//! these. It counts between pieces with requests; where all of those lie on one side, none can be
//! misplaced.

use joulebook_core::{apportion::apportion, ledger::settle::Rest, series::Series};

/// What the gauge shows over a tick.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shaped {
    /// Where it was read, with both ends, and what it integrates to from the first, ns and µJ.
    Knots(Vec<(u64, u64)>),
    /// It has not been read so far.
    Pending,
    /// It shows nothing of this tick.
    Unknown,
}

/// What bounds a card's power, W.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub least_w: f64,
    pub most_w: f64,
}

/// A piece of a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Where it ends, ns.
    pub end_ns: u64,
    pub counted_uj: u64,
    /// By how much the cut that ends it may be misplaced, µJ.
    pub error_uj: u64,
}

impl Shaped {
    /// Between two instants.
    pub fn of(series: &Series, from_ns: u64, to_ns: u64) -> Self {
        if series.newest().is_none_or(|newest| newest.at_ns < to_ns) {
            return Self::Pending;
        }
        let ends = series.energy_uj_at(from_ns).zip(series.energy_uj_at(to_ns));
        let Some((begin_uj, end_uj)) = ends else { return Self::Unknown };
        let points = series.span(from_ns, to_ns, 1, 1);
        let gap = |point: &joulebook_core::ring::Point| {
            point.at_ns > from_ns && point.flags.contains(joulebook_core::Flags::GAP)
        };
        let inside = points.iter().filter(|point| point.at_ns > from_ns && point.at_ns < to_ns);
        let since = |energy_uj: f64| (energy_uj - begin_uj).max(0.0).round() as u64;
        let mut knots = vec![(from_ns, 0)];
        knots.extend(inside.map(|point| (point.at_ns, since(point.energy_uj as f64))));
        knots.push((to_ns, since(end_uj)));
        if knots.len() < 3 || points.iter().any(gap) { Self::Unknown } else { Self::Knots(knots) }
    }
}

/// Cuts a tick of `counted_uj`. `present`: from when to when requests were there. None where a cut
/// would tell nothing: nobody was there, or no more was drawn than at rest.
pub(super) fn cut(
    counted_uj: u64,
    knots: &[(u64, u64)],
    rest: Option<Rest>,
    present: &[(u64, Option<u64>)],
    limits: Limits,
) -> Option<Vec<Piece>> {
    let (begin_ns, end_ns) = (knots.first()?.0, knots.last()?.0);
    let occupied = occupied(knots, present);
    let first = occupied.iter().position(|is| *is)?;
    let last = occupied.iter().rposition(|is| *is)?;
    let lengths: Vec<u64> = pairs(knots).map(|(from, to)| to.0.saturating_sub(from.0)).collect();
    let shown: Vec<u64> = pairs(knots).map(|(from, to)| to.1.saturating_sub(from.1)).collect();
    let at_rest = |length_ns: u64| rest.map_or(0, |rest| energy_uj(rest.power_uw, length_ns));
    let above_uj = counted_uj.saturating_sub(at_rest(end_ns.saturating_sub(begin_ns)));
    if above_uj == 0 {
        return None;
    }
    let mut pieces = vec![0; lengths.len()];
    apportion(counted_uj.saturating_sub(above_uj), &lengths, &mut pieces);
    // Without a floor nobody knows what is above it, and all of it is divided as it was shown.
    let counts = |number: usize| rest.is_none() || occupied.get(number).is_some_and(|is| *is);
    let only = |values: &[u64], less: &dyn Fn(u64) -> u64| -> Vec<u64> {
        let each = values.iter().zip(&lengths).enumerate();
        let each =
            each.map(
                |(number, (value, length_ns))| {
                    if counts(number) { value.saturating_sub(less(*length_ns)) } else { 0 }
                },
            );
        each.collect()
    };
    let mut above = vec![0; lengths.len()];
    let divided = apportion(above_uj, &only(&shown, &at_rest), &mut above)
        || apportion(above_uj, &only(&shown, &|_| 0), &mut above)
        || apportion(above_uj, &only(&lengths, &|_| 0), &mut above);
    if !divided {
        return None;
    }
    let mut so_far_uj = 0u64;
    let each = pieces.into_iter().zip(above).zip(knots.iter().skip(1)).enumerate();
    let cut = each.map(|(number, ((rest_uj, above_uj), (at_ns, _)))| {
        let counted = rest_uj + above_uj;
        so_far_uj += counted;
        // Requests on both sides of it.
        let between = (first..last).contains(&number) || (rest.is_none() && *at_ns < end_ns);
        let place = Place {
            counted_uj,
            so_far_uj,
            offset_ns: at_ns - begin_ns,
            length_ns: end_ns - begin_ns,
        };
        let error_uj = if between { place.error_uj(limits) } else { 0 };
        Piece { end_ns: *at_ns, counted_uj: counted, error_uj }
    });
    Some(cut.collect())
}

/// Where a cut lies.
struct Place {
    counted_uj: u64,
    so_far_uj: u64,
    offset_ns: u64,
    length_ns: u64,
}

impl Place {
    /// How far the energy up to here can be from what it was given.
    fn error_uj(&self, limits: Limits) -> u64 {
        let joules = |uj: u64| uj as f64 / 1e6;
        let seconds = |ns: u64| ns as f64 / 1e9;
        let (whole_j, given_j) = (joules(self.counted_uj), joules(self.so_far_uj));
        let before_s = seconds(self.offset_ns);
        let after_s = seconds(self.length_ns.saturating_sub(self.offset_ns));
        let most_j = (limits.most_w * before_s).min(whole_j - limits.least_w * after_s);
        let least_j = (limits.least_w * before_s).max(whole_j - limits.most_w * after_s);
        ((most_j - given_j).max(given_j - least_j).max(0.0) * 1e6).ceil() as u64
    }
}

/// In which pieces a request was there.
fn occupied(knots: &[(u64, u64)], present: &[(u64, Option<u64>)]) -> Vec<bool> {
    let pieces = knots.len().saturating_sub(1);
    let mut changes = vec![0i64; knots.len()];
    for (from_ns, to_ns) in present {
        // The piece it came in, and the one after the one it went in.
        let first = knots.partition_point(|(at_ns, _)| at_ns <= from_ns).saturating_sub(1);
        let after = to_ns
            .map_or(pieces, |to_ns| knots.partition_point(|(at_ns, _)| *at_ns < to_ns).min(pieces));
        if first < after {
            if let Some(change) = changes.get_mut(first) {
                *change += 1;
            }
            if let Some(change) = changes.get_mut(after) {
                *change -= 1;
            }
        }
    }
    let mut there = 0;
    let running = changes.iter().take(pieces).map(|change| {
        there += change;
        there > 0
    });
    running.collect()
}

fn pairs(knots: &[(u64, u64)]) -> impl Iterator<Item = ((u64, u64), (u64, u64))> + '_ {
    knots.iter().copied().zip(knots.iter().skip(1).copied())
}

fn energy_uj(power_uw: u64, length_ns: u64) -> u64 {
    let energy = u128::from(power_uw) * u128::from(length_ns) / 1_000_000_000;
    u64::try_from(energy).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "cut_tests.rs"]
mod tests;
