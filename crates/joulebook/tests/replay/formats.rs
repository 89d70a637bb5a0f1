//! Made-up logs in every format that is read: told by what stands in them, whatever their name, with
//! the energy that is true of them and a word for each trap.

use joulebook::{
    Fault, Method, Power,
    core::estimate::Span,
    replay::{self, Clock, Form, Format, Mark, Moment, Options, Recording},
};

use super::support::{all_made_up, close, made_up, recording, whole_j, window, with, words};

const SECOND: u64 = 1_000_000_000;

/// A log, its format, its cards, its energy over all of them, J, and words that must be said.
struct Known {
    name: &'static str,
    format: &'static str,
    clock: Clock,
    cards: usize,
    joules: Option<f64>,
    says: &'static [&'static str],
}

const KNOWN: &[Known] = &[
    Known {
        name: "loop.csv",
        format: "logger CSV",
        clock: Clock::Epoch,
        cards: 3,
        joules: Some(5.2 * 600.0),
        says: &["stamps_of_loop", "bridged"],
    },
    Known {
        name: "misnamed.csv",
        format: "nvidia-smi CSV",
        clock: Clock::Epoch,
        cards: 4,
        joules: Some(6.0 * (70.25 + 71.25) + 5.0 * (72.25 + 73.25)),
        says: &[
            "header_misnamed",
            "stamps_truncated",
            "stamps_of_loop",
            "unit_assumed",
            "cut_tick",
        ],
    },
    Known {
        name: "headerless.csv",
        format: "nvidia-smi CSV",
        clock: Clock::Local,
        cards: 2,
        joules: Some(0.55 * 120.0),
        says: &["columns_inferred"],
    },
    Known {
        name: "amd-smi.csv",
        format: "amd-smi CSV",
        clock: Clock::Epoch,
        cards: 3,
        joules: Some(3.0 * (240.0 + 241.0) + 2.0 * 242.0),
        says: &["cut_tick", "stamps_truncated", "window_assumed"],
    },
    Known {
        name: "amd-smi.json",
        format: "amd-smi JSON",
        clock: Clock::Epoch,
        cards: 2,
        joules: Some(2.0 * (100.5 + 101.5)),
        says: &["window_assumed"],
    },
    Known {
        name: "rocm-loop.csv",
        format: "logger CSV",
        clock: Clock::Epoch,
        cards: 2,
        joules: Some(25.0 * 301.0 + 5.0 * 450.0),
        says: &["short_rows", "malformed_row", "stamps_truncated", "stamps_of_loop"],
    },
    // The second card has no power.
    Known {
        name: "rocm-smi.json",
        format: "rocm-smi JSON",
        clock: Clock::Epoch,
        cards: 2,
        joules: None,
        says: &["window_assumed"],
    },
    Known {
        name: "nvidia-smi.xml",
        format: "nvidia-smi XML",
        clock: Clock::Local,
        cards: 1,
        joules: Some(880.0),
        says: &["instances", "averaged", "cut_last_row", "stamps_truncated"],
    },
    Known {
        name: "pmt.log",
        format: "Power Measurement Toolkit dump",
        clock: Clock::Epoch,
        cards: 1,
        joules: Some(1.995 * 20.0 + 130.0),
        says: &["mark_refused"],
    },
    Known {
        name: "ina.csv",
        format: "logger CSV",
        clock: Clock::Local,
        cards: 1,
        joules: Some(1.188 * 5.04),
        says: &["window_assumed"],
    },
    Known {
        name: "prometheus.csv",
        format: "Prometheus range dump",
        clock: Clock::Epoch,
        cards: 4,
        joules: Some(2.0 * 30.0 * 33.0 + 2.0 * 15.0),
        says: &["labels_ignored", "parts"],
    },
    Known {
        name: "scrapes.prom",
        format: "Prometheus scrape",
        clock: Clock::Epoch,
        cards: 1,
        joules: Some(20_025.0),
        says: &["instances"],
    },
    Known {
        name: "wall.spl.txt",
        format: "SPEC PTDaemon log",
        clock: Clock::Local,
        cards: 1,
        joules: Some(18.998 * 2400.0 + 8.998 * 2000.0 + 1000.0 * 0.998 + 2.0),
        says: &["covers_more"],
    },
    Known {
        name: "node.mllog.txt",
        format: "MLPerf log lines",
        clock: Clock::Epoch,
        cards: 1,
        joules: Some(195_700.0),
        says: &["mark_refused", "covers_more"],
    },
    Known {
        name: "plain.csv",
        format: "logger CSV",
        clock: Clock::Epoch,
        cards: 1,
        joules: Some(1.99 * 62.5),
        says: &["window_assumed"],
    },
    Known {
        name: "elapsed.csv",
        format: "logger CSV",
        clock: Clock::Elapsed,
        cards: 1,
        joules: Some(10.0 * 15.5 + 10.0 * 28.0 + 91.0 * 40.5),
        says: &["stamps_truncated"],
    },
    Known {
        name: "both-clocks.csv",
        format: "logger CSV",
        clock: Clock::Elapsed,
        cards: 1,
        joules: Some(9.63 * 45.5),
        says: &["stamps_truncated"],
    },
    Known {
        name: "day.csv",
        format: "logger CSV",
        clock: Clock::Day,
        cards: 1,
        joules: Some(8506.0),
        says: &["stamps_truncated"],
    },
];

