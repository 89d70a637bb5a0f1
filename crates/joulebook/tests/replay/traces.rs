//! Recordings of real cards, beside their references and an external meter. They are other people's
//! data and not part of the repository: where they are not at hand, the tests say so.

use std::{fs, path::PathBuf};

use joulebook::{
    Fault, Power,
    core::estimate::{Estimate, Span},
    replay::{Options, Recording},
};
use serde_json::Value;

use super::support::{close, recording, root, spans, window, with, words};

/// A board's own gain, uncalibrated.
const GAIN: f64 = 0.05;
const ZONE: &str = "+01:00";

/// The folder of recordings, or a line that says it is not there.
pub fn traces() -> Option<PathBuf> {
    let folder = root().join("../shared/traces");
    if folder.join("index.json").exists() {
        return Some(folder);
    }
    println!("skipped: no recordings in ../shared/traces beside the repository");
    None
}

pub fn bytes(folder: &std::path::Path, name: &str) -> Vec<u8> {
    fs::read(folder.join(name)).unwrap()
}

/// A file's reference figures.
fn reference(folder: &std::path::Path, name: &str) -> Value {
    let index: Value = serde_json::from_slice(&bytes(folder, "index.json")).unwrap();
    let files = index["files"].as_array().unwrap();
    files.iter().find(|file| file["file"] == name).unwrap()["reference"].clone()
}

/// The meter's energy over a window: the trapezoid of its 10 ms means, on its own clock.
fn meter(truth: &[(u64, f64)], span: Span) -> f64 {
    let at = |ns: u64| {
        let after = truth.partition_point(|(at_ns, _)| *at_ns < ns).max(1);
        let ((from_ns, from_w), (to_ns, to_w)) = (truth[after - 1], truth[after]);
        from_w + (to_w - from_w) * (ns - from_ns) as f64 / (to_ns - from_ns) as f64
    };
    let inside = truth.iter().filter(|(ns, _)| *ns > span.open_ns && *ns < span.close_ns);
    let mut points = vec![(span.open_ns, at(span.open_ns))];
    points.extend(inside.copied());
    points.push((span.close_ns, at(span.close_ns)));
    points
        .windows(2)
        .map(|pair| (pair[1].0 - pair[0].0) as f64 / 1e9 * (pair[0].1 + pair[1].1) / 2.0)
        .sum()
}

/// The meter's rows, on the clock of a log one hour ahead of UTC.
fn truth(folder: &std::path::Path, name: &str) -> Vec<(u64, f64)> {
    let text = String::from_utf8(bytes(folder, name)).unwrap();
    let row = |line: &str| {
        let (at, watts) = line.split_once(',').unwrap();
        let at: f64 = at.parse().unwrap();
        // Stamps are whole milliseconds.
        let ns = ((at + 3600.0) * 1e3).round() as u64 * 1_000_000;
        (ns, watts.parse().unwrap())
    };
    text.lines().skip(1).map(row).collect()
}

/// True when the figure's interval, with the board's gain apart, holds the meter's.
fn covers(seen: &Estimate, meter_j: f64) -> bool {
    seen.range_j.0 * (1.0 - GAIN) <= meter_j && meter_j <= seen.range_j.1 * (1.0 + GAIN)
}

#[test]
fn whole_files_are_their_references() {
    let Some(folder) = traces() else { return };
    for (name, columns) in [
        ("smi-a100-bursts50ms.csv", 2),
        ("smi-rtx3090-steps.csv", 3),
        ("smi-v100-20ms-update.csv", 2),
        ("smi-k40m-steps.csv", 1),
    ] {
        let log = recording(&bytes(&folder, name));
        let reference = reference(&folder, name);
        assert_eq!(log.cards[0].tracks.len(), columns, "{name}");
        assert_eq!(log.refused.len(), 0);
        for track in &log.cards[0].tracks {
            let column = &track.channel.name;
            let wanted = &reference[column];
            let answer = log.whole(&log.ask(Some(column), &[]).unwrap()).remove(0);
            let gross = answer.measurement.gross_joules.unwrap();
            let joules = wanted["joules_trapezoid"].as_f64().unwrap();
            assert!(close(gross, joules, 1e-3), "{name}, {column}: {gross} for {joules}");
            assert_eq!(track.readings, wanted["samples"].as_u64().unwrap());
            assert!(close(answer.measurement.mean_watts, wanted["mean_W"].as_f64().unwrap(), 1e-3));
            assert!(close(track.range_w.1, wanted["max_W"].as_f64().unwrap(), 1e-9));
            println!("{name}, {column}: {gross:.3} J, reference {joules} J");
        }
        // Columns show one power; the figure of a card is one column's.
        let answer = log.whole(&log.ask(None, &[]).unwrap()).remove(0);
        assert_eq!(answer.columns, ["power.draw [W]"]);
    }
}

#[test]
fn windows_are_their_references() {
    let Some(folder) = traces() else { return };
    for name in ["smi-a100-bursts50ms", "smi-rtx3090-steps", "smi-k40m-steps"] {
        let log = recording(&bytes(&folder, &format!("{name}.csv")));
        let marks = format!("{name}.marks.csv");
        let spans = spans(&log, &bytes(&folder, &marks), ZONE);
        let reference = reference(&folder, &marks);
        let windows = reference["first_windows_J"].as_array().unwrap();
        assert!(!windows.is_empty() && windows.len() <= spans.len());
        for (wanted, span) in windows.iter().zip(&spans) {
            for track in &log.cards[0].tracks {
                let column = &track.channel.name;
                let ask = log.ask(Some(column), &[]).unwrap();
                let gross = window(&log, *span, &ask).seen.unwrap().gross_j;
                let joules = wanted[column]["trapezoid"].as_f64().unwrap();
                // References are rounded to a millijoule.
                let near = close(gross, joules, 1e-3) || (gross - joules).abs() < 1e-3;
                assert!(near, "{name}, {column}: {gross} for {joules}");
            }
        }
    }
}

