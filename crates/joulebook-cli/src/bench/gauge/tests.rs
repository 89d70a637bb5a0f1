use proptest::prelude::*;

use super::*;

const SECOND: u64 = 1_000_000_000;

fn at(at_ns: u64, watts: f64) -> Reading {
    Reading { at_ns, power: Power::from_watts(watts).unwrap(), capped: None, braked: None }
}

const fn span(open_ns: u64, close_ns: u64) -> Span {
    Span { open_ns, close_ns }
}

#[test]
fn each_reading_is_held_and_the_first_back_filled() {
    let readings = [at(SECOND, 100.0), at(3 * SECOND, 200.0), at(4 * SECOND, 50.0)];
    // 100 W from 0 to 3 s, 200 W to 4 s, 50 W to 10 s.
    let window = hold_forward(&readings, span(0, 10 * SECOND)).unwrap();
    assert_eq!(window.energy_uj, 800_000_000);
    assert_eq!((window.samples, window.max_uw), (3, 200_000_000));
    assert_eq!(window.mean_watts(), Some(80.0));
    assert_eq!(window.above_idle_joules(90.0), -100.0, "not clamped");
}

#[test]
fn no_reading_inside_is_no_figure() {
    let readings = [at(SECOND, 100.0), at(3 * SECOND, 200.0)];
    assert_eq!(hold_forward(&readings, span(SECOND + 1, 3 * SECOND)), None, "one at its end");
    assert_eq!(hold_forward(&[], span(0, SECOND)), None);
    assert_eq!(hold_forward(&readings, span(SECOND, SECOND)), None);
    assert!(parts(&[], span(0, SECOND)).is_empty());
    let silent: &[Reading] = &[];
    assert_eq!(hold_forward_cards(&[&readings, silent], span(0, 4 * SECOND)), None);
    assert_eq!(hold_forward_cards(&[], span(0, SECOND)), None);
}

#[test]
fn a_card_at_300_w_reads_300_w_at_every_duration() {
    for seconds in 2..=60 {
        for phase_ms in [0, 1, 77, 249] {
            let open = 5 * SECOND + 123_456_789;
            let readings: Vec<Reading> =
                (0..300).map(|number| at((number * 250 + phase_ms) * 1_000_000, 300.0)).collect();
            let window = hold_forward(&readings, span(open, open + seconds * SECOND)).unwrap();
            assert_eq!(window.mean_watts(), Some(300.0), "{seconds} s");
            assert_eq!(window.energy_uj, 300_000_000 * seconds);
        }
    }
}

#[test]
fn cards_add_their_energy_and_not_their_time() {
    let one = [at(0, 100.0), at(5 * SECOND, 300.0)];
    let two = [at(0, 250.0), at(5 * SECOND, 50.0)];
    let window = hold_forward_cards(&[&one, &two], span(0, 10 * SECOND)).unwrap();
    assert_eq!(window.energy_uj, 3_500_000_000);
    assert_eq!((window.window_ns, window.samples), (10 * SECOND, 4));
    assert_eq!(window.max_uw, 350_000_000, "together, not each one's own");
}

#[test]
fn windows_add_and_flags_weigh_by_who_reported_them() {
    let flag = |active: bool| Some(active);
    let mut readings: Vec<Reading> = (0..8).map(|second| at(second * SECOND, 200.0)).collect();
    for (reading, capped) in readings.iter_mut().zip([
        flag(true),
        flag(true),
        None,
        None,
        flag(false),
        flag(false),
        flag(true),
        flag(false),
    ]) {
        reading.capped = capped;
    }
    let first = hold_forward(&readings, span(0, 4 * SECOND)).unwrap();
    let second = hold_forward(&readings, span(4 * SECOND, 8 * SECOND)).unwrap();
    assert_eq!(first.capped.fraction(), Some(1.0));
    assert_eq!(second.capped.fraction(), Some(0.25));
    let both = first.then(second);
    // 2 + 1 of 2 + 4: the mean of the two fractions would be 0.625.
    assert_eq!(both.capped.fraction(), Some(0.5));
    assert_eq!(both.braked.fraction(), None, "unknown is not off");
    assert_eq!(both, hold_forward(&readings, span(0, 8 * SECOND)).unwrap());
    assert_eq!(Window::sum([]), None);
}

#[test]
fn a_mean_is_derived_anew() {
    let short = Window { energy_uj: 100_000_000, window_ns: SECOND, ..held(100.0) };
    let long = Window { energy_uj: 900_000_000, window_ns: 3 * SECOND, ..held(300.0) };
    let both = Window::sum([short, long]).unwrap();
    assert_eq!(both.mean_watts(), Some(250.0), "not 200, the mean of the means");
    assert_eq!(both.max_watts(), 300.0);
    assert_eq!(both.samples, 2);
}

