//! Which card was meant, and what it drew.

use joulebook::{
    core::{
        Fault,
        estimate::{Estimated, Missing, Span},
        grade::{Context, combine},
    },
    identity::{Card, CudaEnvironment, Identity, IdentityError, resolve, visible},
    replay::cell,
};
use serde_json::{Value, json};

use super::{
    Answer,
    field::{Refused, instant_ns, maybe, refused},
    measured, readings, samples,
};

/// What windows of a slice say of the others.
const OTHERS: &str = "the other slices of the card";

pub(super) fn answer(input: &Value) -> Result<Answer, Refused> {
    let (cards, watts) = machine(input)?;
    let environment = environment(input);
    let meant = meant(input, &cards, &environment);
    let mut answer = Answer::new();
    let resolves = resolves_by_name(&cards, &environment);
    let word = if resolves { "resolved" } else { "unresolved" };
    answer.insert("if_uuid_or_PCI_BUS_ID_given".into(), json!(word));
    let identities = match meant {
        Ok(identities) => identities,
        Err(error) => {
            let context = measured::context(Span { open_ns: 0, close_ns: 0 }, None, "none");
            let missing: Estimated = Err(Missing::of(error.fault()));
            answer.extend(measured::answer(&missing, &context, input));
            answer.insert("uuid".into(), json!("unresolved"));
            return Ok(answer);
        }
    };
    let seconds = ["seconds", "window_s"].iter().find_map(|name| maybe(input, name)).unwrap_or(1.0);
    let close_ns = instant_ns(seconds).ok_or_else(|| refused("seconds"))?;
    let span = Span { open_ns: 0, close_ns };
    let energy = |identity: &Identity| {
        let place = cards.iter().position(|card| card.uuid == identity.uuid);
        match place.and_then(|place| watts.get(place).copied().flatten()) {
            Some(watts) => samples::constant(watts, seconds),
            None => Ok(Err(Missing::of(Fault::NotSupported))),
        }
    };
    let parts = identities.iter().map(energy).collect::<Result<Vec<_>, _>>()?;
    let shared = identities.iter().any(|identity| identity.shared_device);
    let idle_w = maybe(input, "idle_w").or(Some(0.0));
    let whole = measured::context(span, idle_w, "gauge");
    let of_slice = Context { contended_by: shared.then(|| OTHERS.to_owned()), ..whole.clone() };
    answer.extend(measured::answer(&combine(&parts), &of_slice, input));
    let device = measured::answer(&combine(&parts), &whole, input);
    answer.insert("device_gross_j".into(), json!(device.get("gross_j")));
    let slice = measured::answer(&combine(&parts), &of_slice, input);
    answer.insert("slice".into(), Value::Object(slice));
    let uuids: Vec<&str> = identities.iter().map(|identity| identity.uuid.as_str()).collect();
    let uuid = if let [uuid] = uuids.as_slice() { json!(uuid) } else { json!(uuids) };
    answer.insert("uuid".into(), uuid);
    let warnings: Vec<&String> =
        identities.iter().filter_map(|identity| identity.warning.as_ref()).collect();
    answer.insert("warnings".into(), json!(warnings));
    Ok(answer)
}

fn environment(input: &Value) -> CudaEnvironment {
    let of = |name: &str| {
        let named = input.get("env").and_then(|env| env.get(name));
        named.and_then(Value::as_str).map(str::to_owned)
    };
    let order = input.get("cuda_device_order").and_then(Value::as_str).map(str::to_owned);
    CudaEnvironment {
        visible_devices: of("CUDA_VISIBLE_DEVICES"),
        device_order: of("CUDA_DEVICE_ORDER").or(order),
    }
}

/// The cards asked for by name, else all that CUDA is shown.
fn meant(
    input: &Value,
    cards: &[Card],
    environment: &CudaEnvironment,
) -> Result<Vec<Identity>, IdentityError> {
    match input.get("ask").and_then(Value::as_str) {
        Some(ask) => resolve(ask, cards, environment).map(|identity| vec![identity]),
        None => visible(cards, environment),
    }
}

/// Whether the same question has an answer once the card is named, or CUDA's order is by address.
fn resolves_by_name(cards: &[Card], environment: &CudaEnvironment) -> bool {
    let by_bus =
        CudaEnvironment { device_order: Some("PCI_BUS_ID".to_owned()), ..environment.clone() };
    let by_uuid = |card: &Card| {
        let named =
            CudaEnvironment { visible_devices: Some(card.uuid.clone()), ..environment.clone() };
        visible(cards, &named).is_ok_and(|found| found.len() == 1)
    };
    visible(cards, &by_bus).is_ok() && cards.iter().all(by_uuid)
}

/// The machine's cards, and what each draws.
fn machine(input: &Value) -> Result<(Vec<Card>, Vec<Option<f64>>), Refused> {
    if let Some(parent) = input.get("parent") {
        let uuid = parent.get("uuid").map(readings::cell).ok_or_else(|| refused("parent"))?;
        let mig = parent.get("mig").and_then(Value::as_str) == Some("enabled");
        let card = Card { uuid, mig, ..Card::default() };
        return Ok((vec![card], vec![watts(parent.get("power_w"))]));
    }
    if let (Some(uuids), Some(drawn)) = (
        input.get("uuids").and_then(Value::as_array),
        input.get("nvml_watts").and_then(Value::as_array),
    ) {
        let card = |(index, uuid): (u32, &Value)| Card {
            index,
            uuid: readings::cell(uuid),
            ..Card::default()
        };
        let cards = (0..).zip(uuids).map(card).collect();
        return Ok((cards, drawn.iter().map(|drawn| watts(Some(drawn))).collect()));
    }
    let listed = input.get("nvml").and_then(Value::as_array).ok_or_else(|| refused("nvml"))?;
    let card = |card: &Value| {
        let word = |name: &str| card.get(name).map(readings::cell);
        Some(Card {
            index: u32::try_from(card.get("i")?.as_u64()?).ok()?,
            uuid: word("uuid")?,
            pci: word("bus").map(|bus| format!("{bus}:00.0")),
            name: word("name").unwrap_or_default(),
            mig: card.get("mig").and_then(Value::as_str) == Some("enabled"),
            slices: Vec::new(),
        })
    };
    let cards: Option<Vec<Card>> = listed.iter().map(card).collect();
    let drawn = listed.iter().map(|card| watts(card.get("w"))).collect();
    Ok((cards.ok_or_else(|| refused("nvml"))?, drawn))
}

/// A power as a cell.
fn watts(value: Option<&Value>) -> Option<f64> {
    cell::power(&readings::cell(value?), cell::unit("W")?).ok().map(|power| power.watts())
}
