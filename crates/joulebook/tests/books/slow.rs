//! A counter that publishes once a second: what requests cost that begin and end inside its ticks.

use std::{thread, time::Duration};

use joulebook::{
    Method,
    books::{Books, Labels, PendingReceipt, Receipt, Settings, Usage},
    clock::now_ns,
};

use crate::bench::{Bench, REST_W, Setup, Trouble, eventually};

const LONG: Duration = Duration::from_secs(20);

fn card(gauge: bool) -> Bench {
    Bench::with(Setup { period_ms: 1000, gauge, ..Setup::default() })
}

/// A request on each of two cards at once that draw the same: so much for so long, so many tokens.
/// What was really drawn above rest, and the two receipts to come.
fn request(cards: [(&Bench, &Books); 2], watts: f64, tokens: u64) -> [(PendingReceipt, f64); 2] {
    let mut tickets = cards.map(|(_, books)| books.open(&Labels::default()));
    cards.iter().for_each(|(bench, _)| bench.draws(watts));
    let from_ns = now_ns();
    for _ in 0..10 {
        thread::sleep(Duration::from_millis(30));
        tickets.iter_mut().for_each(|ticket| ticket.tokens(tokens / 10));
    }
    cards.iter().for_each(|(bench, _)| bench.draws(REST_W));
    let to_ns = now_ns();
    let above = |(bench, _): (&Bench, &Books)| {
        bench.truth_j(from_ns, to_ns) - REST_W * (to_ns - from_ns) as f64 / 1e9
    };
    let truths = cards.map(above);
    let pending = tickets.map(|ticket| ticket.close(Usage::default()));
    let [first, second] = pending;
    [(first, truths[0]), (second, truths[1])]
}

#[test]
fn long_ticks_are_cut_where_the_gauge_was_read() {
    let (wrong, whole) = told_apart([card(true), card(false)]);
    assert!(wrong[0] < 0.5 * wrong[1], "{wrong:?} of {whole} J");
    assert!(wrong[0] < 0.2 * whole, "{wrong:?} of {whole} J");
}

#[test]
fn so_are_those_of_a_counter_that_nobody_has_probed() {
    let unprobed =
        |gauge| Bench::with(Setup { period_ms: 1000, gauge, probed: false, ..Setup::default() });
    let (wrong, whole) = told_apart([unprobed(true), unprobed(false)]);
    assert!(wrong[0] < 0.5 * wrong[1], "{wrong:?} of {whole} J");
}

/// By how much the receipts of requests are off on a card whose gauge is read and on one that has
/// none, and what they really drew, J.
fn told_apart([seen, blind]: [Bench; 2]) -> ([f64; 2], f64) {
    [&seen, &blind].into_iter().for_each(|bench| bench.pass(4));
    let books = [&seen, &blind].map(|it| Books::of(&it.meter(), Settings::default()).unwrap());
    let cards = [(&seen, &books[0]), (&blind, &books[1])];
    let mut pending = Vec::new();
    for _ in 0..6 {
        // Few tokens at much power, and many at little, in turn and mostly in one tick.
        pending.push(request(cards, 600.0, 10));
        thread::sleep(Duration::from_millis(60));
        pending.push(request(cards, 170.0, 400));
        thread::sleep(Duration::from_millis(310));
    }
    let mut wrong = [0.0, 0.0];
    let mut whole = 0.0;
    for pair in pending {
        for (number, (pending, truth)) in pair.into_iter().enumerate() {
            let receipt = pending.settle(LONG);
            assert_eq!((receipt.method, receipt.settled), (Method::Sampled, true), "{receipt:?}");
            let error = (receipt.joules.unwrap() - truth).abs();
            wrong[number] += error;
            whole += truth / 2.0;
            // A piece in which two of them met is divided by their tokens.
            let met = 0.1 * 530.0;
            let bound = receipt.bound_joules.unwrap();
            assert!(number > 0 || error <= bound + met, "{truth} {receipt:?}");
        }
    }
    println!("off by {wrong:?} of {whole} J: cut, and not");
    for books in &books {
        let balance = books.trial_balance().unwrap();
        assert!(balance.balances(), "{balance:?}");
    }
    (wrong, whole)
}

#[test]
fn whoever_is_alone_in_long_ticks_loses_nothing_to_the_cuts() {
    let (seen, blind) = (card(true), card(false));
    [&seen, &blind].into_iter().for_each(|bench| bench.pass(4));
    let books = [&seen, &blind].map(|it| Books::of(&it.meter(), Settings::default()).unwrap());
    for _ in 0..3 {
        let pair = request([(&seen, &books[0]), (&blind, &books[1])], 500.0, 50);
        let receipts: Vec<(Receipt, f64)> =
            pair.into_iter().map(|(pending, truth)| (pending.settle(LONG), truth)).collect();
        for (receipt, truth) in receipts {
            let joules = receipt.joules.unwrap();
            // Of the stretch between its opening and the first watt it has nothing to lose.
            let most = receipt.bound_joules.unwrap() + 2.0;
            assert!((joules - truth).abs() < most, "{truth} {receipt:?}");
        }
    }
    let unattributed = books[0].trial_balance().unwrap().cards[0].unattributed_joules;
    assert!(unattributed < 5.0, "{unattributed}");
}

#[test]
fn a_tick_longer_than_two_seconds_goes_to_the_gap_whatever_the_gauge_has_seen() {
    let bench = card(true);
    bench.pass(3);
    let books = Books::of(&bench.meter(), Settings::default()).unwrap();
    bench.draws(400.0);
    let ticket = books.open(&Labels::default());
    bench.hand.is(Trouble::Frozen);
    thread::sleep(Duration::from_millis(2500));
    bench.hand.is(Trouble::None);
    eventually(|| books.trial_balance().is_some_and(|it| it.cards[0].gap_joules > 500.0));
    assert!(books.trial_balance().is_some_and(|it| it.balances()));
    drop(ticket);
}

#[test]
fn a_slow_counters_gauge_is_read_and_counted_unless_the_counter_suffers_from_reads() {
    let known = card(true);
    let seen = Bench::with(Setup { period_ms: 1000, probed: false, ..Setup::default() });
    let sensitive =
        Bench::with(Setup { period_ms: 1000, poll_sensitive: true, ..Setup::default() });
    [&known, &seen, &sensitive].into_iter().for_each(|bench| bench.pass(6));
    for bench in [&known, &seen] {
        let cost = bench.card.cost();
        assert!(cost.samples > cost.polls / 10, "{cost:?}");
    }
    let cost = sensitive.card.cost();
    assert!(cost.samples == 0 && cost.polls > 0, "{cost:?}");
}
