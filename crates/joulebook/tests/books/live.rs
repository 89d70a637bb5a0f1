//! Live joules per token.

use std::{thread, time::Duration};

use joulebook::books::{Books, Labels, Settings};

use crate::bench::{Bench, eventually};

#[test]
fn joules_per_token_are_absent_until_there_are_both() {
    let bench = Bench::new();
    let books = Books::of(&bench.meter(), Settings::default()).unwrap();
    let start_ns = joulebook::clock::now_ns();
    bench.pass(3);
    let quiet = books.since_start().unwrap();
    assert_eq!((quiet.tokens, quiet.gross_joules_per_token()), (0, None));
    bench.draws(400.0);
    let mut ticket = books.open(&Labels::default());
    for _ in 0..60 {
        ticket.tokens(2);
        thread::sleep(Duration::from_millis(5));
    }
    bench.pass(3);
    eventually(|| books.since_start().is_some_and(|rate| rate.tokens == 120));
    let since_start = books.since_start().unwrap();
    let (joules, tokens) = (since_start.joules.unwrap(), since_start.tokens as f64);
    assert!((since_start.joules_per_token().unwrap() - joules / tokens).abs() < 1e-9);
    assert!(since_start.gross_joules > joules && joules > 60.0, "{since_start:?}");
    // As soon as the card has been seen for so long.
    eventually(|| books.last_second().is_some());
    let second = books.last_second().unwrap();
    assert!((second.seconds - 1.0).abs() < 1e-6 && second.tokens <= 120, "{second:?}");
    let window = books.between(start_ns, joulebook::clock::now_ns()).unwrap();
    assert!(window.tokens <= 120 && window.gross_joules > 0.0, "{window:?}");
    assert!(books.between(start_ns, start_ns).is_none());
}
