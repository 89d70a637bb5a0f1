use std::{net::TcpListener, sync::atomic::Ordering, thread, time::Duration};

use joulebook::{Fault, Meter, Method, Node, Source, core::Flags};

use super::{
    agent::{Agent, Habit, at, follows, meter},
    bench::{Bench, Moment, eventually, holds, in_time},
};

const LONG: Duration = Duration::from_secs(20);

/// A window over `meanwhile`, settled, which must not take for ever; and it must lie within its
/// bound where it is a figure.
fn window(
    bench: &Bench,
    meter: &Meter,
    meanwhile: impl FnOnce(),
) -> (joulebook::Measurement, Moment, Moment) {
    let (opened, window) = Moment::of(|| meter.open());
    bench.works(400.0, 60);
    meanwhile();
    bench.works(300.0, 60);
    let (closed, pending) = Moment::of(|| window.close());
    let settled = in_time(move || pending.settle(LONG));
    if settled.gross_joules.is_some() {
        holds(bench, &settled, opened, closed);
    }
    (settled, opened, closed)
}

#[test]
fn a_node_that_goes_away_costs_measurements_and_comes_back() {
    for (habit, word) in [(Habit::Gone, Fault::AccessLost), (Habit::Hangs, Fault::Timeout)] {
        let bench = Bench::new();
        let agent = Agent::of(&bench.card);
        let meter = agent.meter();
        agent.hand.is(habit);
        eventually(|| meter.cards()[0].trouble() == Some(word));
        let (gone, ..) = window(&bench, &meter, || {});
        assert_eq!((gone.method, gone.error), (Method::Unknown, Some(word)), "{gone:?}");
        assert_eq!((gone.source, gone.joules), (Source::Remote, None));
        assert_eq!(meter.power(), None, "what it drew is not what it draws");
        // A window that sees it go and come back is spanned by the counter.
        let (spanned, ..) = window(&bench, &meter, || {
            agent.hand.is(Habit::Good);
            follows(&meter);
        });
        assert!(spanned.gross_joules.is_some(), "{spanned:?}");
        let (good, ..) = window(&bench, &meter, || {});
        assert_eq!(good.method, Method::Sampled, "{good:?}");
    }
}

#[test]
fn what_came_while_the_connection_was_lost_is_asked_for() {
    let bench = Bench::new();
    let agent = Agent::of(&bench.card);
    let meter = agent.meter();
    let card = &meter.cards()[0];
    let (spanned, ..) = window(&bench, &meter, || {
        agent.hand.is(Habit::Gone);
        eventually(|| card.connection().is_some_and(|status| !status.now().streams));
        bench.pass(5);
        agent.hand.is(Habit::Good);
        follows(&meter);
    });
    assert!(spanned.gross_joules.is_some(), "{spanned:?}");
    assert!(!spanned.flags.contains(Flags::HOLE), "nothing was missed: {spanned:?}");
    let asked = agent.hand.paths.lock().unwrap().clone();
    assert!(asked.iter().any(|path| path.contains("boot_id=life-1&since_ns=")), "{asked:?}");
}

#[test]
fn energy_of_two_lives_is_never_subtracted() {
    // The next life's total may be less, a little more or far more than the last one's.
    for base_uj in [0, 60_000_000, 1_000_000_000_000] {
        let bench = Bench::new();
        let agent = Agent::of(&bench.card);
        let meter = agent.meter();
        let (torn, opened, closed) = window(&bench, &meter, || {
            agent.hand.reborn("life-2", base_uj);
            // Its clock is another one, too.
            agent.hand.ahead_ns.store(-1_800_000_000_000, Ordering::SeqCst);
            follows(&meter);
        });
        assert_eq!((torn.method, torn.error), (Method::Unknown, Some(Fault::CounterReset)));
        assert!(torn.flags.contains(Flags::COUNTER_RESET | Flags::GAP), "{torn:?}");
        let truth_j = bench.truth_j(opened.before_ns, closed.after_ns);
        assert!(torn.lower_bound_joules.is_none_or(|least| least <= truth_j + 0.01), "{torn:?}");
        let (good, ..) = window(&bench, &meter, || {});
        assert_eq!((good.method, good.flags.contains(Flags::GAP)), (Method::Sampled, false));
    }
}

