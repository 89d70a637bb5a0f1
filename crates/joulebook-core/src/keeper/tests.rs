use proptest::prelude::*;

use super::*;
use crate::{
    fault::Fault,
    ledger::{Account, Auditor, Phase, Reason, RequestId, settle::Rho},
    measurement::Method,
    receipt::TokenSource,
};

mod bounds;
mod oracle;

pub const MS: u64 = 1_000_000;
/// Where the clocks of these tests begin.
pub const START: u64 = 1000 * SECOND_NS;

pub fn facts(name: &str, lag_ms: u64) -> CardFacts {
    CardFacts {
        name: name.into(),
        backend: "simulated",
        source: Source::Local,
        lag_ns: lag_ms * MS,
        lag_uncertainty_ns: 5 * MS,
    }
}

pub fn publish(begin_ns: u64, end_ns: u64, counted_uj: u64) -> Publish {
    Publish {
        tick: Tick { begin_ns, end_ns, counted_uj, unplaced: false },
        edge_uj: 1000,
        rest: Some(Rest { power_uw: 0, off_uw: None, model_loaded: true }),
        spread_uw: 0,
        others: Others::Nobody,
        contended_by: None,
        flags: Flags::NONE,
    }
}

pub fn opening(id: u64, cards: &[usize]) -> Opening {
    let payer = |card: &usize| Payer { card: *card, phases: Phases::Both, rho: Rho::default() };
    Opening { id, payers: cards.iter().map(payer).collect(), ..Opening::default() }
}

fn completion(tokens: u64) -> Usage {
    Usage { completion: Some(tokens), source: TokenSource::Usage, ..Usage::default() }
}

/// Books of one card that publishes each 100 ms without a lag.
struct Desk {
    keeper: Keeper,
    ticks: u64,
}

impl Desk {
    fn new(settings: Settings) -> Self {
        Self { keeper: Keeper::new(settings, [facts("a", 0)]), ticks: 0 }
    }

    /// Milliseconds since the start.
    fn at(ms: u64) -> u64 {
        START + ms * MS
    }

    /// The next tick, and 10 ms more.
    fn tick(&mut self, counted_mj: u64) {
        let begin_ns = START + self.ticks * 100 * MS;
        self.ticks += 1;
        let end_ns = begin_ns + 100 * MS;
        self.keeper.publish(0, publish(begin_ns, end_ns, counted_mj * 1000));
        self.keeper.advance(end_ns + 10 * MS);
        self.keeper.self_check().unwrap();
    }

    fn balance(&self, account: Account) -> i128 {
        self.keeper.standing(0).unwrap().ledger.balance(account)
    }
}

#[test]
fn two_requests_share_by_what_they_weigh() {
    let mut desk = Desk::new(Settings::default());
    for id in [1, 2] {
        desk.keeper.open(Desk::at(0), opening(id, &[0])).unwrap();
        desk.keeper.prompt(id, 800, Some(0));
        desk.keeper.admitted(id, Desk::at(0));
        desk.keeper.tokens(id, Desk::at(100), 1);
    }
    desk.tick(1000);
    desk.keeper.tokens(1, Desk::at(150), 31);
    desk.keeper.tokens(2, Desk::at(150), 11);
    desk.keeper.close(1, Desk::at(180), Status::Done, completion(31));
    desk.keeper.close(2, Desk::at(180), Status::Done, completion(11));
    desk.tick(400);
    let receipts: Vec<Receipt> = desk.keeper.finished().collect();
    assert_eq!(receipts.len(), 2);
    let first = &receipts[0];
    assert_eq!((first.joules, first.method, first.settled), (Some(0.8), Method::Sampled, true));
    assert_eq!((first.prefill_joules, first.decode_joules), (Some(0.5), Some(0.3)));
    assert_eq!(receipts[1].joules, Some(0.6));
    assert_eq!((first.ttft_seconds, first.seconds, first.coverage), (Some(0.1), 0.18, 1.0));
    assert_eq!(first.joules_per_token, Some(0.8 / 31.0));
    // Under time alone both would have been charged 0.7 J.
    assert_eq!((first.model_low, first.model_high), (Some(0.7), Some(0.8)));
    // Half of tick 1, three quarters of tick 2, and nothing before and after, at 1 mJ an edge.
    let bound = first.bound_joules.unwrap();
    assert!((bound - 0.0015).abs() < 1e-5, "{bound}");
    assert_eq!(first.entries[0].card.as_ref(), "a");
    let json = serde_json::to_value(first).unwrap();
    assert_eq!((&json["rule"], &json["split"]), (&"ledger".into(), &"weighted".into()));
}