#[test]
fn every_format_is_told_by_what_stands_in_it_and_its_energy_is_the_truth() {
    for known in KNOWN {
        let Known { name, format, clock, cards, joules, says } = known;
        let log = recording(&made_up(name));
        assert_eq!((log.format, log.clock, log.cards.len()), (*format, *clock, *cards), "{name}");
        let ask = log.ask(None, &[]).unwrap();
        match joules {
            Some(joules) => {
                let seen = whole_j(&log, &ask);
                assert!(close(seen, *joules, 1e-3), "{name}: {seen} for {joules}");
            }
            None => {
                let whole = log.whole(&ask);
                assert_eq!(log.sum(&whole, &ask).measurement.joules, None);
                assert_eq!(whole[1].measurement.error, Some(Fault::NotSupported));
            }
        }
        let said = words(&log.warnings);
        for word in *says {
            assert!(said.contains(word), "{name} does not say {word}: {said:?}");
        }
    }
}

#[test]
fn every_made_up_log_is_read_by_some_test() {
    let others = ["averaged.csv", "bursts.csv", "two-cards.csv"];
    for name in all_made_up() {
        let known = KNOWN.iter().any(|known| known.name == name);
        let windows = name.contains(".marks.") || name.contains(".requests.");
        assert!(known || windows || others.contains(&name.as_str()), "{name}");
    }
}

#[test]
fn what_is_not_wrong_is_not_warned_of() {
    for (name, quiet) in [
        ("plain.csv", vec!["stamps_truncated", "stamps_of_loop", "cut_tick", "bridged"]),
        (
            "headerless.csv",
            vec!["stamps_of_loop", "identity_ambiguous", "cut_tick", "unit_assumed"],
        ),
        ("rocm-loop.csv", vec!["cut_tick", "header_misnamed"]),
        ("scrapes.prom", vec!["one_reading", "parts", "labels_ignored"]),
        ("bursts.csv", vec!["unit_assumed", "slow_sensor", "columns_inferred", "covers_more"]),
    ] {
        let said = words(&recording(&made_up(name)).warnings);
        assert!(quiet.iter().all(|word| !said.contains(word)), "{name}: {said:?}");
    }
}

#[test]
fn windows_that_a_log_marks_itself_are_windows() {
    let log = recording(&made_up("pmt.log"));
    let [own] = log.windows.as_slice() else { panic!("{:?}", log.windows) };
    assert_eq!(own.span.open_ns, log.span.open_ns + SECOND / 2);
    let seen = window(&log, own.span, &log.ask(None, &[]).unwrap()).seen.unwrap();
    assert!(close(seen.gross_j, 150.0, 5e-3), "{seen:?}");
    let node = recording(&made_up("node.mllog.txt"));
    // The trainer's run is one; the power measurement, which stops as it starts, is none.
    assert_eq!(node.windows.len(), 1);
    assert_eq!(
        (node.windows[0].name.as_deref(), node.windows[0].span.seconds()),
        (Some("run"), 20.0)
    );
    let wall = recording(&made_up("wall.spl.txt"));
    let names: Vec<_> = wall.windows.iter().filter_map(|own| own.name.as_deref()).collect();
    assert_eq!(names, ["ranging", "testing"]);
}

fn span_of(log: &Recording, mark: &Mark) -> Span {
    let on = |moment: Moment| moment.on(log.clock, None, log.span.open_ns).unwrap();
    Span { open_ns: on(mark.start), close_ns: on(mark.end) }
}

