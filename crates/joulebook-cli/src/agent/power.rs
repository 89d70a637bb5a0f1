//! `/power` and `/healthz`, as the clients of `giul-agent` know them.
//!
//! Shapes, words and status codes are that program's: 400 for a gpu that is no integer, 404 for one
//! that is not there, 503 for one that cannot be read now, never 500. Beyond it, a 503 says `watts:
//! null` and how old the last good reading is, which is itself never shown again; memory and
//! utilization are null where the card has none to show. A process whose memory the driver does not
//! know is left out, as it is there; `/v1/cards/stream` lists it.

use axum::body::Body;
use http::{Response, StatusCode};
use joulebook::{Fault, clock::now_ns, core::ring::Point};
use serde::Serialize;

use super::{
    Agent,
    answer::{Refusal, json, refuse},
    query,
    roster::{Listing, Open, Seat, Why},
    seen::App,
};

/// The path of the health check.
pub const HEALTH: &str = "/healthz";

/// A card now.
#[derive(Serialize)]
struct Power<'a> {
    gpu: u32,
    name: &'a str,
    watts: f64,
    memory_used_mib: Option<u64>,
    memory_total_mib: Option<u64>,
    memory_free_mib: Option<u64>,
    utilization_pct: Option<u32>,
    compute_apps: &'a [App],
}

/// A card that cannot be read.
#[derive(Serialize)]
struct Unreadable<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'a str>,
    error: &'a str,
    watts: Option<f64>,
    age_s: Option<f64>,
}

#[derive(Serialize)]
struct Status<'a> {
    status: &'a str,
}

/// Which card a query means.
enum Asked {
    Card(i128),
    Default,
}

/// `/power`; `health`: as `/healthz`.
pub fn power(agent: &Agent, query: Option<&str>, health: bool) -> Response<Body> {
    let asked = match query.and_then(|query| query::value(query, "gpu")) {
        None => Asked::Default,
        Some(text) => match query::integer(&text) {
            Some(number) => Asked::Card(number),
            None => return refuse(StatusCode::BAD_REQUEST, "gpu must be an integer"),
        },
    };
    let listing = agent.roster.now();
    let number = match asked {
        Asked::Card(number) => Some(number),
        Asked::Default => agent.default_card(&listing).map(i128::from),
    };
    let seat =
        number.and_then(|number| u32::try_from(number).ok()).and_then(|index| listing.seat(index));
    match (seat, number) {
        (Some(seat), _) => of_seat(seat, health),
        (None, Some(number)) if listing.unknown.is_none() => absent(number, &listing),
        (None, _) => unreadable(&listing.why(), None, health),
    }
}

/// `/healthz` for those who may know no more: whether the default card can be read.
pub fn health_alone(agent: &Agent) -> Response<Body> {
    if power(agent, None, true).status() == StatusCode::OK {
        json(StatusCode::OK, &Status { status: "ok" })
    } else {
        json(StatusCode::SERVICE_UNAVAILABLE, &Status { status: "degraded" })
    }
}

fn of_seat(seat: &Seat, health: bool) -> Response<Body> {
    let (open, point) = match fresh(seat) {
        Ok(fresh) => fresh,
        Err(Stale { why, age_s }) => return unreadable(&why, age_s, health),
    };
    let described = seat.described();
    let usage = open.card.usage();
    let memory = usage.total_mib.zip(usage.used_mib);
    let power = Power {
        gpu: seat.found.index,
        name: &described.seen.name,
        watts: (open.card.power_until(point).watts() * 1e3).round() / 1e3,
        memory_used_mib: usage.used_mib,
        memory_total_mib: usage.total_mib,
        memory_free_mib: memory.map(|(total, used)| total.saturating_sub(used)),
        utilization_pct: usage.utilization_pct,
        compute_apps: &described.apps,
    };
    json(StatusCode::OK, &power)
}

/// A card that cannot be read now, or has never been.
pub struct Stale {
    why: Why,
    age_s: Option<f64>,
}

/// A card, and its newest publish while that is fresh.
pub fn fresh(seat: &Seat) -> Result<(&Open, Point), Stale> {
    let cannot = |fault: Fault, words: &str, age_s| {
        let words = format!("gpu {} cannot be read ({fault}): {words}", seat.found.index);
        Stale { why: Why { fault, words }, age_s }
    };
    let open = seat.state.as_ref().map_err(|why| cannot(why.fault, &why.words, None))?;
    let point = open.card.fresh().map_err(|fault| {
        let age = open.card.read_ns().map(|read_ns| now_ns().saturating_sub(read_ns));
        let age_s = age.map(|age_ns| age_ns as f64 / 1e9);
        cannot(fault, crate::words::of_fault(fault), age_s)
    })?;
    Ok((open, point))
}

impl Stale {
    /// The answer that says so.
    pub fn answer(&self) -> Response<Body> {
        unreadable(&self.why, self.age_s, false)
    }
}

fn unreadable(why: &Why, age_s: Option<f64>, health: bool) -> Response<Body> {
    let age_s = age_s.map(|age_s| (age_s * 1e3).round() / 1e3);
    let status = health.then_some("degraded");
    let answer = Unreadable { status, error: &why.words, watts: None, age_s };
    json(StatusCode::SERVICE_UNAVAILABLE, &answer)
}

/// There is no card of this number.
pub fn absent(number: i128, listing: &Listing) -> Response<Body> {
    let error = format!("no gpu {number}");
    let detail = Some(listing.words());
    json(StatusCode::NOT_FOUND, &Refusal { error: &error, detail: detail.as_deref() })
}

impl Listing {
    /// Which cards there are, in words.
    pub fn words(&self) -> String {
        let numbers: Vec<String> =
            self.seats.iter().map(|seat| seat.found.index.to_string()).collect();
        match numbers.as_slice() {
            [] => "this host has no gpu".to_owned(),
            [only] => format!("this host has gpu {only}"),
            _ => format!("this host has gpus {}", numbers.join(", ")),
        }
    }

    /// Why it is not known which cards there are.
    pub fn why(&self) -> Why {
        self.unknown.clone().unwrap_or_else(|| Why {
            fault: Fault::Absent,
            words: "the default card is none of this host's".to_owned(),
        })
    }
}
