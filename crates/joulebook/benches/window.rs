//! What a window costs the caller: opening, marking, closing and both answers, on a simulated card
//! that its recorder reads in real time.
//!
//! The settled answers here are those whose publishes have come: what is timed is the answer, not
//! the wait for it.

#![allow(clippy::panic)] // a benchmark that cannot begin has nothing better to do

#[path = "../examples/support/probed.rs"]
mod probed;

use std::{
    hint::black_box,
    sync::{Arc, LazyLock},
    thread,
    time::Duration,
};

use divan::{Bencher, counter::ItemsCount};
use joulebook::{Card, Meter, Node, Settings, profile::Profile, record};
use joulebook_lab::{Clock, Scenario, SimulatedCard};

const IDLE_W: f64 = 70.0;

/// Read by a recorder that knows the publish period.
static PROBED: LazyLock<Meter> = LazyLock::new(|| meter(probed::profile(100.0)));

/// Read by one that does not.
static UNPROBED: LazyLock<Meter> = LazyLock::new(|| meter(Profile::default()));

fn main() {
    divan::main();
}

fn meter(profile: Profile) -> Meter {
    let scenario = Scenario::parse("card 0\n  counter period_ms=100 jitter_ms=1\n")
        .unwrap_or_else(|error| panic!("{error}"));
    let cards = SimulatedCard::all(&scenario, &Clock::monotonic(), |_| None);
    let cards: Vec<Arc<Card>> = cards
        .into_iter()
        .map(|card| {
            let settings = Settings { profile: profile.clone(), gap_ns: None };
            record(Box::new(card.clone()), Some(Box::new(card)), settings)
        })
        .collect();
    let meter = Meter::of_cards(&Node::of("0").idle_watts(IDLE_W), cards);
    assert!(meter.wait_ready(Duration::from_secs(5)), "the card has shown nothing");
    // So that there are quiet ticks before the first window.
    thread::sleep(Duration::from_secs(2));
    meter
}

#[divan::bench]
fn open_close(bencher: Bencher) {
    let meter = &*PROBED;
    bencher.bench(|| meter.open().close());
}

#[divan::bench]
fn open_mark_close(bencher: Bencher) {
    let meter = &*PROBED;
    bencher.bench(|| {
        let mut window = meter.open();
        window.mark("stage");
        window.close()
    });
}

#[divan::bench]
fn open_close_now(bencher: Bencher) {
    let meter = &*PROBED;
    bencher.bench(|| meter.open().close().now());
}

#[divan::bench]
fn open_close_now_unprobed(bencher: Bencher) {
    let meter = &*UNPROBED;
    bencher.bench(|| meter.open().close().now());
}

#[divan::bench(sample_count = 20, sample_size = 1)]
fn settle_200_of_their_own(bencher: Bencher) {
    let meter = &*PROBED;
    let windows = || {
        let one = |_| {
            let window = meter.open();
            thread::sleep(Duration::from_micros(10));
            window.close()
        };
        let pending: Vec<_> = (0..200).map(one).collect();
        thread::sleep(Duration::from_millis(600));
        pending
    };
    bencher.counter(ItemsCount::new(200usize)).with_inputs(windows).bench_local_refs(|pending| {
        for window in pending {
            black_box(window.settle(Duration::ZERO));
        }
    });
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn settle_1000_that_overlap(bencher: Bencher) {
    let meter = &*PROBED;
    let windows = || {
        let open: Vec<_> = (0..1000).map(|_| meter.open()).collect();
        thread::sleep(Duration::from_millis(50));
        let pending: Vec<_> = open.into_iter().map(joulebook::Window::close).collect();
        thread::sleep(Duration::from_millis(600));
        pending
    };
    bencher.counter(ItemsCount::new(1000usize)).with_inputs(windows).bench_local_refs(|pending| {
        for window in pending {
            black_box(window.settle(Duration::ZERO));
        }
    });
}
