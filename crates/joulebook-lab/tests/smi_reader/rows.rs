use std::{thread, time::Duration};

use joulebook::{
    Backend, Fault, Reader, Throttle,
    core::{Power, register::Kind},
};

use super::bench::{next_watts, scenario, watts};

const SECOND: u64 = 1_000_000_000;

#[test]
fn one_child_serves_all_cards_and_binds_rows_to_them() {
    let bench = scenario(
        "card 0\n idle 70\n clocks reasons=0x4\n card 1\n name NVIDIA GeForce RTX 4090\n idle \
         81.5\n limit w=450\n",
    );
    let (feed, mut cards) = bench.cards();
    let [first, second] = cards.as_mut_slice() else { panic!("{} cards", cards.len()) };
    assert_eq!((next_watts(first), next_watts(second)), (70.0, 81.5));
    let device = second.device();
    assert_eq!(
        (device.index, device.uuid.as_str()),
        (1, "GPU-1ab00000-0000-4000-8000-000000000001")
    );
    assert_eq!(device.pci.as_deref(), Some("0000:19:00.0"));
    assert_eq!((device.backend, device.consumer), (Backend::SmiSampler, true));
    assert_eq!(
        (device.limit, device.driver.as_deref()),
        (Power::from_watts(450.0), Some("570.124.06"))
    );
    assert_eq!(device.register, Kind::Gauge { averaging_ns: None });
    assert_eq!(second.field(), Some("power.draw.instant"));
    let reading = first.read().unwrap();
    assert_eq!(
        reading.throttle,
        Some(Throttle { power_capped: Some(true), power_braked: Some(false) })
    );
    let mean = reading.mean.unwrap();
    assert_eq!((mean.power.watts(), mean.over_ns), (70.0, SECOND));
    // Each read is another row, taken after the last.
    let mut before = first.taken_ns().unwrap();
    for _ in 0..5 {
        first.read().unwrap();
        let taken = first.taken_ns().unwrap();
        assert!(taken > before && taken <= joulebook::clock::now_ns(), "{before} {taken}");
        before = taken;
    }
    assert_eq!(bench.calls().len(), 1, "one child for all");
    assert!(feed.cost().rows > 6 && feed.cost().starts == 1 && feed.cost().rejected_lines == 0);
}

#[test]
fn smi_line_shape_11_an_old_driver_is_asked_for_what_it_knows() {
    let bench = scenario(
        "driver 470.82.01\n card 0\n name NVIDIA GeForce RTX 3090\n idle 99\n clocks reasons=0x80",
    );
    let (_feed, mut cards) = bench.cards();
    let card = &mut cards[0];
    let reading = card.read();
    assert_eq!(reading.unwrap().throttle.and_then(|throttle| throttle.power_braked), Some(true));
    assert_eq!(watts(card.read()), Ok(99.0));
    assert_eq!(card.field(), Some("power.draw"));
    // Known by its name to average over a second.
    assert_eq!(card.device().register, Kind::Gauge { averaging_ns: Some(SECOND) });
    let calls = bench.calls();
    let last = &calls.last().unwrap().1;
    assert!(last.contains("clocks_throttle_reasons.hw_power_brake_slowdown"), "{last}");
    assert!(!last.contains("power.draw.instant") && !last.contains("compute_cap"), "{last}");
    // One call for each field it does not know, and the last.
    assert_eq!(calls.len(), 6, "{calls:?}");
}

#[test]
fn sampler_time_01_a_reader_that_stalls_gets_each_row_at_its_own_time() {
    let bench = scenario("card 0\n idle 50\n step 1.5 350\n instant period_ms=10");
    let (_feed, mut cards) = bench.cards();
    let card = &mut cards[0];
    card.read().unwrap();
    thread::sleep(Duration::from_secs(3));
    let mut rows = Vec::new();
    let stalled_until = joulebook::clock::now_ns();
    while rows.last().is_none_or(|(at, _)| *at < stalled_until) {
        let power = watts(card.read()).unwrap();
        rows.push((card.taken_ns().unwrap(), power));
    }
    assert!(rows.len() > 15, "no row was lost: {}", rows.len());
    let apart: Vec<u64> = rows.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    let span = rows.last().unwrap().0 - rows[0].0;
    // Stamped on arrival they would all stand at the end.
    assert!(apart.iter().all(|gap| *gap < span / 2), "{apart:?}");
    let high = rows.iter().filter(|(_, power)| *power == 350.0).count();
    assert!(high > 5 && high < rows.len() - 5, "{high} of {}", rows.len());
    let step = rows.windows(2).find(|pair| pair[1].1 == 350.0).unwrap();
    let mean_low = (step[0].0 - rows[0].0) as f64 / span as f64;
    assert!((0.1..0.9).contains(&mean_low), "the step lies inside: {mean_low}");
}

#[test]
fn cells_without_a_number_and_lines_that_are_no_rows_cost_only_themselves() {
    let bench = scenario(
        "card 0\n fault 0 inf power notsupported\n fault 0 inf instant notsupported\n card 1\n \
         idle 80\n card 2\n idle 90\n fault 0.3 0.7 smi.garbage x what, is this\n fault 0.7 1 \
         smi.garbage x\n fault 1 1.3 smi.power.draw.instant text ERR!",
    );
    let (feed, mut cards) = bench.cards();
    let [none, whole, noisy] = cards.as_mut_slice() else { panic!("{} cards", cards.len()) };
    assert_eq!(none.check(), Err(Fault::NotSupported));
    assert_eq!(watts(none.read()), Err(Fault::NotSupported));
    let begin = joulebook::clock::now_ns();
    let (mut good, mut bad) = (0, 0);
    while joulebook::clock::now_ns() < begin + 2 * SECOND {
        assert_eq!(watts(whole.read()), Ok(80.0));
        match watts(noisy.read()) {
            Ok(power) => {
                assert_eq!(power, 90.0);
                good += 1;
            }
            Err(fault) => {
                assert_eq!(fault, Fault::Unknown);
                bad += 1;
            }
        }
    }
    assert!(good > 5 && bad > 0, "{good} good, {bad} bad");
    let rejected = feed.cost().rejected_lines;
    assert!((1..=5).contains(&rejected), "garbage is counted, blank lines are not: {rejected}");
    assert_eq!(bench.calls().len(), 1, "one child through all of it");
}

#[test]
fn a_card_whose_instant_is_not_there_is_read_by_its_average_for_good() {
    let bench = scenario("card 0\n idle 70\n instant supported=0");
    let (_feed, mut cards) = bench.cards();
    assert_eq!(watts(cards[0].read()), Ok(70.0));
    assert_eq!(cards[0].field(), Some("power.draw.average"));
    assert_eq!(cards[0].device().register, Kind::Gauge { averaging_ns: Some(SECOND) });
    assert_eq!(cards[0].read().unwrap().mean, None);
}
