//! From a pending window to its measurement: each card's estimate, their sum, the stages, the label.

use std::sync::{PoisonError, atomic::Ordering};

use joulebook_core::{
    Fault, Flags, Measurement, Tenancy,
    estimate::{self, Curve, Edges, Estimated, Facts, Missing, Neighbours, Rule, Span},
    grade::{Context, Hint, combine, grade},
    ring::Point,
};

use super::{Edge, Pending};
use crate::{
    card::{Card, Residents},
    tenancy::{self, Verdict, decide},
};

/// Points wanted around a window: five quiet ticks before and after it, and the edges' own.
const AROUND: u64 = 7;
/// Points after a window among which two are surely beyond it, if any are.
const ENOUGH: u64 = 8;
/// A register that has stood still for so many periods has not just been slow.
const STILL_PERIODS: u64 = 10;

/// A part of a window, with what idle is charged for.
struct Part {
    estimated: Estimated,
    idle_seconds: f64,
}

/// The measurement, settled or at once.
pub(super) fn measurement(pending: &Pending, settled: bool) -> Measurement {
    let span = Span { open_ns: pending.open_ns, close_ns: pending.close_ns };
    let (tenancy, contended_by) = tenants(pending, span);
    let total = all_cards(pending, span, settled, tenancy, None);
    let difference = |count: fn(&Edge) -> u64| {
        let sum = |edges: &[Edge]| edges.iter().map(count).sum::<u64>();
        sum(&pending.closings).saturating_sub(sum(&pending.edges))
    };
    let context = Context {
        seconds: span.seconds(),
        idle_seconds: total.idle_seconds,
        idle_w: pending.inner.idle_w(),
        source: pending.inner.source(),
        backend: pending.inner.backend().word(),
        tenancy,
        contended_by,
        scope: pending.inner.cards.first().map(|card| card.scope()).unwrap_or_default(),
        settled,
        polls: difference(|edge| edge.polls),
        rejected: difference(|edge| edge.rejected),
        flags: pending.flags(),
    };
    let hint = Hint { tokens: pending.tokens, joules_per_1k: pending.inner.joules_per_1k_hint };
    let mut measured = grade(&total.estimated, &context, hint);
    measured.stages = stages(pending, settled, tenancy, &context);
    measured
}

/// The stages, in order of their first mark.
fn stages(
    pending: &Pending,
    settled: bool,
    tenancy: Tenancy,
    context: &Context,
) -> Vec<(String, Measurement)> {
    let mut named: Vec<(String, Vec<Span>)> = Vec::new();
    let mut open_ns = pending.open_ns;
    for (name, close_ns) in &pending.marks {
        let span = Span { open_ns, close_ns: *close_ns };
        open_ns = *close_ns;
        match named.iter_mut().find(|(known, _)| known == name) {
            Some((_, spans)) => spans.push(span),
            None => named.push((name.clone(), vec![span])),
        }
    }
    let stage = |spans: Vec<Span>| {
        let parts: Vec<Part> = spans
            .iter()
            .map(|span| all_cards(pending, *span, settled, tenancy, Some(Rule::Shared)))
            .collect();
        let idle_seconds = parts.iter().map(|part| part.idle_seconds).sum();
        let energies: Vec<Estimated> = parts.into_iter().map(|part| part.estimated).collect();
        let seconds = spans.iter().map(|span| span.seconds()).sum();
        // Polls are counted for the whole window only.
        let context = Context { seconds, idle_seconds, polls: 0, rejected: 0, ..context.clone() };
        grade(&combine(&energies), &context, Hint::default())
    };
    named.into_iter().map(|(name, spans)| (name, stage(spans))).collect()
}

/// The sum over the cards. `only` keeps to one rule (a stage has its own window on both sides).
fn all_cards(
    pending: &Pending,
    span: Span,
    settled: bool,
    tenancy: Tenancy,
    only: Option<Rule>,
) -> Part {
    let inner = &pending.inner;
    if inner.cards.is_empty() {
        let fault = inner.fault.unwrap_or(Fault::Absent);
        return Part { estimated: Err(Missing::of(fault)), idle_seconds: span.seconds() };
    }
    let parts: Vec<Part> = (0..inner.cards.len())
        .filter_map(|number| {
            let card = inner.cards.get(number)?;
            Some(if settled {
                later(pending, number, card, span, tenancy, only)
            } else {
                at_once(pending, number, card, span, only)
            })
        })
        .collect();
    let idle_seconds = parts.iter().map(|part| part.idle_seconds).sum::<f64>() / parts.len() as f64;
    let energies: Vec<Estimated> = parts.into_iter().map(|part| part.estimated).collect();
    Part { estimated: combine(&energies), idle_seconds }
}

