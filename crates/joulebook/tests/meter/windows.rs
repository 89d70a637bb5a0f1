use std::{thread, time::Duration};

use joulebook::{
    Measurement, Method, Tenancy,
    core::{Flags, estimate::Rule},
};

use super::bench::{Bench, Moment, REST_W, Trouble, block_on, holds};

const LONG: Duration = Duration::from_secs(20);

#[test]
fn a_window_and_its_stages_are_charged_what_they_drew() {
    let bench = Bench::new();
    let (opened, mut window) = Moment::of(|| bench.meter().open());
    bench.works(400.0, 150);
    let (first, ()) = Moment::of(|| window.mark("prefill"));
    bench.works(250.0, 200);
    let (second, ()) = Moment::of(|| window.mark("decode"));
    bench.works(100.0, 100);
    let (third, ()) = Moment::of(|| window.mark("prefill"));
    bench.works(300.0, 50);
    let (closed, pending) = Moment::of(|| window.close());

    let settled = pending.settle(LONG);
    assert_eq!((settled.method, settled.settled), (Method::Sampled, true), "{settled:?}");
    assert_eq!((settled.backend, settled.tenancy), ("simulated", Tenancy::Alone));
    assert!(matches!(settled.rule, Some(Rule::Alone | Rule::Shared)));
    holds(&bench, &settled, opened, closed);
    let joules = settled.gross_joules.unwrap() - REST_W * settled.seconds;
    assert!((settled.joules.unwrap() - joules).abs() < 1e-9);
    assert!(settled.polls > 0 && settled.samples > 0);

    // In the order of their first mark; the second prefill adds to the first.
    let names: Vec<&str> = settled.stages.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["prefill", "decode"]);
    let (prefill, decode) = (&settled.stages[0].1, &settled.stages[1].1);
    holds(&bench, decode, first, second);
    let truth_j = bench.truth_j(opened.after_ns, first.before_ns)
        + bench.truth_j(second.after_ns, third.before_ns);
    let error_j = (prefill.gross_joules.unwrap() - truth_j).abs();
    assert!(error_j <= prefill.bound_joules.unwrap() + 1.0, "{truth_j} J is not {prefill:?}");
    assert!(prefill.seconds >= 0.25 && decode.seconds >= 0.2);
    // What followed the last mark is in no stage.
    assert!(prefill.seconds + decode.seconds < settled.seconds);

    let at_once = pending.now();
    assert_eq!((at_once.settled, at_once.rule), (false, Some(Rule::Raw)));
    holds(&bench, &at_once, opened, closed);
}

#[test]
fn stages_add_up_to_their_window_also_where_the_reader_was_late_at_its_opening() {
    let bench = Bench::new();
    bench.draws(400.0);
    bench.hand.is(Trouble::Hangs);
    thread::sleep(Duration::from_millis(400));
    let mut window = bench.meter().open();
    // What is read now is told to have been published before the opening.
    bench.hand.is(Trouble::None);
    bench.pass(10);
    window.mark("prefill");
    bench.pass(5);
    window.mark("decode");
    let pending = window.close();
    let at_once = pending.now();
    let gross_j = |of: &Measurement| of.gross_joules.unwrap_or_else(|| panic!("{of:?}"));
    let stages_j: f64 = at_once.stages.iter().map(|(_, stage)| gross_j(stage)).sum();
    // A publish may have come between the last mark and the close.
    assert!((gross_j(&at_once) - stages_j).abs() < 40.0, "{stages_j} J of {at_once:?}");
}

#[test]
fn a_future_is_ready_when_the_window_has_settled() {
    let bench = Bench::new();
    let (opened, window) = Moment::of(|| bench.meter().open());
    bench.works(400.0, 60);
    let (closed, pending) = Moment::of(|| window.close());
    let settled = block_on(pending);
    assert!(settled.settled, "{settled:?}");
    holds(&bench, &settled, opened, closed);
}

#[test]
fn a_child_takes_nothing_from_its_parent() {
    let bench = Bench::new();
    let (opened, window) = Moment::of(|| bench.meter().open());
    bench.works(400.0, 60);
    let (child_opened, child) = Moment::of(|| window.child());
    bench.works(300.0, 100);
    let (child_closed, child) = Moment::of(|| child.close());
    bench.works(400.0, 60);
    let (closed, window) = Moment::of(|| window.close());
    let (window, child) = (window.settle(LONG), child.settle(LONG));
    assert!(!window.flags.contains(Flags::OVERLAP) && !child.flags.contains(Flags::OVERLAP));
    holds(&bench, &window, opened, closed);
    holds(&bench, &child, child_opened, child_closed);
}