/// What each rule of the range charges a request on the first card, mJ.
fn range_mj(desk: &Desk, id: u64) -> Vec<i64> {
    let request = desk.keeper.requests.get(desk.keeper.requests.place(id).unwrap()).unwrap();
    let rules = request.pages.on(0).unwrap().tally.rules_uj();
    rules.iter().map(|uj| (uj / 1000.0).round() as i64).collect()
}

#[test]
fn nobody_knows_how_long_a_prompt_was_queued_and_the_range_says_so() {
    let mut desk = Desk::new(Settings::default());
    for id in [1, 2] {
        desk.keeper.open(Desk::at(0), opening(id, &[0])).unwrap();
    }
    desk.keeper.prompt(2, 800, None);
    // One writes all the time, a hundred tokens a tick; the other's first token ends the second.
    desk.keeper.tokens(1, Desk::at(50), 100);
    desk.tick(1000);
    desk.keeper.tokens(1, Desk::at(150), 200);
    desk.keeper.tokens(2, Desk::at(200), 1);
    desk.tick(1000);
    // By time, token, weight; with its own prompt at the last moment; with all others'.
    assert_eq!(range_mj(&desk, 1), [1000, 1990, 1333, 1333, 1500]);
    assert_eq!(range_mj(&desk, 2), [1000, 10, 667, 500, 667]);
    // Told late that it waited for the whole first tick, the books charge what they would have.
    desk.keeper.admitted(2, Desk::at(100));
    desk.tick(0);
    assert_eq!(range_mj(&desk, 1), [1500, 1990, 1500, 1500, 1500]);
    assert_eq!(range_mj(&desk, 2), [500, 10, 500, 500, 500]);
    // Whoever leaves without a token may never have been served.
    desk.keeper.open(Desk::at(300), opening(3, &[0])).unwrap();
    desk.keeper.prompt(3, 800, None);
    desk.keeper.tokens(1, Desk::at(350), 300);
    desk.keeper.close(3, Desk::at(400), Status::Cancelled, Usage::default());
    desk.tick(1000);
    assert_eq!(range_mj(&desk, 3), [333, 0, 500, 0, 500]);
    let receipt = desk.keeper.receipt(3, Desk::at(410)).unwrap();
    assert_eq!(
        (receipt.model_low, receipt.model_high, receipt.coarse),
        (Some(0.0), Some(0.5), true)
    );
}

#[test]
fn a_tick_waits_for_a_neighbours_first_token() {
    let mut desk = Desk::new(Settings::default());
    desk.keeper.open(Desk::at(0), opening(1, &[0])).unwrap();
    desk.keeper.prompt(1, 100, None);
    desk.tick(1000);
    assert_eq!(desk.balance(Account::Suspense), 1_000_000);
    assert_eq!(desk.keeper.receipt(1, Desk::at(110)).unwrap().error, Some(Fault::NotReady));
    desk.keeper.tokens(1, Desk::at(150), 1);
    desk.tick(1000);
    assert_eq!(desk.balance(Account::Suspense), 0);
    let so_far = desk.keeper.receipt(1, Desk::at(210)).unwrap();
    assert_eq!((so_far.joules, so_far.settled), (Some(2.0), false));
}

