//! Which path answers what.

use std::sync::{Arc, atomic::Ordering};

use axum::{
    Extension, Router,
    body::Body,
    extract::{Path, State},
    routing::get,
};
use futures_util::stream;
use http::{HeaderMap, Response, StatusCode, Uri, header};
use joulebook::wire::Cards;

use super::{
    Agent,
    answer::{json, refuse, with},
    connections::Presence,
    dcgm, metrics, power,
    query::{self, integer},
    stream::{Stream, energy},
};

/// What is said of a path that is none.
const PATHS: &str = "try /power or /healthz, /v1/cards, /v1/cards/N/energy, /v1/cards/stream, \
                     /v1/clock, /metrics or /dcgm/metrics";

type Told = Response<Body>;
type Agents = State<Arc<Agent>>;

/// The agent's paths.
pub fn routes(agent: &Arc<Agent>) -> Router {
    let dcgm = || get(async |State(agent): Agents| page(dcgm::page(&agent)));
    let clock = async |State(agent): Agents| json(StatusCode::OK, &agent.clock());
    Router::new()
        .route(
            "/power",
            get(async |State(agent): Agents, uri: Uri| power::power(&agent, uri.query(), false)),
        )
        .route(
            power::HEALTH,
            get(async |State(agent): Agents, uri: Uri| power::power(&agent, uri.query(), true)),
        )
        .route("/v1/cards", get(cards))
        .route("/v1/cards/{gpu}/energy", get(energy_now))
        .route("/v1/cards/stream", get(events))
        .route("/v1/clock", get(clock))
        .route("/metrics", get(usual))
        .route("/metrics/joulebook", get(ours))
        // As dcgm-exporter would be addressed by a tool that adds /metrics itself, and beside ours.
        .route("/dcgm/metrics", dcgm())
        .route("/metrics/dcgm", dcgm())
        .fallback(async || refuse(StatusCode::NOT_FOUND, PATHS))
        .with_state(Arc::clone(agent))
}

async fn cards(State(agent): Agents) -> Told {
    let listing = agent.roster.now();
    if let Some(why) = &listing.unknown {
        return refuse(StatusCode::SERVICE_UNAVAILABLE, &why.words);
    }
    let seen = listing.seats.iter().map(|seat| seat.described().seen.clone());
    let cards = Cards {
        agent: agent.words(),
        node: agent.node.clone(),
        boot_id: agent.boot_id.clone(),
        cards: seen.collect(),
    };
    json(StatusCode::OK, &cards)
}

async fn energy_now(State(agent): Agents, Path(gpu): Path<String>) -> Told {
    let Some(number) = integer(&gpu) else {
        return refuse(StatusCode::BAD_REQUEST, "gpu must be an integer");
    };
    let listing = agent.roster.now();
    if let Some(why) = &listing.unknown {
        return refuse(StatusCode::SERVICE_UNAVAILABLE, &why.words);
    }
    let Some(seat) = u32::try_from(number).ok().and_then(|index| listing.seat(index)) else {
        return power::absent(number, &listing);
    };
    match power::fresh(seat) {
        Ok((open, point)) => {
            let generation = open.card.tally().resets;
            json(StatusCode::OK, &energy(&agent, seat, &point, generation))
        }
        Err(stale) => stale.answer(),
    }
}

async fn events(
    State(agent): Agents,
    Extension(presence): Extension<Arc<Presence>>,
    uri: Uri,
) -> Told {
    let asked = |name| uri.query().and_then(|query| query::value(query, name));
    let same = asked("boot_id").is_some_and(|boot_id| boot_id == agent.boot_id);
    let since_ns = asked("since_ns").and_then(|text| text.parse().ok()).filter(|_| same);
    let stream = Stream::new(&agent, agent.draining.subscribe(), since_ns, presence.busy());
    let pieces = stream::unfold(stream, async |mut stream| {
        let piece = stream.next().await?;
        Some((Ok::<_, std::convert::Infallible>(piece), stream))
    });
    with(StatusCode::OK, "text/event-stream", Body::from_stream(pieces))
}

/// Ours, or dcgm-exporter's names alone where that was wanted: what reads those takes a card's labels
/// from the first line that has a gpu.
async fn usual(State(agent): Agents, headers: HeaderMap) -> Told {
    if agent.dcgm { page(dcgm::page(&agent)) } else { ours(State(agent), headers).await }
}

async fn ours(State(agent): Agents, headers: HeaderMap) -> Told {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    let form = metrics::Form::accepted(accept);
    with(StatusCode::OK, form.kind(), metrics::page(&agent, form))
}

fn page(text: String) -> Told {
    with(StatusCode::OK, metrics::Form::Text.kind(), text)
}

/// Counts an answer by its status.
pub fn counted(agent: &Agent, response: &Told) {
    let counts = &agent.counts;
    let counter = match response.status().as_u16() {
        ..400 => &counts.answered,
        400..500 => &counts.refused,
        _ => &counts.unreadable,
    };
    counter.fetch_add(1, Ordering::Relaxed);
}
