//! aiperf's summary, its CSV, and its line per request.
//!
//! Its definitions: TTFT to the first piece with content, latency to the last, ITL as latency after
//! the first piece over the tokens after the first (one figure a request), chunk latency between
//! pieces; milliseconds. Energy is that of the rung's windows: per token over the tokens in them.
//! Where requests failed, the `adj_` metrics count them as never answered.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{
    civil, duration_s, is_done, measured,
    metric::{self, Metric},
    rate,
};
use crate::bench::{
    record::{Lengths, Record, Request, Rung},
    sums::Sums,
};

/// The form of the summary that is written.
const SCHEMA: &str = "1.4";

/// The rung as one summary.
pub fn summary(record: &Record, rung: &Rung) -> anyhow::Result<String> {
    let mut all = Map::new();
    let mut put = |key: &str, value: Value| {
        all.insert(key.to_owned(), value);
    };
    put("schema_version", json!(SCHEMA));
    put("joulebook_version", json!(record.version));
    for metric in metrics(record, rung) {
        put(metric.tag(), metric.json());
    }
    put("input_config", config(record, rung));
    put("run_info", json!({"random_seed": record.settings.seed, "trial": 0}));
    put("was_cancelled", json!(record.incomplete.is_some()));
    put("is_complete", json!(rung.repeats.iter().all(|repeat| repeat.incomplete.is_none())));
    put("error_summary", errors(rung));
    let at = |seconds: f64| {
        civil(record.started_unix_s + seconds)
            .map(|at| at.strftime("%Y-%m-%dT%H:%M:%S%.6f").to_string())
    };
    let starts = measured(rung).map(|request| request.sent_ns).min();
    let ends = measured(rung).map(|request| request.sent_ns + request.ended_ns).max();
    put("start_time", json!(starts.and_then(|ns| at(ns as f64 / 1e9))));
    put("end_time", json!(ends.and_then(|ns| at(ns as f64 / 1e9))));
    Ok(serde_json::to_string_pretty(&Value::Object(all))? + "\n")
}

/// The rung as its CSV.
pub fn csv(record: &Record, rung: &Rung) -> String {
    metric::csv(&metrics(record, rung))
}

/// A line per measured request.
pub fn lines(record: &Record, rung: &Rung) -> anyhow::Result<String> {
    let mut text = String::new();
    for (number, request) in measured(rung).enumerate() {
        text += &serde_json::to_string(&line(record, number, request))?;
        text.push('\n');
    }
    Ok(text)
}

/// A figure of a request, where it has one.
type Of = fn(&Request) -> Option<f64>;

/// What each answered request contributes: tag, header, unit, value.
const EACH: &[(&str, &str, &str, Of)] = &[
    ("request_latency", "Request Latency", "ms", Request::e2el_ms),
    ("time_to_first_token", "Time to First Token", "ms", Request::ttft_ms),
    ("time_to_second_token", "Time to Second Token", "ms", second_ms),
    ("inter_token_latency", "Inter Token Latency", "ms", Request::tpot_ms),
    (
        "output_token_throughput_per_user",
        "Output Token Throughput Per User",
        "tokens/sec/user",
        |it| per(1e3, it.tpot_ms()),
    ),
    ("output_sequence_length", "Output Sequence Length", "tokens", |it| {
        it.completion_tokens.map(|tokens| tokens as f64)
    }),
    ("input_sequence_length", "Input Sequence Length", "tokens", |it| {
        it.prompt_tokens.map(|tokens| tokens as f64)
    }),
    ("output_token_count", "Output Token Count", "tokens", |it| {
        let reasoning = it.reasoning_tokens.unwrap_or(0);
        it.completion_tokens.map(|tokens| tokens.saturating_sub(reasoning) as f64)
    }),
    ("reasoning_token_count", "Reasoning Token Count", "tokens", |it| {
        it.reasoning_tokens.map(|tokens| tokens as f64)
    }),
    ("usage_prompt_cache_read_tokens", "Usage Prompt Cache Read Tokens", "tokens", |it| {
        it.cached_tokens.map(|tokens| tokens as f64)
    }),
    ("e2e_output_token_throughput", "E2E Output Token Throughput", "tokens/sec/user", |it| {
        per(it.completion_tokens? as f64 * 1e3, it.e2el_ms())
    }),
    ("decode_duration", "Decode Duration", "ms", decode_ms),
    ("prefill_throughput_per_user", "Prefill Throughput Per User", "tokens/sec/user", |it| {
        per(it.prompt_tokens? as f64 * 1e3, it.ttft_ms())
    }),
    ("credit_to_start_latency", "Credit-to-Start Latency", "ms", |it| {
        Some(it.sent_ns.saturating_sub(it.due_ns) as f64 / 1e6)
    }),
    ("effective_latency", "Effective Latency (CO-aware)", "ms", |it| {
        Some(it.e2el_ms()? + it.sent_ns.saturating_sub(it.due_ns) as f64 / 1e6)
    }),
];

