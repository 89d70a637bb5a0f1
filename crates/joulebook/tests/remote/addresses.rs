use joulebook::{Fault, Idle, Meter, MeterError, Method, Node, nvml::Fit};

use super::{
    agent::{Agent, Habit},
    bench::{Bench, in_time},
};

#[test]
fn an_address_that_is_none_never_raises_into_a_request() {
    for bad in
        ["", "iris", "http://", "https://iris:9402", "http://a b", "http://x:99999999", "\u{1}"]
    {
        let node = Node::at(bad, "0").idle_watts(70.0);
        assert!(Meter::for_node(&node).is_err(), "{bad:?}");
        let meter = Meter::for_node_or_none(&node);
        let mut window = meter.open();
        window.mark("stage");
        let measured = window.close().tokens(10).now();
        assert_eq!((measured.method, measured.error), (Method::Unknown, Some(Fault::Absent)));
        assert_eq!(joulebook::probe_node(&node), None);
        assert_eq!(joulebook::fits(&node, 1), Fit::Unknown);
    }
}

#[test]
fn cards_of_another_host_are_not_looked_for_here() {
    let nowhere = Node { is_local: false, ..Node::of("0") };
    assert!(matches!(Meter::for_node(&nowhere), Err(MeterError::NoEndpoint)));
    let none = Node { gpus: Vec::new(), ..Node::at("http://127.0.0.1:1", "0") };
    assert!(matches!(Meter::for_node(&none), Err(MeterError::NoneAsked)));
    let floor = Node { idle: Idle::Sum(f64::NAN), ..Node::at("http://127.0.0.1:1", "0") };
    assert!(matches!(Meter::for_node(&floor), Err(MeterError::Idle(_))));
}

#[test]
fn the_endpoint_stands_in_where_this_host_cannot_read_its_own_cards() {
    let program = joulebook::smi::Program::default();
    if joulebook::nvml::Driver::shared().check().is_ok() || program.path().exists() {
        println!("skipped: this host can read its own cards");
        return;
    }
    let bench = Bench::new();
    let agent = Agent::of(&bench.card);
    let node = Node { is_local: true, ..agent.node() };
    let meter = super::agent::meter(&node);
    assert_eq!(meter.cards()[0].device().backend, joulebook::Backend::RemoteAgent);
    // What was asked for wrongly is no reason to ask elsewhere.
    let wrong = Node { idle: Idle::Sum(-1.0), ..node };
    assert!(matches!(Meter::for_node(&wrong), Err(MeterError::Idle(_))));
}

#[test]
fn the_state_of_a_remote_card_has_the_shape_of_a_local_one() {
    let bench = Bench::new();
    let agent = Agent::of(&bench.card);
    let node = agent.node();
    let state = joulebook::probe_node(&node).unwrap();
    assert_eq!((state.gpu, state.memory_free_mib), (Some(0), Some(900)));
    assert_eq!(state.compute_apps, None, "nobody listed is not nobody there");
    assert_eq!(joulebook::fits(&node, 900), Fit::Yes);
    let short = Fit::No { short_by_mib: 100, held_by: Vec::new() };
    assert_eq!(joulebook::fits(&node, 1000), short);
    let by_uuid = Node::at(agent.endpoint(), "GPU-5a5a");
    assert!(joulebook::probe_node(&by_uuid).is_some());
    assert_eq!(joulebook::probe_node(&Node::at(agent.endpoint(), "GPU-none")), None);
    for habit in [Habit::Hangs, Habit::Garbage, Habit::Gone, Habit::Locked] {
        agent.hand.is(habit);
        let node = Node { timeout: std::time::Duration::from_millis(300), ..node.clone() };
        assert_eq!(in_time(move || joulebook::probe_node(&node)), None, "{habit:?}");
    }
}
