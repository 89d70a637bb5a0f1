//! Cases of the books: who is charged what.
//!
//! Powers and requests become ticks and tickets, and the shipped books keep them (`kept`). Keys of
//! the answer are J per account, under the names of requests, and the words of receipts.

mod audit;
mod kept;
mod read;
mod said;

use joulebook::core::{Power, estimate::Span, idle::Quiet, receipt::Status};
use serde_json::{Value, json};

use self::{
    audit::audit,
    kept::{Card, Floor, Stretch, Work, kept},
    read::{card, draws, power, rest_of, work},
    said::said,
};
use super::{
    Answer,
    field::{Refused, instant_ns, list, maybe, number, refused, span, text},
    readings,
};

/// Under which parent the attempts of a case are joined.
const PARENT: &str = "answer";

pub(super) fn answer(input: &Value) -> Result<Answer, Refused> {
    match text(input, "kind")? {
        "ledger_audit" => audit(input),
        "ticks" => ticks(input),
        _ => ledger(input),
    }
}

/// Cards and requests.
fn ledger(input: &Value) -> Result<Answer, Refused> {
    if input.get("gpus").is_some() {
        return models(input);
    }
    if input.get("attempts").is_some() {
        return attempts(input);
    }
    let whole = match (span(input, "span"), maybe(input, "seconds").and_then(instant_ns)) {
        (Some(span), _) => span,
        (None, Some(close_ns)) => Span { open_ns: 0, close_ns },
        (None, None) => return Err(refused("span")),
    };
    if input.get("tp").is_some() {
        return together(input, whole);
    }
    let card = Card { draws: draws(input, whole)?, ..card(input, "card")? };
    let works: Vec<Work> = list(input, "requests")?.iter().map(work).collect::<Result<_, _>>()?;
    let kept = kept(vec![card], &works, whole)?;
    Ok(said(&kept, &works))
}

/// A model on each card, at work for as long as the case lasts.
fn models(input: &Value) -> Result<Answer, Refused> {
    let seconds = number(input, "seconds")?;
    let whole =
        Span { open_ns: 0, close_ns: instant_ns(seconds).ok_or_else(|| refused("seconds"))? };
    let gpus = input.get("gpus").and_then(Value::as_object).ok_or_else(|| refused("gpus"))?;
    let (mut cards, mut works) = (Vec::new(), Vec::<Work>::new());
    for (number, (name, gpu)) in gpus.iter().enumerate() {
        let model = gpu.get("model").and_then(Value::as_str);
        let power = power(gpu, "w")?;
        let draws = vec![Stretch { span: whole, power, loaded: model.is_some() }];
        cards.push(Card { draws, ..card(input, name)? });
        let Some(model) = model else { continue };
        // A model on several cards is one piece of work.
        match works.iter_mut().find(|work| work.name == model) {
            Some(work) => work.cards.push(number),
            None => works.push(Work {
                name: model.to_owned(),
                cards: vec![number],
                close_ns: whole.close_ns,
                status: Status::Done,
                ..Work::default()
            }),
        }
    }
    let kept = kept(cards, &works, whole)?;
    Ok(said(&kept, &works))
}

/// A request on several cards at once, whose counters read so much at its beginning and its end.
fn together(input: &Value, whole: Span) -> Result<Answer, Refused> {
    let counters = input.get("counter_j").ok_or_else(|| refused("counter_j"))?;
    let mut cards = Vec::new();
    for name in list(input, "tp")?.iter().map(readings::cell) {
        let [from, to] = list(counters, &name)? else { return Err(refused("counter_j")) };
        let mut draws = Vec::new();
        // Without both readings nobody knows what it counted.
        if let (Some(from), Some(to)) = (from.as_f64(), to.as_f64()) {
            let power = Power::from_watts((to - from) / whole.seconds());
            let power = power.ok_or_else(|| refused("counter_j"))?;
            draws.push(Stretch { span: whole, power, loaded: true });
        }
        cards.push(Card { draws, ..card(input, &name)? });
    }
    let work = Work {
        name: "request".to_owned(),
        cards: (0..cards.len()).collect(),
        open_ns: whole.open_ns,
        close_ns: whole.close_ns,
        tokens: input.get("tokens").and_then(Value::as_u64),
        status: Status::Done,
        ..Work::default()
    };
    let works = [work];
    let kept = kept(cards, &works, whole)?;
    Ok(said(&kept, &works))
}

