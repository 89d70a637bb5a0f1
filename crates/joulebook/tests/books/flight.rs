//! Many tickets at once: the sum of what they and all other accounts hold is what the register
//! counted.

use std::{
    io::Write,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use joulebook::{
    Meter, Method, Node,
    books::{Audit, Books, Journal, Labels, Phases, Receipt, Settings, Status, Usage},
};

use crate::bench::{Bench, REST_W, block_on, eventually};

const LONG: Duration = Duration::from_secs(20);

/// A journal in memory.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn audited(journal: &[u8]) -> Audit {
    let mut audit = Audit::new();
    audit.read(&mut &*journal).unwrap();
    assert_eq!(audit.broken(), None);
    audit
}

fn usage(prompt: u64, completion: u64) -> Usage {
    Usage { prompt: Some(prompt), completion: Some(completion), ..Usage::default() }
}

/// What one request does: read, write `tokens`, end.
fn works(books: &Books, number: u64) -> Receipt {
    let labels = Labels { model: Some("m"), queued: true, ..Labels::default() };
    thread::sleep(Duration::from_millis(number * 13 % 200));
    let mut ticket = books.open(&labels);
    ticket.prompt(100 + number * 10, Some(0));
    thread::sleep(Duration::from_millis(20));
    ticket.admitted();
    thread::sleep(Duration::from_millis(30 + number % 7 * 10));
    let tokens = 20 + number * 5;
    for _ in 0..tokens {
        ticket.tokens(1);
        thread::sleep(Duration::from_millis(8));
    }
    ticket.mark("written");
    ticket.close(usage(100 + number * 10, tokens)).settle(LONG)
}

