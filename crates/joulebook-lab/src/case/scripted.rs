//! A card whose driver answers as a case says, read as the meter reads it.
//!
//! The readers are scripted; which of them is taken, what is remembered of a refusal, and what their
//! readings come to are the product's. A driver library that cannot be used is a real file.

use std::{
    cell::Cell,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use joulebook::{
    Meter, MeterError, Node,
    core::{Fault, Power, register::Kind},
    nvml::{self, Answers, CardState, Driver, Memory},
    reader::{Backend, Device, Reader, Reading, Scope, Value as Shown},
    replay::cell,
    sources::supported,
};
use serde_json::{Value, json};

use super::{
    Answer,
    field::{Refused, maybe, refused, span, text},
    measured, readings, samples,
};

/// How often a card is asked where a case does not say.
const TICKS: u64 = 10;

pub(super) fn answer(input: &Value) -> Result<Answer, Refused> {
    if text(input, "kind")? == "env" { environment(input) } else { card(input) }
}

/// A register that answers from a script, one after the other; the last answer stays.
struct Scripted {
    backend: Backend,
    answers: Vec<Result<Power, Fault>>,
    next: Cell<usize>,
    asked: Arc<AtomicU32>,
}

impl Scripted {
    fn boxed(
        backend: Backend,
        answers: Vec<Result<Power, Fault>>,
    ) -> (Box<dyn Reader>, Arc<AtomicU32>) {
        let asked = Arc::new(AtomicU32::new(0));
        let reader = Self { backend, answers, next: Cell::new(0), asked: Arc::clone(&asked) };
        (Box::new(reader), asked)
    }
}

impl Reader for Scripted {
    fn device(&self) -> Device {
        Device {
            index: 0,
            uuid: "case".to_owned(),
            pci: None,
            name: "case".to_owned(),
            driver: None,
            backend: self.backend,
            scope: Scope::Gpu,
            register: Kind::Gauge { averaging_ns: None },
            limit: None,
            consumer: false,
        }
    }

    fn read(&mut self) -> Result<Reading, Fault> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let place = self.next.get();
        self.next.set(place + 1);
        let answer = self.answers.get(place).or(self.answers.last()).copied();
        let power = answer.unwrap_or(Err(Fault::NotSupported))?;
        Ok(Reading { value: Shown::Power(power), mean: None, throttle: None })
    }
}

/// A card with its counter, its gauge and what the tool shows of it.
fn card(input: &Value) -> Result<Answer, Refused> {
    if input.get("util").is_some() {
        return Ok(state(input));
    }
    let watts = cell::unit("W").ok_or(Refused::Unsupported)?;
    let counter = word(input.get("total_energy"));
    let (counter, asked) = Scripted::boxed(Backend::NvmlCounter, vec![Err(counter)]);
    let milliwatts = input.get("power_mw").and_then(Value::as_array);
    let stamped = |pair: &Value| {
        let [at, value] = pair.as_array()?.as_slice() else { return None };
        let unit = cell::unit("mW")?;
        Some((at.as_f64()?, cell::power(&readings::cell(value), unit)))
    };
    let gauge: Vec<(f64, Result<Power, Fault>)> = match milliwatts {
        Some(pairs) => {
            pairs.iter().map(stamped).collect::<Option<_>>().ok_or_else(|| refused("power_mw"))?
        }
        None => vec![(0.0, Err(word(input.get("power"))))],
    };
    let powers = gauge.iter().map(|(_, power)| *power).collect();
    let (gauge_reader, _) = Scripted::boxed(Backend::NvmlPower, powers);
    let smi = input
        .get("smi_power")
        .map_or(Err(Fault::NotSupported), |shown| cell::power(&readings::cell(shown), watts));
    let (smi_reader, _) = Scripted::boxed(Backend::SmiSampler, vec![smi]);
    let chosen = supported([counter, gauge_reader, smi_reader]);
    let window = span(input, "window");
    let idle_w = maybe(input, "idle_w");
    let Some((mut reader, first)) = chosen else {
        return Ok(nothing(input));
    };
    // What it shows at the instants the case gives.
    let mut shown = vec![first];
    shown.extend((1..gauge.len()).map(|_| reader.read()));
    let cells: Vec<readings::Reading> =
        gauge.iter().zip(shown).map(|((at_s, _), reading)| (*at_s, said(reading))).collect();
    let track = samples::played(&cells, watts, None, None)?;
    let track = track.map_err(|_| refused("power_mw"))?;
    let window = window.unwrap_or(track.span);
    let context = measured::context(window, idle_w, reader.device().backend.word());
    let mut answer = measured::answer(&samples::window_of(&track, window), &context, input);
    answer.insert("counter_asked".into(), json!(asked.load(Ordering::Relaxed)));
    Ok(answer)
}

