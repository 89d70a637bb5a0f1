use std::{thread, time::Duration};

use joulebook::{Fault, Reader, smi::SmiError};

use super::bench::{next_watts, scenario, script, until, watts};

/// The header of a tool that knows two columns.
const HEADER: &str = "echo 'index, power.draw.instant [W]'";

#[test]
fn a_loop_that_went_bad_gives_way_to_single_calls() {
    // A good first row, then `[Unknown Error]` for ever; single calls are good.
    let bench = script(&format!(
        "{HEADER}\ncase \"$*\" in\n*-lms*) echo '0, 55.10'; while :; do echo '0, [Unknown \
         Error]'; sleep 0.1; done ;;\n*) echo '0, 77.00' ;;\nesac"
    ));
    let (_feed, mut cards) = bench.cards();
    assert_eq!(until(|| cards[0].read().err()), Fault::Unknown);
    until(|| (watts(cards[0].read()) == Ok(77.0)).then_some(()));
    let calls = bench.calls();
    assert!(calls[0].1.contains("-lms") && !calls[1].1.contains("-lms"), "{calls:?}");
    // The rows now come as often as the calls are made.
    for _ in 0..4 {
        next_watts(&mut cards[0]);
    }
    assert!(until(|| cards[0].every_ns().filter(|every| *every > 500_000_000)) > 0);
}

#[test]
fn a_loop_that_dies_is_started_again() {
    let bench = scenario("card 0\n idle 70\n fault 0.6 0.9 smi.die x");
    let (_feed, mut cards) = bench.cards();
    assert_eq!(next_watts(&mut cards[0]), 70.0);
    let fault = until(|| cards[0].read().err());
    assert_eq!(fault, Fault::Unknown, "it died without a word");
    assert_eq!(next_watts(&mut cards[0]), 70.0);
    let calls = bench.calls();
    assert!((2..=4).contains(&calls.len()), "{calls:?}");
}

#[test]
fn each_sentence_of_an_ending_loop_is_told_by_its_word() {
    let text = "Unable to determine the device handle for GPU 0000:18:00.0: GPU is lost.";
    for (fault, expected) in [
        (format!("fault 0.6 inf smi.exit 15 {text}"), Fault::Lost),
        ("fault 0.6 inf smi.exit 9".to_owned(), Fault::DriverAbsent),
        ("fault 0.6 inf handle lost".to_owned(), Fault::Lost),
        ("fault 0.6 inf init mismatch".to_owned(), Fault::DriverAbsent),
        ("fault 0.6 inf init unknown".to_owned(), Fault::AccessLost),
        ("fault 0.6 inf power resetreq\n fault 0.6 inf instant resetreq".to_owned(), Fault::Lost),
    ] {
        let bench = scenario(&format!("card 0\n {fault}"));
        let (_feed, mut cards) = bench.cards();
        next_watts(&mut cards[0]);
        assert_eq!(until(|| cards[0].read().err()), expected, "{fault}");
    }
}

#[test]
fn smi_line_shape_05_a_driver_may_come_late() {
    let bench = scenario("card 0\n idle 58.2\n fault 0 1 init nodriver");
    let feed = bench.feed();
    let error = feed.cards().unwrap_err();
    assert_eq!(error.fault(), Fault::DriverAbsent);
    assert!(error.to_string().contains("couldn't communicate"), "{error}");
    let cards = until(|| feed.cards().ok());
    let mut card = joulebook::smi::SmiCard::open(&feed, &cards[0]);
    assert_eq!(watts(card.read()), Ok(58.2));
}

#[test]
fn a_tool_that_hangs_is_told_of_and_asked_again_seldom() {
    let bench = scenario("card 0\n fault 0.5 inf smi.hang x 600000");
    let (_feed, mut cards) = bench.cards();
    next_watts(&mut cards[0]);
    until(|| (cards[0].read() == Err(Fault::Timeout)).then_some(()));
    // Ten polls and more; one child at a time.
    for _ in 0..12 {
        assert_eq!(cards[0].read(), Err(Fault::Timeout));
        assert!(bench.left() <= 1, "{} children", bench.left());
    }
    assert!(bench.calls().len() <= 4, "{:?}", bench.calls());
}

