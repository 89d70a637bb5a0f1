//! Made-up logs whose truth is known.

use joulebook::{
    Backend, Fault, Method, Reader, Value,
    core::{Flags, estimate::Span},
    replay::{Options, Replay, Warning},
};

use super::support::{close, made_up, recording, spans, window, with, words};

const SECOND: u64 = 1_000_000_000;

#[test]
fn bursts_shorter_than_the_sensor_are_no_measurement_and_their_interval_holds_the_truth() {
    let log = recording(&made_up("bursts.csv"));
    let ask = log.ask(None, &[55.0]).unwrap();
    let spans = spans(&log, &made_up("bursts.marks.csv"), "+01:00");
    assert_eq!(spans.len(), 12);
    for span in &spans {
        let answer = window(&log, *span, &ask);
        let measured = &answer.measurement;
        assert_eq!(measured.method, Method::Unknown);
        assert_eq!(measured.error, Some(Fault::WindowBelowResolution));
        assert_eq!((measured.joules, measured.backend), (None, "replay"));
        assert_eq!(answer.columns, ["power.draw.instant [W]"]);
        assert!(measured.flags.contains(Flags::WINDOW_ASSUMED));
        let seen = answer.seen.unwrap();
        assert!(seen.range_j.0 <= 9.5 && 9.5 <= seen.range_j.1, "{seen:?}");
        let above = (measured.low_joules.unwrap(), measured.high_joules.unwrap());
        assert!(above.0 <= 9.5 - 2.75 && 9.5 - 2.75 <= above.1, "{above:?}");
    }
    let said = log.say_of_windows(&spans, &ask);
    let [Warning::WindowsBelowResolution { windows: 12, of: 12, seconds, .. }] = said.as_slice()
    else {
        panic!("{said:?}")
    };
    assert!(close(*seconds, 0.104, 0.05), "{seconds}");
}

#[test]
fn with_its_limit_and_floor_a_card_bounds_a_window_more_sharply() {
    let bytes = made_up("bursts.csv");
    let wide = recording(&bytes);
    let limit = joulebook::Power::from_watts(250.0);
    let options = Options { limit, floor_w: 50.0, ..Options::default() };
    let sharp = with(&bytes, &options);
    let span = Span {
        open_ns: wide.span.open_ns + SECOND,
        close_ns: wide.span.open_ns + 2 * SECOND + SECOND / 5,
    };
    let bound = |log: &joulebook::replay::Recording| {
        let seen = window(log, span, &log.ask(None, &[]).unwrap()).seen.unwrap();
        let truth = 12.0 * 0.05 * (190.0 + 55.0);
        assert!((seen.gross_j - truth).abs() <= seen.bound_j, "{seen:?}");
        seen.bound_j
    };
    assert!(bound(&sharp) < bound(&wide) / 2.0);
    assert!(words(&wide.warnings).contains(&"ceiling_assumed"));
    assert!(!words(&sharp.warnings).contains(&"ceiling_assumed"));
}

#[test]
fn an_averaged_column_is_known_by_its_company_and_gives_way_to_the_instant_for_short_windows() {
    let log = recording(&made_up("averaged.csv"));
    let ask = log.ask(None, &[]).unwrap();
    let span = spans(&log, &made_up("averaged.marks.csv"), "+01:00")[0];
    let long = window(&log, span, &ask);
    assert_eq!(long.columns, ["power.draw [W]"]);
    let seen = long.seen.unwrap();
    // A 1 s mean loses half a second of the step's 200 W at its beginning.
    assert!(seen.gross_j < 1200.0 && (1280.0 - seen.gross_j) <= seen.bound_j, "{seen:?}");
    assert_eq!(long.measurement.error, Some(Fault::NoBaseline));
    let short = Span { close_ns: span.open_ns + 2 * SECOND, ..span };
    let short = window(&log, short, &ask);
    assert_eq!(short.columns, ["power.draw.instant [W]"]);
    assert!(close(short.seen.unwrap().gross_j, 640.0, 0.05));

    // The person decides; what a 1 s mean cannot tell apart is then no measurement.
    let ask = log.ask(Some("power.draw.average"), &[100.0]).unwrap();
    let half = Span { close_ns: span.open_ns + SECOND / 2, ..span };
    let answer = window(&log, half, &ask);
    assert_eq!(answer.columns, ["power.draw.average [W]"]);
    assert_eq!(answer.measurement.error, Some(Fault::WindowBelowResolution));
    assert!(words(&log.warnings).contains(&"averaged"));
}

#[test]
fn a_models_name_decides_what_its_sensor_averages() {
    let bytes = made_up("bursts.csv");
    let averaging = |model: &str| {
        let options = Options { model: Some(model.to_owned()), ..Options::default() };
        let log = with(&bytes, &options);
        let track = log.cards[0].column("power.draw").unwrap();
        (track.facts.averaging_s, track.assumed)
    };
    assert_eq!(averaging("NVIDIA GeForce RTX 4090"), (Some(1.0), false));
    assert_eq!(averaging("NVIDIA A100-SXM4-80GB"), (Some(0.104), false));
    assert_eq!(averaging("some card"), (None, true));
}

