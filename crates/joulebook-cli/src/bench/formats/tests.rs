use serde_json::Value;

use super::*;
use crate::bench::{sample, statistics::Statistics};

fn whole(record: &Record) -> &Rung {
    record.rungs.first().unwrap()
}

#[test]
fn the_forms_of_others_are_as_they_were() {
    let record = sample::everything();
    let rung = whole(&record);
    let pretty = |text: &str| {
        let value: Value = serde_json::from_str(text).unwrap();
        serde_json::to_string_pretty(&value).unwrap()
    };
    insta::assert_snapshot!("c1.aiperf.json", aiperf::summary(&record, rung).unwrap());
    insta::assert_snapshot!("c1.aiperf.csv", aiperf::csv(&record, rung));
    insta::assert_snapshot!("c1.aiperf.jsonl", aiperf::lines(&record, rung).unwrap());
    insta::assert_snapshot!("c1.vllm.json", pretty(&vllm::result(&record, rung).unwrap()));
}

/// A server that tells no prompts, to some answers or to all.
#[test]
fn sums_of_prompts_that_were_not_all_told_are_none() {
    let mut record = sample::everything();
    let both = "energy_per_total_token";
    let summary = |record: &Record| -> Value {
        serde_json::from_str(&aiperf::summary(record, whole(record)).unwrap()).unwrap()
    };
    let result = |record: &Record| -> Value {
        serde_json::from_str(&vllm::result(record, whole(record)).unwrap()).unwrap()
    };
    let keys = |of: &Value| of.as_object().unwrap().keys().any(|key| key.ends_with(both));
    assert!(keys(&summary(&record)));
    assert!(result(&record)["total_input_tokens"].is_u64());
    let repeat = record.rungs.first_mut().unwrap().repeats.first_mut().unwrap();
    repeat.tokens.as_mut().unwrap().prompt_untold = 1;
    repeat.requests.get_mut(1).unwrap().prompt_tokens = None;
    assert!(!keys(&summary(&record)));
    let result = result(&record);
    assert!(result["total_input_tokens"].is_null() && result["total_token_throughput"].is_null());
    assert!(result["total_output_tokens"].is_u64());
}

/// A file of the recordings; none where they are not here.
fn recorded(name: &str) -> Option<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/captures");
    let text = std::fs::read_to_string(folder.join("record-formats").join(name)).ok();
    if text.is_none() {
        eprintln!("skipped: there is no recording {name}");
    }
    text
}

/// Every key of ours that is also in a recording of the tool has the same unit and the same parts.
#[test]
fn keys_and_units_are_those_of_the_tools() {
    let Some(theirs) = recorded("aiperf.json") else { return };
    let theirs: Value = serde_json::from_str(&theirs).unwrap();
    let record = sample::everything();
    let ours: Value =
        serde_json::from_str(&aiperf::summary(&record, whole(&record)).unwrap()).unwrap();
    let own = ["joulebook_version"];
    for (key, value) in ours.as_object().unwrap() {
        if own.contains(&key.as_str()) {
            continue;
        }
        let other = theirs.get(key).unwrap_or_else(|| panic!("aiperf has no {key}"));
        assert_eq!(value.get("unit"), other.get("unit"), "{key}");
        for part in value.as_object().into_iter().flatten().map(|(part, _)| part) {
            // A phase of the configuration is described in their words, but not by all of them.
            let known = other.get(part).is_some() || key == "run_info";
            assert!(known, "{key} has no {part} in aiperf");
        }
    }
    for key in ["request_latency", "time_to_first_token", "inter_token_latency"] {
        let parts = |of: &Value| of[key].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(parts(&ours), parts(&theirs), "{key}");
        let adjusted = format!("adj_{key}");
        assert!(ours.get(&adjusted).is_some(), "a request failed: {adjusted}");
    }
    let Some(theirs) = recorded("vllm-bench.json") else { return };
    let theirs: Value = serde_json::from_str(&theirs).unwrap();
    let ours: Value =
        serde_json::from_str(&vllm::result(&record, whole(&record)).unwrap()).unwrap();
    for key in theirs.as_object().unwrap().keys().filter(|key| *key != "generated_texts") {
        assert!(ours.get(key).is_some(), "ours has no {key}");
    }
    for key in ours.as_object().unwrap().keys() {
        let energy = key.contains("_rail_") || key.contains("gpu_") || key.contains("books_");
        assert!(energy || theirs.get(key).is_some(), "vLLM has no {key}");
    }
}

