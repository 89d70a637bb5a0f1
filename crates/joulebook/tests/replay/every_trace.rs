//! Every recording of a real card, meter or counter that is at hand: read with the energy of its
//! reference and a word for each of its traps, or refused with what it is. They are other people's
//! data and not part of the repository; where they are not at hand the tests say so.

use std::collections::HashSet;

use joulebook::{
    Fault, Method, Power,
    core::estimate::Span,
    replay::{self, Mark, Moment, Options, Recording, Zone},
};
use serde_json::Value;

use super::{
    support::{close, recording, whole_j, window, with, words},
    traces::{bytes, traces},
};

/// What a file must come out as.
enum Expect {
    /// The trapezoid, or a counter's growth, of the reference series whose name begins so: their
    /// sum over cards.
    Joules(&'static str),
    /// One reading of each card, W.
    Power(&'static [f64]),
    /// What is seen is no measurement.
    Seen(&'static str, Fault),
    /// Refused, with these words.
    Refused(&'static str),
}
use Expect::{Joules, Power as Watts, Refused, Seen};

/// File, what it comes out as, words that are said.
const FILES: &[(&str, Expect, &[&str])] = &[
    ("smi-rtx3090-steps.csv", Joules("power.draw [W]"), &["averaged"]),
    ("smi-rtx3090-steps.truth.csv", Joules("meter"), &[]),
    ("smi-rtx3090-steps.marks.csv", Refused("--marks"), &[]),
    ("smi-a100-bursts50ms.csv", Joules("power.draw [W]"), &["window_assumed"]),
    ("smi-a100-bursts50ms.truth.csv", Joules("meter"), &[]),
    ("smi-a100-bursts50ms.marks.csv", Refused("--marks"), &[]),
    ("smi-k40m-steps.csv", Joules("power.draw [W]"), &["window_assumed"]),
    ("smi-k40m-steps.truth.csv", Joules("meter"), &[]),
    ("smi-k40m-steps.marks.csv", Refused("--marks"), &[]),
    ("smi-v100-20ms-update.csv", Joules("power.draw [W]"), &["window_assumed"]),
    (
        "smi-frozen-unknown-error.csv",
        Seen("power.draw [W]", Fault::CounterFrozen),
        &["counter_frozen"],
    ),
    (
        "smi-8xh100-interleaved-idle.csv",
        Joules("gpu"),
        &["header_misnamed", "stamps_of_loop", "stamps_truncated", "cut_tick", "unit_assumed"],
    ),
    ("smi-8gpu-100ms-loop.csv", Joules("gpu"), &["stamps_of_loop", "bridged"]),
    ("smi-100ms-asr-server.csv", Joules("gpu0"), &["window_assumed"]),
    ("smi-100ms-asr-100-sessions.csv", Joules("gpu0"), &["window_assumed"]),
    ("gb10-rate-sweep-qwen3.5-9b.csv", Joules("gpu0"), &["stamps_truncated", "window_assumed"]),
    ("gb10-sharegpt-qwen3.5-9b.csv", Joules("gpu0"), &["stamps_truncated", "window_assumed"]),
    ("amdsmi-w7700-2ms.log", Joules("device"), &["window_assumed"]),
    ("rocmsmi-w7700-2ms.log", Joules("device"), &["window_assumed"]),
    ("jetson-ina-12ms-resnet18.csv", Joules("board"), &["bridged"]),
    (
        "mi300x-vllm-bs1-power.csv",
        Joules("card"),
        &["malformed_row", "short_rows", "stamps_truncated", "stamps_of_loop"],
    ),
    ("mi300x-vllm-bs1-requests.csv", Refused("--marks"), &[]),
    (
        "mi300x-vllm-bs8-power.csv",
        Joules("card"),
        &["malformed_row", "short_rows", "stamps_truncated", "stamps_of_loop"],
    ),
    ("mi300x-vllm-bs8-requests.csv", Refused("--marks"), &[]),
    ("strixhalo-rocmsmi-power.csv", Joules("apu"), &["stamps_truncated"]),
    ("strixhalo-llm-requests.csv", Refused("--marks"), &[]),
    ("wall-h200x8-gptj-server.spl.txt", Joules("server"), &["covers_more"]),
    ("node-h100x8-bert.mllog.txt", Joules("node"), &["mark_refused", "covers_more"]),
    ("prom-kepler-package-joules.csv", Joules("package="), &["parts"]),
    ("prom-kepler-node-idle-mJ.csv", Joules("pkg_id="), &["labels_ignored"]),
    ("wall-ollama-cpu-power.csv", Joules("wall"), &["stamps_truncated"]),
    ("wall-ollama-cpu-requests.csv", Refused("--marks"), &[]),
    (
        "amdsmi-8xmi355x-csv.csv",
        Watts(&[238.0, 242.0, 246.0, 242.0, 241.0, 239.0, 239.0, 241.0]),
        &["cut_tick", "one_reading", "stamps_truncated"],
    ),
    ("snap-gtx1070ti-power-na.xml", Refused("not_supported"), &[]),
    ("snap-a100-mig.xml", Watts(&[67.03]), &["instances", "one_reading"]),
    ("snap-rtx3080-average-instant.xml", Watts(&[139.62]), &["one_reading"]),
    ("snap-rx6700xt-rocm612.json", Watts(&[6.0]), &["one_reading"]),
    ("snap-mi100-rocm602.json", Watts(&[36.0, 44.0, 43.0, 39.0]), &["one_reading"]),
    ("snap-dcgm-a100-mig.prom", Watts(&[409.692]), &["one_reading", "instances"]),
];

fn index(folder: &std::path::Path) -> Vec<Value> {
    let index: Value = serde_json::from_slice(&bytes(folder, "index.json")).unwrap();
    index["files"].as_array().unwrap().clone()
}

fn entry(folder: &std::path::Path, name: &str) -> Value {
    index(folder).into_iter().find(|file| file["file"] == name).unwrap()
}

/// The reference energy of the series whose names begin so.
fn reference_j(entry: &Value, begin: &str) -> f64 {
    let series = entry["reference"].as_object().unwrap();
    let own = series.iter().filter(|(name, _)| name.starts_with(begin));
    let joules =
        own.filter_map(|(_, it)| it["joules_trapezoid"].as_f64().or(it["delta_J"].as_f64()));
    let joules: Vec<f64> = joules.collect();
    assert!(!joules.is_empty(), "{begin}");
    joules.iter().sum()
}

#[test]
fn every_recording_is_read_with_its_references_energy_or_refused_with_what_it_is() {
    let Some(folder) = traces() else { return };
    let names: HashSet<String> =
        index(&folder).iter().map(|file| file["file"].as_str().unwrap().to_owned()).collect();
    let known: HashSet<String> = FILES.iter().map(|(name, ..)| (*name).to_owned()).collect();
    assert_eq!(names, known, "every file of the index stands here");
    println!(
        "| file | format | column | reference J | J | % | says |\n| --- | --- | --- | --- | --- | --- | --- |"
    );
    for (name, expect, says) in FILES {
        let read = replay::read(&bytes(&folder, name))
            .and_then(|log| Recording::of(log, &Options::default()));
        if let Refused(helps) = expect {
            let error = read.expect_err(name).to_string();
            assert!(error.contains(helps), "{name}: {error}");
            println!(
                "| `{name}` | refused: {} | | | | | |",
                error.split([':', ';']).next().unwrap()
            );
            continue;
        }
        let log = read.unwrap();
        let said = words(&log.warnings);
        for word in *says {
            assert!(said.contains(word), "{name} does not say {word}: {said:?}");
        }
        let ask = log.ask(None, &[]).unwrap();
        let whole = log.whole(&ask);
        let column = whole[0].columns.join(", ");
        let mut unique: Vec<&str> = Vec::new();
        for word in said {
            if word != "ceiling_assumed" && !unique.contains(&word) {
                unique.push(word);
            }
        }
        let said = unique.join(", ");
        match expect {
            Joules(begin) | Seen(begin, _) => {
                let reference = reference_j(&entry(&folder, name), begin);
                let sum = log.sum(&whole, &ask);
                let gross = sum.seen.unwrap().gross_j;
                // The meters' references stand on 0.2 ms readings, the files on 10 ms means.
                assert!(close(gross, reference, 1e-3), "{name}: {gross} for {reference}");
                if let Seen(_, fault) = expect {
                    assert_eq!(sum.measurement.error, Some(*fault), "{name}");
                    assert!(sum.measurement.joules.is_none());
                } else {
                    assert!(whole.iter().all(|card| card.is_measured()), "{name}");
                }
                let percent = (gross / reference - 1.0) * 100.0;
                println!(
                    "| `{name}` | {} | {column} | {reference:.3} | {gross:.3} | {percent:+.4} | {said} |",
                    log.format
                );
            }
            Watts(powers) => {
                assert_eq!(log.cards.len(), powers.len(), "{name}");
                for (card, watts) in log.cards.iter().zip(*powers) {
                    let track = ask.track(card, f64::INFINITY).unwrap();
                    let at = track.series().at_or_before(track.span.open_ns).unwrap();
                    assert_eq!(at.power_uw as f64 / 1e6, *watts, "{name}");
                    if track.readings == 1 {
                        assert_eq!(track.estimate(log.span).unwrap_err().fault, Fault::NotReady);
                    }
                }
                println!("| `{name}` | {} | {column} | – | {powers:?} W | | {said} |", log.format);
            }
            Refused(_) => unreachable!(),
        }
    }
}

/// A file's marks on a recording's clock.
fn spans(log: &Recording, marks: &[Mark]) -> Vec<(Span, f64)> {
    let on = |moment: Moment| moment.on(log.clock, None, log.span.open_ns).unwrap();
    let span = |mark: &Mark| Span { open_ns: on(mark.start), close_ns: on(mark.end) };
    marks.iter().map(|mark| (span(mark), mark.uncertainty_ns as f64 / 1e9)).collect()
}

#[test]
fn the_kernels_in_the_toolkits_dumps_are_windows_with_their_references_energy() {
    let Some(folder) = traces() else { return };
    for name in ["amdsmi-w7700-2ms.log", "rocmsmi-w7700-2ms.log"] {
        let log = recording(&bytes(&folder, name));
        let reference = entry(&folder, name)["reference"]["kernel_windows_J"].clone();
        let kernels = reference.as_array().unwrap();
        assert_eq!((log.windows.len(), kernels.len()), (4, 4));
        let ask = log.ask(None, &[]).unwrap();
        for (own, kernel) in log.windows.iter().zip(kernels) {
            let seen = window(&log, own.span, &ask).seen.unwrap().gross_j;
            let joules = kernel["device"]["trapezoid"].as_f64().unwrap();
            assert!(close(seen, joules, 1e-3), "{name}: {seen} for {joules}");
        }
    }
}

#[test]
fn requests_shorter_than_the_polls_of_an_mi300x_are_never_sampled() {
    let Some(folder) = traces() else { return };
    for batch in ["bs1", "bs8"] {
        let requests = format!("mi300x-vllm-{batch}-requests.csv");
        let limit = Power::from_watts(750.0);
        let power = bytes(&folder, &format!("mi300x-vllm-{batch}-power.csv"));
        let log = with(&power, &Options { limit, ..Options::default() });
        let marks = replay::marks(&bytes(&folder, &requests)).unwrap();
        let ask = log.ask(None, &[150.0; 8]).unwrap();
        let spans = spans(&log, &marks.windows);
        assert_eq!(spans.len(), 10);
        for (span, uncertainty_s) in &spans {
            assert!(*uncertainty_s > 0.8);
            for answer in log.window_within(*span, *uncertainty_s, &ask) {
                assert_eq!(answer.measurement.method, Method::Unknown, "{batch}");
                assert_eq!(answer.measurement.error, Some(Fault::WindowBelowResolution));
                assert_eq!(answer.measurement.joules, None);
            }
        }
        // The run as a whole is longer than a poll, and one sample falls into it: its figure is the
        // reference's, and its bound says how little it stands on.
        let (first, last) = (spans[0].0, spans[9].0);
        let run = Span { open_ns: first.open_ns, close_ns: last.close_ns };
        let seen = log.window_within(run, 0.95, &ask)[0].seen.unwrap();
        let reference = entry(&folder, &requests)["reference"]["run"]["card0_J"].clone();
        let (trapezoid, hold) =
            (reference["trapezoid"].as_f64().unwrap(), reference["hold_forward"].as_f64().unwrap());
        assert!(close(seen.gross_j, trapezoid, 1e-3), "{batch}: {seen:?} for {trapezoid}");
        assert!(seen.range_j.0 <= trapezoid.min(hold) && trapezoid.max(hold) <= seen.range_j.1);
        assert!(seen.bound_j > 0.19 * seen.gross_j, "{seen:?}");
        println!(
            "{batch} run: {:.1} ± {:.1} J, {} sample",
            seen.gross_j, seen.bound_j, seen.samples
        );
    }
}

#[test]
fn requests_in_elapsed_seconds_are_their_references() {
    let Some(folder) = traces() else { return };
    let log = recording(&bytes(&folder, "strixhalo-rocmsmi-power.csv"));
    let marks = replay::marks(&bytes(&folder, "strixhalo-llm-requests.csv")).unwrap();
    let reference = entry(&folder, "strixhalo-llm-requests.csv")["reference"].clone();
    let ask = log.ask(None, &[]).unwrap();
    let wanted = reference["requests"].as_array().unwrap();
    assert_eq!(wanted.len(), marks.windows.len());
    for ((span, _), wanted) in spans(&log, &marks.windows).iter().zip(wanted) {
        let seen = window(&log, *span, &ask).seen.unwrap().gross_j;
        assert!(close(seen, wanted["apu"]["trapezoid"].as_f64().unwrap(), 1e-3), "{seen}");
    }
}

#[test]
fn requests_by_their_end_are_their_references_and_the_first_is_not_covered() {
    let Some(folder) = traces() else { return };
    let log = recording(&bytes(&folder, "wall-ollama-cpu-power.csv"));
    let marks = replay::marks(&bytes(&folder, "wall-ollama-cpu-requests.csv")).unwrap();
    let reference = entry(&folder, "wall-ollama-cpu-requests.csv")["reference"].clone();
    let ask = log.ask(None, &[]).unwrap();
    let wanted = reference["requests"].as_array().unwrap();
    assert_eq!(wanted.len(), marks.windows.len());
    let mut covered_j = 0.0;
    for ((span, uncertainty_s), wanted) in spans(&log, &marks.windows).iter().zip(wanted) {
        assert_eq!(*uncertainty_s, 1.0);
        let answer = window(&log, *span, &ask);
        assert!(close(span.seconds(), wanted["seconds"].as_f64().unwrap(), 1e-3));
        match wanted["wall"]["trapezoid"].as_f64() {
            Some(joules) => {
                let seen = answer.seen.unwrap().gross_j;
                assert!(close(seen, joules, 1e-3), "{seen} for {joules}");
                covered_j += seen;
            }
            None => {
                assert_eq!(answer.measurement.error, Some(Fault::NotReady));
                assert_eq!(answer.measurement.joules, None);
            }
        }
    }
    let sum = reference["sum_wall_J_covered"].as_f64().unwrap();
    assert!(close(covered_j, sum, 1e-3), "{covered_j} for {sum}");
}

#[test]
fn the_official_window_of_the_wall_log_is_its_reference() {
    let Some(folder) = traces() else { return };
    let name = "wall-h200x8-gptj-server.spl.txt";
    let log = recording(&bytes(&folder, name));
    let official = entry(&folder, name)["official_window"].clone();
    let on = |key: &str| {
        let moment: Moment = official[key].as_str().unwrap().parse().unwrap();
        moment.on(log.clock, None::<&Zone>, log.span.open_ns).unwrap()
    };
    let span = Span { open_ns: on("power_begin"), close_ns: on("power_end") };
    let answer = window(&log, span, &log.ask(None, &[]).unwrap());
    let seen = answer.seen.unwrap();
    assert!(answer.is_measured());
    assert!(close(seen.gross_j, official["J_trapezoid"].as_f64().unwrap(), 1e-3), "{seen:?}");
    assert!(close(answer.measurement.mean_watts, 4722.14, 1e-3));
    let per_token = seen.gross_j / 7_382_298.0;
    assert!(close(per_token, 0.40357, 1e-3), "{per_token}");
}

#[test]
fn each_hole_of_the_loop_is_bridged_and_shown() {
    let Some(folder) = traces() else { return };
    let log = recording(&bytes(&folder, "smi-8gpu-100ms-loop.csv"));
    let ask = log.ask(None, &[]).unwrap();
    for card in log.whole(&ask) {
        let bridged = card.measurement.bridged_joules.unwrap();
        let gross = card.measurement.gross_joules.unwrap();
        assert!(3.1 * 250.0 < bridged && bridged < 0.1 * gross, "{bridged} of {gross}");
    }
    assert!(close(whole_j(&log, &ask), 700_134.4, 1e-3));
}

#[test]
fn the_steps_of_the_k40m_hold_the_meters_figure() {
    let Some(folder) = traces() else { return };
    let bytes_of = |name: &str| bytes(&folder, name);
    let options = Options {
        model: Some("Tesla K40m".to_owned()),
        limit: Power::from_watts(235.0),
        ..Options::default()
    };
    let log = with(&bytes_of("smi-k40m-steps.csv"), &options);
    assert!(words(&log.warnings).contains(&"slow_sensor"));
    let marks = super::support::spans(&log, &bytes_of("smi-k40m-steps.marks.csv"), "+01:00");
    let reference = entry(&folder, "smi-k40m-steps.marks.csv")["reference"].clone();
    let meter = reference["first_windows_J"][0]["meter"]["trapezoid"].as_f64().unwrap();
    let seen = window(&log, marks[0], &log.ask(None, &[]).unwrap()).seen.unwrap();
    let (low, high) = seen.range_j;
    assert!(low <= meter && meter <= high, "{meter}: {seen:?}");
    println!("K40m: {:.1} ± {:.1} J, meter {meter:.1} J", seen.gross_j, seen.bound_j);
}
