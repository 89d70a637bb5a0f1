use std::{sync::Arc, sync::atomic::Ordering, thread, time::Duration};

use joulebook::{
    Backend, Meter, Method, Node, Source,
    books::{Books, BooksError, Labels, Settings, Usage},
    core::{Flags, estimate::Rule},
};

use super::{
    agent::{Agent, follows, meter, nobody},
    bench::{Bench, Moment, REST_W, block_on, eventually, holds},
};

const LONG: Duration = Duration::from_secs(20);

#[test]
fn a_window_on_a_remote_card_is_a_counters_and_settles_by_the_same_rules() {
    for ahead_s in [0, 3, -3] {
        let bench = Bench::new();
        let agent = Agent::of(&bench.card);
        agent.hand.ahead_ns.store(ahead_s * 1_000_000_000, Ordering::SeqCst);
        agent.hand.residents(nobody());
        let meter = agent.meter();
        let (opened, mut window) = Moment::of(|| meter.open());
        bench.works(400.0, 150);
        window.mark("prefill");
        bench.works(250.0, 200);
        let (closed, pending) = Moment::of(|| window.close());
        let at_once = pending.now();
        holds(&bench, &at_once, opened, closed);
        for settled in [pending.settle(LONG), block_on(pending)] {
            assert_eq!((settled.method, settled.settled), (Method::Sampled, true), "{settled:?}");
            assert_eq!((settled.source, settled.backend), (Source::Remote, "remote_agent"));
            assert!(matches!(settled.rule, Some(Rule::Alone | Rule::Shared)), "{settled:?}");
            assert!(!settled.flags.intersects(Flags::CLOCK_SKEW | Flags::HOLE), "{settled:?}");
            assert_eq!(settled.stages.len(), 1);
            holds(&bench, &settled, opened, closed);
        }
        let card = &meter.cards()[0];
        let device = card.device();
        assert_eq!((device.backend, device.uuid.as_str()), (Backend::RemoteAgent, "GPU-5a5a"));
        let now = card.connection().unwrap().now();
        let offset = now.offset.unwrap();
        let error_ns = offset.offset_ns.abs_diff(-ahead_s * 1_000_000_000);
        assert!(error_ns <= offset.uncertainty_ns, "{error_ns} ns off: {offset:?}");
        assert_eq!((now.node.as_deref(), now.streams), (Some("iris"), true));
    }
}

#[test]
fn one_connection_a_node_serves_all_windows_meters_and_names_of_a_card() {
    let bench = Bench::new();
    let agent = Agent::of(&bench.card);
    let first = agent.meter();
    let by_uuid = meter(&Node::at(agent.endpoint(), "GPU-5a5a").idle_watts(REST_W));
    let by_address = meter(&Node::at(agent.endpoint() + "/", "18:00.0").idle_watts(REST_W));
    for other in [&by_uuid, &by_address] {
        assert!(Arc::ptr_eq(&first.cards()[0], &other.cards()[0]));
    }
    let windows: Vec<_> = (0..200).map(|_| first.open()).collect();
    bench.works(300.0, 60);
    let pending: Vec<_> = windows.into_iter().map(joulebook::Window::close).collect();
    assert!(pending.iter().all(|pending| pending.settle(LONG).gross_joules.is_some()));
    // The stream's, and the one that asks the clock; that may have to be made anew.
    assert!(agent.hand.connections.load(Ordering::SeqCst) <= 4);
    let asked = agent.hand.paths.lock().unwrap().clone();
    assert_eq!(asked.iter().filter(|path| path.contains("stream")).count(), 1, "{asked:?}");
}

#[test]
fn a_floor_that_is_not_declared_is_the_agents_with_its_provenance() {
    let bench = Bench::new();
    let agent = Agent::of(&bench.card);
    let node = Node::at(agent.endpoint(), "0");
    let meter = Meter::for_node(&node).unwrap();
    assert_eq!(meter.idle_watts(), None, "not known yet");
    follows(&meter);
    assert_eq!(meter.idle_watts(), Some(REST_W));
    assert_eq!(meter.cards()[0].told().unwrap().idle_from.as_deref(), Some("declared"));
    let window = meter.open();
    bench.works(400.0, 150);
    let settled = window.close().settle(LONG);
    assert_eq!((settled.method, settled.idle_watts), (Method::Sampled, Some(REST_W)));
}