#[test]
fn a_window_of_another_meter_lies_inside_only_on_cards_in_common() {
    let (bench, elsewhere) = (Bench::new(), Bench::new());
    let (opened, outer) = Moment::of(|| bench.meter().open());
    assert!(elsewhere.meter().open_inside(&outer).is_none());
    let other = bench.meter().with_hint(1.0);
    let (inner_opened, inner) = Moment::of(|| other.open_inside(&outer).unwrap());
    bench.works(300.0, 100);
    let (inner_closed, inner) = Moment::of(|| inner.close());
    let (closed, outer) = Moment::of(|| outer.close());
    let (outer, inner) = (outer.settle(LONG), inner.settle(LONG));
    assert!(!outer.flags.contains(Flags::OVERLAP) && !inner.flags.contains(Flags::OVERLAP));
    holds(&bench, &outer, opened, closed);
    holds(&bench, &inner, inner_opened, inner_closed);
}

#[test]
fn siblings_share_what_they_overlap_and_at_once_each_is_charged_whole() {
    let bench = Bench::new();
    let meter = bench.meter();
    let (a_opened, a) = Moment::of(|| meter.open());
    bench.works(400.0, 100);
    let (b_opened, b) = Moment::of(|| meter.clone().open());
    // As a part of a window that shares, a child shares.
    let (child_opened, child) = Moment::of(|| b.child());
    bench.works(400.0, 100);
    let (child_closed, child) = Moment::of(|| child.close());
    let (a_closed, a) = Moment::of(|| a.close());
    bench.works(400.0, 100);
    let (b_closed, b) = Moment::of(|| b.close());

    let whole = [a.now(), b.now()];
    assert!(whole.iter().all(|at_once| at_once.flags.contains(Flags::OVERLAP)), "{whole:?}");
    holds(&bench, &whole[0], a_opened, a_closed);
    holds(&bench, &whole[1], b_opened, b_closed);

    let (a, b, child) = (a.settle(LONG), b.settle(LONG), child.settle(LONG));
    assert!(a.flags.contains(Flags::OVERLAP) && b.flags.contains(Flags::OVERLAP));
    let sum_j = a.gross_joules.unwrap() + b.gross_joules.unwrap();
    let truth_j = bench.truth_j(a_opened.after_ns, b_closed.before_ns);
    let bound_j = a.bound_joules.unwrap() + b.bound_joules.unwrap();
    assert!((sum_j - truth_j).abs() <= bound_j, "{sum_j} J of {truth_j} J: {a:?}, {b:?}");
    // 200 ms each, of which 100 ms shared: far from the whole.
    assert!(a.gross_joules.unwrap() < whole[0].gross_joules.unwrap() * 0.95, "{a:?}");
    assert!(child.flags.contains(Flags::OVERLAP), "{child:?}");
    let half_j = bench.truth_j(child_opened.after_ns, child_closed.before_ns) / 2.0;
    let error_j = (child.gross_joules.unwrap() - half_j).abs();
    assert!(error_j <= child.bound_joules.unwrap() + 1.0, "{half_j} J is not {child:?}");
}

#[test]
fn an_open_window_says_how_it_stands_and_goes_on() {
    let bench = Bench::new();
    let (opened, window) = Moment::of(|| bench.meter().open());
    bench.works(400.0, 100);
    let (asked, so_far) = Moment::of(|| window.so_far());
    let so_far = so_far.settle(LONG);
    assert!(!so_far.settled);
    holds(&bench, &so_far, opened, asked);
    bench.works(400.0, 100);
    let (closed, pending) = Moment::of(|| window.close());
    let settled = pending.settle(LONG);
    assert!(settled.settled && settled.seconds > so_far.seconds);
    assert!(!settled.flags.contains(Flags::OVERLAP), "its own look is no other window");
    holds(&bench, &settled, opened, closed);
}

#[test]
fn a_window_that_is_dropped_has_closed() {
    let bench = Bench::new();
    let meter = bench.meter();
    drop(meter.open());
    drop(meter.open().child());
    bench.pass(5);
    let window = meter.open();
    bench.works(400.0, 60);
    assert!(!window.close().now().flags.contains(Flags::OVERLAP));
}

#[test]
fn a_sync_that_panics_closes_the_window_and_its_time_belongs_to_it() {
    let bench = Bench::new();
    let meter = bench.meter().with_sync(|| {
        thread::sleep(Duration::from_millis(80));
        panic!("the device is gone");
    });
    let (opened, window) = Moment::of(|| meter.open());
    bench.draws(400.0);
    let (closed, pending) = Moment::of(|| window.close());
    bench.draws(REST_W);
    let settled = pending.settle(LONG);
    assert!(settled.seconds >= 0.08, "{settled:?}");
    assert_eq!(settled.method, Method::Sampled);
    // The close itself took the time of the sync, so only its end is known.
    let end = Moment { before_ns: closed.after_ns, ..closed };
    holds(&bench, &settled, opened, end);
}

#[test]
fn a_timeout_gives_the_answer_at_once() {
    let bench = Bench::new();
    let window = bench.meter().open();
    bench.works(400.0, 60);
    let pending = window.close();
    let now = pending.settle(Duration::ZERO);
    assert!(now.settled || now.rule == Some(Rule::Raw), "{now:?}");
    assert!(pending.settle(LONG).settled);
}
