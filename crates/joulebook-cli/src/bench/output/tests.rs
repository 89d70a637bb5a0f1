use super::*;
use crate::bench::{
    record::{Kind, Settings},
    sample,
    sums::latencies as latencies_of,
};

#[test]
fn the_record_is_as_it_was() {
    let record = sample::everything();
    insta::assert_snapshot!("record.json", json(&record).unwrap());
    insta::assert_snapshot!("requests.jsonl", jsonl(&record).unwrap());
    insta::assert_snapshot!("rungs.csv", csv(&record));
}

#[test]
fn what_is_written_is_read_again_with_its_requests() {
    let folder = tempfile::tempdir().unwrap();
    let mut record = sample::everything();
    let written = write(&mut record, folder.path()).unwrap();
    assert_eq!(written.last().unwrap().file_name().unwrap(), RECORD, "last");
    assert_eq!(read(folder.path()).unwrap(), record);
    assert_eq!(read(&folder.path().join(RECORD)).unwrap(), record);
    std::fs::remove_file(folder.path().join(REQUESTS)).unwrap();
    let without = read(folder.path()).unwrap();
    assert_eq!(requests(&without).count(), 0);
    let latencies = |record: &Record| latencies_of(record.rungs.first().unwrap());
    assert_eq!(latencies(&without), latencies(&record), "kept in the record");
}

#[test]
fn what_is_no_record_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.json");
    for (text, word) in [
        ("{\"duration\": 1.1}", "not a record of joulebook bench"),
        ("{\"form\": \"joulebook-bench/9\"}", "joulebook-bench/9"),
        ("{\"form\": \"joul", "not JSON"),
        ("{\"form\": \"joulebook-bench/1\"}", "missing field"),
    ] {
        std::fs::write(&path, text).unwrap();
        let error = format!("{:#}", read(&path).unwrap_err());
        assert!(error.contains(word) && error.contains("other.json"), "{text}: {error}");
    }
    let error = format!("{:#}", read(Path::new("/nonexistent/record.json")).unwrap_err());
    assert!(error.contains("/nonexistent/record.json"), "{error}");
}

#[test]
fn a_line_of_no_rung_is_refused_with_its_number() {
    let folder = tempfile::tempdir().unwrap();
    let mut record = sample::everything();
    write(&mut record, folder.path()).unwrap();
    let path = folder.path().join(REQUESTS);
    let text = std::fs::read_to_string(&path).unwrap().replacen("\"c8\"", "\"c9\"", 1);
    std::fs::write(&path, text).unwrap();
    let error = format!("{:#}", read(folder.path()).unwrap_err());
    assert!(error.contains("requests.jsonl:6") && error.contains("c9"), "{error}");
}

#[test]
fn an_incomplete_repeat_is_in_no_sum() {
    let record = sample::everything();
    let keys = Keys::of(&record);
    let eight = record.rungs.get(1).unwrap();
    assert_eq!(eight.repeats.len(), 2);
    assert_eq!(keys.number("c8_repeats"), Some(1.0));
    assert_eq!(keys.number("c8_gpu_rail_energy_window_s"), Some(10.0));
    let mut broken = sample::everything();
    for repeat in &mut broken.rungs.get_mut(1).unwrap().repeats {
        repeat.incomplete = Some("interrupted".to_owned());
    }
    let keys = Keys::of(&broken);
    assert!(keys.iter().all(|(name, _)| !name.starts_with("c8_")), "{keys:?}");
    assert!(json(&broken).unwrap().contains("\"incomplete\": \"interrupted\""));
}

#[test]
fn ratios_are_made_of_sums() {
    let mut record = sample::sweep(&[4], 2, 0.0, 1.0);
    let rung = record.rungs.first_mut().unwrap();
    // Two windows of unlike length: the mean of their ratios would be 1.5 J/token.
    for (repeat, (joules, tokens)) in rung.repeats.iter_mut().zip([(100u64, 100u64), (600, 300)]) {
        repeat.gauge.as_mut().unwrap().energy_uj = joules * 1_000_000;
        repeat.tokens.as_mut().unwrap().completion = tokens;
    }
    let keys = Keys::of(&record);
    assert_eq!(keys.number("c4_gpu_rail_joules_per_token"), Some(1.75));
    assert_eq!(keys.number("c4_gpu_rail_energy_window_tokens"), Some(400.0));
    assert_eq!(keys.number("c4_gpu_rail_energy_above_idle_j"), Some(700.0 - 70.0 * 20.0));
}

#[test]
fn tokens_are_those_of_the_windows_that_have_joules() {
    let mut record = sample::sweep(&[4], 2, 0.0, 1.0);
    let repeats = &mut record.rungs.first_mut().unwrap().repeats;
    let second = repeats.last_mut().unwrap();
    second.gauge = None;
    let tokens = second.tokens.unwrap().completion;
    let keys = Keys::of(&record);
    assert_eq!(keys.number("c4_output_tokens"), Some(2.0 * tokens as f64));
    assert_eq!(keys.number("c4_gpu_rail_energy_window_tokens"), Some(tokens as f64));
}