#[test]
fn windows_and_books_over_cards_of_several_nodes_add_up() {
    let (one, other) = (Bench::new(), Bench::new());
    let (near, far) = (Agent::of(&one.card), Agent::of(&other.card));
    far.hand.ahead_ns.store(-3_000_000_000, Ordering::SeqCst);
    let named = |agent: &Agent, name: &str| Node { name: name.into(), ..agent.node() };
    let meters = [meter(&named(&near, "iris")), meter(&named(&far, "juno"))];
    let meter = Meter::joined(&meters);
    assert_eq!(meter.idle_watts(), Some(2.0 * REST_W));
    let books = Books::of(&meter, Settings::default()).unwrap();

    let mut ticket = books.open(&Labels::default());
    ticket.admitted();
    let (opened, window) = Moment::of(|| meter.open());
    one.draws(400.0);
    other.works(200.0, 150);
    one.draws(REST_W);
    ticket.tokens(10);
    let (closed, pending) = Moment::of(|| window.close());
    let receipt = ticket.close(Usage::default());

    let settled = pending.settle(LONG);
    let (gross_j, bound_j) = (settled.gross_joules.unwrap(), settled.bound_joules.unwrap());
    let truth_j = |bench: &Bench| bench.truth_j(opened.after_ns, closed.before_ns);
    let truth_j = truth_j(&one) + truth_j(&other);
    assert!((gross_j - truth_j).abs() <= bound_j + 0.5, "{truth_j} J is not {settled:?}");
    assert_eq!((settled.source, settled.method), (Source::Remote, Method::Sampled));

    let receipt = receipt.settle(LONG);
    assert_eq!(receipt.source, Source::Remote, "{receipt:?}");
    assert!(receipt.joules.is_some_and(|joules| joules > 0.0), "{receipt:?}");
    let trial = books.trial_balance().unwrap();
    let names: Vec<_> = trial.cards.iter().map(|card| card.card.as_str()).collect();
    assert_eq!(names, ["iris/GPU-5a5a", "juno/GPU-5a5a"]);
    assert!(trial.balances());
}

#[test]
fn a_card_asked_for_in_two_ways_has_one_book() {
    let bench = Bench::new();
    let agent = Agent::of(&bench.card);
    let uuid = "GPU-5a5a";
    // Both are asked for before the agent has told that they are one.
    let node = Node { gpus: vec!["0".to_owned(), uuid.to_owned()], ..agent.node() };
    let both = meter(&node);
    assert_eq!(both.cards().len(), 2);
    eventually(|| both.cards().iter().all(|card| card.device().uuid == uuid));
    let open = |number: usize| {
        let meter = Meter::of_cards(&agent.node(), vec![Arc::clone(&both.cards()[number])]);
        Books::of(&meter, Settings::default())
    };
    for (first, second) in [(0, 1), (1, 0)] {
        let books = open(first).unwrap();
        assert!(matches!(open(second), Err(BooksError::Kept { .. })), "{first} {second}");
        books.close();
        assert!(open(second).is_ok(), "{first} {second}");
    }
}

#[test]
fn a_node_is_let_go_only_when_nobody_holds_its_cards() {
    let bench = Bench::new();
    let agent = Agent::of(&bench.card);
    for _ in 0..5 {
        // As a gateway does that makes a meter for each request.
        let meter = agent.meter();
        let window = meter.open();
        bench.works(300.0, 40);
        assert!(window.close().settle(LONG).gross_joules.is_some());
        thread::sleep(Duration::from_millis(30));
    }
    assert!(agent.hand.connections.load(Ordering::SeqCst) <= 4);
    eventually(|| agent.hand.requests.load(Ordering::SeqCst) >= 4);
}
