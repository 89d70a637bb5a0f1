use std::sync::Mutex;

use super::*;
use crate::remote::{Endpoint, State, Status};

#[test]
fn waits_grow_up_to_a_limit_and_differ() {
    for failures in 0..40 {
        let whole_ns = (FIRST_WAIT_NS << failures.min(7)).min(LONGEST_WAIT_NS);
        let wait_ns = wait_ns(failures);
        assert!((whole_ns * 3 / 4..=whole_ns * 5 / 4).contains(&wait_ns), "{failures}");
    }
    let waits: std::collections::BTreeSet<u64> = (0..50).map(|_| wait_ns(5)).collect();
    assert!(waits.len() > 10, "{waits:?}");
}

/// The link of a node that nobody connects to, and a client of it.
fn link() -> (Link, Client) {
    let endpoint = Endpoint::parse("http://127.0.0.1:1").unwrap();
    let timeout = Duration::from_millis(100);
    let client = Client::new(&endpoint, None, timeout).unwrap();
    let state = State {
        cards: Vec::new(),
        fresh: Vec::new(),
        listed: Vec::new(),
        interval: Duration::from_millis(250),
    };
    let status = Arc::new(Status::new(endpoint.as_str()));
    let remote = Remote { key: (endpoint, None), timeout, state: Mutex::new(state), status };
    (Link::new(Arc::new(remote)), client)
}

fn seen(gpu: u32, error: Option<&str>) -> serde_json::Value {
    serde_json::json!({
        "gpu": gpu, "uuid": format!("GPU-{gpu}{gpu}"), "pci": null, "name": "a card",
        "driver": null, "backend": "nvml_counter", "scope": "gpu", "counter": true, "gauge": true,
        "processes": true, "period_ms": 100.0, "lag_ms": null, "lag_uncertainty_ms": null,
        "quantum_joules": 0.001, "averaging_s": null, "limit_watts": null, "idle_watts": null,
        "idle_from": null, "up": error.is_none(), "error": error,
    })
}

fn publish(gpu: u32, t_ns: u64) -> serde_json::Value {
    serde_json::json!({
        "gpu": gpu, "boot_id": "life", "generation": 0, "t_ns": t_ns, "delta_ns": 1000,
        "energy_uj": 1, "watts": 70.0, "period_ms": 100.0,
    })
}

fn hear(
    link: &mut Link,
    client: &Client,
    name: &str,
    data: &serde_json::Value,
) -> Result<(), RemoteError> {
    let arrived_ns = now_ns();
    link.hear(client, &Event { name: name.into(), data: data.to_string(), arrived_ns })
}

/// A link that follows cards 0 and 1, of which the second cannot be read.
fn followed() -> (Link, Client, Vec<Arc<crate::Card>>) {
    let (mut link, client) = link();
    let remote = Arc::clone(&link.remote);
    let status = Arc::clone(&remote.status);
    let cards = ["0", "1"].map(|ask| remote.lock().card(ask, &status)).to_vec();
    link.clock.begin("life");
    let now = now_ns();
    link.trip(RoundTrip { asked_ns: now - 1000, heard_ns: now, other_ns: now });
    assert!(link.look().is_ok());
    for card in [seen(0, None), seen(1, Some("lost"))] {
        hear(&mut link, &client, event::CARD, &card).unwrap();
    }
    assert_eq!(cards[1].trouble(), Some(Fault::Lost));
    (link, client, cards)
}

#[test]
fn what_is_said_of_one_card_is_not_said_again_of_another() {
    let (mut link, client, cards) = followed();
    let before = cards[1].cost();
    hear(&mut link, &client, event::CARD, &seen(0, None)).unwrap();
    assert_eq!(cards[1].cost(), before, "nothing was asked of it");
    // It publishes again, and that is the newest that is known of it.
    hear(&mut link, &client, event::ENERGY, &publish(1, now_ns() - 1000)).unwrap();
    assert_eq!(cards[1].trouble(), None);
    hear(&mut link, &client, event::CARD, &seen(0, None)).unwrap();
    assert_eq!(cards[1].trouble(), None);
    // Nor to one that asks for it, or for another card, later.
    let remote = Arc::clone(&link.remote);
    let late = ["GPU-1", "7"].map(|ask| remote.lock().card(ask, &remote.status));
    assert!(link.look().is_ok());
    assert_ne!(late[0].trouble(), Some(Fault::Lost));
    assert_eq!((late[1].trouble(), cards[1].trouble()), (Some(Fault::Absent), None));
}

#[test]
fn publishes_from_before_a_hole_do_not_end_it() {
    let (mut link, client, cards) = followed();
    let from_ns = now_ns() - 2_000_000;
    hear(&mut link, &client, event::CARD, &seen(0, Some("lost"))).unwrap();
    let hole = serde_json::json!({ "gpu": 0, "from_ns": from_ns, "error": "lost" });
    hear(&mut link, &client, event::HOLE, &hole).unwrap();
    let before = cards[0].series().pushed();
    for t_ns in [from_ns - 1_000_000, from_ns] {
        hear(&mut link, &client, event::ENERGY, &publish(0, t_ns)).unwrap();
        assert_eq!(cards[0].trouble(), Some(Fault::Lost));
    }
    assert_eq!(cards[0].series().pushed(), before + 2, "they are publishes all the same");
    assert!(link.described.iter().any(|card| card.gpu == 0 && !card.up));
    hear(&mut link, &client, event::ENERGY, &publish(0, from_ns + 1_000_000)).unwrap();
    assert_eq!(cards[0].trouble(), None);
}

#[test]
fn another_card_under_a_number_is_not_the_one_that_was_asked_for_by_its_uuid() {
    let (mut link, client, _) = followed();
    let remote = Arc::clone(&link.remote);
    let card = remote.lock().card("GPU-00", &remote.status);
    assert!(link.look().is_ok());
    assert!(link.lanes.iter().any(|lane| lane.ask == "GPU-00" && lane.gpu == Some(0)));
    let mut other = seen(0, None);
    other["uuid"] = "GPU-99".into();
    hear(&mut link, &client, event::CARD, &other).unwrap();
    assert_eq!(card.trouble(), Some(Fault::Absent));
    let lane = |ask: &str| link.lanes.iter().find(|lane| lane.ask == ask).unwrap().gpu;
    assert_eq!((lane("GPU-00"), lane("0")), (None, Some(0)));
}

#[test]
fn a_node_of_endless_cards_is_none() {
    let (mut link, client, _) = followed();
    let heard =
        (0..2000).try_for_each(|gpu| hear(&mut link, &client, event::CARD, &seen(gpu, None)));
    assert!(heard.unwrap_err().to_string().contains("1,024 cards"));
    assert!(link.described.len() <= MOST_CARDS + 1);
}