/// Those of which there is also a form in which failed requests count as never answered.
const ADJUSTED: &[&str] =
    &["request_latency", "time_to_first_token", "inter_token_latency", "decode_duration"];

fn metrics(record: &Record, rung: &Rung) -> Vec<Metric> {
    let all: Vec<&Request> = measured(rung).collect();
    let done: Vec<&Request> = all.iter().copied().filter(|request| is_done(request)).collect();
    let failed = all.len() - done.len();
    let mut metrics = Vec::new();
    for (tag, header, unit, of) in EACH {
        let values: Vec<f64> = done.iter().filter_map(|request| of(request)).collect();
        metrics.extend(Metric::summary(tag, header, unit, &values));
        if ADJUSTED.contains(tag) {
            metrics.extend(Metric::adjusted(tag, header, unit, &values, failed));
        }
    }
    let gaps: Vec<f64> = done.iter().flat_map(|request| request.itl_ms()).collect();
    metrics.extend(Metric::summary("inter_chunk_latency", "Inter Chunk Latency", "ms", &gaps));
    let duration = duration_s(rung, |request| request.content_ns.last().copied());
    let sum =
        |of: fn(&Request) -> Option<u64>| -> u64 { done.iter().filter_map(|it| of(it)).sum() };
    let input = sum(|it| it.prompt_tokens) as f64;
    let output = sum(|it| it.completion_tokens) as f64;
    let text = output - sum(|it| it.reasoning_tokens) as f64;
    let mut one = |tag: &str, header: &str, unit: &'static str, value: f64| {
        metrics.push(Metric::one(tag, header, unit, value));
    };
    if duration > 0.0 {
        let per_s = |amount: f64| amount / duration;
        one("request_throughput", "Request Throughput", "requests/sec", per_s(done.len() as f64));
        one("output_token_throughput", "Output Token Throughput", "tokens/sec", per_s(output));
        one("input_token_throughput", "Input Token Throughput", "tokens/sec", per_s(input));
        let both = per_s(input + output);
        one("total_token_throughput", "Total Token Throughput", "tokens/sec", both);
        one("benchmark_duration", "Benchmark Duration", "sec", duration);
    }
    one("request_count", "Request Count", "requests", done.len() as f64);
    let ended = all.len() as f64;
    one("completed_request_count", "Completed Requests (Success + Error)", "requests", ended);
    if failed > 0 {
        one("error_request_count", "Error Request Count", "requests", failed as f64);
    }
    if !all.is_empty() {
        let rate = 100.0 * failed as f64 / all.len() as f64;
        one("request_error_rate", "Request Error Rate", "%", rate);
    }
    one("total_isl", "Total Input Sequence Length", "tokens", input);
    one("total_osl", "Total Output Sequence Length", "tokens", output);
    one("total_output_tokens", "Total Output Tokens", "tokens", text);
    metrics.extend(energy(record, rung, &metrics));
    metrics
}

