//! A command whose cards are another node's.

use super::{
    bench::{Bench, Said, number, said},
    entry,
    server::Serving,
};

#[test]
fn a_run_on_a_node_measures_that_nodes_cards() {
    let (bench, control) = Bench::live("counter period_ms=20\n");
    let agent = Serving::on(&bench, &[]);
    let file = entry("iris", &format!("http://{}", agent.address))
        + "[[node.card]]\ngpu = 0\nidle_watts = 70\n";
    std::fs::write(bench.path("nodes.toml"), file).unwrap();
    control.set_watts(0, 400.0).unwrap();
    // The gateway has no card of its own.
    let gateway = Bench::without_cards();
    let nodes = bench.path("nodes.toml");
    let run = |node: &str| {
        let mut command = gateway.joulebook(["run", "--json", "--node", node, "--nodes"]);
        said(command.arg(&nodes).args(["--", "sleep", "0.6"]))
    };
    let said = run("iris");
    assert_eq!(said.code, Some(0), "{}", said.err);
    let line = said.err_json();
    assert_eq!((&line["source"], &line["backend"]), (&"remote".into(), &"remote_agent".into()));
    assert_eq!((&line["method"], &line["settled"]), (&"sampled".into(), &true.into()), "{line}");
    assert_eq!(number(&line["idle"], "watts"), 70.0);
    assert_eq!(line["idle"]["from"], "declared", "{line}");
    let (joules, bound) = (number(&line, "joules"), number(&line, "bound_joules"));
    let truth = 330.0 * number(&line, "seconds");
    assert!((joules - truth).abs() <= bound + 1.0, "{truth} J is not {line}");
    let unknown = run("juno");
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.err.contains("\"juno\"") && unknown.err.contains("iris"), "{}", unknown.err);
}

#[test]
fn a_node_that_is_gone_costs_the_figure_and_not_the_run() {
    let gateway = Bench::without_cards();
    let nodes = gateway.path("nodes.toml");
    std::fs::write(&nodes, entry("iris", "http://127.0.0.1:1")).unwrap();
    let mut command = gateway.joulebook(["run", "--json", "--node", "iris", "--nodes"]);
    let said = said(command.arg(nodes).args(["--", "sh", "-c", "echo out; exit 3"]));
    assert_eq!((said.code, said.out.as_str()), (Some(3), "out\n"));
    let line = said.err_json();
    assert_eq!((&line["method"], &line["error"]), (&"unknown".into(), &"absent".into()), "{line}");
    assert!(line["joules"].is_null());
}

/// A run of a moment on the node iris of that file, from a host without cards.
fn run_on_iris(file: &str, arguments: &[&str]) -> Said {
    let gateway = Bench::without_cards();
    let nodes = gateway.path("nodes.toml");
    std::fs::write(&nodes, file).unwrap();
    let mut command = gateway.joulebook(["run", "--node", "iris", "--nodes"]);
    said(command.arg(nodes).args(arguments).args(["--", "sleep", "0.3"]))
}

#[test]
fn a_floor_of_the_file_is_not_given_out_for_the_one_that_was_measured() {
    let bench = Bench::with(
        "card 0\nidle 70\ncounter period_ms=20\ncard 1\nidle 55\ncounter period_ms=20\n",
    );
    assert_eq!(bench.say(["idle", "--seconds", "2"]).code, Some(0));
    let agent = Serving::on(&bench, &[]);
    let iris = entry("iris", &format!("http://{}", agent.address));
    let first = iris + "[[node.card]]\ngpu = 0\nidle_watts = 38\n";
    let said = run_on_iris(&first, &[]);
    let idle = said.err.lines().find(|line| line.starts_with("  idle")).unwrap();
    assert!(idle.contains("38.0 W subtracted, as given"), "{idle}");
    assert!(idle.contains("idle_watts of nodes.toml") && !idle.contains("measured"), "{idle}");
    let line = run_on_iris(&first, &["--json"]).err_json();
    assert_eq!((number(&line["idle"], "watts"), &line["idle"]["from"]), (38.0, &"declared".into()));

    // Of two cards, one with a floor of the file and one with the measured one.
    let both = first + "[[node.card]]\ngpu = 1\n";
    let line = run_on_iris(&both, &["--json"]).err_json();
    assert!((number(&line["idle"], "watts") - 93.0).abs() < 1.0, "{line}");
    assert_eq!(line["idle"]["from"], "mixed");
    let said = run_on_iris(&both, &[]);
    let idle = said.err.lines().find(|line| line.starts_with("  idle")).unwrap();
    assert_eq!((idle.matches("as given").count(), idle.matches("measured").count()), (1, 1));
    // … and the measured one alone.
    let line = run_on_iris(&both, &["--json", "--gpu", "1"]).err_json();
    assert_eq!(line["idle"]["from"], "stored", "{line}");
}

#[test]
fn floors_of_the_command_line_leave_each_card_its_own_rules() {
    let bench = Bench::with(
        "card 0\nidle 70\ncounter period_ms=20\nproc 0 inf 41 9000 /opt/vllm\n\
         card 1\nidle 55\ncounter period_ms=20\nproc 0 inf 42 9000 /opt/sglang\n",
    );
    let agent = Serving::on(&bench, &[]);
    let file = entry("iris", &format!("http://{}", agent.address))
        + "[[node.card]]\ngpu = 0\nserving_match = \"vllm\"\n"
        + "[[node.card]]\ngpu = 1\nserving_match = \"sglang\"\n";
    let line = run_on_iris(&file, &["--json", "--idle", "60,45"]).err_json();
    assert_eq!(
        (number(&line["idle"], "watts"), &line["idle"]["from"]),
        (105.0, &"declared".into())
    );
    assert_eq!((&line["tenancy"], &line["method"]), (&"alone".into(), &"sampled".into()), "{line}");
    let refused = run_on_iris(&file, &["--json", "--idle", "105"]);
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    assert!(refused.err.contains("one floor for each card (--idle W,W)"), "{}", refused.err);
    // Where one rule holds for both, one sum will do.
    let ours = ["--json", "--idle", "105", "--serving-match", "opt"];
    let line = run_on_iris(&file, &ours).err_json();
    assert_eq!(
        (number(&line["idle"], "watts"), &line["idle"]["from"]),
        (105.0, &"declared".into())
    );
}
