use std::{sync::Arc, thread, time::Duration};

use joulebook::{
    Fault, Idle, Meter, Method, Node, Usage,
    core::{Flags, estimate::Rule},
};
use joulebook_lab::Shows;

use super::bench::{Bench, Moment, REST_W, Setup, Trouble, block_on, eventually, holds, in_time};

const LONG: Duration = Duration::from_secs(20);

fn two(idle: Idle) -> (Bench, Bench, Meter) {
    let (one, other) = (Bench::new(), Bench::new());
    let node = Node { gpus: vec!["0".into(), "1".into()], idle, ..Node::default() };
    let meter = Meter::of_cards(&node, vec![Arc::clone(&one.card), Arc::clone(&other.card)]);
    (one, other, meter)
}

#[test]
fn two_cards_are_one_sum_above_both_their_floors() {
    let (one, other, meter) = two(Idle::Each(vec![REST_W, REST_W]));
    assert_eq!(meter.idle_watts(), Some(2.0 * REST_W));
    let (opened, window) = Moment::of(|| meter.open());
    one.draws(400.0);
    other.works(200.0, 150);
    one.draws(REST_W);
    let (closed, pending) = Moment::of(|| window.close());
    let settled = block_on(pending);
    assert_eq!((settled.method, settled.settled), (Method::Sampled, true), "{settled:?}");
    let truth_j = one.truth_j(opened.after_ns, closed.before_ns)
        + other.truth_j(opened.after_ns, closed.before_ns);
    let above_j = truth_j - 2.0 * REST_W * settled.seconds;
    let error_j = (settled.joules.unwrap() - above_j).abs();
    assert!(error_j <= settled.bound_joules.unwrap() + 0.5, "{above_j} J is not {settled:?}");
    assert!(meter.power().is_some_and(|watts| watts >= REST_W));
}

#[test]
fn a_card_that_is_missing_leaves_the_sum_unknown() {
    let (one, other, meter) = two(Idle::Sum(2.0 * REST_W));
    let window = meter.open();
    other.hand.is(Trouble::Fails(Fault::Lost));
    one.works(400.0, 400);
    let pending = window.close();
    let settled = in_time(move || pending.settle(LONG));
    assert_eq!(settled.error, Some(Fault::PartialDevices), "{settled:?}");
    assert_eq!((settled.method, settled.joules), (Method::Unknown, None));
    assert!(settled.flags.contains(Flags::PARTIAL));
    assert!(settled.lower_bound_joules.is_some_and(|joules| joules > 0.0), "{settled:?}");
    assert_eq!(meter.power(), None, "half a sum is no sum");
}

#[test]
fn without_a_floor_nothing_is_charged_and_a_hint_stands_in_and_says_so() {
    let bench = Bench::new();
    let meter = bench.meter_of(&Node::of("0")).with_hint(500.0);
    let window = meter.open();
    bench.works(400.0, 100);
    let pending = window.close();
    let unknown = pending.settle(LONG);
    assert_eq!((unknown.method, unknown.error), (Method::Unknown, Some(Fault::NoBaseline)));
    assert!(unknown.gross_joules.is_some() && unknown.joules.is_none());
    let estimated = pending.tokens(2000).settle(LONG);
    assert_eq!((estimated.method, estimated.joules), (Method::Estimated, Some(1000.0)));
    assert_eq!((estimated.bound_joules, estimated.error), (None, Some(Fault::NoBaseline)));
    assert!(estimated.gross_joules.is_some(), "what was seen stands beside it");
    // No card at all: the same ladder, and a word for why.
    let none = Meter::none(&Node::of("0"), Fault::DriverAbsent).with_hint(500.0);
    let measured = block_on(none.open().close().tokens(10));
    assert_eq!((measured.method, measured.joules), (Method::Estimated, Some(5.0)));
    assert_eq!((measured.error, measured.backend), (Some(Fault::DriverAbsent), "none"));
}

#[test]
fn a_gauge_is_joined_and_one_that_averages_longer_than_the_window_is_none() {
    let bench = Bench::with(Setup { shows: Shows::Instant, ..Setup::default() });
    bench.pass(20);
    let (opened, window) = Moment::of(|| bench.meter().open());
    bench.works(400.0, 400);
    let (closed, pending) = Moment::of(|| window.close());
    for measured in [pending.now(), pending.settle(LONG)] {
        assert_eq!((measured.method, measured.rule), (Method::Sampled, Some(Rule::Gauge)));
        holds(&bench, &measured, opened, closed);
    }
    let bench = Bench::with(Setup { shows: Shows::Average, ..Setup::default() });
    bench.pass(20);
    let window = bench.meter().open();
    bench.works(400.0, 200);
    let settled = window.close().settle(LONG);
    assert_eq!(settled.error, Some(Fault::WindowBelowResolution), "{settled:?}");
    assert_eq!((settled.method, settled.joules), (Method::Unknown, None));
    assert!(settled.mean_watts > 0.0, "what was seen is said");
}

#[test]
fn the_recorder_ends_with_the_last_handle() {
    let bench = Bench::new();
    let hand = Arc::clone(&bench.hand);
    let meter = bench.meter();
    let pending = meter.open().close();
    drop((bench, meter));
    thread::sleep(Duration::from_millis(100));
    assert!(!hand.has_let_go(), "a window that may settle is a handle");
    drop(pending);
    eventually(|| hand.has_let_go());
}

#[test]
fn how_full_a_card_is_is_known_right_after_it_was_first_wanted() {
    let bench = Bench::with(Setup::default());
    bench.pass(1);
    assert_eq!(bench.card.usage(), Usage::default());
    bench.card.want_usage();
    // A fifth of the time between two looks around.
    bench.pass(10);
    assert_eq!(bench.card.usage().used_mib, Some(500));
}

#[test]
fn power_is_there_while_it_is_fresh() {
    let bench = Bench::new();
    let meter = bench.meter();
    bench.draws(300.0);
    eventually(|| meter.power().is_some_and(|watts| (watts - 300.0).abs() < 60.0));
    bench.hand.is(Trouble::Frozen);
    eventually(|| meter.power().is_none());
    bench.hand.is(Trouble::None);
    eventually(|| meter.power().is_some());
}
