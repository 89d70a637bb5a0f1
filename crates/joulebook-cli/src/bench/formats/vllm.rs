//! The result of vLLM's `bench serve`.
//!
//! Its definitions: TTFT to the first piece with a choice, content or not; ITL between all such
//! pieces; latency to the last; TPOT over the tokens after the first; seconds. Times of a request
//! that failed are 0 in its lists, as there, and in no mean. It keeps no texts and no tokenizer.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::{civil, duration_s, is_done, measured, rate};
use crate::bench::{
    keys::Keys,
    record::{Record, Request, Rung},
    statistics::Statistics,
};

/// The rung as one such result.
pub fn result(record: &Record, rung: &Rung) -> anyhow::Result<String> {
    Ok(serde_json::to_string(&Value::Object(fields(record, rung)))? + "\n")
}

fn fields(record: &Record, rung: &Rung) -> Map<String, Value> {
    let requests: Vec<&Request> = measured(rung).collect();
    let done = || requests.iter().copied().filter(|request| is_done(request));
    let duration = duration_s(rung, |request| pieces(request).last().copied());
    let per_s = |amount: f64| (duration > 0.0).then(|| amount / duration);
    let completed = done().count();
    // Of all prompts, or not known.
    let input: Option<u64> = done().map(|request| request.prompt_tokens).sum();
    let output: u64 = done().filter_map(|request| request.completion_tokens).sum();
    let endpoint = if record.settings.endpoint.as_deref() == Some("completions") {
        "openai"
    } else {
        "openai-chat"
    };
    let date = civil(record.started_unix_s).map(|at| at.strftime("%Y%m%d-%H%M%S").to_string());
    let rate = rate(rung.kind).map_or(json!("inf"), |rate| json!(rate));
    let mut all = Map::new();
    let mut put = |key: &str, value: Value| {
        all.insert(key.to_owned(), value);
    };
    put("date", json!(date));
    put("endpoint_type", json!(endpoint));
    put("backend", json!(endpoint));
    put("label", Value::Null);
    put("model_id", json!(record.target.model));
    put("tokenizer_id", Value::Null);
    put("num_prompts", json!(requests.len()));
    put("request_rate", rate);
    put("burstiness", json!(1.0));
    put("max_concurrency", json!(rung.kind.concurrency()));
    put("duration", json!(duration));
    put("completed", json!(completed));
    put("failed", json!(requests.len() - completed));
    put("total_input_tokens", json!(input));
    put("total_output_tokens", json!(output));
    put("request_throughput", json!(per_s(completed as f64)));
    put("request_goodput", Value::Null);
    put("output_throughput", json!(per_s(output as f64)));
    put("total_token_throughput", json!(input.and_then(|input| per_s((input + output) as f64))));
    let list =
        |of: &dyn Fn(&Request) -> Value| Value::Array(requests.iter().map(|it| of(it)).collect());
    put("input_lens", list(&|it| json!(it.prompt_tokens)));
    put("output_lens", list(&|it| json!(if is_done(it) { it.completion_tokens } else { Some(0) })));
    put("ttfts", list(&|it| json!(ttft(it).unwrap_or(0.0))));
    put("itls", list(&|it| json!(itls(it))));
    put("latencies", list(&|it| json!(latency(it).unwrap_or(0.0))));
    put("start_times", list(&|it| json!(seconds(it.sent_ns))));
    put("queue_times", list(&|it| json!(seconds(it.sent_ns.saturating_sub(it.due_ns)))));
    put("errors", list(&|it| json!(it.error.as_deref().unwrap_or(""))));
    put("max_output_tokens_per_s", json!(most_pieces(rung)));
    put("max_concurrent_requests", json!(most_at_once(&requests)));
    put("rtfx", json!(0.0));
    let collect = |of: &dyn Fn(&Request) -> Option<f64>| done().filter_map(of).collect::<Vec<_>>();
    for (name, values) in [
        ("ttft", collect(&ttft)),
        ("tpot", collect(&tpot)),
        ("itl", done().flat_map(itls).collect()),
        ("e2el", collect(&latency)),
    ] {
        let of = Statistics::of(&values);
        let milliseconds = |of: Option<f64>| json!(of.map(|seconds| seconds * 1e3));
        put(&format!("mean_{name}_ms"), milliseconds(of.as_ref().map(|it| it.mean)));
        put(&format!("median_{name}_ms"), milliseconds(of.as_ref().map(Statistics::median)));
        put(&format!("std_{name}_ms"), milliseconds(of.as_ref().map(|it| it.std)));
        put(&format!("p99_{name}_ms"), milliseconds(of.as_ref().and_then(|it| it.percentile(99))));
    }
    for (key, value) in energy(record, rung) {
        put(&key, value);
    }
    all
}

