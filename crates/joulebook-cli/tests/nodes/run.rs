//! A command whose cards are another node's.

use super::{
    bench::{Bench, number, said},
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
