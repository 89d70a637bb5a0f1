use joulebook::{Reader, Tenants};

use super::*;
use crate::scenario::Scenario;

const SECOND: i64 = 1_000_000_000;

fn cards(text: &str, clock: &Clock) -> Vec<SimulatedCard> {
    let scenario = Scenario::parse(text).unwrap_or_else(|error| panic!("{error}"));
    SimulatedCard::all(&scenario, clock, |_| None)
}

#[test]
fn a_card_calls_itself_simulated_and_says_what_its_register_is() {
    let clock = Clock::simulated();
    let cards = cards("driver 1.2\ncard 1\nname NVIDIA GeForce RTX 4090\nlimit w=450", &clock);
    let device = cards[1].device();
    assert_eq!(device.backend, Backend::Simulated);
    assert_eq!((device.index, device.consumer), (1, true));
    assert_eq!(device.driver.as_deref(), Some("1.2"));
    assert_eq!(device.limit, Power::from_watts(450.0));
    assert!(!cards[0].device().consumer);
    assert!(matches!(device.register, Kind::Counter { modulus: Modulus::None, .. }));
    let gauge = cards[1].shows(Shows::Average).device().register;
    assert_eq!(gauge, Kind::Gauge { averaging_ns: Some(1_000_000_000) });
}

#[test]
fn counter_and_gauges_are_read_at_the_clocks_time() {
    let clock = Clock::simulated();
    let mut card = cards("card 0\nidle 70\nstep 1 400\nclocks reasons=0x84", &clock).remove(0);
    let (mut average, mut instant) = (card.shows(Shows::Average), card.shows(Shows::Instant));
    clock.set_ns(2 * SECOND);
    let reading = card.read().expect("a reading");
    assert_eq!(reading.value, Value::Counter(470_000));
    assert_eq!(
        reading.throttle,
        Some(Throttle { power_capped: Some(true), power_braked: Some(true) })
    );
    clock.set_ns(SECOND + SECOND / 2);
    let watts = |card: &mut SimulatedCard| card.read().expect("a reading").value;
    assert_eq!(watts(&mut average), Value::Power(Power::from_milliwatts(235_000)));
    assert_eq!(watts(&mut instant), Value::Power(Power::from_milliwatts(400_000)));
}

#[test]
fn a_refusal_is_a_fault_and_a_hang_takes_time() {
    let clock = Clock::simulated();
    let text = "card 0\nfault 1 2 energy lost\nfault 3 4 all hang 1500\nproc 0 inf 7 512 x y";
    let mut card = cards(text, &clock).remove(0);
    clock.set_ns(SECOND);
    assert_eq!(card.read(), Err(Fault::Lost));
    assert_eq!(card.resident().expect("processes")[0].name, "x y");
    clock.set_ns(3 * SECOND);
    card.read().expect("it answers late");
    assert_eq!(clock.now_ns(), 4 * SECOND + SECOND / 2);
}

#[test]
fn a_live_card_publishes_what_really_was_set() {
    let clock = Clock::simulated();
    let (mut card, load) = SimulatedCard::live(Card::default(), clock.clone());
    clock.set_ns(SECOND);
    load.set_watts(400.0).expect("a power");
    clock.set_ns(SECOND + SECOND / 4);
    load.set_watts(70.0).expect("a power");
    clock.set_ns(2 * SECOND);
    assert_eq!(card.read().expect("a reading").value, Value::Counter(70_000 + 100_000 + 52_500));
    let truth = card.model().load().energy(SECOND, 2 * SECOND);
    assert!((truth - 152.5).abs() < 1e-9, "{truth}");
}

#[test]
fn who_was_at_work_is_told_over_the_time_since_the_last_call() {
    let clock = Clock::simulated();
    let text = "card 0\nproc 0 inf 1 512 sm=40 a\nproc 3 inf 2 512 sm=60 b\nproc 0 4 3 512 sm=90 c\n\
                proc 0 inf 4 512 d\nfault 8 9 util noperm";
    let mut card = cards(text, &clock).remove(0);
    let mut told = |second: i64| {
        clock.set_ns(second * SECOND);
        let work = card.at_work()?;
        Ok(work.iter().map(|one| (one.pid, one.percent)).collect::<Vec<_>>())
    };
    assert_eq!(told(2), Ok(vec![(1, 40), (3, 90)]), "the last second, before anybody asked");
    // The second process was there for half of the time since; the third is gone, and not told of.
    assert_eq!(told(4), Ok(vec![(1, 40), (2, 30)]));
    assert_eq!(told(8), Err(Fault::Permission));
    assert_eq!(told(9), Ok(vec![(1, 40), (2, 60)]));
}