/// From what was published by the close.
fn at_once(pending: &Pending, number: usize, card: &Card, span: Span, only: Option<Rule>) -> Part {
    let (series, facts) = card.ruler(span.seconds());
    let whole = |estimated| Part { estimated, idle_seconds: span.seconds() };
    let (Some(edge), Some(closing)) = (pending.edges.get(number), pending.closings.get(number))
    else {
        return whole(Err(Missing::of(Fault::Absent)));
    };
    let until_ns = closing.newest.map_or(0, |point| point.at_ns);
    let from_ns = edge.newest.map_or(span.open_ns, |point| point.at_ns);
    let mut points = series.span(from_ns, until_ns, 1, 1);
    points.retain(|point| point.at_ns <= until_ns);
    // A stage that had ended before the readings stopped is not touched by that.
    if let Some(fault) = closing.fault.filter(|_| until_ns < span.close_ns) {
        // What was surely drawn after the opening, and seen before the readings stopped.
        let lag_ns = ((facts.lag_s + facts.lag_uncertainty_s) * 1e9) as u64;
        let since_ns = |point: &Point| {
            point.at_ns.saturating_sub(u64::from(point.uncertainty_ns).saturating_add(lag_ns))
        };
        let known = points.iter().filter(|point| since_ns(point) >= span.open_ns);
        let mut energies = known.map(|point| point.energy_uj as f64 / 1e6);
        let first = energies.next();
        let lower_bound_j = first.zip(energies.next_back()).map(|(first, last)| last - first);
        return whole(Err(Missing { lower_bound_j, ..Missing::of(fault) }));
    }
    if !card.is_counter() {
        let facts = card.in_common(&mut points, facts);
        let curve = Curve::new(&points, &facts);
        return whole(estimate::gauge(&curve, span, card.update_s(), Edges::Held));
    }
    // What was published by the close, and stages begin where their window does: they add up to it.
    let newest_at = |at_ns: u64| {
        let point = card.series.at_or_before(at_ns)?;
        if point.at_ns > until_ns { closing.newest } else { Some(point) }
    };
    let is_first = only.is_none() || span.open_ns == pending.open_ns;
    let mut opening = if is_first { edge.newest } else { newest_at(span.open_ns) };
    let mut last = if only.is_none() { closing.newest } else { newest_at(span.close_ns) };
    let edges = opening.iter_mut().chain(&mut last);
    let facts = card.in_common(edges.chain(&mut points), facts);
    let rule = if only.is_some() { estimate::raw_part } else { estimate::raw };
    let estimated = rule(opening, last, &points, span, &facts);
    whole(estimated.map_err(|missing| still(card, span, missing)))
}

