//! `/power` and `/healthz`: shapes, words and status codes of giul's agent.

use serde_json::json;

use super::{
    bench::Bench,
    client::{again, ask, connect},
    server::Serving,
};

const TWO: &str = "card 0\nname NVIDIA GeForce RTX 5090\nidle 231.4\nmem total_mib=32607 base_mib=1000\n\
                   util gpu=87\ncounter period_ms=20\n\
                   proc 0 inf 4695 335 /opt/google/chrome/chrome --type=gpu-process\n\
                   proc 0 inf 4696 -1 /opt/without/memory\n\
                   card 1\nidle 40\ncounter period_ms=20\n";

#[test]
fn a_card_is_told_in_giuls_shape() {
    let bench = Bench::with(TWO);
    let serving = Serving::on(&bench, &[]);
    for path in ["/power", "/power?gpu=0", "/healthz", "/healthz?gpu=0&gpu=1", "/power?gpu="] {
        let answer = serving.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        assert_eq!(answer.header("content-type"), Some("application/json"));
        let body = answer.json();
        let watts = body["watts"].as_f64().unwrap();
        assert!((watts - 231.4).abs() < 90.0, "{watts}");
        let expected = json!({
            "gpu": 0,
            "name": "NVIDIA GeForce RTX 5090",
            "watts": watts,
            "memory_used_mib": 1335,
            "memory_total_mib": 32607,
            "memory_free_mib": 31272,
            "utilization_pct": 87,
            "compute_apps": [
                {"pid": 4695, "used_mib": 335, "name": "/opt/google/chrome/chrome --type=gpu-process"},
            ],
        });
        assert_eq!(body, expected, "{path}");
    }
    let other = serving.get("/power?gpu=1").json();
    assert_eq!((&other["gpu"], &other["compute_apps"]), (&json!(1), &json!([])));
}

#[test]
fn what_is_asked_wrongly_is_told_in_giuls_words() {
    let bench = Bench::with(TWO);
    let serving = Serving::on(&bench, &[]);
    for gpu in ["banana", "1.5", "0x1", "%00", "1%202", "\u{663}"] {
        for path in ["/power", "/healthz"] {
            let answer = serving.get(&format!("{path}?gpu={gpu}"));
            let expected = json!({"error": "gpu must be an integer"});
            assert_eq!((answer.status, answer.json()), (400, expected), "{gpu}");
        }
    }
    for (gpu, number) in [("9", "9"), ("-1", "-1"), ("%2B7", "7"), ("4294967296", "4294967296")] {
        let answer = serving.get(&format!("/power?gpu={gpu}"));
        let expected =
            json!({"error": format!("no gpu {number}"), "detail": "this host has gpus 0, 1"});
        assert_eq!((answer.status, answer.json()), (404, expected), "{gpu}");
    }
    for path in ["/", "/shutdown", "/power/", "//power", "/Power", "/%70ower", "/power/../healthz"]
    {
        let answer = serving.get(path);
        assert_eq!(answer.status, 404, "{path}");
        let error = answer.json()["error"].as_str().unwrap().to_owned();
        assert!(error.starts_with("try /power or /healthz"), "{error}");
    }
}

#[test]
fn the_default_card_can_be_named() {
    let bench = Bench::with(TWO);
    for gpu in ["1", "GPU-1ab00000-0000-4000-8000-000000000001", "0000:19:00.0"] {
        let serving = Serving::on(&bench, &["--gpu", gpu]);
        assert_eq!(serving.get("/power").json()["gpu"], 1, "{gpu}");
        assert_eq!(serving.get("/power?gpu=0").json()["gpu"], 0, "{gpu}");
    }
}

#[test]
fn a_head_is_a_get_without_its_body_and_connections_are_kept() {
    let bench = Bench::with(TWO);
    let serving = Serving::on(&bench, &[]);
    let head = ask(serving.address, "HEAD", "/power", "");
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    assert!(head.header("content-length").unwrap().parse::<u32>().unwrap() > 100);
    // Also where a body would have no end: it tells whether there is a stream.
    let head = ask(serving.address, "HEAD", "/v1/cards/stream", "");
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    assert_eq!(head.header("content-type"), Some("text/event-stream"));
    let mut kept = connect(serving.address);
    for _ in 0..20 {
        assert_eq!(again(&mut kept, "/power").json()["gpu"], 0);
    }
    assert_eq!(again(&mut kept, "/nowhere").status, 404);
    assert_eq!(again(&mut kept, "/power?gpu=1").json()["gpu"], 1);
}