#[test]
fn the_cap_spreads_the_prompt_over_the_time_so_far_and_news_corrects_it() {
    let mut desk = Desk::new(Settings::default());
    desk.keeper.open(Desk::at(0), Opening { prompt_bytes: 4000, ..opening(1, &[0]) }).unwrap();
    desk.keeper.open(Desk::at(0), opening(2, &[0])).unwrap();
    for number in 0..105 {
        desk.keeper.tokens(2, Desk::at(number * 100 + 50), (number + 1) * 10);
        desk.tick(1000);
    }
    assert!(desk.keeper.counts().capped > 0, "{:?}", desk.keeper.counts());
    let before = desk.balance(Account::Request(RequestId(1), Phase::Prefill));
    assert!(before > 0);
    desk.keeper.admitted(1, Desk::at(10_400));
    desk.keeper.tokens(1, Desk::at(10_450), 1);
    desk.tick(1000);
    // All of its reading was later than what had been settled.
    assert_eq!(desk.balance(Account::Request(RequestId(1), Phase::Prefill)), 925_925);
    assert!(desk.keeper.counts().corrections > 0);
    assert_eq!(desk.balance(Account::Suspense), 0);
}

#[test]
fn the_final_usage_rescales_what_was_counted() {
    let mut desk = Desk::new(Settings::default());
    for id in [1, 2] {
        desk.keeper.open(Desk::at(0), opening(id, &[0])).unwrap();
        desk.keeper.tokens(id, Desk::at(50), 10);
    }
    desk.tick(1000);
    assert_eq!(desk.keeper.receipt(1, Desk::at(110)).unwrap().joules, Some(0.5));
    desk.keeper.close(1, Desk::at(120), Status::Done, completion(30));
    desk.tick(0);
    assert_eq!(desk.keeper.receipt(1, Desk::at(210)).unwrap().joules, Some(0.75));
    assert_eq!(desk.keeper.receipt(2, Desk::at(210)).unwrap().joules, Some(0.25));
}

#[test]
fn an_answer_that_is_not_streamed_is_spread_and_says_so() {
    let mut desk = Desk::new(Settings::default());
    desk.keeper.open(Desk::at(0), opening(1, &[0])).unwrap();
    desk.keeper.prompt(1, 800, None);
    desk.keeper.open(Desk::at(0), opening(2, &[0])).unwrap();
    desk.keeper.tokens(2, Desk::at(50), 100);
    desk.tick(1000);
    desk.keeper.tokens(2, Desk::at(150), 200);
    desk.keeper.close(1, Desk::at(200), Status::Done, completion(101));
    desk.tick(1000);
    // Its prompt is read in the first half of its time, its answer written in the second.
    let receipt = desk.keeper.receipt(1, Desk::at(210)).unwrap();
    assert_eq!((receipt.prefill_joules, receipt.decode_joules), (Some(0.5), Some(0.5)));
    assert!(receipt.coarse && receipt.ttft_seconds.is_none());
}