/// From what was published after the close as well.
fn later(
    pending: &Pending,
    number: usize,
    card: &Card,
    span: Span,
    tenancy: Tenancy,
    only: Option<Rule>,
) -> Part {
    let (series, facts) = card.ruler(span.seconds());
    let lag_ns = (facts.lag_s * 1e9) as u64;
    let after_s = facts.lag_s + facts.lag_uncertainty_s + gauge_after_s(card, &facts);
    let to_ns = span.close_ns.saturating_add((after_s * 1e9) as u64);
    let mut points = series.span(span.open_ns, to_ns, AROUND, AROUND);
    if std::ptr::eq(series, &raw const *card.series) {
        opening_kept(pending, number, &mut points);
    }
    let facts = card.in_common(&mut points, facts);
    let curve = Curve::new(&points, &facts);
    let estimated = if !card.is_counter() {
        estimate::gauge(&curve, span, card.update_s(), Edges::Centred)
    } else if only.is_some() {
        unresolved_stage(&curve, span).unwrap_or_else(|| estimate::shared(&curve, span))
    } else {
        let own = (!pending.child).then_some((pending.open_ns, pending.close_ns));
        let occupied = |from_ns, to_ns| card.occupancy.occupied(from_ns, to_ns, own);
        let rest_w = pending.inner.floor_w(number);
        let rest_w = rest_w.filter(|_| tenancy == Tenancy::Alone);
        estimate::settled(&curve, span, &Neighbours { rest_w, occupied: &occupied })
    };
    if !pending.overlapped {
        return Part { estimated, idle_seconds: span.seconds() };
    }
    let share = card.occupancy.share(span.open_ns, span.close_ns, lag_ns, &card.series);
    match (estimated, share) {
        (Ok(whole), Some(share)) => {
            let ratio = if whole.gross_j > 0.0 { share.energy_j / whole.gross_j } else { 0.0 };
            let bound_j = (worst_edge_j(&points, span, &facts) + smeared_edge_j(card))
                * share.edges
                + facts.lag_uncertainty_s * facts.swing_w()
                + facts.skew_j(span);
            let range_j = (share.energy_j - bound_j, share.energy_j + bound_j);
            let bridged_j = whole.bridged_j * ratio;
            let gross_j = share.energy_j;
            Part {
                estimated: Ok(estimate::Estimate { gross_j, bound_j, range_j, bridged_j, ..whole }),
                idle_seconds: share.seconds,
            }
        }
        // Its share is not known any more: charged whole, and that is said.
        (Ok(whole), None) => {
            let flags = whole.flags | Flags::PARTIAL;
            let estimated = Ok(estimate::Estimate { flags, ..whole });
            Part { estimated, idle_seconds: span.seconds() }
        }
        (missing, _) => Part { estimated: missing, idle_seconds: span.seconds() },
    }
}

/// The worst that any one edge inside a span can be off, J: half-way through the longest tick.
fn worst_edge_j(points: &[Point], span: Span, facts: &Facts) -> f64 {
    let touching = points.windows(2).filter_map(|pair| match pair {
        [from, to] if to.at_ns > span.open_ns => Some((from, to)),
        _ => None,
    });
    let edge_j = |(from, to): (&Point, &Point)| {
        let length_s = to.at_ns.saturating_sub(from.at_ns) as f64 / 1e9;
        let uncertainty_s = f64::from(from.uncertainty_ns.max(to.uncertainty_ns)) / 1e9;
        facts.swing_w() * length_s / 4.0 + uncertainty_s * facts.ceiling_w + facts.quantum_j
    };
    touching.map(edge_j).fold(0.0, f64::max)
}

/// What a gauge's averaging hides at any one edge that is read where it stands, J.
fn smeared_edge_j(card: &Card) -> f64 {
    let facts = card.facts();
    if card.is_counter() {
        return 0.0;
    }
    let update_s = card.update_s();
    facts.swing_w() * (facts.averaging_s.unwrap_or(update_s) / 4.0 + update_s / 2.0)
}

/// How long after a window a gauge's readings still sharpen it, s.
pub(super) fn gauge_after_s(card: &Card, facts: &Facts) -> f64 {
    if card.is_counter() { 0.0 } else { estimate::settles_after_s(facts, card.update_s()) }
}

/// A stage inside one tick is one that the register was too slow to see.
fn unresolved_stage(curve: &Curve<'_>, span: Span) -> Option<Estimated> {
    let (open, close) = curve.edges(span).ok()?;
    (open.tick == close.tick).then_some(Err(Missing::of(Fault::WindowBelowResolution)))
}

/// Puts the point that a window has kept from its opening in front of a stretch that begins later:
/// the opening edge never ages out.
fn opening_kept(pending: &Pending, number: usize, points: &mut Vec<Point>) {
    let kept = pending.edges.get(number).and_then(|edge| edge.newest);
    if let Some(kept) = kept
        && points.first().is_some_and(|first| first.at_ns > pending.open_ns)
        && kept.at_ns <= pending.open_ns
    {
        points.insert(0, kept);
    }
}

/// The better word for "nothing was published": a register that has stood still for long is frozen,
/// one that has never moved is dead.
fn still(card: &Card, span: Span, missing: Missing) -> Missing {
    let still_ns = card.health.still_ns.load(Ordering::Relaxed);
    let long_ns = STILL_PERIODS * card.period_ns();
    let is_still = still_ns > long_ns && span.seconds() * 1e9 > long_ns as f64;
    if missing.fault != Fault::WindowBelowResolution || !is_still {
        return missing;
    }
    let dead = card.series.pushed() == 1;
    Missing { fault: if dead { Fault::CounterDead } else { Fault::CounterFrozen }, ..missing }
}

