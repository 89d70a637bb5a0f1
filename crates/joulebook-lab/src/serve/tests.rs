use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    time::Duration,
};

use serde_json::{Value, json};

use super::*;

struct Bench {
    server: Server,
    _folder: tempfile::TempDir,
}

fn bench(settings: Settings) -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::make(folder.path(), &settings.hardware, "").unwrap();
    Bench { server: Server::start(settings, &home).unwrap(), _folder: folder }
}

fn agent() -> ureq::Agent {
    let config = ureq::Agent::config_builder().http_status_as_error(false);
    config.timeout_global(Some(Duration::from_secs(30))).build().into()
}

impl Bench {
    fn post(&self, path: &str, body: &Value) -> (u16, String) {
        let url = self.server.url() + path;
        let mut answer = agent().post(&url).header("x-request-id", "ours").send_json(body).unwrap();
        (answer.status().as_u16(), answer.body_mut().read_to_string().unwrap())
    }

    fn get(&self, path: &str) -> Value {
        let mut answer = agent().get(self.server.url() + path).call().unwrap();
        serde_json::from_str(&answer.body_mut().read_to_string().unwrap()).unwrap()
    }
}

/// The data of a stream's events, and whether it ended as it should.
fn events(text: &str) -> (Vec<Value>, bool) {
    let data: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    let done = data.last() == Some(&"[DONE]");
    let values = data.iter().filter_map(|data| serde_json::from_str(data).ok()).collect();
    (values, done)
}

fn chat(answer_tokens: u64, stream: bool) -> Value {
    json!({
        "model": "lab-8b", "messages": [{"role": "user", "content": "what did this cost me"}],
        "max_tokens": answer_tokens, "ignore_eos": true, "stream": stream,
        "stream_options": {"include_usage": true},
    })
}

#[test]
fn a_stream_has_a_chunk_for_each_token_and_its_usage_and_the_truth_is_known() {
    let bench = bench(Settings::default());
    assert_eq!(bench.get("/v1/models")["data"][0]["id"], "lab-8b");
    let (status, text) = bench.post("/v1/chat/completions", &chat(12, true));
    let (events, done) = events(&text);
    assert!(status == 200 && done, "{text}");
    assert_eq!(events[0]["choices"][0]["delta"]["role"], "assistant");
    let content = |event: &&Value| event["choices"][0]["delta"]["content"].is_string();
    assert_eq!(events.iter().skip(1).filter(content).count(), 12);
    assert_eq!(events[13]["choices"][0]["finish_reason"], "length");
    let usage = &events[14]["usage"];
    assert_eq!((&usage["prompt_tokens"], &usage["completion_tokens"]), (&json!(9), &json!(12)));

    let truth = bench.server.truth();
    let request = &truth.requests[0];
    assert_eq!((request.prompt_tokens, request.answer_tokens), (9, 12));
    assert_eq!(request.name.as_deref(), Some("ours"));
    let hardware = Hardware::default();
    let prefill = hardware.prefill_ns(9, 0) as f64 / 1e9 * hardware.prefill_w;
    let decode = 11.0 * hardware.decode_token_joules(1);
    assert!((request.joules() - prefill - decode).abs() < 1e-9, "{request:?}");
    // The card drew it, and nobody else was there.
    let (from_ns, to_ns) = (request.arrived_ns, request.ended_ns.unwrap());
    let whole = bench.get(&format!("/truth?from_ns={from_ns}&to_ns={to_ns}"));
    let drawn = whole["card"]["joules_above_idle"].as_f64().unwrap();
    assert!((drawn - request.joules()).abs() < 1e-6, "{drawn} {request:?}");
    assert_eq!(whole["simulated"], true);
}

#[test]
fn a_whole_answer_and_a_completion_have_the_same_tokens() {
    let bench = bench(Settings::default());
    let (_, text) = bench.post("/v1/chat/completions", &chat(5, false));
    let whole: Value = serde_json::from_str(&text).unwrap();
    let content = whole["choices"][0]["message"]["content"].as_str().unwrap();
    assert_eq!((tokens(content), &whole["usage"]["completion_tokens"]), (5, &json!(5)));
    let body = json!({"model": "lab-8b", "prompt": "a b c", "max_tokens": 3, "stream": true});
    let (_, text) = bench.post("/v1/completions", &body);
    let (events, done) = events(&text);
    let said: String =
        events.iter().filter_map(|event| event["choices"][0]["text"].as_str()).collect();
    assert!(done && tokens(&said) == 3, "{text}");
    assert!(events.iter().all(|event| event.get("usage").is_none()));
}

#[test]
fn requests_in_flight_share_steps_and_their_truths_sum_to_the_cards() {
    let bench = bench(Settings::default());
    let from_ns = bench.server.truth().now_ns;
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| bench.post("/v1/chat/completions", &chat(30, true)));
        }
    });
    let truth = bench.server.truth();
    assert_eq!(truth.requests.len(), 4);
    let sum: f64 = truth.requests.iter().map(RequestTruth::joules).sum();
    let to_ns = truth.requests.iter().filter_map(|request| request.ended_ns).max().unwrap();
    let drawn = bench.server.shared.card(from_ns, to_ns).joules_above_idle;
    assert!((drawn - sum).abs() < 1e-6, "{drawn} {sum}");
    assert!(sum < 3.0 * truth.requests[0].joules() * 4.0, "{sum}");
}

#[test]
fn a_client_who_leaves_is_let_go() {
    let bench = bench(Settings::default());
    let body = chat(100_000, true).to_string();
    let mut stream = TcpStream::connect(bench.server.address()).unwrap();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: lab\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while !line.contains("content") || line.contains("type") {
        line.clear();
        reader.read_line(&mut line).unwrap();
    }
    drop(reader);
    let until = std::time::Instant::now() + Duration::from_secs(20);
    while bench.server.truth().requests.is_empty() {
        assert!(std::time::Instant::now() < until, "it was served on");
        std::thread::sleep(Duration::from_millis(5));
    }
    let request = &bench.server.truth().requests[0];
    assert!(request.cancelled && request.answer_tokens < 5000, "{request:?}");
}

#[test]
fn answers_break_off_where_that_was_asked_for_and_what_is_wrong_is_refused() {
    let bench = bench(Settings { break_every: 2, ..Settings::default() });
    let (status, text) = bench.post("/v1/chat/completions", &chat(10, true));
    assert!(status == 200 && events(&text).1, "{text}");
    let (_, text) = bench.post("/v1/chat/completions", &chat(10, true));
    let (events, done) = events(&text);
    assert!(!done && events.last().unwrap()["error"]["code"] == 500, "{text}");
    let (status, text) = bench.post("/v1/chat/completions", &json!({"model": "gpt"}));
    assert!(status == 404 && text.contains("gpt"), "{text}");
    let (status, _) = bench.post("/v1/completions", &json!({"prompt": 7, "model": "lab-8b"}));
    assert_eq!(status, 400);
}

/// With Nagle's algorithm some tokens in a row wait for one acknowledgement and come together.
#[test]
fn tokens_are_sent_one_by_one() {
    let bench = bench(Settings::default());
    let body = chat(60, true).to_string();
    let mut stream = TcpStream::connect(bench.server.address()).unwrap();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: lab\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let (mut reads, mut buffer) = (0, vec![0; 1 << 16]);
    while stream.read(&mut buffer).unwrap() > 0 {
        reads += 1;
    }
    assert!(reads > 20, "60 tokens came in {reads} pieces");
}
