//! The stream: one event for each publish, whatever else happens.

use std::{io::Write, thread, time::Duration};

use serde_json::{Value, json};

use super::{
    bench::{Bench, number},
    client::{Events, connect},
    server::{Serving, until},
};

fn until_event(events: &mut Events, name: &str) -> Value {
    let found = events.find(|(event, _)| event == name);
    found.unwrap_or_else(|| panic!("the stream ended before {name}")).1
}

#[test]
fn it_begins_with_all_there_is_and_goes_on_with_each_publish() {
    let bench = Bench::with(
        "card 0\nidle 300\ncounter period_ms=50\nproc 0 inf 41 12000 /usr/bin/vllm\nproc 2.5 inf 43 999 /usr/bin/other\n\
         card 1\nidle 55\ncounter period_ms=50\n",
    );
    let serving = Serving::on(&bench, &["--name", "iris"]);
    let mut events = Events::open(serving.address, "/v1/cards/stream");
    let (event, hello) = events.next().unwrap();
    assert_eq!((event.as_str(), &hello["node"]), ("hello", &json!("iris")));
    let beginning: Vec<(String, Value)> = events.by_ref().take(6).collect();
    let of = |gpu: u32| {
        let own = beginning.iter().filter(|(_, data)| data["gpu"] == json!(gpu));
        own.map(|(event, _)| event.as_str()).collect::<Vec<_>>()
    };
    for gpu in [0, 1] {
        assert_eq!(of(gpu), ["card", "tenancy", "energy"], "{beginning:?}");
    }
    let who =
        &beginning.iter().find(|(event, data)| event == "tenancy" && data["gpu"] == 0).unwrap().1;
    assert_eq!(who["processes"][0]["pid"], 41);

    // Of card 0: every publish once, in order, with its energy; then a tenant comes.
    let mut last = beginning
        .iter()
        .find(|(event, data)| event == "energy" && data["gpu"] == 0)
        .unwrap()
        .1
        .clone();
    let (mut count, mut came) = (0, false);
    for (event, data) in events.by_ref().filter(|(_, data)| data["gpu"] == 0) {
        match event.as_str() {
            "energy" => {
                let (t_ns, uj) = (number(&data, "t_ns"), number(&data, "energy_uj"));
                assert!(
                    t_ns > number(&last, "t_ns") && uj > number(&last, "energy_uj"),
                    "{last} {data}"
                );
                assert_eq!(data["boot_id"], hello["boot_id"]);
                last = data;
                count += 1;
            }
            "tenancy" => {
                came |= data["processes"].as_array().unwrap().iter().any(|it| it["pid"] == 43)
            }
            _ => {}
        }
        if count >= 40 && came {
            break;
        }
    }
    assert!(came, "a tenant's coming was told");
}

#[test]
fn a_hole_is_told_once_and_ends_with_the_next_publish() {
    let bench = Bench::with("card 0\nidle 300\ncounter period_ms=20\nfault 1.5 4 all lost\n");
    let serving = Serving::on(&bench, &[]);
    let mut events = Events::open(serving.address, "/v1/cards/stream");
    let hole = until_event(&mut events, "hole");
    assert_eq!((&hole["gpu"], &hole["error"]), (&json!(0), &json!("lost")));
    let mut clocks = 0;
    let back = loop {
        let (event, data) = events.next().unwrap();
        match event.as_str() {
            "hole" => panic!("told twice"),
            "clock" => clocks += 1,
            "energy" => break data,
            _ => {}
        }
    };
    assert!(clocks > 0, "the connection is known to live meanwhile");
    assert!(number(&back, "t_ns") > number(&hole, "from_ns"));
    assert!(back["flags"].as_array().unwrap().contains(&json!("hole")), "{back}");
    // The first publish behind it is not yet one of now.
    let card = loop {
        let card = until_event(&mut events, "card");
        if card["up"] == json!(true) {
            break card;
        }
    };
    assert_eq!(card["error"], Value::Null);
}

#[test]
fn a_hole_without_a_beginning_is_one_of_a_card_that_was_never_read() {
    let bench = Bench::with("card 0\nidle 300\ncounter period_ms=20\nfault 0 inf energy unknown\n");
    let serving = Serving::on(&bench, &[]);
    let mut events = Events::open(serving.address, "/v1/cards/stream");
    let hole = until_event(&mut events, "hole");
    assert_eq!((&hole["gpu"], &hole["from_ns"]), (&json!(0), &Value::Null), "{hole}");
}

#[test]
fn who_comes_back_is_sent_what_came_meanwhile() {
    let bench = Bench::with("card 0\nidle 300\ncounter period_ms=20\n");
    let serving = Serving::on(&bench, &[]);
    let mut first = Events::open(serving.address, "/v1/cards/stream");
    let seen = until_event(&mut first, "energy");
    let times = |events: &mut Events, most: usize| -> Vec<Value> {
        let energies = events.filter(|(event, _)| event == "energy").take(most);
        energies.map(|(_, data)| data["t_ns"].clone()).collect()
    };
    let all = times(&mut first, 8);
    let address = |boot_id: &str| {
        let since = seen["t_ns"].as_u64().unwrap();
        format!("/v1/cards/stream?boot_id={boot_id}&since_ns={since}")
    };
    let mut again = Events::open(serving.address, &address(seen["boot_id"].as_str().unwrap()));
    assert_eq!(times(&mut again, 8), all, "the same publishes");
    // Of another life it begins anew.
    let mut other = Events::open(serving.address, &address("another"));
    assert!(times(&mut other, 1)[0].as_u64() >= all[7].as_u64());
}

#[test]
fn a_client_that_does_not_read_costs_nothing_and_misses_nothing() {
    let bench = Bench::with("card 0\nidle 300\ncounter period_ms=20\n");
    let serving = Serving::on(&bench, &[]);
    let mut idle: Vec<_> = (0..50).map(|_| connect(serving.address)).collect();
    for stream in &mut idle {
        stream.write_all(b"GET /v1/cards/stream HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
    }
    let streams = |number: &str| {
        let page = serving.get("/metrics").body;
        page.lines()
            .any(|line| line.starts_with("joulebook_agent_streams") && line.ends_with(number))
    };
    until(|| streams(" 50.0").then_some(()));
    let mut slow = Events::open(serving.address, "/v1/cards/stream");
    let before = serving.resident_kib();
    thread::sleep(Duration::from_secs(3));
    assert!(serving.resident_kib() < before + 4096, "{before} KiB before");
    let energies = slow.by_ref().filter(|(event, _)| event == "energy").take(20);
    let uj: Vec<f64> = energies.map(|(_, data)| number(&data, "energy_uj")).collect();
    assert!(uj.windows(2).all(|pair| pair[0] < pair[1]), "{uj:?}");
    // Those who went are gone.
    drop((idle, slow));
    until(|| streams(" 0.0").then_some(()));
}
