//! Cards, powers and requests as cases of the books describe them.

use joulebook::core::{
    Power,
    estimate::Span,
    ledger::{
        TenantId,
        settle::{Others, Rest},
    },
    receipt::Status,
};
use serde_json::Value;

use super::{
    super::field::{Refused, instant_ns, list, maybe, number, refused, span},
    kept::{Card, Floor, Stretch, Work},
};

pub fn power(of: &Value, name: &str) -> Result<Power, Refused> {
    Power::from_watts(number(of, name)?).ok_or_else(|| refused(name))
}

/// A card of this name, with what the case says of all of its cards.
pub fn card(input: &Value, name: &str) -> Result<Card, Refused> {
    let loaded = input.get("gpus").and_then(|gpus| gpus.get(name)?.get("model"));
    let loaded = loaded.is_none_or(|model| !model.is_null());
    let rest = rest_of(maybe(input, "idle_w"), maybe(input, "off_w"), loaded);
    let restarts = input.get("restart_at").and_then(Value::as_array).into_iter().flatten();
    let restarts_ns = restarts.map(|at| at.as_f64().and_then(instant_ns)).collect::<Option<_>>();
    Ok(Card {
        name: name.to_owned(),
        draws: Vec::new(),
        floor: Floor::Declared(rest),
        others: input.get("others").map(others).transpose()?,
        restarts_ns: restarts_ns.ok_or_else(|| refused("restart_at"))?,
    })
}

/// A declared floor; of a card without a model it is what the card draws off.
pub fn rest_of(idle_w: Option<f64>, off_w: Option<f64>, model_loaded: bool) -> Option<Rest> {
    let uw = |watts: f64| Power::from_watts(watts).map(Power::microwatts);
    let power_uw = idle_w.and_then(uw)?;
    let off_uw = if model_loaded { off_w.and_then(uw) } else { Some(power_uw) };
    Some(Rest { power_uw, off_uw, model_loaded })
}

/// Somebody else: `win`, and either `how` (`unresolved`, `lenient`) or utilisations: `own`, and
/// `theirs` by process.
fn others(of: &Value) -> Result<(Span, Others), Refused> {
    let span = span(of, "win").ok_or_else(|| refused("others.win"))?;
    let others = match of.get("how").and_then(Value::as_str) {
        Some("unresolved") => Others::Unresolved,
        Some("lenient") => Others::Lenient,
        Some(_) => return Err(refused("others.how")),
        None => {
            let theirs = of.get("theirs").and_then(Value::as_object);
            let tenant = |(pid, part): (&String, &Value)| {
                Some((TenantId(pid.parse().ok()?), part.as_u64()?))
            };
            let theirs = theirs.and_then(|theirs| theirs.iter().map(tenant).collect());
            let own = of.get("own").and_then(Value::as_u64);
            let (own, theirs) = own.zip(theirs).ok_or_else(|| refused("others"))?;
            Others::Shares { own, theirs }
        }
    };
    Ok((span, others))
}

/// What the card draws: one power, or stretches of it.
pub fn draws(input: &Value, whole: Span) -> Result<Vec<Stretch>, Refused> {
    if input.get("card_w").is_some() {
        return Ok(vec![Stretch { span: whole, power: power(input, "card_w")?, loaded: true }]);
    }
    let stretch = |stretch: &Value| {
        let [from, to, watts] = stretch.as_array()?.as_slice() else { return None };
        let (open_ns, close_ns) = (instant_ns(from.as_f64()?)?, instant_ns(to.as_f64()?)?);
        let power = Power::from_watts(watts.as_f64()?)?;
        Some(Stretch { span: Span { open_ns, close_ns }, power, loaded: true })
    };
    let stretches = list(input, "profile_w")?.iter().map(stretch).collect::<Option<_>>();
    stretches.ok_or_else(|| refused("profile_w"))
}

/// A request on the only card.
pub fn work(of: &Value) -> Result<Work, Refused> {
    let span = span(of, "win").ok_or_else(|| refused("win"))?;
    let whole = |name: &str| of.get(name).and_then(Value::as_u64);
    let status = match of.get("status") {
        None => Status::Done,
        Some(Value::String(word)) if word == "cancelled" => Status::Cancelled,
        Some(code) => match code.as_u64() {
            Some(200..=299) => Status::Done,
            Some(_) => Status::Failed,
            None => return Err(refused("status")),
        },
    };
    Ok(Work {
        name: of.get("id").and_then(Value::as_str).unwrap_or_default().to_owned(),
        cards: vec![0],
        open_ns: span.open_ns,
        close_ns: span.close_ns,
        prompt: whole("prompt"),
        cached: whole("cached"),
        first_ns: maybe(of, "first").and_then(instant_ns),
        tokens: whole("tokens"),
        late_ns: maybe(of, "late_s").and_then(instant_ns).unwrap_or(0),
        status,
        parent: None,
    })
}
