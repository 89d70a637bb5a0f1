//! What is wrong with the file is said before anything is asked of anybody.

use super::{
    bench::{Bench, said},
    entry, with_nodes,
};

#[test]
fn a_wrong_key_is_named_with_its_line_and_the_nearest() {
    let bench = Bench::without_cards();
    // Nobody may be asked: this address would take the whole time.
    let file = entry("iris", "http://10.255.255.1:9402") + "tokenfile = \"t\"\n";
    for arguments in [["nodes", "--json"], ["run", "--node=iris"]] {
        let said = match arguments {
            ["run", node] => {
                std::fs::write(bench.path("nodes.toml"), &file).unwrap();
                let mut command = bench.joulebook(["run", node, "--nodes"]);
                said(command.arg(bench.path("nodes.toml")).args(["--", "true"]))
            }
            arguments => with_nodes(&bench, &file, arguments),
        };
        assert_eq!(said.code, Some(2), "{}", said.err);
        for part in ["nodes.toml:4", "\"tokenfile\"", "\"token_file\""] {
            assert!(said.err.contains(part), "{part}: {}", said.err);
        }
        assert_eq!(said.out, "");
    }
}

#[test]
fn a_file_that_is_missing_or_empty_says_what_to_write() {
    let bench = Bench::without_cards();
    let home = bench.path("config");
    let said = said(bench.joulebook(["nodes"]).env("XDG_CONFIG_HOME", &home));
    assert_eq!(said.code, Some(2));
    assert!(said.err.contains("config/joulebook/nodes.toml"), "{}", said.err);
    assert!(said.err.contains("[[node]]") && said.err.contains("endpoint"), "{}", said.err);
    let said = with_nodes(&bench, "", ["nodes"]);
    assert_eq!(said.code, Some(2));
    assert!(said.err.contains("names no node"), "{}", said.err);
}

#[test]
fn the_default_file_is_in_the_configuration_folder_and_config_shows_it() {
    let bench = Bench::without_cards();
    let home = bench.path("config");
    std::fs::create_dir_all(home.join("joulebook")).unwrap();
    std::fs::write(home.join("joulebook/nodes.toml"), "[[node]]\nname = \"here\"\n").unwrap();
    let rows = said(bench.joulebook(["nodes", "--json"]).env("XDG_CONFIG_HOME", &home)).out_json();
    assert_eq!(rows["cards"][0]["node"], "here");
    assert_eq!(rows["cards"][0]["error"], "driver_absent");
    let config = said(bench.joulebook(["config", "--json"]).env("XDG_CONFIG_HOME", &home));
    assert!(config.out_json()["nodes"].as_str().unwrap().ends_with("joulebook/nodes.toml"));
}