#[test]
fn requests_shorter_than_the_polls_are_not_measured() {
    let limit = Power::from_watts(750.0);
    let log = with(&made_up("rocm-loop.csv"), &Options { limit, ..Options::default() });
    let marks = replay::marks(&made_up("rocm-loop.requests.csv")).unwrap();
    let ask = log.ask(None, &[152.0, 151.0]).unwrap();
    for mark in &marks.windows {
        assert_eq!(mark.uncertainty_ns, 850_000_000);
        let span = span_of(&log, mark);
        let answer = log.window_within(span, mark.uncertainty_ns as f64 / 1e9, &ask).remove(0);
        assert_eq!(answer.measurement.method, Method::Unknown);
        assert_eq!(answer.measurement.error, Some(Fault::WindowBelowResolution));
        let seen = answer.seen.unwrap();
        assert!(seen.range_j.0 == 0.0 && seen.range_j.1 >= 750.0 * 0.75, "{seen:?}");
    }
    // Also one that holds a sample, and is longer than what a reading may be the mean over.
    let open_ns = log.span.open_ns + 14 * SECOND;
    let span = Span { open_ns, close_ns: open_ns + 3 * SECOND };
    let answer = log.window(span, &ask).remove(0);
    assert_eq!(answer.measurement.error, Some(Fault::WindowBelowResolution));
}

#[test]
fn a_window_of_uncertain_place_has_a_wider_bound() {
    let log = recording(&made_up("both-clocks.csv"));
    let marks = replay::marks(&made_up("both-clocks.requests.csv")).unwrap();
    let span = span_of(&log, &marks.windows[0]);
    assert_eq!((span.open_ns, span.seconds()), (3 * SECOND / 2, 7.0));
    let ask = log.ask(None, &[]).unwrap();
    let bound =
        |uncertainty_s| log.window_within(span, uncertainty_s, &ask)[0].seen.unwrap().bound_j;
    let swing_w = log.cards[0].tracks[0].facts.swing_w();
    assert!(close(bound(0.3) - bound(0.0), 0.3 * swing_w, 1e-6));
}

#[test]
fn requests_by_their_end_lie_over_midnight_and_before_the_log() {
    let log = recording(&made_up("day.csv"));
    let marks = replay::marks(&made_up("day.requests.csv")).unwrap();
    assert_eq!(marks.windows.len(), 3);
    let ask = log.ask(None, &[]).unwrap();
    let answers: Vec<_> =
        marks.windows.iter().map(|mark| window(&log, span_of(&log, mark), &ask)).collect();
    // The first began before the first row: nothing is made up for that.
    assert_eq!(answers[0].measurement.error, Some(Fault::NotReady));
    assert_eq!(answers[0].measurement.joules, None);
    assert!(answers[0].measurement.lower_bound_joules.is_some());
    for (answer, seconds) in answers.iter().zip([15.55, 19.8, 16.9]).skip(1) {
        let seen = answer.seen.unwrap();
        assert!(close(seen.gross_j, seconds * 151.0, 5e-3), "{seen:?}");
    }
}

#[test]
fn a_person_may_name_the_columns() {
    let columns =
        "timestamp,index,utilization.gpu,memory.used,memory.total,power.draw,temperature.gpu";
    let columns: Vec<String> = columns.split(',').map(str::to_owned).collect();
    let form = Form { format: None, columns: Some(columns) };
    let log = replay::read_as(&made_up("misnamed.csv"), &form).unwrap();
    let log = Recording::of(log, &Options::default()).unwrap();
    assert!(!words(&log.warnings).contains(&"header_misnamed"));
    assert_eq!(
        log.cards.iter().map(|card| card.name.index).collect::<Vec<_>>(),
        [0, 1, 2, 3].map(Some)
    );
    let named = ["timestamp", "index", "?", "power.draw", "x", "y"].map(str::to_owned);
    let form = Form { format: None, columns: Some(named.to_vec()) };
    let log = replay::read_as(&made_up("headerless.csv"), &form).unwrap();
    assert!(!words(&log.warnings).contains(&"columns_inferred"));
    // Without units, and without a decimal to tell by, a person has to.
    let bare = b"2024-01-15T10:00:00.0, 0, 41, 55\n2024-01-15T10:00:01.0, 0, 41, 56\n";
    assert!(replay::read(bare).is_err());
    let named = ["time", "index", "temp", "power_w"].map(str::to_owned);
    let form = Form { format: None, columns: Some(named.to_vec()) };
    let log = Recording::of(replay::read_as(bare, &form).unwrap(), &Options::default()).unwrap();
    assert!(close(whole_j(&log, &log.ask(None, &[]).unwrap()), 55.5, 1e-9));
    let form = Form { format: Some(Format::Logger), columns: None };
    assert_eq!(replay::read_as(&made_up("plain.csv"), &form).unwrap().rows.len(), 200);
}