#[test]
fn what_is_abandoned_ends_when_the_card_rests_or_time_is_up() {
    let rest = Some(Rest { power_uw: 70_000_000, off_uw: None, model_loaded: true });
    let mut desk = Desk::new(Settings::default());
    for id in [1, 2] {
        desk.keeper.open(Desk::at(0), opening(id, &[0])).unwrap();
    }
    desk.keeper.abandon(1, Desk::at(50), Usage::default());
    for (number, counted_mj) in [30_000, 7000].into_iter().enumerate() {
        let begin_ns = Desk::at(number as u64 * 100);
        let end_ns = begin_ns + 100 * MS;
        desk.keeper.publish(0, Publish { rest, ..publish(begin_ns, end_ns, counted_mj * 1000) });
    }
    desk.keeper.close(2, Desk::at(90), Status::Done, Usage::default());
    desk.keeper.advance(Desk::at(210));
    let receipts: Vec<Receipt> = desk.keeper.finished().collect();
    let abandoned = receipts.iter().find(|receipt| receipt.id == 1).unwrap();
    assert_eq!(
        (abandoned.status, abandoned.ended_by.as_deref()),
        (Status::Abandoned, Some("floor"))
    );
    assert_eq!(abandoned.seconds, 0.1);
    assert!(abandoned.joules.unwrap() > 0.0);
    desk.keeper.open(Desk::at(300), opening(3, &[0])).unwrap();
    desk.keeper.abandon(3, Desk::at(300), Usage::default());
    desk.keeper.advance(Desk::at(70_000));
    let abandoned = desk.keeper.receipt(3, Desk::at(70_000)).unwrap();
    assert_eq!(
        (abandoned.status, abandoned.ended_by.as_deref()),
        (Status::Abandoned, Some("timeout"))
    );
}

#[test]
fn somebody_else_without_a_known_part_leaves_no_figure_but_a_range() {
    let mut desk = Desk::new(Settings::default());
    desk.keeper.open(Desk::at(0), opening(1, &[0])).unwrap();
    desk.keeper.tokens(1, Desk::at(50), 10);
    desk.keeper.close(1, Desk::at(90), Status::Done, completion(10));
    let contended_by = Some("other (900 MiB)".into());
    let others = Others::Unresolved;
    let tick = publish(Desk::at(0), Desk::at(100), 5_000_000);
    desk.keeper.publish(0, Publish { others, contended_by, ..tick });
    desk.keeper.advance(Desk::at(110));
    let receipt = desk.keeper.finished().next().unwrap();
    assert_eq!((receipt.joules, receipt.method), (None, Method::Unknown));
    assert_eq!(receipt.error, Some(Fault::SharedDevice));
    assert_eq!((receipt.low_joules, receipt.high_joules), (Some(0.0), Some(5.0)));
    assert_eq!(receipt.contended_by.as_deref(), Some("other (900 MiB)"));
    assert_eq!(desk.balance(Account::ForeignUnresolved), 5_000_000);
}

#[test]
fn without_a_floor_only_the_gross_figure_is_known() {
    let mut desk = Desk::new(Settings::default());
    desk.keeper.open(Desk::at(0), opening(1, &[0])).unwrap();
    desk.keeper.tokens(1, Desk::at(50), 10);
    desk.keeper.close(1, Desk::at(90), Status::Done, completion(10));
    let tick = publish(Desk::at(0), Desk::at(100), 5_000_000);
    desk.keeper.publish(0, Publish { rest: None, ..tick });
    desk.keeper.advance(Desk::at(110));
    let receipt = desk.keeper.finished().next().unwrap();
    assert_eq!((receipt.joules, receipt.error), (None, Some(Fault::NoBaseline)));
    assert_eq!(receipt.gross_joules, Some(5.0));
}

