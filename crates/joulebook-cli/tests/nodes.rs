//! Several nodes, as the program shows them and as the library reads them: real agents on the lab's
//! driver library, and ones that hang or are not there.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "the file is tests"
)]

#[cfg(test)]
mod nodes {
    mod file;
    mod reader;
    mod run;
    mod statement;
    mod survey;

    #[path = "../command/bench.rs"]
    #[allow(dead_code, reason = "made for another file of tests")]
    mod bench;
    #[path = "../agent/client.rs"]
    #[allow(dead_code, reason = "made for another file of tests")]
    mod client;
    #[path = "../agent/server.rs"]
    #[allow(dead_code, reason = "made for another file of tests")]
    mod server;

    use bench::{Bench, Said, said};

    /// The program with a file of nodes.
    fn with_nodes<const N: usize>(bench: &Bench, file: &str, arguments: [&str; N]) -> Said {
        let path = bench.path("nodes.toml");
        std::fs::write(&path, file).unwrap();
        said(bench.joulebook(arguments).arg("--nodes").arg(path))
    }

    /// An entry of a node.
    fn entry(name: &str, endpoint: &str) -> String {
        format!("[[node]]\nname = \"{name}\"\nendpoint = \"{endpoint}\"\n")
    }
}