fn held(watts: f64) -> Window {
    hold_forward(&[at(0, watts)], span(0, SECOND)).unwrap()
}

const HEADER: &str = "timestamp, index, uuid, power.draw.average [W], \
                      clocks_event_reasons.sw_power_cap, \
                      clocks_event_reasons.hw_power_brake_slowdown";

/// A row, read when it was taken.
fn row(rows: &mut Rows, line: &str) -> Option<Taken> {
    rows.line(line, 10 * SECOND, 1_700_000_000 * SECOND)
}

#[test]
fn columns_are_found_by_name_and_unknown_is_not_off() {
    let mut rows = Rows::default();
    assert_eq!(row(&mut rows, HEADER), None);
    let line = "2023/11/14 22:13:19.500, 0, GPU-1, 212.35 W, Active, [N/A]";
    let taken = row(&mut rows, line).unwrap();
    assert_eq!(taken.card, "GPU-1");
    assert_eq!(taken.reading.power.microwatts(), 212_350_000);
    assert_eq!(taken.reading.at_ns, 10 * SECOND - SECOND / 2, "by its own stamp");
    assert_eq!((taken.reading.capped, taken.reading.braked), (Some(true), None));
    assert_eq!(row(&mut rows, "power.draw.average [W], uuid, timestamp"), None);
    let taken = row(&mut rows, "55, GPU-2, 2023/11/14 22:13:20.000").unwrap();
    assert_eq!((taken.card.as_str(), taken.reading.power.watts()), ("GPU-2", 55.0));
    assert_eq!(rows.rejected(), 0, "a header is no row");
}

#[test]
fn what_is_no_number_of_watts_is_rejected_and_counted() {
    let mut rows = Rows::default();
    row(&mut rows, HEADER);
    let bad = [
        "[N/A]",
        "N/A",
        "[Not Supported]",
        "nan",
        "inf",
        "-1",
        "-0.5 W",
        "",
        "[Unknown Error]",
        "12 mW",
        "twelve",
    ];
    for cell in bad {
        let line = format!("2023/11/14 22:13:20.000, 0, GPU-1, {cell}, Not Active, Not Active");
        assert_eq!(row(&mut rows, &line), None, "{cell}");
    }
    assert_eq!(row(&mut rows, "2023/11/14 22:13:20.000, 0, GPU-1, 70"), None, "cut");
    assert_eq!(row(&mut rows, "Unable to determine the device handle"), None);
    assert_eq!(rows.rejected(), bad.len() as u64 + 2);
    assert_eq!(row(&mut rows, "   "), None);
    assert_eq!(rows.rejected(), bad.len() as u64 + 2, "an empty line is none");
    let zero = row(&mut rows, "2023/11/14 22:13:20.000, 0, GPU-1, 0.00 W, Not Active, Active");
    assert_eq!(zero.unwrap().reading.power, Power::ZERO, "a measured zero counts");
}

#[test]
fn a_row_that_says_no_card_is_rejected() {
    let mut rows = Rows::default();
    row(&mut rows, "timestamp, power.draw.average [W]");
    assert_eq!(row(&mut rows, "2023/11/14 22:13:20.000, 100.00 W"), None);
    assert_eq!(rows.rejected(), 1);
}

#[test]
fn cards_do_not_read_as_one() {
    let mut rows = Rows::default();
    row(&mut rows, HEADER);
    let mut cards = std::collections::BTreeMap::<String, Vec<Reading>>::new();
    for card in 0..8 {
        let line = format!(
            "2023/11/14 22:13:20.000, {card}, GPU-{card}, {}.0 W, Not Active, Not Active",
            100 + card
        );
        let taken = row(&mut rows, &line).unwrap();
        cards.entry(taken.card).or_default().push(taken.reading);
    }
    let cards: Vec<&[Reading]> = cards.values().map(Vec::as_slice).collect();
    let window = hold_forward_cards(&cards, span(9 * SECOND, 11 * SECOND)).unwrap();
    assert_eq!(window.energy_uj, 2 * 828_000_000);
}

