//! Somebody else on the card, whose part of the work is told, or is not.

use std::{thread, time::Duration};

use joulebook::{
    Fault, Method, Process,
    books::{Books, Labels, Receipt, Settings, Ticket, TrialBalance, Usage},
    clock::now_ns,
    core::Flags,
};

use crate::bench::{Bench, REST_W, Setup, eventually};

const LONG: Duration = Duration::from_secs(20);
const OTHER: u32 = 1;

/// A busy machine may need more than one try.
fn balance(books: &Books) -> TrialBalance {
    eventually(|| books.trial_balance().is_some());
    books.trial_balance().unwrap_or_else(|| balance(books))
}

fn own() -> u32 {
    std::process::id()
}

fn process(pid: u32, name: &str) -> Process {
    Process { pid, used_mib: Some(4000), name: name.into() }
}

fn both() -> Vec<Process> {
    vec![process(own(), "ours"), process(OTHER, "other")]
}

/// A card that has been looked at often enough for work to be told.
fn shared(work: &[(u32, u32)]) -> Bench {
    let bench = Bench::with(Setup { tenants: both(), ..Setup::default() });
    bench.hand.works(work);
    thread::sleep(Duration::from_millis(2300));
    bench
}

fn writes(ticket: &mut Ticket, milliseconds: u64) {
    for _ in 0..milliseconds / 10 {
        ticket.tokens(1);
        thread::sleep(Duration::from_millis(10));
    }
}

/// Works for so long at 300 W above rest; the receipt, and what the card drew above rest then.
fn request(bench: &Bench, books: &Books, milliseconds: u64) -> (Receipt, f64) {
    bench.draws(REST_W + 300.0);
    let mut ticket = books.open(&Labels::default());
    let from_ns = now_ns();
    writes(&mut ticket, milliseconds);
    let pending = ticket.close(Usage::default());
    let to_ns = now_ns();
    bench.draws(REST_W);
    let above_j = bench.truth_j(from_ns, to_ns) - REST_W * (to_ns - from_ns) as f64 / 1e9;
    (pending.settle(LONG), above_j)
}

#[test]
fn a_known_part_is_the_others_and_the_rest_is_ours_and_sampled() {
    let bench = shared(&[(own(), 60), (OTHER, 20)]);
    let books = Books::of(&bench.meter(), Settings::default()).unwrap();
    let (receipt, above_j) = request(&bench, &books, 1500);
    assert_eq!((receipt.method, receipt.error), (Method::Sampled, None), "{receipt:?}");
    assert!(receipt.settled && receipt.flags.contains(Flags::FOREIGN));
    assert_eq!(receipt.contended_by.as_deref(), Some("other (4000 MiB)"));
    let (joules, bound) = (receipt.joules.unwrap(), receipt.bound_joules.unwrap());
    // The first and the last tick, of 20 ms, are not cut at its ends.
    let truth = 0.75 * above_j;
    assert!((joules - truth).abs() < bound + 2.0 * 0.02 * 300.0, "{truth} {receipt:?}");
    let balance = balance(&books);
    let card = &balance.cards[0];
    assert!(balance.balances() && card.foreign_unresolved_joules == 0.0, "{card:?}");
    // Three to one, as they worked; what nobody asked for is ours too.
    let own = card.requests_joules + card.unattributed_joules;
    assert!((own - 3.0 * card.foreign_joules).abs() < 0.001, "{card:?}");
}

#[test]
fn a_tenant_that_rests_costs_nobody_his_figure() {
    let bench = shared(&[(own(), 90)]);
    let books = Books::of(&bench.meter(), Settings::default()).unwrap();
    let (receipt, above_j) = request(&bench, &books, 600);
    assert_eq!((receipt.method, receipt.error), (Method::Sampled, None), "{receipt:?}");
    let (joules, bound) = (receipt.joules.unwrap(), receipt.bound_joules.unwrap());
    assert!((joules - above_j).abs() < bound + 2.0 * 0.02 * 300.0, "{above_j} {receipt:?}");
    assert_eq!(balance(&books).cards[0].foreign_joules, 0.0);
}

#[test]
fn a_tenant_that_leaves_untold_leaves_no_figure_and_one_that_comes_later_is_divided() {
    let bench = shared(&[(own(), 60), (OTHER, 20)]);
    let books = Books::of(&bench.meter(), Settings::default()).unwrap();
    bench.hand.lists(vec![process(own(), "ours")]);
    bench.hand.works(&[(own(), 60)]);
    // Its last second: it is not listed at the next look, and nobody tells what it did until then.
    let (receipt, _) = request(&bench, &books, 1200);
    assert_eq!((receipt.joules, receipt.error), (None, Some(Fault::SharedDevice)), "{receipt:?}");
    let (receipt, above_j) = request(&bench, &books, 500);
    assert_eq!((receipt.method, receipt.contended_by.as_deref()), (Method::Sampled, None));
    assert!((receipt.joules.unwrap() / above_j - 1.0).abs() < 0.2, "{above_j} {receipt:?}");
    // Another comes, and is told of at once.
    bench.hand.lists(vec![process(own(), "ours"), process(2, "newcomer")]);
    bench.hand.works(&[(own(), 30), (2, 30)]);
    let (receipt, _) = request(&bench, &books, 2500);
    assert_eq!((receipt.method, receipt.error), (Method::Sampled, None), "{receipt:?}");
    let balance = balance(&books);
    assert!(balance.balances() && balance.cards[0].foreign_joules > 0.0, "{balance:?}");
}

#[test]
fn ticks_wait_for_what_is_told_and_not_for_ever() {
    let bench = shared(&[(own(), 60), (OTHER, 20)]);
    let books = Books::of(&bench.meter(), Settings::default()).unwrap();
    bench.draws(REST_W + 300.0);
    let mut ticket = books.open(&Labels::default());
    writes(&mut ticket, 200);
    // The recorder hangs in the list of processes: no look comes any more, and no reading.
    bench.hand.is(crate::bench::Trouble::ListingHangs);
    // So whatever was published since the last look goes on without an answer.
    let unresolved = || balance(&books).cards[0].foreign_unresolved_joules;
    eventually(|| unresolved() > 0.0);
    assert!(balance(&books).balances());
    drop(ticket);
}
