//! What journals of the fleet's books come to.

use super::bench::{Bench, number, said};

/// A journal of the demo, as if it were of that card.
fn journal(bench: &Bench, name: &str, card: &str) -> (std::path::PathBuf, String) {
    let path = bench.path(name);
    let made = said(bench.joulebook(["demo", "--journal"]).arg(&path));
    assert_eq!(made.code, Some(0), "{}", made.err);
    let text = std::fs::read_to_string(&path).unwrap();
    let (_, rest) = text.split_once("\"card\":\"").unwrap();
    let own = rest.split('"').next().unwrap().to_owned();
    std::fs::write(&path, text.replace(&own, card)).unwrap();
    (path, own)
}

#[test]
fn a_statement_is_a_line_for_each_node_card_and_account_and_the_totals() {
    let bench = Bench::without_cards();
    let (iris, _) = journal(&bench, "iris.jsonl", "iris/GPU-1");
    let juno = bench.path("juno.jsonl");
    let text = std::fs::read_to_string(&iris).unwrap().replace("iris/GPU-1", "juno/GPU-2");
    std::fs::write(&juno, text).unwrap();
    let audit = said(bench.joulebook(["audit", "--json"]).arg(&iris)).out_json();
    let counted = number(&audit["cards"][0], "register_joules");

    let mut command = bench.joulebook(["nodes", "--json", "--statement"]);
    let stated = said(command.args([&iris, &juno]));
    assert_eq!((stated.code, stated.err.as_str()), (Some(0), ""));
    let stated = stated.out_json();
    let lines = stated["lines"].as_array().unwrap();
    let sum = |of: &dyn Fn(&serde_json::Value) -> bool| -> f64 {
        lines.iter().filter(|line| of(line)).map(|line| number(line, "joules")).sum()
    };
    for (node, card) in [("iris", "GPU-1"), ("juno", "GPU-2")] {
        let of = |line: &serde_json::Value| line["node"] == node && line["card"] == card;
        assert!((sum(&of) - counted).abs() < 1e-6, "{node}: {stated}");
    }
    assert!((number(&stated, "sum_joules") - 2.0 * counted).abs() < 1e-6);
    assert!((number(&stated, "counted_joules") - 2.0 * counted).abs() < 1e-6);
    for total in stated["totals"].as_array().unwrap() {
        let account = |line: &serde_json::Value| line["account"] == total["account"];
        assert!((sum(&account) - number(total, "joules")).abs() < 1e-6, "{total}");
    }
    let table = said(bench.joulebook(["nodes", "--statement"]).args([&iris, &juno]));
    for part in ["iris", "juno", "requests", "all", "sum", "the registers counted"] {
        assert!(table.out.contains(part), "{part}: {}", table.out);
    }
    // The same card in two journals may be the same joules.
    let twice = said(bench.joulebook(["nodes", "--statement"]).args([&iris, &iris]));
    assert!(twice.err.contains("counted twice"), "{}", twice.err);
}

#[test]
fn a_journal_that_does_not_balance_states_nothing() {
    let bench = Bench::without_cards();
    let (iris, _) = journal(&bench, "iris.jsonl", "iris/GPU-1");
    let text = std::fs::read_to_string(&iris).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    // One entry is missing.
    let broken = [&lines[..2], &lines[3..]].concat().join("\n") + "\n";
    std::fs::write(&iris, broken).unwrap();
    let said = said(bench.joulebook(["nodes", "--statement"]).arg(&iris));
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""));
    assert!(said.err.contains("iris.jsonl:3"), "{}", said.err);
}