/// Whether the card's publishes can no longer sharpen the window.
pub(super) fn is_settled(
    pending: &Pending,
    card: &Card,
    floor_w: Option<f64>,
    out_of_time: bool,
) -> bool {
    let reached = reaches(pending, card);
    let can_be_alone =
        card.is_counter() && floor_w.is_some() && !pending.overlapped && !pending.child;
    if out_of_time || !can_be_alone {
        return reached || out_of_time;
    }
    // The rule alone wants quiet ticks after the window that are long enough to be shown quiet,
    // where it can hold at all: one of 100 ms is, one of 20 ms is not.
    let facts = card.facts();
    let to_ns = pending.close_ns + ((facts.lag_s + facts.lag_uncertainty_s) * 1e9) as u64;
    let mut after = card.series.span(to_ns, to_ns, 1, ENOUGH);
    let facts = card.in_common(&mut after, facts);
    if !estimate::tells_neighbours(&facts) {
        return reached;
    }
    let skew_ns = (facts.skew.together_s * 1e9) as u64;
    let is_beyond =
        |point: &Point| point.at_ns >= to_ns + skew_ns + u64::from(point.uncertainty_ns);
    let first = after.iter().position(is_beyond).unwrap_or(after.len());
    reached && after.get(first..).is_some_and(estimate::is_pinned)
}

/// Whether the card's curve reaches as far as the window's end is read.
pub(super) fn reaches(pending: &Pending, card: &Card) -> bool {
    let (series, facts) = card.ruler(pending.seconds());
    let after_s = facts.lag_s + gauge_after_s(card, &facts);
    let close_ns = pending.close_ns.saturating_add((after_s * 1e9) as u64);
    series.newest().is_some_and(|newest| newest.at_ns >= close_ns)
}

/// Who was on the cards meanwhile, and the others' names where that makes the window contended.
fn tenants(pending: &Pending, span: Span) -> (Tenancy, Option<String>) {
    let mut names: Vec<String> = Vec::new();
    let (mut foreign, mut unknown, mut contended) = (false, pending.inner.cards.is_empty(), false);
    if pending.inner.slice {
        names.push("the other slices of the card".to_owned());
        (foreign, contended) = (true, true);
    }
    for (number, card) in pending.inner.cards.iter().enumerate() {
        let states = card.residents(span.open_ns, span.close_ns);
        unknown |= states.is_empty();
        for state in states {
            let verdict = verdict(pending, number, &state);
            contended |= verdict.contended;
            match verdict.tenancy {
                tenancy::Tenancy::Alone => {}
                tenancy::Tenancy::Foreign(others) => {
                    foreign = true;
                    names.extend(others);
                }
                tenancy::Tenancy::Unknown(_) => unknown = true,
            }
        }
    }
    names.sort();
    names.dedup();
    let tenancy = match (foreign, unknown) {
        (true, _) => Tenancy::Foreign,
        (false, true) => Tenancy::Unknown,
        (false, false) => Tenancy::Alone,
    };
    (tenancy, contended.then(|| names.join(", ")))
}

/// A state of the card judged by the node's rules, once.
fn verdict(pending: &Pending, number: usize, state: &Residents) -> Verdict {
    const KEPT: usize = 64;
    let known = |verdicts: &[(usize, u64, Verdict)]| {
        let same = |(card, from_ns, _): &&(usize, u64, Verdict)| {
            *card == number && *from_ns == state.from_ns
        };
        verdicts.iter().rev().find(same).map(|(_, _, verdict)| verdict.clone())
    };
    let lock = || pending.inner.verdicts.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(verdict) = known(&lock()) {
        return verdict;
    }
    let resident = state.seen.as_ref().as_ref().map(Vec::as_slice).map_err(|unseen| *unseen);
    let blank = tenancy::Rules::default();
    let rules = pending.inner.rules.get(number).unwrap_or(&blank);
    let verdict = decide(resident, rules, &*state.family);
    let mut verdicts = lock();
    if verdicts.len() == KEPT {
        verdicts.remove(0);
    }
    verdicts.push((number, state.from_ns, verdict.clone()));
    verdict
}