/// Readings at whole nanoseconds of a short time, in any order, several at one instant too.
fn readings() -> impl Strategy<Value = Vec<Reading>> {
    let flag = prop_oneof![Just(None), Just(Some(true)), Just(Some(false))];
    let one = (0u64..300, 0u64..1_000_000_000_000, flag.clone(), flag);
    let reading = one.prop_map(|(at_ns, microwatts, capped, braked)| Reading {
        at_ns,
        power: Power::from_microwatts(microwatts),
        capped,
        braked,
    });
    prop::collection::vec(reading, 0..12)
}

/// The same integral, instant by instant: in each nanosecond the last reading of those inside that
/// are not later, or the first of all.
fn slow(readings: &[Reading], window: Span) -> Option<(u128, u64)> {
    let mut inside: Vec<&Reading> = Vec::new();
    for at_ns in window.open_ns..window.close_ns {
        inside.extend(readings.iter().filter(|reading| reading.at_ns == at_ns));
    }
    let first = *inside.first()?;
    let mut sum = 0u128;
    for ns in window.open_ns..window.close_ns {
        let held = inside.iter().rev().find(|reading| reading.at_ns <= ns).unwrap_or(&first);
        sum += u128::from(held.power.microwatts());
    }
    Some((sum, inside.len() as u64))
}

fn microwatt_ns(parts: &[Part]) -> u128 {
    let of =
        |part: &Part| u128::from(part.power.microwatts()) * u128::from(part.to_ns - part.from_ns);
    parts.iter().map(of).sum()
}

proptest! {
    #[test]
    fn the_parts_are_the_window(readings in readings(), open in 0u64..300, length in 1u64..300) {
        let window = span(open, open + length);
        let parts = parts(&readings, window);
        let mut at = window.open_ns;
        for part in &parts {
            prop_assert_eq!(part.from_ns, at);
            prop_assert!(part.from_ns <= part.to_ns);
            at = part.to_ns;
        }
        prop_assert!(parts.is_empty() || at == window.close_ns);
        let integral = hold_forward(&readings, window);
        prop_assert_eq!(integral.is_none(), parts.is_empty());
        prop_assert!(integral.is_none_or(|it| it.window_ns == length));
    }

    #[test]
    fn the_integral_is_that_of_the_slow_oracle(
        readings in readings(), open in 0u64..300, length in 1u64..300,
    ) {
        let window = span(open, open + length);
        let expected = slow(&readings, window);
        let parts = parts(&readings, window);
        prop_assert_eq!(
            (!parts.is_empty()).then(|| (microwatt_ns(&parts), parts.len() as u64)),
            expected
        );
        let energy = hold_forward(&readings, window).map(|it| (it.energy_uj, it.samples));
        let rounded = |sum: u128| u64::try_from((sum + 500_000_000) / 1_000_000_000).unwrap();
        prop_assert_eq!(energy, expected.map(|(sum, samples)| (rounded(sum), samples)));
    }

    /// Cut at a reading, a window is the sum of its two halves, exactly.
    #[test]
    fn halves_add_to_the_whole(readings in readings(), open in 0u64..100, length in 2u64..400, pick in 0usize..12) {
        let window = span(open, open + length);
        let Some(cut) = inside(&readings, window).get(pick).map(|reading| reading.at_ns) else {
            return Ok(());
        };
        let before = parts(&readings, span(open, cut));
        let after = parts(&readings, span(cut, window.close_ns));
        // The part before the first reading is back-filled by the whole and by nothing else.
        if !before.is_empty() {
            prop_assert_eq!(
                microwatt_ns(&before) + microwatt_ns(&after),
                microwatt_ns(&parts(&readings, window))
            );
            prop_assert_eq!(before.len() + after.len(), parts(&readings, window).len());
        }
    }

    #[test]
    fn cards_together_are_the_sum_and_the_greatest_of_each_instant(
        one in readings(), two in readings(), open in 0u64..200, length in 1u64..200,
    ) {
        let window = span(open, open + length);
        let together = hold_forward_cards(&[&one, &two], window);
        let each = slow(&one, window).zip(slow(&two, window));
        prop_assert_eq!(together.is_some(), each.is_some());
        let (Some(together), Some((a, b))) = (together, each) else { return Ok(()) };
        prop_assert_eq!(u128::from(together.energy_uj), (a.0 + b.0 + 500_000_000) / 1_000_000_000);
        let at = |readings: &[Reading], ns: u64| {
            let parts = parts(readings, window);
            let part = parts.iter().find(|part| (part.from_ns..part.to_ns).contains(&ns));
            part.unwrap().power.microwatts()
        };
        let most = (open..open + length).map(|ns| at(&one, ns) + at(&two, ns)).max().unwrap();
        prop_assert_eq!(together.max_uw, most);
    }
}
