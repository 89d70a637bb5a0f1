//! What goes wrong: a card that stands still, a restart, a sink that fails, books that are closed,
//! full or off, somebody else on the card.

use std::{io, io::Write, sync::Arc, thread, time::Duration};

use joulebook::{
    Fault, Meter, Method, Node, Process,
    books::{Books, BooksError, Journal, Labels, Level, Settings, Status, Usage, keeper},
    core::Flags,
};

use crate::bench::{Bench, REST_W, Setup, Trouble, eventually, in_time};

const LONG: Duration = Duration::from_secs(20);

fn impatient() -> Settings {
    let keeping = keeper::Settings { give_up_ns: 700_000_000, ..keeper::Settings::default() };
    Settings { keeping, ..Settings::default() }
}

#[test]
fn a_stuck_card_leaves_a_receipt_without_a_figure_and_the_rest_in_the_gap() {
    let bench = Bench::new();
    let books = Books::of(&bench.meter(), impatient()).unwrap();
    bench.draws(400.0);
    bench.hand.is(Trouble::Frozen);
    thread::sleep(Duration::from_millis(60));
    let mut ticket = books.open(&Labels::default());
    ticket.tokens(5);
    thread::sleep(Duration::from_millis(100));
    let receipt = in_time(move || ticket.close(Usage::default()).settle(LONG));
    assert_eq!((receipt.joules, receipt.method), (None, Method::Unknown), "{receipt:?}");
    assert_eq!((receipt.error, receipt.settled), (Some(Fault::Gap), false));
    assert!(receipt.flags.contains(Flags::PARTIAL));
    // What was drawn meanwhile comes in one tick that is too long to be placed.
    thread::sleep(Duration::from_millis(1600));
    let open = books.open(&Labels::default());
    bench.hand.is(Trouble::None);
    eventually(|| books.trial_balance().is_some_and(|it| it.cards[0].gap_joules > 0.0));
    let balance = books.trial_balance().unwrap();
    assert!(balance.balances() && balance.cards[0].gap_joules > 100.0, "{balance:?}");
    drop(open);
}

#[test]
fn a_restart_is_nobodys() {
    let bench = Bench::new();
    let books = Books::of(&bench.meter(), Settings::default()).unwrap();
    bench.draws(300.0);
    let mut ticket = books.open(&Labels::default());
    ticket.tokens(1);
    bench.pass(4);
    bench.hand.restart();
    bench.pass(6);
    let receipt = ticket.close(Usage::default()).settle(LONG);
    assert!(receipt.flags.contains(Flags::COUNTER_RESET | Flags::GAP), "{receipt:?}");
    assert!(receipt.coverage < 1.0 && receipt.joules.unwrap() > 0.0);
    assert!(books.trial_balance().unwrap().balances());
}

struct Broken;

impl Write for Broken {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::Error::other("full"))
    }

    fn flush(&mut self) -> io::Result<()> {
        Err(io::Error::other("full"))
    }
}

#[test]
fn a_journal_that_cannot_be_written_is_counted_and_holds_nobody_up() {
    let bench = Bench::new();
    let settings = Settings { journal: Some(Journal::to(Broken)), ..Settings::default() };
    let books = Books::of(&bench.meter(), settings).unwrap();
    bench.draws(300.0);
    let mut ticket = books.open(&Labels::default());
    ticket.tokens(1);
    bench.pass(4);
    assert!(ticket.close(Usage::default()).settle(LONG).joules.is_some());
    let balance = books.trial_balance().unwrap();
    assert!(balance.journal_failed > 0 && balance.journal_written == 0, "{balance:?}");
}

#[test]
fn closed_books_answer_what_is_known() {
    let bench = Bench::new();
    let books = Books::of(&bench.meter(), Settings::default()).unwrap();
    bench.draws(300.0);
    let mut ticket = books.open(&Labels::default());
    ticket.tokens(1);
    bench.pass(4);
    let so_far = ticket.so_far();
    books.close();
    let receipt = in_time(move || so_far.settle(LONG));
    assert!(receipt.joules.unwrap() > 0.0 && !receipt.settled, "{receipt:?}");
    let late = in_time(move || ticket.close(Usage::default()).now());
    assert!(late.joules.is_some(), "{late:?}");
}

