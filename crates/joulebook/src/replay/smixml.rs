//! `nvidia-smi -q -x`, once or in a loop (`-l`): one document an answer.
//!
//! The plain element is the same as the CSV's power.draw, the average and the instant have names of
//! their own since driver 535; those of the module and the memory are other quantities. A MIG
//! instance has no power: its card's is that of all of them.

use joulebook_core::{Fault, Scope};

use super::{
    Activity, CardName, Channel, Clock, Log, Refused, ReplayError, Row, Shows, Warning,
    cell::{self, number, power, unit},
    instant::instant,
    json::done,
    xml::{Event, attribute, events},
};
use crate::reader::{Throttle, Value};

const FORMAT: &str = "nvidia-smi XML";
/// Elements of power: their group (without `gpu_`), name, what they show and cover.
const POWERS: &[(&str, &str, Shows, Scope)] = &[
    ("power_readings", "power_draw", Shows::Draw, Scope::Gpu),
    ("power_readings", "average_power_draw", Shows::Average, Scope::Gpu),
    ("power_readings", "instant_power_draw", Shows::Instant, Scope::Gpu),
    ("module_power_readings", "average_power_draw", Shows::Average, Scope::Module),
    ("module_power_readings", "instant_power_draw", Shows::Instant, Scope::Module),
];
const LIMITS: &[&str] = &["current_power_limit", "enforced_power_limit", "power_limit"];
const MONTHS: &[&str] =
    &["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// True for such a document.
pub(super) fn is(text: &str) -> bool {
    text.contains("<nvidia_smi_log>")
}

/// A card on its way.
#[derive(Default)]
struct Gpu {
    line: usize,
    name: CardName,
    readings: Vec<Option<Result<Value, Fault>>>,
    limit: Option<joulebook_core::Power>,
    activity: Activity,
    throttle: Throttle,
    instances: usize,
}

/// Reads the documents.
pub(super) fn read(text: &str) -> Result<Log, ReplayError> {
    let channel = |(group, name, shows, scope): &(&str, &str, Shows, Scope)| Channel {
        name: match *scope {
            Scope::Module => format!("{}.{name}", group.trim_end_matches("_power_readings")),
            _ => (*name).to_owned(),
        },
        shows: *shows,
        scope: *scope,
    };
    let mut log = Log::new(FORMAT, Clock::Elapsed, POWERS.iter().map(channel).collect());
    let mut path: Vec<&str> = Vec::new();
    let (mut at_ns, mut gpu, mut place): (u64, Option<Gpu>, u32) = (0, None, 0);
    let mut shared: Vec<(usize, usize)> = Vec::new();
    for (line, event) in events(text) {
        match event {
            Event::Open(name, attributes) => {
                if name == "nvidia_smi_log" {
                    (path, place) = (Vec::new(), 0);
                }
                path.push(name);
                if name == "gpu" {
                    let pci = attribute(attributes, "id").map(str::to_owned);
                    let name = CardName { pci, index: Some(place), ..CardName::default() };
                    let readings = vec![None; POWERS.len()];
                    gpu = Some(Gpu { line, name, readings, ..Gpu::default() });
                    place += 1;
                }
            }
            Event::Text(text) => match &mut gpu {
                Some(gpu) => gpu.element(&path, text),
                None if path.last() == Some(&"timestamp") => {
                    if let Some(ns) = calendar_ns(text) {
                        (at_ns, log.clock) = (ns, Clock::Local);
                    }
                }
                None => {}
            },
            Event::Close(name) => {
                if path.last() == Some(&name) {
                    path.pop();
                }
                if name == "gpu"
                    && let Some(gpu) = gpu.take()
                {
                    let instances = gpu.instances;
                    let row = gpu.row(&mut log, at_ns);
                    if instances > 0 && !shared.contains(&(row.card, instances)) {
                        shared.push((row.card, instances));
                    }
                    log.rows.push(row);
                }
            }
        }
    }
    if let Some(Gpu { line, .. }) = gpu {
        let why = "cut short at the file's end".to_owned();
        log.refused.push(Refused { line, fault: Fault::MalformedRow, why });
        log.warnings.push(Warning::CutLastRow { line });
    }
    for (card, instances) in shared {
        let card = log.cards.get(card).map(CardName::label).unwrap_or_default();
        log.warnings.push(Warning::Instances { card, instances });
    }
    keep_known(&mut log);
    let mut log = done(log)?;
    if log.rows.iter().any(|row| row.at_ns != at_ns) {
        log.late_s = 1.0;
        log.warnings.push(Warning::StampsTruncated { doubled: 0, elapsed: false });
    }
    Ok(log)
}

/// Leaves out columns that no document has; the plain one stays where there is none at all.
fn keep_known(log: &mut Log) {
    let absent = |place: &usize| {
        let is = |row: &Row| row.readings.get(*place).is_none_or(|it| *it == Err(Fault::Absent));
        log.rows.iter().all(is)
    };
    let known: Vec<usize> = (0..log.channels.len()).filter(|place| !absent(place)).collect();
    if known.is_empty() {
        return;
    }
    log.channels = known.iter().filter_map(|place| log.channels.get(*place).cloned()).collect();
    for row in &mut log.rows {
        row.readings = known.iter().filter_map(|place| row.readings.get(*place).copied()).collect();
    }
}

impl Gpu {
    fn element(&mut self, path: &[&str], text: &str) {
        let [.., group, name] = path else { return };
        let group = group.trim_start_matches("gpu_");
        if path.contains(&"mig_device") {
            self.instances += usize::from(*name == "gpu_instance_id");
            return;
        }
        let word = || (cell::absence(text) == Fault::MalformedRow).then(|| text.to_owned());
        let watts = || {
            let unit = unit(number(text).map_or("W", |(_, unit)| unit))?;
            Some(power(text, unit))
        };
        let is_power =
            |(in_group, of, ..): &(&str, &str, Shows, Scope)| *in_group == group && of == name;
        if let Some(place) = POWERS.iter().position(is_power) {
            if let (Some(reading), Some(watts)) = (self.readings.get_mut(place), watts()) {
                *reading = Some(watts.map(Value::Power));
            }
        } else if group == "power_readings" && LIMITS.contains(name) {
            self.limit = self.limit.or(watts().and_then(Result::ok));
        } else if name.ends_with("reason_sw_power_cap") {
            let capped = &mut self.throttle.power_capped;
            *capped = Some(*capped == Some(true) || text == "Active");
        } else if name.ends_with("reason_hw_power_brake_slowdown") {
            let braked = &mut self.throttle.power_braked;
            *braked = Some(*braked == Some(true) || text == "Active");
        } else {
            match *name {
                "product_name" => self.name.model = word(),
                "uuid" => self.name.uuid = word(),
                "gpu_util" => self.activity.utilisation = cell::figure(text),
                "gpu_temp" => self.activity.temperature = cell::figure(text),
                _ => {}
            }
        }
    }

    fn row(self, log: &mut Log, at_ns: u64) -> Row {
        let card = log.place_of(self.name);
        Row {
            line: self.line,
            at_ns,
            card,
            readings: self
                .readings
                .into_iter()
                .map(|it| it.unwrap_or(Err(Fault::Absent)))
                .collect(),
            throttle: Some(self.throttle),
            limit: self.limit,
            activity: self.activity,
        }
    }
}

/// `Fri Aug  4 11:44:30 2023`, in the host's zone, ns.
fn calendar_ns(text: &str) -> Option<u64> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [_, month, day, time, year] = words.as_slice() else { return None };
    let month = MONTHS.iter().position(|name| name == month)? + 1;
    let day: u8 = day.parse().ok()?;
    let at = instant(&format!("{year}-{month:02}-{day:02} {time}"))?;
    (at.clock == Clock::Local).then_some(at.at_ns)
}
