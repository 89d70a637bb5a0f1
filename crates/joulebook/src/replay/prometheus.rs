//! A Prometheus range query dumped as a CSV: a column a label, `__name__`, `timestamp`, and the
//! value under the metric's own name.
//!
//! Labels tell series apart only where they are of those that name a part of a machine; a label
//! that changes from row to row carries something else (another energy, as text). Each series is a
//! counter of its own: parts of one thing, whose growths add up.

use std::collections::{HashMap, HashSet};

use joulebook_core::{Fault, Scope};

use super::{
    Activity, CardName, Channel, Clock, Log, Refused, ReplayError, Row, Warning,
    instant::instant,
    metric::metric,
    table::columns::{at, missing},
    text::{cells, shortened},
};

const FORMAT: &str = "Prometheus range dump";
/// Labels that name a part of a machine.
const PARTS: &[&str] = &[
    "node", "host", "Hostname", "hostname", "instance", "uuid", "UUID", "gpu", "device", "package",
    "pkg_id", "socket", "zone", "domain", "path", "index", "mode", "source",
];
/// A label with more values than this per hundred rows changes from row to row.
const MOST_VALUES_PERCENT: usize = 30;

/// True for a dump's header.
pub(super) fn is_header(names: &[String]) -> bool {
    at(names, &["__name__"]).is_some() && at(names, &["timestamp"]).is_some()
}

/// Reads a dump.
pub(super) fn read(text: &str) -> Result<Log, ReplayError> {
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let (line, first) = lines.next().ok_or(ReplayError::Empty)?;
    let names: Vec<String> = cells(first).into_iter().map(str::to_owned).collect();
    let time = at(&names, &["timestamp"]).ok_or_else(|| missing(line, &names, "timestamp"))?;
    let named = names.iter().enumerate().rev().find_map(|(at, name)| Some((at, metric(name)?)));
    let (value, metric) = named.ok_or_else(|| missing(line, &names, "…_joules_total"))?;
    let mut refused = Vec::new();
    let mut rows: Vec<(usize, u64, Vec<&str>)> = Vec::new();
    for (line, content) in lines {
        let cells = cells(content);
        let stamp = cells.get(time).copied().unwrap_or_default();
        let fault = Fault::MalformedRow;
        match instant(stamp).filter(|at| at.clock == Clock::Epoch) {
            _ if cells.len() != names.len() => {
                let why = format!("{} cells under {} columns", cells.len(), names.len());
                refused.push(Refused { line, fault, why });
            }
            Some(at) => rows.push((line, at.at_ns, cells)),
            None => {
                let why = format!("`{}` is no timestamp", shortened(stamp));
                refused.push(Refused { line, fault, why });
            }
        }
    }
    let labels = Labels::of(&names, [time, value], &rows)?;
    // A dump is series after series, and a label that changes begins a new one each time.
    rows.sort_by_key(|(_, at_ns, _)| *at_ns);
    let name = names.get(value).cloned().unwrap_or_default();
    let shows = metric.shows(rows.iter().filter_map(|(.., cells)| cells.get(value).copied()));
    let scope = if name.contains("package") { Scope::Package } else { Scope::Gpu };
    let mut log = Log::new(FORMAT, Clock::Epoch, vec![Channel { name, shows, scope }]);
    for (line, at_ns, cells) in &rows {
        let card = log.place_of(labels.name(cells));
        let cell = cells.get(value).copied().unwrap_or_default();
        let readings = vec![metric.read(cell)];
        let (throttle, limit, activity) = (None, None, Activity::default());
        log.rows.push(Row {
            line: *line,
            at_ns: *at_ns,
            card,
            readings,
            throttle,
            limit,
            activity,
        });
    }
    if log.rows.is_empty() {
        let why = refused.first().map_or("there is only the header", |row| row.why.as_str());
        return Err(ReplayError::NoRows { line, why: why.to_owned() });
    }
    log.refused = refused;
    log.warnings = labels.warnings();
    Ok(log)
}

/// Labels, by what they are good for.
struct Labels {
    /// Those that differ between series: place and name.
    telling: Vec<(usize, String)>,
    /// Those that change within a series.
    ignored: Vec<String>,
}

type Rows<'a> = [(usize, u64, Vec<&'a str>)];

impl Labels {
    fn of(names: &[String], not: [usize; 2], rows: &Rows<'_>) -> Result<Self, ReplayError> {
        let values = |at: usize| {
            rows.iter().filter_map(|(.., cells)| cells.get(at).copied()).collect::<HashSet<_>>()
        };
        let varies = |(at, name): &(usize, &String)| {
            !not.contains(at) && !name.is_empty() && values(*at).len() > 1
        };
        let all: Vec<(usize, &String)> = names.iter().enumerate().filter(varies).collect();
        let restless =
            |at: usize| values(at).len() * 100 > rows.len() * MOST_VALUES_PERCENT && rows.len() > 9;
        let is_part = |name: &str| PARTS.contains(&name);
        let mut telling: Vec<(usize, String)> = all
            .iter()
            .filter(|(at, name)| is_part(name) && !restless(*at))
            .map(|(at, name)| (*at, (*name).clone()))
            .collect();
        // A label that is no known part, but without which a series has two values at once.
        let others = all.iter().filter(|(at, name)| !is_part(name) && !restless(*at));
        for (at, name) in others {
            if clash(&telling, rows).is_none() {
                break;
            }
            telling.push((*at, (*name).clone()));
        }
        if let Some((line, before)) = clash(&telling, rows) {
            return Err(ReplayError::CardsUnnamed { line, before });
        }
        let is_telling = |place: usize| telling.iter().any(|(at, _)| *at == place);
        let ignored = all
            .iter()
            .filter(|(at, _)| !is_telling(*at) && restless(*at))
            .map(|(_, name)| (*name).clone())
            .collect();
        Ok(Self { telling, ignored })
    }

    fn name(&self, cells: &[&str]) -> CardName {
        let label = |(at, name): &(usize, String)| Some(format!("{name} {}", cells.get(*at)?));
        let labels: Vec<String> = self.telling.iter().filter_map(label).collect();
        match labels.is_empty() {
            true => CardName::default(),
            false => CardName::called(&labels.join(", ")),
        }
    }

    fn warnings(&self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        if !self.ignored.is_empty() {
            warnings.push(Warning::LabelsIgnored { labels: self.ignored.join(", ") });
        }
        if let Some((_, label)) = self.telling.iter().find(|(_, name)| name == "mode") {
            warnings.push(Warning::Parts { label: label.clone() });
        }
        warnings
    }
}

/// A row whose series has a value at that time already, and that one's line.
fn clash(telling: &[(usize, String)], rows: &Rows<'_>) -> Option<(usize, usize)> {
    let mut seen: HashMap<(u64, Vec<&str>), usize> = HashMap::new();
    rows.iter().find_map(|(line, at_ns, cells)| {
        let key = telling.iter().filter_map(|(at, _)| cells.get(*at).copied()).collect();
        seen.insert((*at_ns, key), *line).map(|before| (*line, before))
    })
}