/// One answer, tried several times; energies are above the floor.
fn attempts(input: &Value) -> Result<Answer, Refused> {
    let rest = maybe(input, "idle_w").unwrap_or(0.0);
    let (mut draws, mut works) = (Vec::new(), Vec::new());
    for attempt in list(input, "attempts")? {
        let span = span(attempt, "win").ok_or_else(|| refused("win"))?;
        let watts = number(attempt, "above_idle_j")? / span.seconds() + rest;
        let power = Power::from_watts(watts).ok_or_else(|| refused("above_idle_j"))?;
        draws.push(Stretch { span, power, loaded: true });
        let name = attempt.get("n").map(readings::cell).ok_or_else(|| refused("n"))?;
        works.push(Work { name, parent: Some(PARENT.to_owned()), ..work(attempt)? });
    }
    let open_ns = works.iter().map(|work| work.open_ns).min().unwrap_or(0);
    let close_ns = works.iter().map(|work| work.close_ns).max().unwrap_or(0);
    let floor = Floor::Declared(rest_of(Some(rest), None, true));
    let card = Card { draws, floor, ..card(input, "card")? };
    let kept = kept(vec![card], &works, Span { open_ns, close_ns })?;
    let whole = kept.answer(PARENT);
    let mut answer = said(&kept, &works);
    answer.insert("request_j".into(), json!(whole.joules));
    answer.insert("lower_bound_j".into(), json!(whole.lower_bound_joules));
    answer.insert("delivered_tokens".into(), json!(whole.delivered_tokens));
    answer.insert("j_per_delivered_token".into(), json!(whole.joules_per_delivered_token));
    let each: Vec<Option<f64>> = kept.receipts.iter().map(|receipt| receipt.joules).collect();
    answer.insert("attempts".into(), json!(each));
    Ok(answer)
}

/// Stretches of `dt` seconds, from which floors are learnt; a request in each busy one.
fn ticks(input: &Value) -> Result<Answer, Refused> {
    let length_ns = instant_ns(number(input, "dt")?).ok_or_else(|| refused("dt"))?;
    let flag = |tick: &Value, name: &str| tick.get(name).and_then(Value::as_bool);
    let (mut draws, mut works) = (Vec::new(), Vec::new());
    let mut close_ns = 0u64;
    for tick in list(input, "ticks")? {
        let span = Span { open_ns: close_ns, close_ns: close_ns.saturating_add(length_ns) };
        close_ns = span.close_ns;
        let loaded = flag(tick, "model").ok_or_else(|| refused("model"))?;
        draws.push(Stretch { span, power: power(tick, "w")?, loaded });
        if flag(tick, "busy") == Some(true) {
            works.push(Work {
                name: format!("request-{}", works.len() + 1),
                cards: vec![0],
                open_ns: span.open_ns,
                close_ns,
                status: Status::Done,
                ..Work::default()
            });
        }
    }
    let floor = Floor::Learnt(Quiet::default());
    let card = Card { draws, floor, ..card(input, "card")? };
    let kept = kept(vec![card], &works, Span { open_ns: 0, close_ns })?;
    let watts = |floor: Option<Power>| floor.map(Power::watts);
    let mut answer = said(&kept, &works);
    let [base, resident] = kept.floors.first().copied().unwrap_or_default();
    answer.insert("idle_base_w".into(), json!(watts(base)));
    answer.insert("idle_resident_w".into(), json!(watts(resident)));
    let all: Option<f64> = kept.receipts.iter().map(|receipt| receipt.joules).sum();
    let all = all.filter(|_| !kept.receipts.is_empty());
    answer.insert("request_above_resident_j".into(), json!(all));
    Ok(answer)
}