#[test]
fn what_is_not_known_is_absent() {
    let mut record = sample::sweep(&[4], 1, 0.0, 1.0);
    record.baseline = None;
    let repeat = record.rungs.first_mut().unwrap().repeats.first_mut().unwrap();
    repeat.tokens = None;
    repeat.counter = None;
    repeat.gauge.as_mut().unwrap().capped = Default::default();
    let keys = Keys::of(&record);
    for name in [
        "c4_gpu_rail_joules_per_token",
        "c4_gpu_rail_energy_window_tokens",
        "c4_gpu_rail_energy_above_idle_j",
        "c4_gpu_rail_sw_power_cap_frac",
        "c4_gpu_counter_energy_j",
        "c4_output_throughput",
        "gpu_rail_idle_power_w",
        "gpu_rail_sampler_rejected_lines",
    ] {
        assert_eq!(keys.get(name), None, "{name}");
    }
    assert!(keys.number("c4_gpu_rail_energy_j").is_some());
    // No tokens: absent as well, and no division by 0.
    record.rungs.first_mut().unwrap().repeats.first_mut().unwrap().tokens =
        Some(Default::default());
    assert_eq!(Keys::of(&record).get("c4_gpu_rail_joules_per_token"), None);
}

/// Somebody else's generator: nobody counted its requests.
#[test]
fn of_a_command_only_what_was_measured_is_there() {
    let mut record = sample::sweep(&[4], 1, 0.0, 1.0);
    let rung = record.rungs.first_mut().unwrap();
    rung.kind = Kind::Command;
    let repeat = rung.repeats.first_mut().unwrap();
    record.settings = Settings::default();
    repeat.seed = None;
    (repeat.completed, repeat.failed) = (None, None);
    repeat.tokens = Some(crate::bench::record::Tokens { completion: 500, ..Default::default() });
    let keys = Keys::of(&record);
    assert_eq!(keys.number("command_output_tokens"), Some(500.0));
    assert!(keys.number("command_gpu_rail_joules_per_token").is_some());
    for name in [
        "completed",
        "failed",
        "request_throughput",
        "prompt_tokens",
        "prompt_tokens_untold",
        "cached_tokens",
        "cached_tokens_untold",
    ] {
        assert_eq!(keys.get(&format!("command_{name}")), None, "{name}");
    }
    let form: serde_json::Value = serde_json::from_str(&json(&record).unwrap()).unwrap();
    let repeat = &form["rungs"][0]["repeats"][0];
    assert_eq!(repeat["tokens"], serde_json::json!({"completion": 500}));
    assert!(repeat.get("completed").is_none() && repeat.get("failed").is_none(), "{repeat}");
    assert!(repeat.get("seed").is_none(), "{repeat}");
    let settings = serde_json::json!({"repeats": 0, "baseline_s": 0.0});
    assert_eq!(form["settings"], settings, "how it drives the server only it knows");
    let table = crate::bench::report::table(&record);
    let row: Vec<&str> = table.lines().last().unwrap().split_whitespace().collect();
    assert_eq!(row.get(..3), Some(&["command", "–", "–"][..]), "{table}");
}

#[test]
fn without_energy_there_are_no_keys_of_it() {
    let mut record = sample::sweep(&[4], 1, 0.0, 1.0);
    (record.baseline, record.sampler) = (None, None);
    let repeat = record.rungs.first_mut().unwrap().repeats.first_mut().unwrap();
    (repeat.gauge, repeat.counter) = (None, None);
    let keys = Keys::of(&record);
    assert!(keys.iter().all(|(name, _)| !name.contains("gpu_")), "{keys:?}");
    assert!(keys.number("c4_output_throughput").is_some());
}

#[test]
fn each_kind_has_its_own_prefix() {
    for (kind, prefix) in [
        (Kind::ClosedLoop { concurrency: 8 }, "c8_"),
        (Kind::Rate { requests_per_s: 2.5 }, "r2.5_"),
        (Kind::Rate { requests_per_s: 4.0 }, "r4_"),
        (Kind::Floor, "floor_"),
        (Kind::PrefillPoint { concurrency: 1 }, "prefill_b1_"),
        (Kind::DecodePoint { concurrency: 32 }, "decode_b32_"),
        (Kind::Command, "command_"),
    ] {
        assert_eq!(kind.prefix(), prefix);
        let text = serde_json::to_string(&kind).unwrap();
        assert_eq!(serde_json::from_str::<Kind>(&text).unwrap(), kind, "{text}");
    }
}
