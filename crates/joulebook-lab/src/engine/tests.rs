use super::*;
use crate::load::Live;

fn settings(arrivals: Arrivals, mix: Mix) -> Settings {
    Settings { arrivals, mix, at_least_ns: 60_000_000_000, ended: 50, ..Settings::default() }
}

/// Joules above idle and foreign power, by the cards, less what all requests truly cost.
fn unexplained(run: &Run, foreign_joules: f64) -> f64 {
    let drawn: f64 = run.curves.iter().map(|curve| curve.joules(run.end_ns)).sum();
    let idle = 70.0 * run.end_ns as f64 / 1e9 * run.curves.len() as f64;
    let truth: f64 = run.requests.iter().map(|request| request.truth.joules()).sum();
    drawn - idle - foreign_joules - truth
}

#[test]
fn the_truth_of_all_requests_is_what_the_cards_drew() {
    let foreign = Foreign {
        card: 1,
        pid: 77,
        used_mib: 4000,
        start_ns: 10_123_456_789,
        end_ns: 40_000_000_001,
        watts: 150.0,
    };
    let cancels = Cancels { share: 0.3, patience_s: 2.0, retries: 0.5, pause_s: 1.0 };
    assert!(foreign.resident().span.contains(foreign.start_ns));
    assert!(!foreign.resident().span.contains(foreign.end_ns));
    for arrivals in [Arrivals::Poisson(4.0), Arrivals::Bursty(4.0), Arrivals::Closed(8)] {
        let run = Engine::run(Settings {
            cards: vec![0.7, 0.3],
            foreign: vec![foreign.clone()],
            cancels: Some(cancels),
            prefix_cache: Some(PrefixCache { hits: 0.5, share: 0.8 }),
            ..settings(arrivals, Mix::Mixed)
        });
        let others = 150.0 * (foreign.end_ns - foreign.start_ns) as f64 / 1e9;
        let left = unexplained(&run, others);
        assert!(left.abs() < 1e-4, "{arrivals:?}: {left} J");
        let cancelled = |it: &&Request| it.status == Status::Cancelled;
        assert!(run.requests.iter().filter(cancelled).count() > 5);
        assert!(run.requests.iter().any(|it| it.parent.is_some() && it.cached_tokens > 0));
        assert!(run.requests.iter().all(|it| it.status != Status::Open));
    }
}

#[test]
fn the_same_seed_is_the_same_run_and_another_is_not() {
    let of = |seed| {
        Engine::run(Settings { seed, ..settings(Arrivals::Poisson(2.0), Mix::Mixed) }).requests
    };
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
}

#[test]
fn a_request_alone_costs_its_formulas() {
    let mut engine = Engine::new(Settings { arrivals: Arrivals::None, ..Settings::default() });
    let job = Job {
        prompt_tokens: 3000,
        cached_tokens: 500,
        answer_tokens: 11,
        patience_ns: None,
        parent: None,
    };
    engine.submit(1_000, job);
    let mut events = Vec::new();
    while engine.step(&mut events) {}
    let run = engine.finish();
    let request = &run.requests[0];
    // 2,048 and 452 tokens, then ten steps of one sequence.
    let prefill_ns = 2500 * 32_000;
    let first_ns = 1_000 + prefill_ns;
    assert_eq!(request.admitted_ns, Some(1_000));
    assert_eq!(request.emissions[0].t_ns, first_ns);
    assert_eq!(request.ended_ns, Some(first_ns + 10 * 6_480_000));
    let close = |left: f64, right: f64| assert!((left - right).abs() < 1e-9, "{left} {right}");
    close(request.truth.prefill_joules, 0.08 * 620.0);
    close(request.truth.decode_joules, 10.0 * Hardware::default().decode_joules(1));
    let power: Vec<i64> = run.curves[0].changes().iter().map(|change| change.t_ns).collect();
    assert_eq!(power, [0, 1_000, first_ns, first_ns + 10 * 6_480_000]);
    assert!(events.is_sorted_by_key(|event| event.t_ns));
}

#[test]
fn prompts_are_served_first_come_first_served() {
    let run = Engine::run(settings(Arrivals::Poisson(8.0), Mix::Mixed));
    let admitted: Vec<_> = run.requests.iter().map(|it| it.admitted_ns).collect();
    assert!(admitted.is_sorted());
    let first: Vec<i64> = run.requests.iter().map(|it| it.emissions[0].t_ns).collect();
    assert!(first.is_sorted());
}

#[test]
fn a_closed_loop_has_exactly_so_many_in_flight() {
    let run = Engine::run(settings(Arrivals::Closed(7), Mix::Chat));
    let mean = run.mean_in_flight();
    assert!((mean - 7.0).abs() < 1e-9, "{mean}");
}

#[test]
fn never_more_sequences_than_the_engine_has() {
    let hardware = Hardware { sequences: 4, ..Hardware::default() };
    let mut engine =
        Engine::new(Settings { hardware, ..settings(Arrivals::Poisson(6.0), Mix::Chat) });
    let mut events = Vec::new();
    let mut most = 0;
    while engine.step(&mut events) {
        most = most.max(engine.decoding.len() + engine.prefilling.len());
    }
    assert_eq!(most, 4);
}

#[test]
fn events_say_what_the_requests_say() {
    let cancels = Cancels { share: 0.5, patience_s: 1.0, retries: 1.0, pause_s: 0.5 };
    let mut engine = Engine::new(Settings {
        cancels: Some(cancels),
        ..settings(Arrivals::Poisson(4.0), Mix::Chat)
    });
    let mut events = Vec::new();
    let mut last_ns = 0;
    while engine.step(&mut events) {
        let step_ns = events.last().map_or(last_ns, |event| event.t_ns);
        assert!(step_ns >= last_ns);
        last_ns = step_ns;
    }
    assert!(events.is_sorted_by_key(|event| event.t_ns));
    let run = engine.finish();
    for request in &run.requests {
        let of = |event: &&Event| match event.kind {
            Kind::Arrived { request: id, .. }
            | Kind::Admitted { request: id }
            | Kind::Tokens { request: id, .. }
            | Kind::Ended { request: id, .. } => id == request.id,
            Kind::Power { .. } => false,
        };
        let seen: Vec<&Event> = events.iter().filter(of).collect();
        assert_eq!(seen[0].t_ns, request.arrived_ns);
        let ended = seen.last().expect("it ended");
        assert_eq!(Some(ended.t_ns), request.ended_ns);
        assert_eq!(ended.kind, Kind::Ended { request: request.id, status: request.status });
        let tokens = seen.iter().filter(|it| matches!(it.kind, Kind::Tokens { .. })).count();
        assert_eq!(tokens as u64, request.answer_tokens());
    }
}

#[test]
fn a_card_of_the_lab_follows_the_curve_both_ways() {
    use std::sync::Arc;

    use crate::{Load, scenario::Card};

    let run = Engine::run(settings(Arrivals::Poisson(2.0), Mix::Mixed));
    let curve = &run.curves[0];
    let live = Card { dynamic: true, ..Card::default() };
    let live = Load::new(&live, Some(Arc::new(curve.clone())));
    let knots = Load::new(&Card { knots: curve.knots(), ..Card::default() }, None);
    for t_ns in (0..run.end_ns).step_by(777_777_777) {
        let exact = curve.joules(t_ns);
        assert!((live.joules(t_ns) - exact).abs() < 1e-6, "{t_ns}");
        assert!((knots.joules(t_ns) - exact).abs() < 1e-6, "{t_ns}");
        assert_eq!(live.watts(t_ns), curve.last_at(t_ns).expect("it began at 0").watts);
    }
}
