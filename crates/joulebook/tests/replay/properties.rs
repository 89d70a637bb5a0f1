//! Any bytes are read or refused; where the log begins and in which order its columns stand changes
//! no figure.

use std::fmt::Write;

use joulebook::{
    core::estimate::Span,
    replay::{self, Options, Recording},
};
use proptest::prelude::*;

use super::support::{all_made_up, made_up, recording, window};

/// Everything the program asks of a log.
fn ask_everything(bytes: &[u8]) {
    let _ = replay::marks(bytes);
    let Ok(log) = replay::read(bytes) else { return };
    let Ok(log) = Recording::of(log, &Options::default()) else { return };
    for column in [None, Some("power.draw"), Some("power.draw.instant")] {
        let Ok(ask) = log.ask(column, &[10.0]) else { continue };
        let whole = log.whole(&ask);
        let sum = log.sum(&whole, &ask);
        let middle = log.span.open_ns.midpoint(log.span.close_ns);
        let span = Span { open_ns: log.span.open_ns, close_ns: middle };
        let cards = log.window(span, &ask);
        for answer in whole.iter().chain(&cards).chain([&sum]) {
            let joules = answer.measurement.joules;
            assert!(joules.is_none_or(|joules| joules.is_finite() && joules > 0.0));
        }
        for warning in log.warnings.iter().chain(&log.say_of_windows(&[span], &ask)) {
            assert!(!warning.to_string().is_empty());
        }
    }
}

fn mutated(mut bytes: Vec<u8>, changes: &[(prop::sample::Index, u8, u8)]) -> Vec<u8> {
    for (at, what, byte) in changes {
        if bytes.is_empty() {
            break;
        }
        let at = at.index(bytes.len());
        match what % 4 {
            0 => bytes[at] = *byte,
            1 => bytes.insert(at, *byte),
            2 => drop(bytes.remove(at)),
            _ => bytes[at] = b"0123456789,.:/ \n-"[usize::from(*byte) % 17],
        }
    }
    bytes
}

/// A log of some cards from drawn readings: gap in ms, and what each of its cells says.
fn written(order: &[usize], start_ms: u64, rows: &[(u64, u32, u32)]) -> String {
    let names = ["timestamp", "power.draw [W]", "power.draw.instant [W]", "utilization.gpu [%]"];
    let line = |cells: [String; 4]| {
        let cells: Vec<&str> = order.iter().map(|at| cells[*at].as_str()).collect();
        format!("{}\n", cells.join(", "))
    };
    let mut text = line(names.map(str::to_owned));
    let mut at_ms = start_ms;
    for (gap_ms, draw, instant) in rows {
        at_ms += gap_ms;
        let (hours, minutes) = (at_ms / 3_600_000, at_ms / 60_000 % 60);
        let mut stamp = String::new();
        let (seconds, ms) = (at_ms / 1000 % 60, at_ms % 1000);
        write!(stamp, "2024/01/15 {hours:02}:{minutes:02}:{seconds:02}.{ms:03}").unwrap();
        let watts = |deciwatts: &u32| match deciwatts % 50 {
            0 => "[N/A]".to_owned(),
            _ => format!("{}.{} W", deciwatts / 10, deciwatts % 10),
        };
        text += &line([stamp, watts(draw), watts(instant), "50 %".to_owned()]);
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        ask_everything(&bytes);
    }

    #[test]
    fn mutated_logs_are_read_or_refused(
        name in prop::sample::select(all_made_up()),
        keep in 50usize..8000,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), any::<u8>()), 0..40),
    ) {
        let mut bytes = made_up(&name);
        bytes.truncate(keep);
        ask_everything(&mutated(bytes, &changes));
    }

    #[test]
    fn neither_the_columns_order_nor_the_hour_changes_a_figure(
        rows in prop::collection::vec((1u64..400, 1u32..4000, 1u32..4000), 5..60),
        order in Just(vec![0usize, 1, 2, 3]).prop_shuffle(),
        moved_ms in 0u64..36_000_000,
        open in 0.0f64..0.5,
        length in 0.1f64..0.5,
    ) {
        let here = replay::read(written(&[0, 1, 2, 3], 0, &rows).as_bytes());
        let there = replay::read(written(&order, moved_ms, &rows).as_bytes());
        let read = |log| Recording::of(log, &Options::default());
        let (Ok(here), Ok(there)) = (here.and_then(read), there.and_then(read)) else {
            // All cells without a number.
            return Ok(());
        };
        let figures = |log: &Recording| {
            let ask = log.ask(None, &[1.0]).unwrap();
            let length_ns = (log.span.close_ns - log.span.open_ns) as f64;
            let open_ns = log.span.open_ns + (length_ns * open) as u64;
            let span = Span { open_ns, close_ns: open_ns + (length_ns * length) as u64 };
            let answers = [log.whole(&ask).remove(0), window(log, span, &ask)];
            answers.map(|answer| (answer.measurement, answer.seen, answer.columns))
        };
        prop_assert_eq!(figures(&here), figures(&there));
    }

    #[test]
    fn a_whole_log_is_the_trapezoid_of_its_readings(
        rows in prop::collection::vec((1u64..50, 1u32..4000, 1u32..4000), 5..60),
    ) {
        let text = written(&[0, 1, 2, 3], 0, &rows);
        let mut at_s = 0.0;
        let mut points = Vec::new();
        for (gap_ms, draw, _) in &rows {
            at_s += *gap_ms as f64 / 1e3;
            if draw % 50 != 0 {
                points.push((at_s, f64::from(*draw) / 10.0));
            }
        }
        prop_assume!(points.len() > 2);
        let log = recording(text.as_bytes());
        let answer = log.whole(&log.ask(Some("power.draw"), &[]).unwrap()).remove(0);
        let joules: f64 = points
            .windows(2)
            .map(|pair| (pair[1].0 - pair[0].0) * (pair[0].1 + pair[1].1) / 2.0)
            .sum();
        let gross = answer.seen.unwrap().gross_j;
        prop_assert!((gross - joules).abs() < 1e-3 + joules * 1e-6, "{} {}", gross, joules);
    }
}
