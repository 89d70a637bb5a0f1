//! Whose work is on a card.

use std::collections::BTreeMap;

use joulebook::{
    core::Fault,
    nvml::{PidNamespace, Seen, known_mib},
    reader::Process,
    tenancy::{Own, Rules, Tenancy, Unseen, Verdict, decide},
};
use serde_json::{Value, json};

use super::{
    Answer,
    field::{Refused, list, maybe, refused},
    readings, smi,
};

pub(super) fn answer(input: &Value) -> Result<Answer, Refused> {
    if input.get("gpus").is_some() { servers(input) } else { card(input) }
}

/// One card, by the list of its processes.
fn card(input: &Value) -> Result<Answer, Refused> {
    let namespace = match input.get("namespace").and_then(Value::as_str) {
        Some("host") => PidNamespace::Host,
        // What cannot be told is taken for a container.
        _ => PidNamespace::Container,
    };
    let listed = listed(input)?;
    let whole = |name: &str| input.get(name).and_then(Value::as_u64);
    let seen = Seen {
        used_mib: whole("memory_used_mib"),
        utilization_pct: whole("utilization_pct").and_then(|percent| u32::try_from(percent).ok()),
        drawing: input.get("graphics").and_then(Value::as_bool) == Some(true),
    };
    let resident = match &listed {
        Err(fault) => Err(Unseen::from(*fault)),
        Ok(processes) if seen.is_explained_by(processes, namespace) => Ok(processes.as_slice()),
        Ok(_) => {
            let word = if namespace == PidNamespace::Host { "unlisted" } else { "pid_namespace" };
            Err(Unseen { fault: Fault::Permission, hidden_by: Some(word) })
        }
    };
    let verdict = decide(resident, &rules(input), &|_| None);
    let mut answer = judged(&verdict);
    let tenant = |process: &Process| json!({ "pid": process.pid, "used_mib": process.used_mib });
    let tenants = listed.as_ref().map(|listed| listed.iter().map(tenant).collect::<Vec<_>>());
    answer.insert("tenants".into(), json!(tenants.ok()));
    answer.insert("contended_by".into(), json!(verdict.contended_by()));
    if let Some(row) = input.get("power") {
        answer.insert("watts".into(), json!(smi::watts_of_row(&readings::cell(row))));
    }
    Ok(answer)
}

/// The processes that the tool or the driver lists, or why they are not.
fn listed(input: &Value) -> Result<Result<Vec<Process>, Fault>, Refused> {
    let text = match (input.get("rows"), input.get("compute_apps")) {
        (Some(_), _) => {
            list(input, "rows")?.iter().map(readings::cell).collect::<Vec<_>>().join("\n")
        }
        (None, Some(Value::String(text))) => text.clone(),
        (None, Some(answer @ Value::Object(_))) => {
            let said = answer.get("stdout").map(readings::cell).unwrap_or_default();
            match answer.get("exit").and_then(Value::as_i64) {
                Some(0) => said,
                code => return Ok(Err(smi::failed(&said, code))),
            }
        }
        _ => return Err(refused("compute_apps")),
    };
    let Some(mut processes) = smi::compute_apps(&text) else { return Ok(Err(Fault::MalformedRow)) };
    // What the driver's own list says of a size, where the tool's says nothing.
    let bytes = input.get("nvml_used_bytes").and_then(Value::as_u64);
    for process in &mut processes {
        process.used_mib = process.used_mib.or_else(|| bytes.and_then(known_mib));
    }
    Ok(Ok(processes))
}

/// Servers on several cards, told apart by who started them.
fn servers(input: &Value) -> Result<Answer, Refused> {
    let gpus = input.get("gpus").and_then(Value::as_object).ok_or_else(|| refused("gpus"))?;
    let parents =
        input.get("parents").and_then(Value::as_object).ok_or_else(|| refused("parents"))?;
    let mut answer = Answer::new();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut started_by: BTreeMap<u32, u32> = BTreeMap::new();
    let mut resident: Vec<(&String, Vec<Process>)> = Vec::new();
    for (gpu, names) in gpus {
        let mut here = Vec::new();
        for (pid, name) in
            (10_000 * (resident.len() as u32 + 1)..).zip(names.as_array().into_iter().flatten())
        {
            let name = readings::cell(name);
            let count = seen.entry(name.clone()).or_default();
            *count += 1;
            // `X`, or `X#2` for the second of that name.
            let of = |key: &&String| {
                let (part, number) = key.split_once('#').unwrap_or((key, ""));
                name.contains(part) && (number.is_empty() || number == count.to_string())
            };
            let parent = parents.keys().find(of).and_then(|key| parents.get(key)?.as_u64());
            if let Some(parent) = parent.and_then(|parent| u32::try_from(parent).ok()) {
                started_by.insert(pid, parent);
            }
            here.push(Process { pid, used_mib: None, name });
        }
        resident.push((gpu, here));
    }
    let ancestry = |pid: u32| started_by.get(&pid).copied();
    for (gpu, processes) in &resident {
        let verdict = decide(Ok(processes), &rules(input), &ancestry);
        answer.insert((*gpu).clone(), json!(word(&verdict.tenancy)));
    }
    Ok(answer)
}

fn rules(input: &Value) -> Rules {
    let serving = input.get("serving_match").and_then(Value::as_str);
    let floor = maybe(input, "contention_floor_mib").map_or(512, |mib| mib as u64);
    let ignore = input.get("contention_ignore").and_then(Value::as_array);
    Rules {
        own: Own::choose(serving, None, vec![std::process::id()]),
        contention_floor_mib: floor,
        contention_ignore: ignore.into_iter().flatten().map(readings::cell).collect(),
    }
}

fn judged(verdict: &Verdict) -> Answer {
    let mut answer = Answer::new();
    let unknown = matches!(verdict.tenancy, Tenancy::Unknown(_));
    answer.insert("tenancy".into(), json!(word(&verdict.tenancy)));
    answer.insert("contended".into(), json!((!unknown).then_some(verdict.contended)));
    if let Tenancy::Unknown(why) = &verdict.tenancy {
        answer.insert("reason".into(), json!(why));
    }
    answer
}

const fn word(tenancy: &Tenancy) -> &'static str {
    match tenancy {
        Tenancy::Alone => "alone",
        Tenancy::Foreign(_) => "foreign",
        Tenancy::Unknown(_) => "unknown",
    }
}