#[test]
fn the_csv_has_the_names_of_aiperfs() {
    let Some(theirs) = recorded("aiperf.csv") else { return };
    let record = sample::everything();
    let ours = aiperf::csv(&record, whole(&record));
    let names = |text: &str| -> Vec<String> {
        text.lines().filter_map(|line| line.split(',').next()).map(str::to_owned).collect()
    };
    let theirs = names(&theirs);
    for name in names(&ours).iter().filter(|name| !name.is_empty()) {
        assert!(theirs.contains(name), "aiperf has no row {name}");
    }
}

/// vLLM's own figures come out of its own times with our summaries.
#[test]
fn summaries_are_those_of_vllm() {
    let Some(text) = recorded("vllm-bench.json") else { return };
    let theirs: Value = serde_json::from_str(&text).unwrap();
    let list = |key: &str| theirs[key].as_array().unwrap().clone();
    let failed: Vec<bool> = list("errors").iter().map(|it| it.as_str() != Some("")).collect();
    let kept = |key: &str| -> Vec<f64> {
        let all = list(key).into_iter().zip(&failed).filter(|(_, failed)| !**failed);
        all.flat_map(|(value, _)| match value {
            Value::Array(many) => many.iter().map(|it| it.as_f64().unwrap()).collect(),
            one => vec![one.as_f64().unwrap()],
        })
        .map(|seconds| seconds * 1e3)
        .collect()
    };
    for (list, name) in [("ttfts", "ttft"), ("itls", "itl"), ("latencies", "e2el")] {
        let of = Statistics::of(&kept(list)).unwrap();
        for (figure, key) in [
            (of.mean, "mean"),
            (of.median(), "median"),
            (of.std, "std"),
            (of.percentile(99).unwrap(), "p99"),
        ] {
            let expected = theirs[format!("{key}_{name}_ms")].as_f64().unwrap();
            assert!((figure / expected - 1.0).abs() < 1e-12, "{key} {name}: {figure} {expected}");
        }
    }
}

#[test]
fn a_failed_request_counts_as_never_answered() {
    let record = sample::everything();
    let ours: Value =
        serde_json::from_str(&aiperf::summary(&record, whole(&record)).unwrap()).unwrap();
    assert_eq!(ours["request_count"]["avg"], 2.0);
    assert_eq!(ours["error_request_count"]["avg"], 1.0);
    assert_eq!(ours["adj_request_latency"]["count"], 3);
    assert_eq!(ours["adj_request_latency"].get("p99"), None, "unbounded");
    assert_eq!(ours["adj_request_latency"]["p50"], ours["request_latency"]["max"]);
    let vllm: Value =
        serde_json::from_str(&vllm::result(&record, whole(&record)).unwrap()).unwrap();
    assert_eq!((vllm["completed"].as_u64(), vllm["failed"].as_u64()), (Some(2), Some(1)));
    assert_eq!(vllm["ttfts"][1], 0.0);
    assert_eq!(vllm["itls"][0].as_array().unwrap().len(), 5, "the first and last piece too");
}

#[test]
fn each_rung_has_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let record = sample::everything();
    let mut names: Vec<String> = [Format::Aiperf, Format::Vllm]
        .into_iter()
        .flat_map(|format| write(&record, format, folder.path()).unwrap())
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    names.sort();
    let expected = ["aiperf.csv", "aiperf.json", "aiperf.jsonl", "vllm.json"];
    let expected = ["c1", "c8"].map(|rung| expected.map(|form| format!("{rung}.{form}")));
    assert_eq!(names, expected.concat(), "the rate has no requests");
}