#[test]
fn a_series_that_began_anew_on_its_own_host_is_no_figure_here() {
    let bench = Bench::new();
    let agent = Agent::of(&bench.card);
    let meter = agent.meter();
    let (torn, ..) = window(&bench, &meter, || {
        agent.hand.restarts();
        follows(&meter);
    });
    assert_eq!((torn.method, torn.error), (Method::Unknown, Some(Fault::CounterReset)));
    let (good, ..) = window(&bench, &meter, || {});
    assert_eq!(good.method, Method::Sampled, "{good:?}");
}

#[test]
fn another_card_under_the_same_number_is_another_card() {
    let bench = Bench::new();
    let agent = Agent::of(&bench.card);
    let meter = agent.meter();
    let (torn, ..) = window(&bench, &meter, || {
        agent.hand.swapped.fetch_add(1, Ordering::SeqCst);
        follows(&meter);
    });
    assert_eq!((torn.method, torn.error), (Method::Unknown, Some(Fault::Gap)), "{torn:?}");
    assert_eq!(meter.cards()[0].device().uuid, "GPU-1");
    let (good, ..) = window(&bench, &meter, || {});
    assert_eq!(good.method, Method::Sampled, "{good:?}");
}

#[test]
fn a_clock_that_is_moved_is_marked_and_no_window_leaves_its_bound() {
    for jump_ms in [3000, -3000, 400] {
        let bench = Bench::new();
        let agent = Agent::of(&bench.card);
        let meter = agent.meter();
        let card = &meter.cards()[0];
        let (pushed, refused) = (card.series().pushed(), card.cost().rejected);
        let (moved, ..) = window(&bench, &meter, || {
            agent.hand.ahead_ns.store(jump_ms * 1_000_000, Ordering::SeqCst);
            follows(&meter);
        });
        assert!(moved.flags.contains(Flags::CLOCK_SKEW), "{jump_ms} ms: {moved:?}");
        // The publish that looked odd waited for the clock to be asked: none is lost or ill placed.
        assert_eq!(card.cost().rejected, refused, "{jump_ms} ms");
        let points = (pushed..card.series().pushed()).filter_map(|it| card.series().point(it));
        let worst_ns = points.map(|point| point.uncertainty_ns).max().unwrap();
        assert!(worst_ns < 300_000_000, "{jump_ms} ms: {worst_ns} ns");
        for _ in 0..3 {
            let (good, ..) = window(&bench, &meter, || {});
            assert_eq!(good.method, Method::Sampled, "{good:?}");
            assert!(!good.flags.contains(Flags::CLOCK_SKEW), "{good:?}");
        }
    }
}

#[test]
fn nonsense_costs_measurements_alone() {
    for habit in [Habit::Garbage, Habit::Endless, Habit::Tomorrow, Habit::Drips] {
        let bench = Bench::new();
        let agent = Agent::of(&bench.card);
        let meter = agent.meter();
        let card = &meter.cards()[0];
        agent.hand.is(habit);
        eventually(|| card.trouble().is_some());
        let newest = card.series().newest().unwrap();
        assert!(newest.at_ns <= joulebook::clock::now_ns(), "no point is yet to come: {newest:?}");
        // Each time it is asked anew a publish comes before the nonsense; of a window that has met that
        // one its own length may be the word.
        let none = loop {
            let pushed = card.series().pushed();
            let (none, ..) = window(&bench, &meter, || {});
            assert_eq!(none.method, Method::Unknown, "{habit:?}: {none:?}");
            if card.series().pushed() == pushed {
                break none;
            }
        };
        let words = [Fault::MalformedRow, Fault::Timeout, Fault::ClockStep, Fault::AccessLost];
        assert!(none.error.is_some_and(|word| words.contains(&word)), "{habit:?}: {none:?}");
        agent.hand.is(Habit::Good);
        follows(&meter);
        let (good, ..) = window(&bench, &meter, || {});
        assert_eq!(good.method, Method::Sampled, "{habit:?}: {good:?}");
    }
}

#[test]
fn a_card_that_its_agent_cannot_read_says_the_agents_word_at_once() {
    let bench = Bench::new();
    let agent = Agent::of(&bench.card);
    let meter = agent.meter();
    *agent.hand.hole.lock().unwrap() = Some("lost");
    eventually(|| meter.cards()[0].trouble() == Some(Fault::Lost));
    let (none, ..) = window(&bench, &meter, || {});
    assert_eq!((none.method, none.error), (Method::Unknown, Some(Fault::Lost)));
    let (spanned, ..) = window(&bench, &meter, || {
        *agent.hand.hole.lock().unwrap() = None;
        follows(&meter);
    });
    assert!(spanned.gross_joules.is_some(), "{spanned:?}");
}