/// What a card shows now, each query with its own answer.
fn state(input: &Value) -> Answer {
    let whole = |name: &str| match input.get(name) {
        Some(value) => value.as_u64().ok_or(word(Some(value))),
        None => Err(Fault::NotSupported),
    };
    let used = whole("mem_used_mib");
    let total = whole("mem_total_mib");
    // A case may leave the total out; a driver gives both or neither.
    let memory = used.map(|used_mib| {
        let total_mib = total.unwrap_or(used_mib);
        Memory { used_mib, total_mib, free_mib: total_mib.saturating_sub(used_mib) }
    });
    let state = CardState::of(Answers {
        gpu: Some(0),
        name: None,
        watts: input.get("power").and_then(Value::as_f64).ok_or_else(|| word(input.get("power"))),
        memory,
        utilization_pct: whole("util")
            .and_then(|percent| u32::try_from(percent).map_err(|_| Fault::Implausible)),
        compute_apps: None,
    });
    let mut answer = Answer::new();
    answer.insert("error".into(), json!(state.as_ref().err()));
    if let Ok(Value::Object(fields)) = state.map(|state| json!(state)) {
        answer.extend(fields);
    }
    answer
}

/// A card that nothing can read: polled all the same, so that the coverage says it.
fn nothing(input: &Value) -> Answer {
    let ticks = input.get("ticks").and_then(Value::as_u64).unwrap_or(TICKS);
    let name = input.get("card").map(readings::cell).unwrap_or_default();
    let error = MeterError::NotSupported { index: 0, name };
    let meter = Meter::refused(&node(input), &error);
    let mut with_power = 0;
    for _ in 0..ticks {
        with_power += u64::from(meter.power().is_some());
    }
    let measured = meter.open().close().now();
    let mut answer = measured::of(&measured);
    answer.insert("coverage".into(), json!({ "ticks": ticks, "with_power": with_power }));
    answer.insert("hint".into(), json!(error.to_string()));
    answer
}

/// A host whose driver library cannot be used, and which may have no `nvidia-smi`.
fn environment(input: &Value) -> Result<Answer, Refused> {
    let said = text(input, "nvml")?;
    // A library that is there and lacks the driver's functions; or none.
    let library = if said.starts_with("symbol not found") {
        "libc.so.6"
    } else if said == "absent" {
        "/nonexistent/libnvidia-ml.so.1"
    } else {
        return Err(refused("nvml"));
    };
    if input.get("smi").and_then(Value::as_str) != Some("absent") {
        return Err(refused("smi"));
    }
    let Err(error) = nvml::cards(&Driver::at(library)) else { return Err(refused("nvml")) };
    let error = MeterError::from(error);
    let (meter, level) = super::heard::while_doing(|| Meter::refused(&node(input), &error));
    let measured = meter.open().close().now();
    let mut answer = measured::of(&measured);
    answer.insert("log_level".into(), json!(level));
    answer.insert("watts".into(), json!(meter.power()));
    answer.insert("reason".into(), json!(error.to_string()));
    Ok(answer)
}

fn node(input: &Value) -> Node {
    let node = Node::of("0");
    match maybe(input, "idle_w") {
        Some(watts) => node.idle_watts(watts),
        None => node,
    }
}

/// A driver's word for a reading that is not there.
fn word(value: Option<&Value>) -> Fault {
    match value.and_then(Value::as_str) {
        Some("Timeout") => Fault::Timeout,
        Some("GpuLost" | "Lost") => Fault::Lost,
        Some("NoPermission") => Fault::Permission,
        Some("Unknown" | "error") => Fault::Unknown,
        _ => Fault::NotSupported,
    }
}

fn said(reading: Result<Reading, Fault>) -> String {
    match reading.map(|reading| reading.value) {
        Ok(Shown::Power(power)) => power.watts().to_string(),
        Ok(Shown::Counter(_)) | Err(Fault::Unknown) => "ERR!".to_owned(),
        Err(_) => "N/A".to_owned(),
    }
}