/// Energy by the counter, else by the gauge, over the rung's windows.
fn energy(record: &Record, rung: &Rung, metrics: &[Metric]) -> Vec<Metric> {
    let Some(sums) = Sums::of(rung) else { return Vec::new() };
    let of_counter = sums.counter.map(|it| (it.energy.joules(), it.energy.seconds(), it.tokens));
    let of_gauge = sums.gauge.map(|it| (it.energy.joules(), it.energy.seconds(), it.tokens));
    let Some((joules, seconds, tokens)) = of_counter.or(of_gauge).filter(|it| it.0 > 0.0) else {
        return Vec::new();
    };
    let reader = record.source.counter.as_deref().or(record.source.gauge.as_deref());
    let is_amd = reader.is_some_and(|it| it.contains("amd") || it.contains("rocm"));
    let vendor = if is_amd { "amd" } else { "nvidia" };
    let mut all = Vec::new();
    let mut put = |tag: &str, header: &str, unit: &'static str, value: Option<f64>| {
        let value = value.filter(|value| value.is_finite());
        all.extend(value.map(|it| Metric::one(&format!("{vendor}_{tag}"), header, unit, it)));
    };
    let watts = (seconds > 0.0).then(|| joules / seconds);
    let gauge_watts = sums.gauge.and_then(|it| it.energy.mean_watts());
    let tokens = tokens.filter(|tokens| *tokens > 0).map(|tokens| tokens as f64);
    let completed = sums.completed.filter(|it| *it > 0).map(|it| it as f64);
    let request = completed.map(|completed| joules / completed);
    let average = |tag: &str| metrics.iter().find(|it| it.tag() == tag).and_then(Metric::average);
    put("total_gpu_power", "Total GPU Power", "W", gauge_watts);
    put("average_gpu_power", "Average GPU Power", "W", watts);
    put("total_gpu_energy", "Total GPU Energy", "J", Some(joules));
    let per_joule = tokens.map(|tokens| tokens / joules);
    put("output_tokens_per_joule", "Output Tokens per Joule", "tokens/J", per_joule);
    let per_token = tokens.map(|tokens| joules * 1e3 / tokens);
    put("energy_per_output_token", "Energy per Output Token", "mJ/token", per_token);
    // Of all tokens, or of none: a sum that some answers did not tell is too small.
    let both = sums.tokens.filter(|it| it.prompt_untold == 0).and_then(|it| {
        let both = it.prompt? + it.completion;
        (both > 0).then_some(both as f64)
    });
    let per_any = both.map(|tokens| joules * 1e3 / tokens);
    put("energy_per_total_token", "Energy per Total Token", "mJ/token", per_any);
    put("energy_per_request", "Energy per Request", "joules/request", request);
    let users = rung.kind.concurrency().map(|users| joules / f64::from(users));
    put("energy_per_user", "Energy per User", "joules/user", users);
    let delay = request.zip(average("request_latency")).map(|(joules, ms)| joules * ms / 1e3);
    put("energy_delay_product", "Energy Delay Product", "J*s", delay);
    let per_watt = |rate: Option<f64>| rate.zip(watts).map(|(rate, watts)| rate / watts);
    let requests = per_watt(sums.requests_per_s());
    put("performance_per_watt", "Performance per Watt", "requests/sec/W", requests);
    let rate = per_watt(sums.tokens_per_s());
    put("output_tps_per_watt", "Output Tokens per Second per Watt", "tokens/sec/W", rate);
    all
}

