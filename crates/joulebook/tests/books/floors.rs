//! Idle floors that are learnt while the card serves.

use std::{thread, time::Duration};

use joulebook::{
    Fault, Method, Node, Process,
    books::{Books, FloorFrom, IdleFloor, Labels, Receipt, Settings, TrialBalance, Usage},
    clock::now_ns,
    core::Flags,
};

use crate::bench::{Bench, REST_W, Setup, eventually};

const LONG: Duration = Duration::from_secs(20);

/// A busy machine may need more than one try.
fn balance(books: &Books) -> TrialBalance {
    eventually(|| books.trial_balance().is_some());
    books.trial_balance().unwrap_or_else(|| balance(books))
}

fn ours(used_mib: u64) -> Vec<Process> {
    vec![Process { pid: std::process::id(), used_mib: Some(used_mib), name: "ours".into() }]
}

/// A card that nobody has declared anything of.
fn undeclared(bench: &Bench) -> Books {
    Books::of(&bench.meter_of(&Node::of("0")), Settings::default()).unwrap()
}

fn floor(books: &Books) -> Option<IdleFloor> {
    balance(books).cards[0].idle_floor.clone()
}

/// Waits until a floor of about so much is in use; which.
fn learns(books: &Books, watts: f64) -> IdleFloor {
    eventually(|| floor(books).is_some_and(|it| (it.watts - watts).abs() < 3.0));
    floor(books).unwrap()
}

/// Works for so long at so much; the receipt, and what the card really drew then.
fn request(bench: &Bench, books: &Books, watts: f64, milliseconds: u64) -> (Receipt, f64, f64) {
    bench.draws(watts);
    let mut ticket = books.open(&Labels::default());
    let from_ns = now_ns();
    ticket.tokens(1);
    thread::sleep(Duration::from_millis(milliseconds));
    ticket.tokens(1);
    let pending = ticket.close(Usage::default());
    let to_ns = now_ns();
    let seconds = (to_ns - from_ns) as f64 / 1e9;
    (pending.settle(LONG), bench.truth_j(from_ns, to_ns), seconds)
}

#[test]
fn a_floor_is_learnt_from_ticks_in_which_nobody_worked() {
    let bench = Bench::with(Setup { tenants: ours(4000), ..Setup::default() });
    bench.pass(3);
    let books = undeclared(&bench);
    let (receipt, _, _) = request(&bench, &books, 400.0, 200);
    bench.draws(REST_W);
    assert_eq!((receipt.joules, receipt.error), (None, Some(Fault::NoBaseline)), "{receipt:?}");
    let learnt = learns(&books, REST_W);
    assert_eq!((learnt.from, learnt.model_loaded), (FloorFrom::Learnt, true), "{learnt:?}");
    assert!(learnt.ticks >= Some(5) && learnt.age_seconds.is_some() && !learnt.is_stale());
    let (receipt, truth, seconds) = request(&bench, &books, 400.0, 800);
    bench.draws(REST_W);
    assert_eq!((receipt.method, receipt.error), (Method::Sampled, None), "{receipt:?}");
    // The card drew 400 W from before its opening until after its end; ticks are 20 ms long.
    let above = truth - REST_W * seconds;
    let most = receipt.bound_joules.unwrap() + 2.0 * 0.02 * 330.0;
    assert!((receipt.joules.unwrap() - above).abs() < most, "{above} {receipt:?}");
    // A load is no floor, however long it lasts.
    assert!((floor(&books).unwrap().watts - REST_W).abs() < 3.0);
    let rate = books.since_start().unwrap();
    assert!(rate.joules.is_some_and(|joules| joules < rate.gross_joules), "{rate:?}");
}

