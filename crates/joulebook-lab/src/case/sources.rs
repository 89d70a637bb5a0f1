//! Two or more rulers of one thing: which is believed.

use joulebook::{
    core::{
        Fault, Flags, Power, Scope,
        estimate::{Estimated, Missing, Span},
        register::{Modulus, Scale},
    },
    profile::{Floor, Profile, Trust},
    sources::{self, Counter, Ruler, compared, settled},
};
use joulebook_core::grade::Context;
use serde_json::{Value, json};

use super::{
    Answer,
    counter::{Followed, counted_j, microjoules},
    field::{Refused, instant_ns, maybe, number, refused, text},
    measured, samples,
};

pub(super) fn answer(input: &Value) -> Result<Answer, Refused> {
    match text(input, "kind")? {
        "counters" => counters(input),
        "probe" => probe(input),
        _ => two(input),
    }
}

/// A counter held against the card's power gauge, which stands in where it is rejected.
pub(super) fn counter_against_gauge(
    counter: &Estimated,
    gauge_w: f64,
    window: Span,
    input: &Value,
) -> Result<Answer, Refused> {
    let gauge = samples::constant(gauge_w, window.seconds())?;
    let (ratio, verdict) = compared(counted_j(counter), counted_j(&gauge), window.seconds());
    let rejected = verdict.trust != Trust::Counter;
    let (estimated, backend) =
        if rejected { (gauge, "power gauge") } else { (*counter, "counter") };
    let context = measured::context(window, maybe(input, "idle_w").or(Some(0.0)), backend);
    let mut answer = measured::answer(&estimated, &context, input);
    answer.insert("probe_ratio".into(), json!(ratio));
    answer.insert("counter".into(), json!(if rejected { "rejected" } else { "accepted" }));
    answer.insert("findings".into(), json!(verdict.findings));
    Ok(answer)
}

/// Several counters of one card (`card_j`, `chip_j`, …) and its gauge.
fn counters(input: &Value) -> Result<Answer, Refused> {
    let fields = input.as_object().ok_or_else(|| refused("input"))?;
    let mut names = Vec::new();
    let mut followed = Vec::new();
    for (key, readings) in fields {
        let Some(name) = key.strip_suffix("_j") else { continue };
        let pairs = readings.as_array().ok_or_else(|| refused(key))?;
        let pair = |pair: &Value| {
            let [at, value] = pair.as_array()?.as_slice() else { return None };
            Some((instant_ns(at.as_f64()?)?, microjoules(value, 1_000_000)))
        };
        let readings: Option<Vec<_>> = pairs.iter().map(pair).collect();
        let readings = readings.ok_or_else(|| refused(key))?;
        names.push(name);
        followed.push(Followed::follow(&readings, Scale::MICROJOULES, Modulus::None, None, None)?);
    }
    let window = followed.first().map(|first| first.span).ok_or_else(|| refused("card_j"))?;
    let energies: Vec<Estimated> = followed.iter().map(|one| one.window(window)).collect();
    let gauge = match maybe(input, "gauge_w") {
        Some(watts) => samples::constant(watts, window.seconds())?,
        None => Err(Missing::of(Fault::NotSupported)),
    };
    let counters: Vec<Counter<'_>> = names
        .iter()
        .zip(&energies)
        .map(|(name, energy)| Counter { name, counted_j: counted_j(energy) })
        .collect();
    let (ruler, _) = sources::ruler(&counters, counted_j(&gauge), window.seconds());
    let (estimated, name, scope) = match ruler {
        Ruler::Counter(place) => {
            let estimated = energies.get(place).copied();
            let name = names.get(place).copied().unwrap_or_default();
            (estimated.unwrap_or(Err(Missing::of(Fault::Absent))), format!("{name} counter"), name)
        }
        // A gauge is the chip's.
        Ruler::Gauge => (gauge, "gauge".to_owned(), "chip"),
        Ruler::Nothing => (Err(Missing::of(Fault::CounterDead)), "none".to_owned(), "none"),
    };
    let context = measured::context(window, maybe(input, "idle_w").or(Some(0.0)), "counter");
    let mut answer = measured::answer(&estimated, &context, input);
    answer.insert("backend".into(), json!(name));
    answer.insert("scope".into(), json!(scope));
    Ok(answer)
}

/// A card whose counter may cover more than its gauge, with an idle floor of the GPU alone.
fn probe(input: &Value) -> Result<Answer, Refused> {
    let seconds = number(input, "seconds")?;
    let scope = sources::counter_scope(text(input, "card")?);
    let counter_j = number(input, "counter_delta_j")?;
    let gauge_j = number(input, "gpu_gauge_integral_j")?;
    // Against a gauge of another scope a counter cannot be judged.
    let gauge = if scope == Scope::Gpu { Ok(gauge_j) } else { Err(Fault::NotSupported) };
    let (ratio, verdict) = compared(Ok(counter_j), gauge, seconds);
    let (shown_j, scope, backend) = match verdict.trust {
        Trust::Counter => (counter_j, scope, "counter"),
        _ => (gauge_j, Scope::Gpu, "power gauge"),
    };
    let mut profile = Profile::default();
    for (name, of) in [("idle_w_gpu", Scope::Gpu), ("idle_w_module", Scope::Module)] {
        if let Some(watts) = maybe(input, name) {
            profile.keep(floor(watts, of));
        }
    }
    let idle_w = profile.resting(scope).map(|floor| floor.watts);
    let close_ns = instant_ns(seconds).ok_or_else(|| refused("seconds"))?;
    let span = Span { open_ns: 0, close_ns };
    let shown_uj = Ok((shown_j * 1e6) as u64);
    let followed = Followed::follow(
        &[(0, Ok(0)), (close_ns, shown_uj)],
        Scale::MICROJOULES,
        Modulus::None,
        None,
        None,
    )?;
    let context = Context { scope, ..measured::context(span, idle_w, backend) };
    let mut answer = measured::answer(&followed.window(span), &context, input);
    answer.insert("probe_ratio".into(), json!(ratio));
    Ok(answer)
}

/// A floor of this scope, declared by the case.
fn floor(watts: f64, scope: Scope) -> Floor {
    Floor {
        watts,
        spread_watts: 0.0,
        unix_s: 0,
        seconds: 0.0,
        readings: 0,
        backend: "declared".to_owned(),
        scope,
        model_loaded: false,
    }
}

/// Two sources of one power.
fn two(input: &Value) -> Result<Answer, Refused> {
    let watts = |name: &str| {
        let source = input.get(name).ok_or_else(|| refused(name))?;
        Power::from_watts(number(source, "watts")?).ok_or_else(|| refused(name))
    };
    let busy = match input.get("load").and_then(Value::as_str) {
        Some("busy") => Some(true),
        Some("idle") => Some(false),
        _ => None,
    };
    let settled = settled(watts("first")?, watts("second")?, busy);
    let flags = if settled.conflict { Flags::SOURCE_CONFLICT } else { Flags::NONE };
    let mut answer = Answer::new();
    answer.insert("watts".into(), json!(settled.power.ok().map(Power::watts)));
    answer.insert("error".into(), json!(settled.power.err()));
    answer.insert("flag".into(), json!(flags));
    Ok(answer)
}
