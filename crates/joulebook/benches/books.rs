//! What the books cost those who work: a token, and a ticket's opening and closing, with the owner
//! at work on a simulated card beside them.

#![allow(clippy::panic)] // a benchmark that cannot begin has nothing better to do

#[path = "../examples/support/probed.rs"]
mod probed;

use std::{sync::LazyLock, time::Duration};

use divan::Bencher;
use joulebook::{
    Meter, Node,
    books::{Books, Labels, Level, Settings, Usage},
    record,
};
use joulebook_lab::{Clock, Scenario, SimulatedCard};

static ON: LazyLock<Books> = LazyLock::new(|| books(Level::On));
static OFF: LazyLock<Books> = LazyLock::new(|| books(Level::Off));

fn main() {
    divan::main();
}

fn books(level: Level) -> Books {
    let scenario = Scenario::parse("card 0\n  counter period_ms=100 jitter_ms=1\n")
        .unwrap_or_else(|error| panic!("{error}"));
    let cards = SimulatedCard::all(&scenario, &Clock::monotonic(), |_| None).into_iter();
    let settings = || joulebook::Settings { profile: probed::profile(100.0), gap_ns: None };
    let cards = cards
        .map(|card| record(Box::new(card.clone()), Some(Box::new(card)), settings()))
        .collect();
    let meter = Meter::of_cards(&Node::of("0").idle_watts(70.0), cards);
    assert!(meter.wait_ready(Duration::from_secs(5)), "the card has shown nothing");
    Books::of(&meter, Settings { level, ..Settings::default() })
        .unwrap_or_else(|error| panic!("{error}"))
}

#[divan::bench]
fn tokens_1(bencher: Bencher) {
    let mut ticket = ON.open(&Labels::default());
    bencher.bench_local(|| ticket.tokens(1));
}

#[divan::bench]
fn tokens_1_off(bencher: Bencher) {
    let mut ticket = OFF.open(&Labels::default());
    bencher.bench_local(|| ticket.tokens(1));
}

// As many as may be open at once on a busy server, not as many as the loop can make.
#[divan::bench(sample_count = 100, sample_size = 20)]
fn open_close(bencher: Bencher) {
    let labels = Labels { model: Some("model"), caller: Some("caller"), ..Labels::default() };
    bencher.bench_local(|| ON.open(&labels).close(Usage::default()));
}

#[divan::bench]
fn open_close_off(bencher: Bencher) {
    let labels = Labels { model: Some("model"), caller: Some("caller"), ..Labels::default() };
    bencher.bench_local(|| OFF.open(&labels).close(Usage::default()));
}