#[test]
fn every_trap_of_two_cards_is_met_once() {
    let log = recording(&made_up("two-cards.csv"));
    assert_eq!(log.cards.len(), 2);
    assert_eq!(log.cards[1].name.index, Some(1));
    // The sentence, the row from before, the row without its end; not the blank or the header.
    assert_eq!(log.refused.len(), 3, "{:?}", log.refused);
    let said = words(&log.warnings);
    for word in ["malformed_row", "non_monotonic", "cut_last_row", "missing", "counter_frozen"] {
        assert_eq!(said.iter().filter(|said| **said == word).count(), 1, "{word} in {said:?}");
    }
    // Both cards have the hole and the gap.
    for word in ["bridged", "gap"] {
        assert_eq!(said.iter().filter(|said| **said == word).count(), 2, "{word} in {said:?}");
    }
    let first = &log.cards[0].tracks[0];
    let faults: Vec<Fault> = first.lost.iter().map(|(_, _, fault)| *fault).collect();
    let wanted = [Fault::Unknown, Fault::NotSupported, Fault::Unknown, Fault::Implausible];
    assert_eq!(faults, wanted);
    assert!(first.range_w.1 < 40.0, "the word, and 4.7 kW, are no watts");
    assert!(close(first.facts.ceiling_w, 77.0, 1e-9));
}

#[test]
fn cards_have_series_of_their_own_and_their_sum_is_never_more_than_they_are() {
    let log = recording(&made_up("two-cards.csv"));
    let ask = log.ask(None, &[20.0, 25.0]).unwrap();
    let span =
        Span { open_ns: log.span.open_ns + SECOND / 10, close_ns: log.span.open_ns + 15 * SECOND };
    let cards = log.window(span, &ask);
    let first = &cards[0].measurement;
    assert_eq!(first.method, Method::Sampled);
    assert!(close(first.gross_joules.unwrap(), 31.0 * 14.9, 0.02));
    assert!(close(first.joules.unwrap(), 11.0 * 14.9, 0.05));
    assert_eq!(first.rejected, 4);
    assert!(first.flags.contains(Flags::POWER_CAPPED));
    let second = &cards[1].measurement;
    assert_eq!((second.method, second.error), (Method::Unknown, Some(Fault::CounterFrozen)));
    let sum = log.sum(&cards, &ask);
    assert_eq!(sum.measurement.error, Some(Fault::PartialDevices));
    assert!(close(sum.seen.unwrap().gross_j, (31.0 + 46.19) * 14.9, 0.02));
    assert_eq!(sum.measurement.joules, None);
    // Over the gap nothing is a figure; what was certainly drawn is said.
    let whole = log.whole(&ask);
    assert_eq!(whole[0].measurement.error, Some(Fault::Gap));
    assert!(whole[0].measurement.lower_bound_joules.unwrap() > 31.0 * 20.0);
}

#[test]
fn a_window_the_recording_does_not_cover_is_not_known_and_the_zone_that_would_is_told() {
    let log = recording(&made_up("bursts.csv"));
    let ask = log.ask(None, &[]).unwrap();
    let spans = spans(&log, &made_up("bursts.marks.csv"), "Z");
    let answer = window(&log, spans[0], &ask);
    assert_eq!(answer.measurement.error, Some(Fault::NotReady));
    assert!(answer.measurement.flags.contains(Flags::PARTIAL));
    let said = log.say_of_windows(&spans, &ask);
    assert!(
        said.contains(&Warning::WindowsOutside { windows: 12, of: 12, hours: Some(1) }),
        "{said:?}"
    );
}

#[test]
fn a_case_of_a_bad_poll_comes_out_as_if_it_had_not_been() {
    let row = |second: u32, power: &str| format!("2024/01/15 10:00:0{second}.000, {power}\n");
    let rows = ["100.0 W", "100.0 W", "ERR!", "100.0 W", "100.0 W"];
    let rows: String = (0..).zip(rows).map(|(second, power)| row(second, power)).collect();
    let log = recording(format!("timestamp, power.draw [W]\n{rows}").as_bytes());
    let answer = log.whole(&log.ask(None, &[20.0]).unwrap()).remove(0);
    let measured = answer.measurement;
    assert_eq!(measured.gross_joules, Some(400.0));
    assert_eq!((measured.joules, measured.method), (Some(320.0), Method::Sampled));
    assert_eq!((measured.samples, measured.rejected), (4, 1));
}

#[test]
fn a_replay_is_a_reader_that_knows_its_time() {
    let reading = |watts: u64| {
        let power = joulebook::Power::from_microwatts(watts * 1_000_000);
        Ok(joulebook::Reading { value: Value::Power(power), mean: None, throttle: None })
    };
    let device = recording(&made_up("bursts.csv")).cards[0].tracks[0].device.clone();
    let readings = vec![(5, reading(50)), (7, Err(Fault::Unknown))];
    let mut replay = Replay::new(device, readings);
    assert_eq!(replay.device().backend, Backend::Replay);
    assert_eq!((replay.next_ns(), replay.read()), (Some(5), reading(50)));
    assert_eq!((replay.next_ns(), replay.read()), (Some(7), Err(Fault::Unknown)));
    assert_eq!((replay.next_ns(), replay.read()), (None, Err(Fault::Lost)));
}
