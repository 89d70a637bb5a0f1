//! The page of metrics: Prometheus text, or OpenMetrics for those who ask for it.
//!
//! Invariants: what is not fresh is absent, and `joulebook_card_reader_up` says 0; a card's energy
//! starts at 0 with the process and never falls, so that a restart is a reset to whoever adds it up;
//! what the register itself shows is a gauge. All of it is what recorders have found: a scrape asks
//! no driver.

use std::{
    fmt,
    sync::{Arc, PoisonError, atomic::Ordering},
};

use joulebook::core::ring::Point;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, NoLabelSet, prometheus_text, text},
    metrics::MetricType,
    registry::{Registry, Unit},
};

use super::{Agent, own, rails::Rail, roster::Seat, seen::Described};

/// Which of the two forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Prometheus text, version 0.0.4.
    Text,
    /// OpenMetrics 1.0.
    Open,
}

impl Form {
    /// What a client accepts: OpenMetrics where it likes that no less than text.
    pub fn accepted(accept: Option<&str>) -> Self {
        let quality = |wanted: &[&str]| {
            let parts = accept.unwrap_or_default().split(',').map(|part| part.split(';'));
            let qualities = parts.filter_map(|mut part| {
                let kind = part.next()?.trim();
                let said = part.find_map(|it| it.trim().strip_prefix("q=").map(str::to_owned));
                let quality = said.map_or(Some(1.0), |said| said.parse::<f64>().ok())?;
                wanted.contains(&kind).then_some(quality)
            });
            qualities.reduce(f64::max)
        };
        let open = quality(&["application/openmetrics-text"]).unwrap_or(0.0);
        let text = quality(&["text/plain", "text/*"]).unwrap_or(0.0);
        if open > 0.0 && open >= text { Self::Open } else { Self::Text }
    }

    /// Its content type.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Text => prometheus_text::CONTENT_TYPE,
            Self::Open => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// The page.
pub fn page(agent: &Agent, form: Form) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Snapshot::of(agent)));
    let mut page = String::new();
    // Writing into a string does not fail.
    let _ = match form {
        Form::Text => prometheus_text::encode(&mut page, &registry),
        Form::Open => text::encode(&mut page, &registry),
    };
    page
}

type Labels = Vec<(&'static str, String)>;

/// One family: its name without unit and suffix, what it is, its unit, and its series.
#[derive(Debug)]
struct Family {
    name: &'static str,
    help: &'static str,
    unit: Option<Unit>,
    counts: bool,
    series: Vec<(Labels, f64)>,
}

/// All families at one moment.
#[derive(Debug)]
struct Snapshot(Vec<Family>);

impl Snapshot {
    fn of(agent: &Agent) -> Self {
        let mut families = cards(agent);
        families.extend(of_agent(agent));
        Self(families)
    }
}

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        for Family { name, help, unit, counts, series } in &self.0 {
            if series.is_empty() {
                continue;
            }
            let kind = if *counts { MetricType::Counter } else { MetricType::Gauge };
            let mut family = encoder.encode_descriptor(name, help, unit.as_ref(), kind)?;
            for (labels, value) in series {
                let mut metric = family.encode_family(labels)?;
                if *counts {
                    metric.encode_counter::<NoLabelSet, _, f64>(value, None)?;
                } else {
                    metric.encode_gauge(value)?;
                }
            }
        }
        Ok(())
    }
}

/// A card at one moment.
struct Now {
    seat: Arc<Seat>,
    described: Arc<Described>,
    labels: Labels,
    /// Absent while it is not fresh.
    point: Option<Point>,
}

/// What one family shows of a card; absent where there is nothing to show.
type Shows = fn(&Now) -> Option<f64>;

