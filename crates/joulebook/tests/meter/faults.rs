use std::{thread, time::Duration};

use joulebook::{
    Fault, Measurement, Method,
    core::{Flags, estimate::Rule},
};

use super::bench::{Bench, Moment, REST_W, Setup, Trouble, block_on, eventually, holds, in_time};

const LONG: Duration = Duration::from_secs(600);

/// Nothing is claimed, and what is certain is.
fn is_missing(measured: &Measurement, fault: Fault) {
    assert_eq!(measured.error, Some(fault), "{measured:?}");
    assert_eq!((measured.method, measured.joules), (Method::Unknown, None), "{measured:?}");
    assert_eq!(measured.bound_joules, None);
}

fn is_certain(bench: &Bench, measured: &Measurement, opened: Moment, closed: Moment) {
    let least_j = measured.lower_bound_joules.unwrap_or_else(|| panic!("{measured:?}"));
    let truth_j = bench.truth_j(opened.before_ns, closed.after_ns);
    assert!(least_j > 0.0 && least_j <= truth_j + 0.01, "{least_j} J of {truth_j} J");
}

#[test]
fn a_driver_that_hangs_for_ever_holds_up_nobody() {
    let bench = Bench::new();
    let (opened, window) = Moment::of(|| bench.meter().open());
    bench.works(400.0, 200);
    bench.hand.is(Trouble::Hangs);
    thread::sleep(Duration::from_millis(300));
    let (closed, pending) = Moment::of(|| window.close());
    is_missing(&pending.now(), Fault::Timeout);
    is_certain(&bench, &pending.now(), opened, closed);
    assert_eq!(bench.card.trouble(), Some(Fault::Timeout));
    assert_eq!(bench.meter().power(), None, "no old reading for a new one");
    let (pending, settled) = in_time(move || {
        let settled = pending.settle(LONG);
        (pending, settled)
    });
    is_missing(&settled, Fault::Timeout);
    is_missing(&in_time(move || block_on(pending)), Fault::Timeout);
    // Windows that open and close meanwhile do not wait either.
    let pending = bench.meter().open().close();
    in_time(move || block_on(pending));

    bench.hand.is(Trouble::None);
    eventually(|| bench.card.trouble().is_none());
    bench.pass(10);
    let (opened, window) = Moment::of(|| bench.meter().open());
    bench.works(400.0, 100);
    let (closed, pending) = Moment::of(|| window.close());
    holds(&bench, &pending.settle(LONG), opened, closed);
}

#[test]
fn a_driver_that_hangs_at_its_first_reading_holds_up_nobody() {
    let bench = Bench::with(Setup { trouble: Trouble::Hangs, ..Setup::default() });
    let window = bench.meter().open();
    eventually(|| bench.card.trouble() == Some(Fault::Timeout));
    let pending = window.close();
    is_missing(&pending.now(), Fault::Timeout);
    is_missing(&in_time(move || block_on(pending)), Fault::Timeout);
    let pending = bench.meter().open().close();
    in_time(move || pending.settle(LONG));
    assert!(!bench.meter().wait_ready(Duration::from_millis(10)));
}

#[test]
fn a_driver_that_hangs_while_it_lists_processes_is_a_timeout_too() {
    let bench = Bench::new();
    bench.hand.is(Trouble::ListingHangs);
    eventually(|| bench.card.trouble() == Some(Fault::Timeout));
    let pending = bench.meter().open().close();
    in_time(move || block_on(pending));
}

#[test]
fn a_card_that_can_no_longer_be_read_leaves_what_is_certain() {
    let bench = Bench::new();
    let (opened, mut window) = Moment::of(|| bench.meter().open());
    bench.works(400.0, 200);
    window.mark("whole");
    bench.pass(2);
    bench.hand.is(Trouble::Fails(Fault::AccessLost));
    bench.works(400.0, 300);
    window.mark("cut");
    let (closed, pending) = Moment::of(|| window.close());
    for measured in [pending.now(), in_time(move || pending.settle(LONG))] {
        is_missing(&measured, Fault::AccessLost);
        is_certain(&bench, &measured, opened, closed);
        assert!(measured.rejected > 0);
        // A stage that had ended before is as good as ever.
        assert_eq!(measured.stages[0].1.method, Method::Sampled, "{measured:?}");
        is_missing(&measured.stages[1].1, Fault::AccessLost);
    }
    bench.hand.is(Trouble::None);
    eventually(|| bench.card.trouble().is_none());
}