#[test]
fn an_empty_card_and_one_with_a_model_rest_on_two_accounts() {
    let bench = Bench::with(Setup { tenants: ours(100), ..Setup::default() });
    bench.draws(20.0);
    let books = undeclared(&bench);
    let empty = learns(&books, 20.0);
    assert!(!empty.model_loaded, "{empty:?}");
    let idle = |books: &Books| {
        let card = balance(books).cards.remove(0);
        (card.idle_off_joules, card.idle_resident_joules, card.unattributed_joules)
    };
    let before = idle(&books);
    bench.pass(50);
    let after = idle(&books);
    assert!(after.0 - before.0 > 0.8 * 20.0 && after.1 == before.1, "{before:?} {after:?}");
    // A model comes, and the card rests higher.
    bench.hand.lists(ours(9000));
    bench.draws(60.0);
    let loaded = learns(&books, 60.0);
    assert_eq!((loaded.model_loaded, loaded.from), (true, FloorFrom::Learnt), "{loaded:?}");
    assert!((loaded.off_watts.unwrap() - 20.0).abs() < 3.0, "{loaded:?}");
    let (receipt, truth, seconds) = request(&bench, &books, 360.0, 600);
    let above = truth - 60.0 * seconds;
    let most = receipt.bound_joules.unwrap() + 2.0 * 0.02 * 300.0;
    assert!((receipt.joules.unwrap() - above).abs() < most, "{above} {receipt:?}");
    bench.draws(60.0);
    bench.pass(2);
    let before = idle(&books);
    bench.pass(100);
    let after = idle(&books);
    // 20 W are the card's, 40 W are the model's.
    // Where ticks are seen a little early or late some of it is nobody's.
    let (off, resident) = (after.0 - before.0, after.1 + after.2 - before.1 - before.2);
    let ratio = resident / off;
    assert!((ratio - 2.0).abs() < 0.2, "{before:?} {after:?}");
    // It goes, and what is known of the empty card holds again.
    bench.hand.lists(ours(100));
    bench.draws(20.0);
    let empty = learns(&books, 20.0);
    assert!(!empty.model_loaded && empty.flags.is_empty(), "{empty:?}");
    assert!(balance(&books).balances());
}

#[test]
fn a_declared_floor_wins_and_the_spread_of_a_learnt_one_is_in_the_bound() {
    let bench = Bench::with(Setup { tenants: ours(4000), ..Setup::default() });
    let [declared, learnt] = [Some(300.0), None].map(|declared| {
        let node = declared.map_or(Node::of("0"), |watts| Node::of("0").idle_watts(watts));
        let books = Books::of(&bench.meter_of(&node), Settings::default()).unwrap();
        // It wavers at rest.
        for _ in 0..12 {
            bench.draws(300.0);
            thread::sleep(Duration::from_millis(200));
            bench.draws(314.0);
            thread::sleep(Duration::from_millis(200));
        }
        eventually(|| floor(&books).is_some());
        let idle = floor(&books).unwrap();
        let (receipt, _, seconds) = request(&bench, &books, 500.0, 4000);
        bench.draws(300.0);
        (idle, receipt.bound_joules.unwrap(), seconds)
    });
    assert_eq!((declared.0.from, declared.0.spread_watts), (FloorFrom::Declared, 0.0));
    let (floor, bound, seconds) = learnt;
    assert!(floor.from == FloorFrom::Learnt && floor.spread_watts > 3.0, "{floor:?}");
    // It was there alone: all of the spread, for as long as it lasted. Edges alone make less.
    assert!(bound > 0.9 * floor.spread_watts * seconds, "{bound} {floor:?}");
    assert!(bound > declared.1, "{bound} {declared:?}");
}

#[test]
fn a_floor_belongs_to_a_power_state() {
    let bench = Bench::with(Setup { tenants: ours(4000), ..Setup::default() });
    bench.hand.power_state(8);
    bench.draws(25.0);
    let books = undeclared(&bench);
    eventually(|| floor(&books).is_some_and(|it| it.power_state == Some(8)));
    let deep = learns(&books, 25.0);
    assert!(deep.flags.is_empty(), "{deep:?}");
    // It is awake now, and nobody has seen it rest so.
    bench.hand.power_state(0);
    bench.draws(300.0);
    let ticket = books.open(&Labels::default());
    eventually(|| floor(&books).is_some_and(|it| it.power_state == Some(0)));
    let stand_in = floor(&books).unwrap();
    assert_eq!(stand_in.flags, Flags::BASELINE_SUSPECT, "{stand_in:?}");
    let receipt = ticket.close(Usage::default()).settle(LONG);
    assert!(receipt.flags.contains(Flags::BASELINE_SUSPECT), "{receipt:?}");
    bench.draws(60.0);
    let awake = learns(&books, 60.0);
    assert_eq!((awake.power_state, awake.flags), (Some(0), Flags::NONE), "{awake:?}");
    bench.hand.power_state(8);
    bench.draws(25.0);
    assert_eq!(learns(&books, 25.0).power_state, Some(8));
}