#[test]
fn a_counter_is_the_purse_and_one_that_never_moved_is_none() {
    let log = recording(&made_up("amd-smi.json"));
    let answer = log.whole(&log.ask(None, &[]).unwrap()).remove(0);
    assert_eq!(answer.columns, ["total_energy_consumption"]);
    let line = |at: u64, joules: &str| format!("a_joules_total{{gpu=\"0\"}} {joules} {at}000\n");
    let text = format!("{}{}", line(1_705_309_200, "500.1"), line(1_705_309_201, "500.1"));
    let still = recording(text.as_bytes());
    let answer = still.whole(&still.ask(None, &[]).unwrap()).remove(0);
    assert_eq!(answer.measurement.error, Some(Fault::CounterDead));
    assert_eq!(answer.measurement.joules, None);
    // A counter that begins again inside: nothing of the whole is a figure.
    let mut text = String::new();
    for (second, joules) in [(0, 500.0), (1, 600.0), (2, 700.0), (3, 10.0), (4, 110.0), (5, 210.0)]
    {
        text += &line(1_705_309_200 + second, &format!("{joules:.1}"));
    }
    let again = recording(text.as_bytes());
    assert!(words(&again.warnings).contains(&"counter_reset"), "{:?}", again.warnings);
    let answer = again.whole(&again.ask(None, &[10.0]).unwrap()).remove(0);
    assert_eq!(
        (answer.measurement.method, answer.measurement.error),
        (Method::Unknown, Some(Fault::CounterReset))
    );
    assert!(answer.measurement.lower_bound_joules.unwrap() >= 200.0);
    let span = Span { open_ns: again.span.open_ns, close_ns: again.span.open_ns + 2 * SECOND };
    let before = window(&again, span, &again.ask(None, &[10.0]).unwrap());
    assert!(close(before.seen.unwrap().gross_j, 200.0, 1e-9));
}

#[test]
fn one_reading_is_a_power_and_no_energy() {
    for text in [
        "time,watts\n1705309200,55.5\n",
        "{\"card0\": {\"Current Socket Graphics Package Power (W)\": \"12.0\"}}",
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu=\"0\"} 319159391\n",
    ] {
        let log = recording(text.as_bytes());
        assert!(words(&log.warnings).contains(&"one_reading"), "{text}: {:?}", log.warnings);
        let answer = log.whole(&log.ask(None, &[1.0]).unwrap()).remove(0);
        assert_eq!(answer.measurement.error, Some(Fault::NotReady));
        assert_eq!((answer.measurement.joules, answer.measurement.gross_joules), (None, None));
    }
}

#[test]
fn a_machine_may_draw_more_than_any_card_and_a_wild_reading_is_still_none() {
    let row = |second: u64, watts: f64| format!("{},{watts}\n", 1_705_309_200 + second);
    let rows: String = (0..40)
        .map(|second| row(second, if second == 7 { 90_000.0 } else { 6000.0 + second as f64 }))
        .collect();
    let log = recording(format!("time,watts\n{rows}").as_bytes());
    let track = &log.cards[0].tracks[0];
    assert_eq!((track.readings, track.lost.len()), (39, 1));
    assert_eq!(track.lost[0].2, Fault::Implausible);
}

#[test]
fn a_slow_sensors_lag_is_in_its_bounds() {
    let bytes = made_up("bursts.csv");
    let bound = |model: &str| {
        let model = Some(model.to_owned());
        let log = with(&bytes, &Options { model, ..Options::default() });
        let said = words(&log.warnings).contains(&"slow_sensor");
        (said, log.whole(&log.ask(Some("power.draw"), &[]).unwrap())[0].seen.unwrap().bound_j)
    };
    let (plain, slow) = (bound("Tesla P100"), bound("Tesla K20m"));
    assert!(!plain.0 && slow.0);
    assert!(close(slow.1 - plain.1, 1500.0, 1e-6), "{plain:?} {slow:?}");
}