#[test]
fn full_books_refuse_and_count() {
    let bench = Bench::new();
    let keeping = keeper::Settings { most_open: 2, ..keeper::Settings::default() };
    let books = Books::of(&bench.meter(), Settings { keeping, ..Settings::default() }).unwrap();
    let kept = [books.open(&Labels::default()), books.open(&Labels::default())];
    let mut refused = books.open(&Labels::default());
    refused.tokens(1);
    assert!(refused.id().is_none() && kept.iter().all(|ticket| ticket.id().is_some()));
    assert_eq!(refused.close(Usage::default()).now().method, Method::Unknown);
    assert_eq!(books.trial_balance().unwrap().refused_tickets, 1);
    drop(kept);
    eventually(|| books.trial_balance().is_some_and(|it| it.open == 0));
    assert!(books.open(&Labels::default()).id().is_some());
}

#[test]
fn somebody_else_on_the_card_leaves_no_figure_unless_that_is_wanted() {
    let other = Process { pid: 1, used_mib: Some(4000), name: "other".into() };
    let bench = Bench::with(Setup { tenants: vec![other], ..Setup::default() });
    bench.pass(20);
    let ask = |lenient: bool| {
        let settings = Settings { lenient, ..Settings::default() };
        let books = Books::of(&bench.meter_of(&Node::of("0").idle_watts(REST_W)), settings);
        let books = books.unwrap();
        let mut ticket = books.open(&Labels::default());
        ticket.tokens(1);
        bench.pass(5);
        let receipt = ticket.fail(Usage::default()).settle(LONG);
        assert!(books.trial_balance().unwrap().balances());
        receipt
    };
    bench.draws(300.0);
    let strict = ask(false);
    assert_eq!((strict.error, strict.joules), (Some(Fault::SharedDevice), None));
    assert!(strict.high_joules.unwrap() > 0.0 && strict.low_joules == Some(0.0));
    assert_eq!(strict.contended_by.as_deref(), Some("other (4000 MiB)"));
    let lenient = ask(true);
    assert!(lenient.joules.unwrap() > 0.0 && lenient.flags.contains(Flags::FOREIGN));
    assert_eq!(lenient.status, Status::Failed);
}

#[test]
fn one_card_has_one_book() {
    let (bench, other) = (Bench::new(), Bench::new());
    let first = Books::of(&bench.meter(), Settings::default()).unwrap();
    let clone = first.clone();
    let refused = Books::of(&bench.meter(), Settings::default()).unwrap_err();
    assert!(matches!(refused, BooksError::Kept { index: 0, .. }), "{refused:?}");
    let said = refused.to_string();
    assert!(said.contains(&bench.card.device().uuid) && said.contains("one book"), "{said}");
    // A meter of which one card is kept is refused whole, and leaves the other card free.
    let cards = vec![Arc::clone(&other.card), Arc::clone(&bench.card)];
    let both = Meter::of_cards(&Node::of("0").idle_watts(REST_W), cards);
    assert!(Books::of(&both, Settings::default()).is_err());
    let beside = Books::of(&other.meter(), Settings::default()).unwrap();
    let off = Settings { level: Level::Off, ..Settings::default() };
    assert!(Books::of(&bench.meter(), off).is_ok(), "books that are off keep nothing");
    drop(first);
    assert!(Books::of(&bench.meter(), Settings::default()).is_err(), "a clone is left");
    drop(clone);
    // A ticket and a receipt that is awaited keep the books open.
    for _ in 0..3 {
        let books = Books::of(&bench.meter(), Settings::default()).unwrap();
        let ticket = books.open(&Labels::default());
        drop(books);
        assert!(Books::of(&bench.meter(), Settings::default()).is_err());
        let pending = ticket.close(Usage::default());
        assert!(Books::of(&bench.meter(), Settings::default()).is_err());
        drop(pending);
    }
    // What was closed gives way though clones of it are left, and they take nothing from the next.
    let closed = Books::of(&bench.meter(), Settings::default()).unwrap();
    let clone = closed.clone();
    closed.close();
    let next = Books::of(&bench.meter(), Settings::default()).unwrap();
    drop(clone);
    assert!(Books::of(&bench.meter(), Settings::default()).is_err());
    drop((next, beside));
    assert!(Books::of(&both, Settings::default()).is_ok());
}

#[test]
fn books_that_are_off_know_nothing() {
    let bench = Bench::new();
    let off = Settings { level: Level::Off, ..Settings::default() };
    let books = Books::of(&bench.meter(), off).unwrap();
    let mut ticket = books.open(&Labels::default());
    ticket.tokens(3);
    let receipt = ticket.close(Usage::default()).settle(LONG);
    assert_eq!((receipt.joules, receipt.error), (None, Some(Fault::Absent)));
    assert!(books.trial_balance().is_none() && books.last_second().is_none());
}