#[test]
fn sampler_time_03_a_tool_too_slow_for_its_limit_is_unreadable_and_then_waited_for_longer() {
    let bench = script(&format!("sleep 4; {HEADER}; while :; do echo '0, 100.0'; sleep 0.1; done"));
    let feed = bench.feed();
    let error = feed.cards().unwrap_err();
    assert_eq!(error.fault(), Fault::Timeout);
    let cards = until(|| feed.cards().ok());
    let mut card = joulebook::smi::SmiCard::open(&feed, &cards[0]);
    assert_eq!(watts(card.read()), Ok(100.0));
    assert_eq!(bench.calls().len(), 2);
}

#[test]
fn half_a_line_is_no_reading() {
    let bench = script(&format!(
        "{HEADER}\necho '0, 95.20'; echo '0, 95.20'; printf '0, 9'; sleep 0.2; exit 1"
    ));
    let (feed, mut cards) = bench.cards();
    let mut seen = Vec::new();
    while seen.len() < 4 {
        seen.extend(watts(cards[0].read()));
    }
    assert!(seen.iter().all(|power| *power == 95.2), "{seen:?}");
    assert!(feed.cost().rejected_lines >= 1);
}

#[test]
fn a_flood_is_stopped() {
    let bench = script(&format!("{HEADER}\necho '0, 5.0'; echo '0, 5.0'; exec yes lorem ipsum"));
    let (feed, mut cards) = bench.cards();
    assert_eq!(until(|| cards[0].read().err()), Fault::MalformedRow);
    let before = feed.cost().rejected_lines;
    assert!(before < 1_000_000, "it was stopped: {before}");
}

#[test]
fn a_tool_without_a_stamp_or_a_name_is_read_by_what_it_has() {
    let bench = script(
        "case \"$*\" in *timestamp*) echo 'Field \"timestamp\" is not a valid field to query.'; \
         exit 2;; esac\necho 'index, power.draw [W]'; while :; do echo '3, 12.5'; sleep 0.1; done",
    );
    let (_feed, mut cards) = bench.cards();
    assert_eq!(watts(cards[0].read()), Ok(12.5));
    assert_eq!((cards[0].device().index, cards[0].device().uuid.as_str()), (3, "index 3"));
}

#[test]
fn rows_that_name_no_card_are_refused() {
    let bench = script("echo 'power.draw [W]'; while :; do echo 41.2; echo 39.8; sleep 0.1; done");
    let error = bench.feed().cards().unwrap_err();
    assert!(matches!(error, SmiError::Failed { .. }), "{error}");
    assert_eq!(error.fault(), Fault::Timeout);
}

#[test]
fn no_program_says_so() {
    let bench = script("exit 0");
    std::fs::remove_file(bench.path()).unwrap();
    let error = bench.feed().cards().unwrap_err();
    assert!(matches!(error, SmiError::Missing { .. }), "{error:?}");
    assert_eq!(error.fault(), Fault::DriverAbsent);
    assert!(error.to_string().contains("JOULEBOOK_SMI"), "{error}");
}

#[test]
fn a_pause_is_a_hole_and_rows_go_on_after_it() {
    let bench = scenario("card 0\n idle 70\n fault 0.5 1.8 smi.pause x");
    let (_feed, mut cards) = bench.cards();
    until(|| (cards[0].read() == Err(Fault::Timeout)).then_some(()));
    thread::sleep(Duration::from_millis(300));
    assert_eq!(next_watts(&mut cards[0]), 70.0);
    assert_eq!(bench.calls().len(), 1, "the child was waited for");
}