#[test]
fn twenty_at_once_are_charged_what_the_register_counted() {
    let bench = Bench::new();
    let journal = Memory::default();
    let sink = Some(Journal::to(journal.clone()));
    let books = Books::of(&bench.meter(), Settings { journal: sink, ..Settings::default() });
    let books = books.unwrap();
    bench.draws(500.0);
    let receipts: Vec<Receipt> = thread::scope(|scope| {
        let all: Vec<_> = (0..20)
            .map(|number| {
                scope.spawn({
                    let books = books.clone();
                    move || works(&books, number)
                })
            })
            .collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    bench.draws(REST_W);
    bench.pass(5);
    let balance = books.trial_balance().unwrap();
    let card = &balance.cards[0];
    assert_eq!(card.imbalance_uj, 0);
    let charged: f64 = receipts.iter().map(|receipt| receipt.joules.unwrap()).sum();
    assert!((charged - card.requests_joules).abs() < 1e-6, "{charged} J, {card:?}");
    let sum = card.requests_joules
        + card.idle_off_joules
        + card.idle_resident_joules
        + card.unattributed_joules
        + card.gap_joules
        + card.suspense_joules;
    assert!((sum - card.counted_joules).abs() < 1e-6, "{card:?}");
    for receipt in &receipts {
        assert_eq!((receipt.method, receipt.settled), (Method::Sampled, true), "{receipt:?}");
        assert_eq!((receipt.status, receipt.error), (Status::Done, None));
        assert!(receipt.coverage > 0.999 && !receipt.coarse, "{receipt:?}");
        assert!(receipt.bound_joules.unwrap() > 0.0 && receipt.ttft_seconds.unwrap() >= 0.05);
        assert!(receipt.model_low.unwrap() <= receipt.joules.unwrap() * 1.000_001);
        assert!(receipt.model_high.unwrap() >= receipt.joules.unwrap() * 0.999_999);
        assert_eq!((receipt.backend.as_ref(), receipt.marks.len()), ("simulated", 1));
        let parts = receipt.prefill_joules.unwrap() + receipt.decode_joules.unwrap();
        assert!((parts - receipt.joules.unwrap()).abs() < 1e-9);
    }
    // More tokens and a longer prompt of the same kind cost more.
    assert!(receipts[19].joules > receipts[0].joules, "{receipts:?}");
    books.close();
    let audit = audited(&journal.0.lock().unwrap());
    let (_, book) = audit.cards().next().unwrap();
    let counted_j = book.book().ledger().counted_uj() as f64 / 1e6;
    assert!((counted_j - card.counted_joules).abs() < 50.0);
    assert!(audit.transactions() > 50);
}

#[test]
fn a_dropped_ticket_is_cancelled_and_charged() {
    let bench = Bench::new();
    let books = Books::of(&bench.meter(), Settings::default()).unwrap();
    bench.draws(400.0);
    let mut ticket = books.open(&Labels::default());
    let id = ticket.id().unwrap();
    ticket.tokens(5);
    thread::sleep(Duration::from_millis(150));
    drop(ticket);
    eventually(|| books.receipt(id).is_some_and(|receipt| receipt.settled));
    let receipt = books.receipt(id).unwrap();
    assert_eq!((receipt.status, receipt.tokens.completion), (Status::Cancelled, Some(5)));
    // 330 W above rest for 150 ms and more; the register steps each 20 ms.
    assert!(receipt.joules.unwrap() > 40.0, "{receipt:?}");
}

/// The step that reads the last of a prompt emits the first token: it costs nothing beside the
/// prompt. Where no prompt is known, it is a token like others.
#[test]
fn the_token_that_ends_a_prompt_weighs_nothing() {
    let bench = Bench::new();
    let books = Books::of(&bench.meter(), Settings::default()).unwrap();
    bench.draws(400.0);
    let parts = |prompt: Option<u64>, bytes: u64, tokens: u64| {
        let labels = Labels { prompt_bytes: bytes, ..Labels::default() };
        let mut ticket = books.open(&labels);
        if let Some(prompt) = prompt {
            ticket.prompt(prompt, Some(0));
        }
        ticket.admitted();
        bench.pass(3);
        ticket.tokens(1);
        for _ in 1..tokens {
            bench.pass(1);
            ticket.tokens(1);
        }
        let used = Usage { prompt, completion: Some(tokens), ..Usage::default() };
        let receipt = ticket.close(used).settle(LONG);
        assert!(receipt.joules.unwrap() > 10.0, "{receipt:?}");
        (receipt.prefill_joules.unwrap(), receipt.decode_joules.unwrap())
    };
    for (prompt, bytes) in [(Some(1000), 0), (None, 4000)] {
        let (prefill, decode) = parts(prompt, bytes, 1);
        assert!(prefill > 10.0 && decode == 0.0, "{prefill} J, {decode} J");
        let (prefill, decode) = parts(prompt, bytes, 3);
        assert!(prefill > 10.0 && decode > 1.0, "{prefill} J, {decode} J");
    }
    let (prefill, decode) = parts(None, 0, 1);
    assert!(prefill == 0.0 && decode > 10.0, "{prefill} J, {decode} J");
}

#[test]
fn a_receipt_is_given_at_once_and_then_awaited() {
    let bench = Bench::new();
    let books = Books::of(&bench.meter(), Settings::default()).unwrap();
    bench.draws(400.0);
    let mut ticket = books.open(&Labels { caller: Some("somebody"), ..Labels::default() });
    ticket.tokens(1);
    bench.pass(4);
    assert!(ticket.so_far().now().joules.unwrap() > 0.0);
    let pending = ticket.close(usage(10, 1));
    let now = pending.now();
    assert!(now.joules.is_some() && now.seconds > 0.0, "{now:?}");
    let settled = block_on(pending);
    assert!(settled.settled && settled.joules >= now.joules, "{now:?} {settled:?}");
    assert_eq!(settled.labels.caller.as_deref(), Some("somebody"));
}

#[test]
fn several_cards_add_up_each_by_its_part_of_the_work() {
    let (first, second) = (Bench::new(), Bench::new());
    let node = Node { idle: joulebook::Idle::Each(vec![REST_W, REST_W]), ..Node::default() };
    let cards = vec![Arc::clone(&first.card), Arc::clone(&second.card)];
    let meter = Meter::of_cards(&node, cards);
    let books = Books::of(&meter, Settings::default()).unwrap();
    first.draws(400.0);
    second.draws(200.0);
    let mut both = books.open(&Labels::default());
    let mut one = books.open(&Labels { cards: &[(1, Phases::Decode)], ..Labels::default() });
    for _ in 0..20 {
        both.tokens(1);
        one.tokens(1);
        thread::sleep(Duration::from_millis(10));
    }
    let (both, one) = (both.close(usage(0, 20)), one.close(usage(0, 20)));
    let (both, one) = (both.settle(LONG), one.settle(LONG));
    assert_eq!((both.cards.len(), one.cards.len()), (2, 1));
    assert!(both.joules.unwrap() > 2.5 * one.joules.unwrap(), "{both:?} {one:?}");
    let balance = books.trial_balance().unwrap();
    assert!(balance.balances());
    let charged: f64 = balance.cards.iter().map(|card| card.requests_joules).sum();
    assert!((charged - both.joules.unwrap() - one.joules.unwrap()).abs() < 1e-6);
}