fn config(record: &Record, rung: &Rung) -> Value {
    let (settings, target) = (&record.settings, &record.target);
    let requests = measured(rung).count();
    let mut phase = json!({"name": "profiling", "kind": "profiling", "requests": requests});
    if let Some(fields) = phase.as_object_mut() {
        let rate = rate(rung.kind);
        let by = if rate.is_some() { "poisson" } else { "concurrency" };
        fields.insert("type".to_owned(), json!(by));
        match rate {
            Some(rate) => fields.insert("rate".to_owned(), json!(rate)),
            None => fields.insert("concurrency".to_owned(), json!(rung.kind.concurrency())),
        };
    }
    json!({
        "models": {"items": [{"name": target.model}]},
        "endpoint": {
            "urls": target.url.iter().collect::<Vec<_>>(),
            "type": settings.endpoint,
            "streaming": settings.streaming,
            "use_server_token_count": true,
            "extra": {"ignore_eos": settings.ignore_eos},
        },
        "datasets": [dataset(record, requests)],
        "phases": [phase],
    })
}

fn dataset(record: &Record, requests: usize) -> Value {
    let lengths = [&record.settings.prompt, &record.settings.answer];
    let file = lengths.into_iter().flatten().find_map(|lengths| match lengths {
        Lengths::File { path, .. } => Some(path),
        Lengths::Fixed { .. } => None,
    });
    if let Some(path) = file {
        return json!({"name": "main", "type": "file", "path": path});
    }
    let mut prompts = Map::new();
    for (lengths, key) in [(&record.settings.prompt, "isl"), (&record.settings.answer, "osl")] {
        if let Some(Lengths::Fixed { tokens }) = lengths {
            prompts.insert(key.to_owned(), json!({"mean": tokens, "stddev": 0.0}));
        }
    }
    json!({
        "name": "main",
        "type": "synthetic",
        "entries": requests,
        "random_seed": record.settings.seed,
        "prompts": prompts,
    })
}

fn errors(rung: &Rung) -> Value {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for request in measured(rung).filter(|request| !is_done(request)) {
        *counts.entry(request.error.as_deref().unwrap_or("not known")).or_default() += 1;
    }
    let of = |(message, count): (&str, u64)| json!({"error_details": {"type": null, "message": message}, "count": count});
    Value::Array(counts.into_iter().map(of).collect())
}

fn line(record: &Record, number: usize, request: &Request) -> Value {
    let origin_ns = (record.started_unix_s * 1e9) as u64;
    let at = |ns: u64| origin_ns.saturating_add(ns);
    let metadata = json!({
        "session_num": number,
        "credit_issued_ns": at(request.due_ns),
        "request_start_ns": at(request.sent_ns),
        "request_end_ns": at(request.sent_ns + request.ended_ns),
        "worker_id": "joulebook",
        "record_processor_id": "joulebook",
        "benchmark_phase": "profiling",
        "was_cancelled": request.outcome == crate::bench::record::Outcome::Cancelled,
    });
    let mut metrics = Map::new();
    if is_done(request) {
        for (tag, _, unit, of) in EACH {
            if let Some(value) = of(request) {
                metrics.insert((*tag).to_owned(), json!({"value": value, "unit": unit}));
            }
        }
        let gaps: Vec<f64> = request.itl_ms().collect();
        let gaps = json!({"value": gaps, "unit": "ms"});
        metrics.insert("inter_chunk_latency".to_owned(), gaps);
    }
    let mut line = json!({"metadata": metadata, "metrics": metrics});
    if let (Some(error), Some(fields)) = (&request.error, line.as_object_mut()) {
        let error = json!({"type": null, "code": request.http_status, "message": error});
        fields.insert("error".to_owned(), error);
    }
    line
}

fn second_ms(request: &Request) -> Option<f64> {
    request.itl_ms().next()
}

fn decode_ms(request: &Request) -> Option<f64> {
    Some(request.e2el_ms()? - request.ttft_ms()?)
}

/// An amount over a time; none where the time is 0 or not known.
fn per(amount: f64, time: Option<f64>) -> Option<f64> {
    time.filter(|time| *time > 0.0).map(|time| amount / time)
}