#[test]
fn each_burst_of_the_a100_holds_the_meters_figure() {
    let Some(folder) = traces() else { return };
    let log_bytes = bytes(&folder, "smi-a100-bursts50ms.csv");
    let truth = truth(&folder, "smi-a100-bursts50ms.truth.csv");
    let reference = reference(&folder, "smi-a100-bursts50ms.marks.csv");
    let first_windows = reference["first_windows_J"].as_array().unwrap();
    let limit = Power::from_watts(400.0);
    for options in [Options::default(), Options { limit, ..Options::default() }] {
        let log = with(&log_bytes, &options);
        let spans = spans(&log, &bytes(&folder, "smi-a100-bursts50ms.marks.csv"), ZONE);
        assert_eq!(spans.len(), 76);
        let ask = log.ask(None, &[]).unwrap();
        let (mut seen_j, mut meter_j, mut most_j) = (0.0, 0.0, 0.0_f64);
        for (number, span) in spans.iter().enumerate() {
            let answer = window(&log, *span, &ask);
            let seen = answer.seen.unwrap();
            let binned = meter(&truth, *span);
            // The references stand on the meter's own 0.2 ms readings; its 10 ms means smear a
            // burst's edges by some per cent.
            let exact = first_windows.get(number).and_then(|it| it["meter"]["trapezoid"].as_f64());
            let metered = exact.unwrap_or(binned);
            assert!(close(binned, metered, 0.08), "{number}: {binned} J for {metered} J");
            assert_eq!(answer.measurement.error, Some(Fault::WindowBelowResolution));
            let (low, high) = seen.range_j;
            assert!(low <= metered && metered <= high, "{number}: {metered} J, {seen:?}");
            if number == 0 {
                assert!(close(seen.gross_j, 3.203, 1e-3) && close(metered, 9.986, 1e-9));
            }
            (seen_j, meter_j) = (seen_j + seen.gross_j, meter_j + metered);
            most_j = most_j.max(seen.range_j.1);
        }
        println!("76 bursts: {seen_j:.1} J seen, meter {meter_j:.1} J, each 0 to {most_j:.1} J");
    }
}

#[test]
fn the_step_of_the_3090_holds_the_meters_figure() {
    let Some(folder) = traces() else { return };
    let log_bytes = bytes(&folder, "smi-rtx3090-steps.csv");
    let truth = truth(&folder, "smi-rtx3090-steps.truth.csv");
    let limit = Power::from_watts(350.0);
    for options in [Options::default(), Options { limit, ..Options::default() }] {
        let log = with(&log_bytes, &options);
        let span = spans(&log, &bytes(&folder, "smi-rtx3090-steps.marks.csv"), ZONE)[0];
        let metered = meter(&truth, span);
        assert!(close(metered, 2581.673, 1e-3), "{metered}");
        for (column, averaging_s) in [("power.draw", 1.0), ("power.draw.instant", 0.1)] {
            let answer = window(&log, span, &log.ask(Some(column), &[]).unwrap());
            let seen = answer.seen.unwrap();
            assert!(answer.is_measured());
            assert!(covers(&seen, metered), "{column}: {seen:?}");
            let track = log.cards[0].column(column).unwrap();
            assert!(close(track.resolution_s(), averaging_s, 0.05));
            println!(
                "{column}: {:.1} ± {:.1} J ({:.0} to {:.0}), meter {metered:.1} J",
                seen.gross_j, seen.bound_j, seen.range_j.0, seen.range_j.1
            );
        }
    }
}

#[test]
fn repeated_readings_are_no_updates() {
    let Some(folder) = traces() else { return };
    let log = recording(&bytes(&folder, "smi-v100-20ms-update.csv"));
    let track = log.cards[0].column("power.draw").unwrap();
    assert!(close(track.update_s.unwrap(), 0.02, 0.1), "{:?}", track.update_s);
    let samples = log.whole(&log.ask(None, &[]).unwrap()).remove(0).measurement.samples;
    assert!(samples < track.readings * 2 / 3, "{samples} of {}", track.readings);
}

#[test]
fn a_frozen_sensor_is_told_and_gives_no_figure() {
    let Some(folder) = traces() else { return };
    let frozen = recording(&bytes(&folder, "smi-frozen-unknown-error.csv"));
    let answer = frozen.whole(&frozen.ask(None, &[]).unwrap()).remove(0);
    assert_eq!(answer.measurement.error, Some(Fault::CounterFrozen));
    assert!(words(&frozen.warnings).contains(&"counter_frozen"), "{:?}", frozen.warnings);
    let of_others = |name: &str, log: &Recording| {
        assert!(!words(&log.warnings).contains(&"counter_frozen"), "{name}: {:?}", log.warnings);
    };
    for name in [
        "smi-a100-bursts50ms.csv",
        "smi-rtx3090-steps.csv",
        "smi-v100-20ms-update.csv",
        "smi-k40m-steps.csv",
        "smi-100ms-asr-server.csv",
        "smi-100ms-asr-100-sessions.csv",
    ] {
        of_others(name, &recording(&bytes(&folder, name)));
    }
}
