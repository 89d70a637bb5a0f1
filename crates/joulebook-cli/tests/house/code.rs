//! Rust sources: their length, where modules lie, and what the core may not touch.

use super::{strip::shipped_code, tree::Text};

/// The most lines a Rust file may have.
const LINES: usize = 500;

/// Paths that only code with I/O, a clock or a thread needs.
const PATHS: &[&str] = &[
    "std::env",
    "std::fs",
    "std::io",
    "std::net",
    "std::os",
    "std::process",
    "std::thread",
    "std::time",
    "Instant::now",
    "SystemTime",
];

/// Words and macros of the same kind.
const WORDS: &[&str] =
    &["async", "await", "unsafe", "print!", "println!", "eprint!", "eprintln!", "dbg!"];

/// Files that are too long.
pub fn too_long(files: &[Text]) -> Vec<String> {
    let length = |file: &Text| file.content.lines().count();
    files
        .iter()
        .filter(|file| length(file) > LINES)
        .map(|file| format!("{}: {} lines", file.path, length(file)))
        .collect()
}

/// True for a module in the old place.
pub fn is_mod_rs(path: &str) -> bool {
    path.rsplit('/').next() == Some("mod.rs")
}

/// True for the core's sources, without its tests.
pub fn is_core_source(path: &str) -> bool {
    path.strip_prefix("crates/joulebook-core/src/").is_some_and(|rest| {
        !rest.ends_with("_tests.rs") && !rest.ends_with("/tests.rs") && rest != "tests.rs"
    })
}

/// I/O, clocks, threads, async and unsafe, outside of comments, strings and tests.
pub fn impurities(sources: &[Text]) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources {
        let code = shipped_code(&source.content);
        let grouped = grouped_paths(&code);
        let paths = PATHS
            .iter()
            .filter(|path| has_word(&code, path) || grouped.iter().any(|it| it == *path));
        let words = WORDS.iter().filter(|word| has_word(&code, word));
        found.extend(paths.chain(words).map(|it| format!("{}: {it}", source.path)));
    }
    found
}

/// True when `word` stands in `code`, and not inside a longer name.
fn has_word(code: &str, word: &str) -> bool {
    let of_a_name = |it: char| it.is_alphanumeric() || it == '_';
    code.match_indices(word).any(|(at, _)| {
        let before = code.get(..at).and_then(|it| it.chars().next_back());
        let after = code.get(at + word.len()..).and_then(|it| it.chars().next());
        !before.is_some_and(of_a_name) && (word.ends_with('!') || !after.is_some_and(of_a_name))
    })
}

/// `std::fs` and `std::io` for `use std::{fmt, fs::{self, File}, io};`.
fn grouped_paths(code: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for (at, opening) in code.match_indices("std::{") {
        let mut depth = 1;
        let mut name = String::new();
        let mut in_path = false;
        for symbol in code.get(at + opening.len()..).unwrap_or_default().chars() {
            match symbol {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            let ends = depth == 0 || (depth == 1 && symbol == ',');
            if ends {
                paths.push(format!("std::{}", name.trim()));
                (name, in_path) = (String::new(), false);
            } else if symbol == ':' {
                in_path = true;
            } else if !in_path {
                name.push(symbol);
            }
            if depth == 0 {
                break;
            }
        }
    }
    paths
}

#[test]
fn a_long_file_is_found() {
    let files = [Text::new("a.rs", &"\n".repeat(500)), Text::new("b.rs", &"\n".repeat(501))];
    assert_eq!(too_long(&files), ["b.rs: 501 lines"]);
}

#[test]
fn a_module_in_the_old_place_is_found() {
    assert!(is_mod_rs("crates/joulebook/src/reader/mod.rs"));
    assert!(!is_mod_rs("crates/joulebook/src/reader.rs") && !is_mod_rs("src/xmod.rs"));
}

#[test]
fn the_core_is_its_sources_without_tests() {
    let core = |rest: &str| is_core_source(&format!("crates/joulebook-core/{rest}"));
    assert!(core("src/lib.rs") && core("src/series/ring.rs") && core("src/contests.rs"));
    assert!(!core("tests/loom.rs") && !core("benches/ring.rs") && !core("src/ring_tests.rs"));
    assert!(!core("src/ring/tests.rs") && !is_core_source("crates/joulebook/src/lib.rs"));
}

#[test]
fn every_impurity_is_found() {
    for (line, name) in [
        ("use std::fs::File;", "std::fs"),
        ("use std::{fmt, io::{self, Write}};", "std::io"),
        ("use std::{\n    collections::{BTreeMap, HashMap},\n    time,\n};", "std::time"),
        ("let host = std :: net :: TcpStream::connect(at);", "std::net"),
        ("std::process::exit(1)", "std::process"),
        ("std::thread::yield_now();", "std::thread"),
        ("let now = Instant::now();", "Instant::now"),
        ("fn at(it: SystemTime) {}", "SystemTime"),
        ("pub async fn settle() {}", "async"),
        ("unsafe { *slot }", "unsafe"),
        ("let quote = '\"'; unsafe { *slot }; let other = \"\";", "unsafe"),
        ("let name: &'static str = \"\\\"\"; println!(\"\");", "println!"),
        ("/* /* */ */ dbg!(1)", "dbg!"),
        ("#[cfg(test)] mod tests { fn f() {} } fn g() { unsafe {} }", "unsafe"),
        ("#[cfg(test)] mod tests; fn g() { unsafe {} }", "unsafe"),
    ] {
        let found = impurities(&[Text::new("x.rs", line)]);
        assert_eq!(found, [format!("x.rs: {name}")], "{line}");
    }
}

#[test]
fn what_only_looks_impure_is_not_found() {
    let pure = r####"
        //! No `std::fs`, no async fn; unsafe { } neither.
        /* std::io /* std::net */ unsafe { */
        use std::{collections::BTreeMap, fmt, ops, sync::atomic::{fence, AtomicU64}};
        #![deny(unsafe_code)]
        const A: &str = "std::fs and \" unsafe { ";
        const B: &str = r#"unsafe { " std::io "#;
        const C: [u8; 1] = [b'"']; const D: char = '\''; const E: char = '"';
        fn life<'a>(asynchronous: &'a u64) -> &'a u64 { asynchronous }
        #[cfg(test)]
        #[path = "x_tests.rs"]
        mod tests { use std::thread; fn f() { unsafe { } println!("{}", 1) } }
    "####;
    assert!(impurities(&[Text::new("x.rs", pure)]).is_empty());
}
