//! What can be read where, now.

use std::net::TcpListener;

use serde_json::Value;

use super::{bench::Bench, entry, server::Serving, with_nodes};

const SCENARIO: &str = "card 0
idle 70
counter period_ms=20
proc 0 inf 41 30000 /opt/vllm/bin/python
proc 0 inf 42 9000 /home/else/train
card 1
idle 55
counter supported=0
instant period_ms=20
";

fn rows(said: &super::bench::Said) -> Vec<Value> {
    assert_eq!(said.code, Some(0), "{}", said.err);
    said.out_json()["cards"].as_array().unwrap().clone()
}

#[test]
fn every_card_of_every_node_has_a_line_and_one_that_hangs_holds_up_no_other() {
    let bench = Bench::with(SCENARIO);
    let agent = Serving::on(&bench, &["--name", "iris-itself"]);
    // It takes connections and says nothing.
    let hung = TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = |listener: &TcpListener| format!("http://{}", listener.local_addr().unwrap());
    let (hung_at, closed_at) = (at(&hung), at(&closed));
    drop(closed);
    let file = entry("iris", &format!("http://{}", agent.address))
        + "[[node.card]]\ngpu = 0\nidle_watts = 38\nserving_match = \"vllm\"\n"
        + "[[node.card]]\ngpu = \"GPU-1ab00000-0000-4000-8000-000000000001\"\n"
        + &entry("hung", &hung_at)
        + "[[node.card]]\ngpu = 3\n"
        + &entry("mute", &hung_at)
        + &entry("gone", &closed_at)
        + "[[node]]\nname = \"here\"\n";
    let said = with_nodes(&bench, &file, ["nodes", "--json", "--timeout", "4s"]);
    let rows = rows(&said);
    let of = |node: &str| rows.iter().filter(move |row| row["node"] == node).collect::<Vec<_>>();
    let iris = of("iris");
    assert_eq!(iris.len(), 2, "{rows:#?}");
    let first = iris[0];
    assert_eq!(
        (&first["backend"], &first["reads"]),
        (&"remote_agent".into(), &"nvml_counter".into())
    );
    assert_eq!((first["gpu"].as_str(), first["idle_watts"].as_f64()), (Some("0"), Some(38.0)));
    assert_eq!(first["idle_from"], "declared");
    assert!((first["watts"].as_f64().unwrap() - 70.0).abs() < 30.0, "{first}");
    assert_eq!(first["tenancy"], "foreign");
    assert_eq!(first["contended_by"], "/home/else/train (9000 MiB)");
    assert!(first["clock_uncertainty_ms"].as_f64().is_some_and(|ms| ms < 1000.0), "{first}");
    assert!(first["clock_offset_ms"].is_number() && first["error"].is_null(), "{first}");
    let second = iris[1];
    assert_eq!((second["gpu"].as_str(), &second["reads"]), (Some("1"), &"nvml_power".into()));
    assert_eq!(second["idle_watts"], Value::Null);
    for (node, gpu, words) in [
        ("hung", "3", ["timeout", "timeout"]),
        ("mute", "-", ["timeout", "timeout"]),
        ("gone", "-", ["absent", "access_lost"]),
    ] {
        let [row] = of(node)[..] else { panic!("{rows:#?}") };
        assert_eq!(row["gpu"], gpu, "{row}");
        assert!(words.contains(&row["error"].as_str().unwrap()), "{row}");
        assert!(row["message"].is_string() && row["watts"].is_null(), "{row}");
    }
    let here = of("here");
    assert_eq!(here.len(), 2);
    assert_eq!(
        (&here[0]["backend"], &here[0]["clock_offset_ms"]),
        (&"nvml_counter".into(), &Value::Null)
    );
    // The nodes stand in the order of the file.
    let names: Vec<_> = rows.iter().map(|row| row["node"].as_str().unwrap()).collect();
    assert_eq!(names, ["iris", "iris", "hung", "mute", "gone", "here", "here"]);
}

#[test]
fn a_node_that_lists_no_card_shows_all_it_has() {
    let bench = Bench::with(SCENARIO);
    let agent = Serving::on(&bench, &[]);
    let file = entry("iris", &format!("http://{}", agent.address));
    let said = with_nodes(&bench, &file, ["nodes"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    for part in
        ["iris", "remote_agent (nvml_counter)", "remote_agent (nvml_power)", "not known", "±"]
    {
        assert!(said.out.contains(part), "{part}: {}", said.out);
    }
}

#[test]
fn a_token_is_shown_from_the_file_beside_the_nodes() {
    let bench = Bench::with(SCENARIO);
    std::fs::write(bench.path("iris.token"), "a-token-that-is-long-enough\n").unwrap();
    let token = bench.path("iris.token");
    let agent = Serving::on(&bench, &["--token-file", token.to_str().unwrap()]);
    let open = entry("iris", &format!("http://{}", agent.address));
    let refused = rows(&with_nodes(&bench, &open, ["nodes", "--json"]));
    assert_eq!(refused[0]["error"], "permission");
    assert!(refused[0]["message"].as_str().unwrap().contains("token_file"));
    let told =
        rows(&with_nodes(&bench, &(open + "token_file = \"iris.token\"\n"), ["nodes", "--json"]));
    assert_eq!((told.len(), &told[0]["error"]), (2, &Value::Null), "{told:#?}");
}

#[test]
fn cards_of_this_host_that_cannot_be_read_have_a_line_all_the_same() {
    let here = "[[node]]\nname = \"here\"\n";
    // The driver has it, and does not let us look it up.
    let closed = Bench::with("card 0\ncounter period_ms=20\nfault 0 inf all noperm\n");
    let found = rows(&with_nodes(&closed, here, ["nodes", "--json"]));
    let [row] = found.as_slice() else { panic!("{found:#?}") };
    assert_eq!((&row["node"], &row["gpu"]), (&"here".into(), &"0".into()));
    assert!(row["error"].is_string() && row["message"].is_string(), "{row}");
    let half =
        Bench::with("card 0\nfault 0 inf all noperm\ncard 1\nidle 55\ncounter period_ms=20\n");
    let found = rows(&with_nodes(&half, here, ["nodes", "--json"]));
    let [first, second] = found.as_slice() else { panic!("{found:#?}") };
    assert_eq!((&first["gpu"], &second["gpu"]), (&"0".into(), &"1".into()));
    assert!(first["error"].is_string() && second["error"].is_null(), "{found:#?}");
    let none = Bench::with("");
    let found = rows(&with_nodes(&none, here, ["nodes", "--json"]));
    let [row] = found.as_slice() else { panic!("{found:#?}") };
    assert_eq!(row["error"], "absent");
    assert!(row["message"].as_str().unwrap().contains("lists no card"), "{row}");
}