/// Our energy keys of the rung and of the run.
fn energy(record: &Record, rung: &Rung) -> Vec<(String, Value)> {
    let is_energy = |key: &str| {
        ["gpu_", "cpu_rail", "dram_rail", "books_"].iter().any(|it| key.starts_with(it))
    };
    let run = Keys::of_run(record);
    let rung = Keys::of_rung(record, rung);
    let all = run.iter().chain(rung.iter()).filter(|(key, _)| is_energy(key));
    all.map(|(key, value)| (key.to_owned(), value.clone())).collect()
}

/// When each piece with a choice came, ns after the request was sent.
fn pieces(request: &Request) -> Vec<u64> {
    if !is_done(request) {
        return Vec::new();
    }
    let (first, last) = (request.content_ns.first(), request.content_ns.last());
    let before = request.first_piece_ns.filter(|at| first.is_none_or(|first| at < first));
    let after = request.last_piece_ns.filter(|at| last.is_none_or(|last| at > last));
    let mut pieces: Vec<u64> = before.into_iter().collect();
    pieces.extend(&request.content_ns);
    pieces.extend(after.filter(|after| pieces.last().is_none_or(|last| after > last)));
    pieces
}

fn ttft(request: &Request) -> Option<f64> {
    pieces(request).first().copied().map(seconds)
}

fn latency(request: &Request) -> Option<f64> {
    pieces(request).last().copied().map(seconds)
}

fn itls(request: &Request) -> Vec<f64> {
    let pieces = pieces(request);
    let later = pieces.iter().skip(1);
    pieces.iter().zip(later).map(|(before, after)| seconds(after - before)).collect()
}

fn tpot(request: &Request) -> Option<f64> {
    let after = request.completion_tokens?.checked_sub(1).filter(|after| *after > 0)?;
    Some((latency(request)? - ttft(request)?) / after as f64)
}

/// Most pieces in one second, counted from each repeat's first request.
fn most_pieces(rung: &Rung) -> f64 {
    let of = |repeat| {
        let done: Vec<&Request> = super::of_repeat(repeat).filter(|it| is_done(it)).collect();
        let from = done.iter().map(|request| request.sent_ns).min()?;
        let mut counts: HashMap<u64, u64> = HashMap::new();
        for request in done {
            for piece in pieces(request) {
                *counts.entry((request.sent_ns + piece - from) / 1_000_000_000).or_default() += 1;
            }
        }
        counts.into_values().max()
    };
    rung.finished().filter_map(of).max().unwrap_or(0) as f64
}

/// Most answered requests in flight at one time.
fn most_at_once(requests: &[&Request]) -> u64 {
    let mut steps: Vec<(u64, i64)> = Vec::new();
    for request in requests {
        if let Some(last) = pieces(request).last() {
            steps.extend([(request.sent_ns, 1), (request.sent_ns + last, -1)]);
        }
    }
    steps.sort_unstable();
    let mut now = 0i64;
    let most = steps.iter().map(|(_, step)| {
        now += step;
        now
    });
    most.max().and_then(|most| u64::try_from(most).ok()).unwrap_or(0)
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