fn cards(agent: &Agent) -> Vec<Family> {
    let listing = agent.roster.now();
    let mut now: Vec<Now> = listing.seats.iter().map(|seat| Now::of(agent, seat)).collect();
    now.sort_by_key(|now| now.seat.found.index);
    let family = |(name, help, unit, counts, shows): (&'static str, _, _, _, Shows)| {
        let series = now.iter().filter_map(|now| Some((now.labels.clone(), shows(now)?)));
        Family { name, help, unit, counts, series: series.collect() }
    };
    let mut families: Vec<Family> = table().into_iter().map(family).collect();
    if now.is_empty()
        && let Some(up) = families.first_mut()
    {
        // Not even listed: the default card is down.
        let labels = vec![("node", agent.node.clone()), ("gpu", agent.gpu.clone())];
        up.series.push((labels, 0.0));
    }
    families
}

impl Now {
    fn of(agent: &Agent, seat: &Arc<Seat>) -> Self {
        let described = seat.described();
        let labels = vec![
            ("node", agent.node.clone()),
            ("gpu", seat.found.index.to_string()),
            ("uuid", described.seen.uuid.clone()),
            ("name", described.seen.name.clone()),
        ];
        let point = seat.state.as_ref().ok().and_then(|open| open.card.fresh().ok());
        Self { seat: Arc::clone(seat), described, labels, point }
    }

    fn card(&self) -> Option<&joulebook::Card> {
        self.seat.state.as_ref().ok().map(|open| &*open.card)
    }

    /// The card, while it is fresh.
    fn fresh(&self) -> Option<&joulebook::Card> {
        self.point.and(self.card())
    }
}

/// The families of cards: name, help, unit, whether it counts, and what it shows.
fn table() -> Vec<(&'static str, &'static str, Option<Unit>, bool, Shows)> {
    let joules = || Some(Unit::Joules);
    let seconds = || Some(Unit::Seconds);
    let watts = || Some(Unit::Other("watts".to_owned()));
    let bytes = || Some(Unit::Bytes);
    vec![
        ("joulebook_card_reader_up", "Whether the card can be read now", None, false, |now| {
            Some(f64::from(u8::from(now.point.is_some())))
        }),
        (
            "joulebook_card_energy",
            "Energy drawn by the card since the agent began, by its own register or gauge",
            joules(),
            true,
            |now| now.point.map(|point| point.energy_uj as f64 / 1e6),
        ),
        (
            "joulebook_card_register",
            "What the card's energy register shows; it starts anew with the driver",
            joules(),
            false,
            |now| now.fresh()?.register().map(joulebook::Energy::joules),
        ),
        (
            "joulebook_card_power",
            "Mean power up to the last publish over as long as it takes to know it, a second at most, or the \
             gauge's reading",
            watts(),
            false,
            |now| Some(now.card()?.power_until(now.point?).watts()),
        ),
        (
            "joulebook_card_idle",
            "The card's idle floor, where one was measured",
            watts(),
            false,
            |now| now.described.seen.idle_watts,
        ),
        ("joulebook_card_limit", "The power limit in force", watts(), false, |now| {
            now.fresh().and(now.described.seen.limit_watts)
        }),
        ("joulebook_card_memory_used", "Memory in use", bytes(), false, |now| {
            now.fresh()?.usage().used_mib.map(|mib| mib as f64 * 1_048_576.0)
        }),
        ("joulebook_card_memory_size", "Memory there is", bytes(), false, |now| {
            now.fresh()?.usage().total_mib.map(|mib| mib as f64 * 1_048_576.0)
        }),
        (
            "joulebook_card_utilization_ratio",
            "Share of the last sampling period in which the card was at work",
            None,
            false,
            |now| now.fresh()?.usage().utilization_pct.map(|percent| f64::from(percent) / 100.0),
        ),
        ("joulebook_card_resets", "Restarts of the card's register", None, true, |now| {
            Some(now.card()?.tally().resets as f64)
        }),
        ("joulebook_card_gaps", "Publishes behind a stretch not seen", None, true, |now| {
            Some(now.card()?.tally().gaps as f64)
        }),
        ("joulebook_card_reads", "Times the card was read", None, true, |now| {
            Some(now.card()?.cost().polls as f64)
        }),
        ("joulebook_card_read_errors", "Reads that failed or were refused", None, true, |now| {
            Some(now.card()?.cost().rejected as f64)
        }),
        ("joulebook_card_reads_late", "Reads left out after a slow one", None, true, |now| {
            Some(now.card()?.cost().late as f64)
        }),
        (
            "joulebook_card_power_reads",
            "Times the power gauge was read beside a slow counter",
            None,
            true,
            |now| Some(now.card()?.cost().samples as f64),
        ),
        (
            "joulebook_card_read",
            "Time spent in reads; divided by their number, their latency",
            seconds(),
            true,
            |now| Some(now.card()?.tally().asked_ns as f64 / 1e9),
        ),
        (
            "joulebook_card_reader_cpu",
            "CPU time of the thread that reads the card",
            seconds(),
            true,
            |now| Some(now.card()?.cost().cpu_ns as f64 / 1e9),
        ),
    ]
}