#[test]
fn a_failure_that_passes_costs_the_shape_and_not_the_sum() {
    let bench = Bench::new();
    let (opened, window) = Moment::of(|| bench.meter().open());
    bench.works(400.0, 100);
    bench.hand.is(Trouble::Fails(Fault::Unknown));
    bench.works(400.0, 200);
    bench.hand.is(Trouble::None);
    eventually(|| bench.card.trouble().is_none());
    bench.pass(5);
    let (closed, pending) = Moment::of(|| window.close());
    let settled = pending.settle(LONG);
    assert!(settled.flags.contains(Flags::HOLE), "{settled:?}");
    holds(&bench, &settled, opened, closed);
}

#[test]
fn a_counter_that_starts_again_takes_the_figure_with_it() {
    let bench = Bench::new();
    let (opened, window) = Moment::of(|| bench.meter().open());
    bench.works(400.0, 200);
    bench.hand.restart();
    bench.works(400.0, 200);
    bench.pass(5);
    let (closed, pending) = Moment::of(|| window.close());
    for measured in [pending.now(), pending.settle(LONG)] {
        is_missing(&measured, Fault::CounterReset);
        assert!(measured.flags.contains(Flags::COUNTER_RESET), "{measured:?}");
        is_certain(&bench, &measured, opened, closed);
    }
    let (opened, window) = Moment::of(|| bench.meter().open());
    bench.works(400.0, 100);
    let (closed, pending) = Moment::of(|| window.close());
    holds(&bench, &pending.settle(LONG), opened, closed);
}

#[test]
fn a_counter_that_stands_still_is_frozen_and_one_that_never_moved_is_dead() {
    let bench = Bench::new();
    bench.hand.is(Trouble::Frozen);
    let window = bench.meter().open();
    bench.works(400.0, 500);
    let pending = window.close();
    is_missing(&in_time(move || pending.settle(LONG)), Fault::CounterFrozen);

    let (opened, window) = Moment::of(|| bench.meter().open());
    // Polls must come between, or the first publish is placed before the window, where it may lie.
    bench.works(400.0, 200);
    bench.hand.is(Trouble::None);
    bench.pass(10);
    let (closed, pending) = Moment::of(|| window.close());
    let settled = pending.settle(LONG);
    assert!(settled.flags.contains(Flags::COUNTER_FROZEN), "{settled:?}");
    // What it stood still for came at once, and when inside is not known.
    if settled.gross_joules.is_some() && settled.bound_joules.is_some() {
        holds(&bench, &settled, opened, closed);
    }

    let dead = Bench::with(Setup { trouble: Trouble::Frozen, ..Setup::default() });
    assert!(dead.meter().wait_ready(Duration::from_secs(20)));
    let window = dead.meter().open();
    dead.works(400.0, 500);
    let pending = window.close();
    is_missing(&in_time(move || pending.settle(LONG)), Fault::CounterDead);
}

#[test]
fn a_card_that_never_could_be_read_says_why_and_nobody_waits() {
    let trouble = Trouble::Fails(Fault::Permission);
    let bench = Bench::with(Setup { trouble, ..Setup::default() });
    eventually(|| bench.card.cost().polls > 0);
    let pending = bench.meter().open().close();
    let settled = in_time(move || pending.settle(LONG));
    is_missing(&settled, Fault::Permission);
    assert_eq!(settled.mean_watts, 0.0);
    assert_eq!(settled.backend, "simulated", "what tried");
}

#[test]
fn a_window_that_drew_no_more_than_rest_is_no_zero() {
    let bench = Bench::new();
    let meter = bench.meter_of(&joulebook::Node::of("0").idle_watts(REST_W + 30.0));
    let window = meter.open();
    bench.pass(10);
    let settled = window.close().settle(LONG);
    assert_eq!((settled.method, settled.joules), (Method::Unknown, None));
    assert_eq!(settled.error, Some(Fault::BelowIdle));
    assert!(settled.mean_watts > 0.0 && settled.samples > 0 && settled.rule == Some(Rule::Shared));
}
