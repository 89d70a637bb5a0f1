//! Readings of a cumulative counter, stamped with the instants they stand for.

use joulebook::{
    amd,
    core::{
        Energy, Fault, Flags, Power,
        estimate::{self, Curve, Estimated, Facts, Missing, Neighbours, Skew, Span},
        register::{DEFAULT_CEILING, Modulus, Register, Scale, Step},
        ring::Point,
        series::{CounterTrack, Poll, Series, series_of},
    },
};
use joulebook_core::grade::Context;
use serde_json::{Value, json};

use super::{
    Answer,
    field::{Refused, instant_ns, list, maybe, refused, span, text},
    measured, readings, sources,
};

/// A counter's readings, followed by the product's register.
pub(super) struct Followed {
    series: std::sync::Arc<Series>,
    facts: Facts,
    stamps_ns: Vec<u64>,
    /// Readings that were no value, or off the register's line.
    rejected: u64,
    glitched: bool,
    pub span: Span,
}

/// Windows and stages on a counter.
pub(super) fn answer(input: &Value) -> Result<Answer, Refused> {
    let followed = Followed::of(input)?;
    let window = span(input, "window").unwrap_or(followed.span);
    let estimated = followed.window(window);
    if let Some(watts) = maybe(input, "gauge_w") {
        return sources::counter_against_gauge(&estimated, watts, window, input);
    }
    let context = Context {
        polls: followed.stamps_ns.len() as u64,
        rejected: followed.rejected,
        ..measured::context(window, maybe(input, "idle_w"), "counter")
    };
    let mut answer = measured::answer(&estimated, &context, input);
    // What the register holds is energy, whether or not anything is charged above idle.
    let fault = followed.glitched.then_some(Fault::CounterGlitch);
    answer.insert("error_on_read".into(), json!(fault));
    answer.insert("stages".into(), followed.stages(input, &context)?);
    let gap = followed.gap(window);
    if let Some((from_s, to_s)) = gap {
        answer.insert("gap".into(), json!([from_s, to_s]));
    }
    let booked_j = followed.booked_j(window);
    let noted = if gap.is_some() { ", gap recorded" } else { "" };
    answer.insert("ledger".into(), json!(format!("{booked_j} J booked{noted}")));
    Ok(answer)
}

impl Followed {
    pub(super) fn of(input: &Value) -> Result<Self, Refused> {
        let (per_unit, scale) = match text(input, "unit")? {
            "uJ" => (1, Scale::MICROJOULES),
            "mJ" => (1000, Scale::MICROJOULES),
            "J" => (1_000_000, Scale::MICROJOULES),
            // A count without its resolution is no energy.
            "ticks" => {
                let resolution = input.get("resolution_uj").map(readings::cell);
                let scale = resolution.and_then(|resolution| amd::accumulator(&resolution));
                (1, scale.ok_or_else(|| refused("resolution_uj"))?)
            }
            _ => return Err(refused("unit")),
        };
        let mut readings = Vec::new();
        for reading in list(input, "readings")? {
            readings.push(stamped(reading, per_unit).ok_or_else(|| refused("readings"))?);
        }
        let modulus = match input.get("max_range") {
            None => Modulus::None,
            Some(range) => range.as_u64().map_or(Modulus::Unknown, Modulus::At),
        };
        let limit = maybe(input, "power_limit_w").or_else(|| maybe(input, "tdp_w"));
        Self::follow(&readings, scale, modulus, limit, maybe(input, "update_period_s"))
    }

    /// Readings in units of this scale.
    pub(super) fn follow(
        readings: &[(u64, Result<u64, Fault>)],
        scale: Scale,
        modulus: Modulus,
        limit_w: Option<f64>,
        period_s: Option<f64>,
    ) -> Result<Self, Refused> {
        let (Some((open_ns, _)), Some((close_ns, _))) = (readings.first(), readings.last()) else {
            return Err(refused("readings"));
        };
        let stamps_ns: Vec<u64> = readings.iter().map(|(at_ns, _)| *at_ns).collect();
        let mut gaps: Vec<u64> = stamps_ns
            .windows(2)
            .filter_map(|pair| match pair {
                [from, to] => to.checked_sub(*from),
                _ => None,
            })
            .collect();
        gaps.sort_unstable();
        let gap_ns = gaps.get(gaps.len() / 2).copied().unwrap_or(0);
        let period_ns = period_s.and_then(instant_ns).unwrap_or(gap_ns);
        let ceiling = limit_w.and_then(|watts| Power::from_watts(watts * 1.1));
        let ceiling = ceiling.unwrap_or(DEFAULT_CEILING);
        let register = Register::new(scale, modulus, ceiling, period_ns);
        let mut track = CounterTrack::new(register, period_ns).stamped();
        let (mut writer, series) = series_of(readings.len() + 2, 2);
        let (mut rejected, mut glitched) = (0, false);
        for (at_ns, value) in readings {
            match track.reading(Poll::at(*at_ns), *value, Flags::NONE, &mut writer) {
                Step::Hole(_) => rejected += 1,
                Step::Advanced(advance) => {
                    rejected += u64::from(advance.glitches);
                    glitched |= advance.glitches > 0;
                }
                _ => {}
            }
        }
        let facts = Facts {
            ceiling_w: ceiling.watts(),
            deepest_w: 0.0,
            poll_gap_s: gap_ns as f64 / 1e9,
            period_s: period_ns as f64 / 1e9,
            lag_s: 0.0,
            lag_uncertainty_s: 0.0,
            quantum_j: 1e-6,
            averaging_s: None,
            skew: Skew::default(),
        };
        let span = Span { open_ns: *open_ns, close_ns: *close_ns };
        Ok(Self { series, facts, stamps_ns, rejected, glitched, span })
    }

