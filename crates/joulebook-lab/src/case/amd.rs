//! What AMD's tools and files say.

use joulebook::{
    amd::{self, Draw},
    core::{Fault, Power, grade::combine},
};
use serde_json::{Value, json};

use super::{
    Answer,
    field::{Refused, list, maybe, number, refused, text},
    measured, samples,
};

pub(super) fn answer(input: &Value) -> Result<Answer, Refused> {
    let read: fn(&Value) -> Result<Draw, Fault> = match text(input, "kind")? {
        "multi_die" => return dies(input),
        "amdsmi" => amd::amdsmi,
        "hwmon" => hwmon,
        _ => |card| card.as_object().map_or(Err(Fault::MalformedRow), amd::rocm_smi),
    };
    let draws: Vec<Result<Draw, Fault>> = list(input, "cards")?.iter().map(read).collect();
    let watts = draws.iter().map(|draw| draw.ok().map(|draw| draw.power.watts()));
    let fields = draws.iter().map(|draw| draw.ok().map(|draw| draw.shows.word()));
    let mut answer = Answer::new();
    answer.insert("watts".into(), json!(watts.collect::<Vec<_>>()));
    answer.insert("field".into(), json!(fields.collect::<Vec<_>>()));
    answer.insert("error".into(), json!(draws.iter().map(|draw| draw.err()).collect::<Vec<_>>()));
    Ok(answer)
}

/// A folder's files, by their names.
fn hwmon(card: &Value) -> Result<Draw, Fault> {
    let file = |name: &str| card.get(name).map(super::readings::cell);
    amd::hwmon(file("power1_input").as_deref(), file("power1_average").as_deref())
}

/// Devices of two dies a card, and a job on some of them.
fn dies(input: &Value) -> Result<Answer, Refused> {
    let shown = |watts: &Value| watts.as_f64().and_then(Power::from_watts);
    let devices: Vec<Option<Power>> = list(input, "watts")?.iter().map(shown).collect();
    let model = input.get("model").and_then(Value::as_str).unwrap_or("MI250X");
    let packages = amd::packages(&devices, amd::dies(model));
    let seconds = number(input, "seconds")?;
    let energy = |power: Option<Power>| match power {
        Some(power) => samples::constant(power.watts(), seconds),
        None => Ok(Err(joulebook_core::estimate::Missing::of(Fault::Absent))),
    };
    let all =
        packages.iter().map(|package| energy(package.power)).collect::<Result<Vec<_>, _>>()?;
    let job: Vec<usize> = list(input, "job_on")?
        .iter()
        .filter_map(|die| usize::try_from(die.as_u64()?).ok())
        .collect();
    let touched =
        || packages.iter().filter(|package| package.dies.iter().any(|die| job.contains(die)));
    let mine = touched().map(|package| energy(package.power)).collect::<Result<Vec<_>, _>>()?;
    // A card whose other die the job did not ask for is not its own.
    let is_whole = |package: &amd::Package| package.dies.iter().all(|die| job.contains(die));
    let shared = !touched().all(is_whole);
    let close_ns = super::field::instant_ns(seconds).ok_or_else(|| refused("seconds"))?;
    let span = joulebook_core::estimate::Span { open_ns: 0, close_ns };
    let idle_w = maybe(input, "idle_w").or(Some(0.0));
    let context = joulebook_core::grade::Context {
        contended_by: shared.then(|| "the other die of the card".to_owned()),
        ..measured::context(span, idle_w, "rocm_smi")
    };
    let alone = measured::context(span, idle_w, "rocm_smi");
    let gross =
        |parts: &[_]| measured::answer(&combine(parts), &alone, &Value::Null).remove("gross_j");
    let mut answer = Answer::new();
    answer.insert("node_gross_j".into(), json!(gross(&all)));
    answer.insert("card_of_job_gross_j".into(), json!(gross(&mine)));
    let job = measured::answer(&combine(&mine), &context, &Value::Null);
    answer.insert("job".into(), Value::Object(job));
    Ok(answer)
}