#[test]
fn silence_that_is_said_is_no_loss_of_the_node() {
    let bench = Bench::new();
    let agent = Agent::of(&bench.card);
    let meter = agent.meter();
    agent.hand.silent.store(true, Ordering::SeqCst);
    thread::sleep(Duration::from_secs(5));
    assert_eq!(meter.cards()[0].trouble(), None, "the agent says each second that it lives");
    let window = meter.open();
    thread::sleep(Duration::from_millis(1500));
    let silent = in_time(move || window.close().settle(LONG));
    assert_eq!((silent.method, silent.error), (Method::Unknown, Some(Fault::CounterFrozen)));
}

#[test]
fn a_token_is_asked_for_and_given() {
    let bench = Bench::new();
    let agent = Agent::of(&bench.card);
    agent.hand.is(Habit::Locked);
    let refused = Meter::for_node(&agent.node()).unwrap();
    eventually(|| refused.cards()[0].trouble() == Some(Fault::Permission));
    let folder = tempfile::tempdir().unwrap();
    let token_file = Some(folder.path().join("iris.token"));
    let node = Node { token_file, ..agent.node() };
    let told = Meter::for_node(&node).unwrap();
    eventually(|| told.cards()[0].trouble() == Some(Fault::Permission));
    // A file that is put there later is found.
    std::fs::write(folder.path().join("iris.token"), "s3cret\n").unwrap();
    follows(&told);
    let (good, ..) = window(&bench, &told, || {});
    assert_eq!(good.method, Method::Sampled);
}

#[test]
fn a_node_that_was_never_there_holds_nobody_up() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let bench = Bench::new();
    let node = Node::at(at(port), "0").idle_watts(70.0);
    let absent = Meter::for_node(&node).unwrap();
    let (none, ..) = window(&bench, &absent, || {});
    assert_eq!((none.method, none.source), (Method::Unknown, Source::Remote));
    assert!(matches!(none.error, Some(Fault::Absent | Fault::NotReady)), "{none:?}");
    eventually(|| absent.cards()[0].trouble() == Some(Fault::Absent));
    assert_eq!(joulebook::probe_node(&node), None);
    // It starts at last.
    let agent = Agent::of(&bench.card);
    let late = super::relay::relay_on(port, agent.port);
    assert_eq!(late, port);
    follows(&absent);
    let (good, ..) = window(&bench, &absent, || {});
    assert_eq!(good.method, Method::Sampled);
}

#[test]
fn a_card_that_the_node_does_not_have_is_absent_and_takes_no_other_with_it() {
    let bench = Bench::new();
    let agent = Agent::of(&bench.card);
    let good = meter(&agent.node());
    for ask in ["7", "GPU-none", "cuda:9"] {
        let none = Meter::for_node(&Node::at(agent.endpoint(), ask)).unwrap();
        eventually(|| none.cards()[0].trouble().is_some_and(|fault| fault != Fault::NotReady));
        let measured = none.open().close().now();
        assert_eq!(measured.method, Method::Unknown, "{ask}");
    }
    let (measured, ..) = window(&bench, &good, || {});
    assert_eq!(measured.method, Method::Sampled);
}

#[test]
fn an_agent_that_had_no_stream_for_a_moment_streams_again() {
    let bench = Bench::new();
    let agent = Agent::of(&bench.card);
    agent.hand.is(Habit::OldFashioned);
    let asked = Meter::for_node(&agent.node()).unwrap();
    let by_uuid = Meter::for_node(&Node::at(agent.endpoint(), "GPU-5a5a")).unwrap();
    eventually(|| by_uuid.cards()[0].trouble() == Some(Fault::Absent));
    follows(&asked);
    let card = &asked.cards()[0];
    let status = || card.connection().unwrap().now();
    // It is looked whether it has one by now, which costs one that has none nothing.
    let before = (card.cost().rejected, status().connections);
    eventually(|| agent.hand.heads.load(Ordering::SeqCst) > 0);
    follows(&asked);
    let after = (card.cost().rejected, status().connections);
    assert_eq!((after, status().error, status().streams), (before, None, false));
    agent.hand.is(Habit::Good);
    eventually(|| status().streams);
    assert_eq!(card.cost().rejected, before.0, "that was no failure");
    follows(&asked);
    follows(&by_uuid);
    let (good, ..) = window(&bench, &asked, || {});
    assert_eq!((good.method, good.flags.contains(Flags::GAP)), (Method::Sampled, false));
}