#[test]
fn cards_add_up_and_a_card_that_shows_nothing_leaves_the_sum_open() {
    let mut keeper = Keeper::new(Settings::default(), [facts("a", 0), facts("b", 0)]);
    let mut of = opening(1, &[0, 1]);
    of.payers[1].phases = Phases::Decode;
    keeper.open(Desk::at(0), of).unwrap();
    keeper.prompt(1, 100, None);
    keeper.tokens(1, Desk::at(50), 2);
    keeper.open(Desk::at(0), opening(2, &[0])).unwrap();
    keeper.close(1, Desk::at(90), Status::Done, completion(2));
    keeper.close(2, Desk::at(90), Status::Done, Usage::default());
    keeper.publish(0, publish(Desk::at(0), Desk::at(100), 2_000_000));
    keeper.advance(Desk::at(150));
    assert_eq!(keeper.finished().map(|receipt| receipt.id).collect::<Vec<_>>(), [2]);
    assert!(!keeper.receipt(1, Desk::at(150)).unwrap().settled);
    keeper.publish(1, publish(Desk::at(0), Desk::at(100), 500_000));
    keeper.advance(Desk::at(160));
    let receipt = keeper.finished().next().unwrap();
    assert_eq!((receipt.joules, receipt.cards.len()), (Some(2.5), 2));
    // The second card shows nothing more.
    keeper.open(Desk::at(200), opening(3, &[0, 1])).unwrap();
    keeper.tokens(3, Desk::at(210), 2);
    keeper.close(3, Desk::at(220), Status::Done, completion(2));
    keeper.publish(0, publish(Desk::at(100), Desk::at(300), 1_000_000));
    keeper.advance(Desk::at(400));
    assert_eq!(keeper.finished().count(), 0);
    keeper.advance(Desk::at(61_000));
    let receipt = keeper.finished().next().unwrap();
    assert_eq!((receipt.joules, receipt.error), (None, Some(Fault::PartialDevices)));
    assert_eq!((receipt.lower_bound_joules, receipt.settled), (Some(1.0), false));
    assert!(receipt.flags.contains(Flags::PARTIAL));
    // What it counted meanwhile was drawn while somebody was there.
    keeper.advance(Desk::at(200_000));
    keeper.publish(1, publish(Desk::at(100), Desk::at(200_000), 9_000_000));
    keeper.advance(Desk::at(200_100));
    let standing = keeper.standing(1).unwrap();
    assert_eq!(standing.ledger.balance(Account::Gap), 9_000_000);
    keeper.self_check().unwrap();
}

#[test]
fn a_request_that_is_known_to_be_queued_weighs_nothing_and_holds_nobody_up() {
    let mut desk = Desk::new(Settings::default());
    desk.keeper.open(Desk::at(0), opening(1, &[0])).unwrap();
    desk.keeper.tokens(1, Desk::at(20), 10);
    desk.keeper.open(Desk::at(0), Opening { queued: true, ..opening(2, &[0]) }).unwrap();
    desk.keeper.prompt(2, 1_000_000, None);
    desk.tick(1000);
    assert_eq!(desk.keeper.receipt(1, Desk::at(110)).unwrap().joules, Some(1.0));
    assert_eq!(desk.balance(Account::Request(RequestId(2), Phase::Prefill)), 0);
}

#[test]
fn tokens_from_before_the_first_tick_weigh_in_none() {
    let mut desk = Desk::new(Settings::default());
    desk.keeper.open(Desk::at(0), opening(1, &[0])).unwrap();
    desk.keeper.tokens(1, Desk::at(20), 1);
    desk.tick(1000);
    desk.keeper.open(START - 5 * MS, opening(2, &[0])).unwrap();
    desk.keeper.tokens(2, START - 4 * MS, 99);
    desk.tick(1000);
    // The first tick is the first one's alone; in the second nobody wrote.
    assert_eq!(desk.balance(Account::Request(RequestId(1), Phase::Decode)), 1_500_000);
    assert_eq!(desk.balance(Account::Request(RequestId(2), Phase::Decode)), 500_000);
}

#[test]
fn somebody_who_is_heard_of_late_takes_what_was_nobodys() {
    let mut desk = Desk::new(Settings::default());
    desk.tick(5000);
    assert_eq!(desk.balance(Account::Unattributed), 5_000_000);
    desk.keeper.open(Desk::at(10), opening(1, &[0])).unwrap();
    desk.keeper.tokens(1, Desk::at(30), 5);
    desk.keeper.close(1, Desk::at(90), Status::Cancelled, Usage::default());
    desk.tick(0);
    assert_eq!(desk.balance(Account::Unattributed), 0);
    let receipt = desk.keeper.finished().next().unwrap();
    assert_eq!((receipt.joules, receipt.status), (Some(5.0), Status::Cancelled));
    assert_eq!(receipt.tokens.source, TokenSource::Counted);
}