    /// The energy of a window: between two readings exactly, else read on the curve.
    pub(super) fn window(&self, span: Span) -> Estimated {
        let points = self.points(span);
        let read = |at_ns: u64| self.stamps_ns.contains(&at_ns);
        if read(span.open_ns) && read(span.close_ns) {
            let newest = |at_ns| self.series.at_or_before(at_ns);
            let edges = (newest(span.open_ns), newest(span.close_ns));
            return estimate::raw_part(edges.0, edges.1, &points, span, &self.facts);
        }
        let neighbours = Neighbours { rest_w: None, occupied: &|_, _| false };
        estimate::settled(&Curve::new(&points, &self.facts), span, &neighbours)
    }

    /// What each mark's stage comes to.
    fn stages(&self, input: &Value, context: &Context) -> Result<Value, Refused> {
        let mut stages = Answer::new();
        let mut open_ns = self.span.open_ns;
        for mark in input.get("marks").and_then(Value::as_array).into_iter().flatten() {
            let bad = || refused("marks");
            let [name, at] = mark.as_array().ok_or_else(bad)?.as_slice() else { return Err(bad()) };
            let close_ns = at.as_f64().and_then(instant_ns).ok_or_else(bad)?;
            let span = Span { open_ns, close_ns };
            open_ns = close_ns;
            let seconds = span.seconds();
            let context = Context { seconds, idle_seconds: seconds, ..context.clone() };
            let stage = measured::answer(&self.window(span), &context, &Value::Null);
            stages.insert(name.as_str().ok_or_else(bad)?.to_owned(), Value::Object(stage));
        }
        Ok(Value::Object(stages))
    }

    /// The first stretch of a window whose energy, or its place, is not known.
    fn gap(&self, span: Span) -> Option<(f64, f64)> {
        self.points(span).windows(2).find_map(|pair| match pair {
            [from, to] if to.flags.contains(Flags::GAP) => {
                Some((from.at_ns as f64 / 1e9, to.at_ns as f64 / 1e9))
            }
            _ => None,
        })
    }

    /// Energy that the register has accepted in a window, whoever is charged for it.
    fn booked_j(&self, span: Span) -> f64 {
        let points = self.points(span);
        let energy = |point: Option<&Point>| point.map_or(0, |point| point.energy_uj);
        let uj = energy(points.last()).saturating_sub(energy(points.first()));
        Energy::from_microjoules(uj).joules()
    }

    fn points(&self, span: Span) -> Vec<Point> {
        self.series.span(span.open_ns, span.close_ns, 1, 1)
    }
}

/// What a window counted, for a comparison.
pub(super) fn counted_j(estimated: &Estimated) -> Result<f64, Fault> {
    match estimated {
        Ok(estimate) => Ok(estimate.gross_j),
        // Nothing was published: it showed no energy at all.
        Err(Missing { fault: Fault::WindowBelowResolution, .. }) => Ok(0.0),
        Err(missing) => Err(missing.fault),
    }
}

/// `[t, value]`, or `{wall, mono, v}`: of two clocks the monotonic one counts.
fn stamped(reading: &Value, per_unit: u64) -> Option<(u64, Result<u64, Fault>)> {
    let (at, value) = match reading {
        Value::Array(pair) => match pair.as_slice() {
            [at, value] => (at, value),
            _ => return None,
        },
        Value::Object(fields) => (fields.get("mono")?, fields.get("v")?),
        _ => return None,
    };
    Some((instant_ns(at.as_f64()?)?, microjoules(value, per_unit)))
}

/// A value in µJ; whole numbers exactly.
pub(super) fn microjoules(value: &Value, per_unit: u64) -> Result<u64, Fault> {
    match value {
        Value::Number(number) => match number.as_u64() {
            Some(whole) => whole.checked_mul(per_unit).ok_or(Fault::Implausible),
            None => {
                let joules = number.as_f64().map(|value| value * per_unit as f64 / 1e6);
                joules
                    .and_then(Energy::from_joules)
                    .map(Energy::microjoules)
                    .ok_or(Fault::Implausible)
            }
        },
        Value::String(word) => Err(joulebook::replay::cell::absence(word)),
        _ => Err(Fault::NotSupported),
    }
}
