//! Clients that must show a token, and who may reach the agent at all.

use super::{bench::Bench, client::ask, server::Serving};

const TOKEN: &str = "an-unguessable-word-of-some-length";
const CARD: &str = "card 0\nidle 77\ncounter period_ms=20\n";

#[test]
fn without_the_token_only_health_is_told_and_nothing_of_the_card() {
    let bench = Bench::with(CARD);
    let file = bench.path("token");
    std::fs::write(&file, format!("{TOKEN}\n")).unwrap();
    let serving = Serving::on(&bench, &["--token-file", file.to_str().unwrap()]);
    let asked = |path: &str, line: &str| ask(serving.address, "GET", path, line);
    let shown = |token: &str| format!("Authorization: Bearer {token}\r\n");
    let paths = ["/power", "/v1/cards", "/v1/cards/0/energy", "/v1/cards/stream", "/v1/clock"];
    for path in paths.iter().chain(&["/metrics", "/dcgm/metrics", "/nowhere"]) {
        for line in
            ["", &shown("wrong"), &shown(""), &shown(&TOKEN[1..]), "Authorization: Basic eA==\r\n"]
        {
            let answer = asked(path, line);
            assert_eq!(answer.status, 401, "{path} {line}");
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
            assert!(!answer.body.contains("77") && !answer.body.contains("unguessable"));
        }
    }
    let bare = asked("/healthz", "");
    assert_eq!((bare.status, bare.body.as_str()), (200, r#"{"status":"ok"}"#));
    assert_eq!(asked("/healthz", &shown("wrong")).status, 401, "who tries one is told");
    assert_eq!(asked("/power", &shown(TOKEN)).json()["gpu"], 0);
    assert_eq!(asked("/healthz", &shown(TOKEN)).json()["gpu"], 0);
    assert!(!serving.errors().contains(TOKEN) && !serving.said.concat().contains(TOKEN));
}

#[test]
fn a_token_file_that_protects_nothing_is_refused() {
    let bench = Bench::with(CARD);
    let file = bench.path("token");
    for text in ["", "short"] {
        std::fs::write(&file, text).unwrap();
        let said = bench.say(["agent", "--token-file", file.to_str().unwrap()]);
        assert_eq!(said.code, Some(1), "{}", said.err);
        assert!(said.err.contains("openssl rand"), "{}", said.err);
    }
}

#[test]
fn agent_exporter_01_strangers_reach_it_only_when_it_is_told_so() {
    let bench = Bench::with(CARD);
    let serving = Serving::on(&bench, &[]);
    assert!(serving.said[0].contains("for this host alone"), "{}", serving.said[0]);
    assert!(serving.said[0].contains("--bind 0.0.0.0 opens it"), "{}", serving.said[0]);
    assert!(!serving.errors().contains("warning"), "{}", serving.errors());
    let help = bench.say(["agent", "--help"]).out;
    assert!(help.contains("127.0.0.1:9402"), "{help}");
    // Everywhere, by an explicit flag: with a warning, or a token.
    let open = Serving::begin(&bench, &mut bench.joulebook(["agent", "--bind", "0.0.0.0:0"]));
    assert!(open.errors().contains("warning: whoever reaches this address can read it"));
    drop(open);
    std::fs::write(bench.path("agent.err"), "").unwrap();
    let file = bench.path("token");
    std::fs::write(&file, TOKEN).unwrap();
    let file = file.to_str().unwrap();
    let closed = ["agent", "--bind", "0.0.0.0:0", "--token-file", file];
    let closed = Serving::begin(&bench, &mut bench.joulebook(closed));
    assert!(closed.said[0].contains("has the token"), "{}", closed.said[0]);
    assert!(!closed.errors().contains("warning"), "{}", closed.errors());
}
