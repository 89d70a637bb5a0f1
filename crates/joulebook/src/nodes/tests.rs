use super::*;
use crate::node::Idle;

const GOOD: &str = r#"
[[node]]
name = "iris"
endpoint = "http://10.0.0.7:9402"
token_file = "iris.token"

[[node.card]]
gpu = 0
idle_watts = 38.0
serving_match = "vllm"
contention_ignore = ["Xorg", "chrome"]

[[node.card]]
gpu = "GPU-1"
serving_port = 8000

[[node]]
name = "here"
"#;

fn parsed(text: &str) -> Result<Vec<NodeEntry>, NodesError> {
    parse(text, Path::new("/etc/joulebook/nodes.toml"))
}

#[test]
fn nodes_and_cards_come_out_as_they_stand() {
    let nodes = parsed(GOOD).unwrap();
    let [iris, here] = nodes.as_slice() else { panic!("{nodes:?}") };
    assert_eq!(iris.token_file.as_deref(), Some(Path::new("/etc/joulebook/iris.token")));
    let [first, second] = iris.cards.as_slice() else { panic!("{iris:?}") };
    assert_eq!((first.name.as_str(), first.gpus.as_slice()), ("iris", &["0".to_owned()][..]));
    assert_eq!((first.is_local, &first.power_endpoint), (false, &iris.endpoint));
    assert_eq!(first.token_file, iris.token_file);
    assert_eq!(first.idle, Idle::Sum(38.0));
    assert_eq!(first.serving_match.as_deref(), Some("vllm"));
    assert_eq!(first.contention_ignore, ["Xorg", "chrome"]);
    assert_eq!((second.idle.clone(), second.serving_port), (Idle::Stored, Some(8000)));
    assert_eq!((here.endpoint.as_ref(), here.cards.len()), (None, 0));
    assert!(here.card("1").is_local);
    assert_eq!(parsed("").unwrap(), []);
}

#[test]
fn a_token_file_may_be_anywhere() {
    let text = "[[node]]\nname = \"a\"\nendpoint = \"http://a\"\ntoken_file = \"/run/token\"\n";
    assert_eq!(parsed(text).unwrap()[0].token_file.as_deref(), Some(Path::new("/run/token")));
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    let node = "[[node]]\nname = \"a\"\n";
    let remote = "[[node]]\nname = \"a\"\nendpoint = \"http://a\"\n";
    let card = |lines: &str| format!("{remote}[[node.card]]\ngpu = 0\n{lines}\n");
    for (text, line, parts) in [
        ("[[node]\n".to_owned(), 1, &[][..]),
        ("[[nodes]]\nname = \"a\"\n".to_owned(), 1, &["\"nodes\"", "\"node\""]),
        (format!("{node}endpiont = \"http://a\"\n"), 3, &["\"endpiont\"", "\"endpoint\""]),
        (format!("{node}colour = 1\n"), 3, &["\"colour\"", "token_file"]),
        (card("idle_wats = 3"), 6, &["\"idle_wats\"", "\"idle_watts\""]),
        (card("gpus = 3"), 6, &["\"gpus\"", "\"gpu\""]),
        ("[[node]]\nendpoint = \"http://a\"\n".to_owned(), 1, &["name"]),
        ("[[node]]\nname = \"\"\n".to_owned(), 2, &["name"]),
        ("[[node]]\nname = \"a/b\"\n".to_owned(), 2, &["slashes"]),
        (format!("{node}{node}"), 4, &["two nodes", "\"a\""]),
        (format!("{node}endpoint = \"iris:9402\"\n"), 3, &["http://"]),
        (format!("{node}endpoint = \"https://iris\"\n"), 3, &["tunnel"]),
        (format!("{node}token_file = \"t\"\n"), 3, &["endpoint"]),
        (format!("{node}endpoint = 7\n"), 3, &["string"]),
        (format!("{remote}[[node.card]]\nidle_watts = 3\n"), 4, &["gpu"]),
        (format!("{remote}[[node.card]]\ngpu = -1\n"), 5, &[]),
        (format!("{remote}[[node.card]]\ngpu = \" \"\n"), 5, &["gpu"]),
        (card("[[node.card]]\ngpu = 0"), 7, &["twice"]),
        (card("idle_watts = -1.0"), 6, &["idle_watts"]),
        (card("idle_watts = nan"), 6, &["idle_watts"]),
        (card("serving_port = 0"), 6, &["serving_port"]),
        (card("serving_port = 70000"), 6, &["serving_port"]),
        (card("serving_pid = -3"), 6, &["serving_pid"]),
        (card("serving_match = \" \""), 6, &["every process"]),
        (card("serving_match = \"v\"\nserving_port = 1"), 7, &["serving_match", "serving_pid"]),
        (card("contention_ignore = \"x\""), 6, &[]),
    ] {
        let error = parsed(&text).expect_err(&text);
        let said = error.to_string();
        let NodesError::Wrong { line: at, .. } = error else { panic!("{said}") };
        assert_eq!(at, line, "{said}\n{text}");
        assert!(said.starts_with(&format!("/etc/joulebook/nodes.toml:{line}: ")), "{said}");
        assert!(!said.contains('\n'), "{said}");
        for part in parts {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = read(Path::new("/nowhere/nodes.toml")).unwrap_err();
    assert!(error.to_string().contains("/nowhere/nodes.toml"), "{error}");
}