/// The families of the agent itself and its host.
fn of_agent(agent: &Agent) -> Vec<Family> {
    let node = || vec![("node", agent.node.clone())];
    let one = |name, help, unit, counts, value: f64| Family {
        name,
        help,
        unit,
        counts,
        series: vec![(node(), value)],
    };
    let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed) as f64;
    let counts = &agent.counts;
    let with = |name: &'static str, value: &str, number: f64| {
        (vec![("node", agent.node.clone()), (name, value.to_owned())], number)
    };
    let rails = agent.rails.lock().unwrap_or_else(PoisonError::into_inner).counted();
    let rail = |(name, energy): Rail| with("rail", name, energy.joules());
    vec![
        Family {
            name: "joulebook_host_rail",
            help: "Energy of the processors, of the memory beside them, or of the platform around \
                   both, since the agent began",
            unit: Some(Unit::Joules),
            counts: true,
            series: rails.into_iter().map(rail).collect(),
        },
        Family {
            name: "joulebook_agent_build_info",
            help: "The agent's version",
            unit: None,
            counts: false,
            series: vec![with("version", env!("CARGO_PKG_VERSION"), 1.0)],
        },
        Family {
            name: "joulebook_agent_requests",
            help: "Requests answered, by what came of them",
            unit: None,
            counts: true,
            series: vec![
                with("outcome", "answered", count(&counts.answered)),
                with("outcome", "refused", count(&counts.refused)),
                with("outcome", "unreadable", count(&counts.unreadable)),
            ],
        },
        one(
            "joulebook_agent_connections",
            "Connections that are open",
            None,
            false,
            agent.connections.count() as f64,
        ),
        one(
            "joulebook_agent_connections_turned_away",
            "Connections turned away because there were too many",
            None,
            true,
            count(&counts.turned_away),
        ),
        one(
            "joulebook_agent_connections_cut",
            "Connections cut because they made no progress, or to make room",
            None,
            true,
            count(&counts.cut),
        ),
        one(
            "joulebook_agent_streams",
            "Streams that are open",
            None,
            false,
            agent.news.listeners() as f64,
        ),
        one(
            "joulebook_agent_stream_skipped",
            "Publishes left out of streams whose clients were too slow",
            None,
            true,
            count(&counts.skipped),
        ),
        one("process_cpu", "CPU time of the agent", Some(Unit::Seconds), true, own::cpu_s()),
        one(
            "process_start_time",
            "When the agent began, since 1970",
            Some(Unit::Seconds),
            false,
            agent.began_unix_s,
        ),
        Family {
            name: "process_resident_memory",
            help: "Memory of the agent that is in RAM",
            unit: Some(Unit::Bytes),
            counts: false,
            series: own::resident_bytes().map(|bytes| (node(), bytes as f64)).into_iter().collect(),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_given_the_form_it_likes_best() {
        let prometheus = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;\
                          version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        for (accept, expected) in [
            (Some(prometheus), Form::Open),
            (Some("application/openmetrics-text"), Form::Open),
            (Some("text/plain;version=0.0.4, application/openmetrics-text;q=0.5"), Form::Text),
            (Some("application/openmetrics-text;q=0"), Form::Text),
            (Some("text/plain"), Form::Text),
            (Some("*/*"), Form::Text),
            (Some("application/openmetrics-text;q=junk"), Form::Text),
            (None, Form::Text),
        ] {
            assert_eq!(Form::accepted(accept), expected, "{accept:?}");
        }
    }
}
