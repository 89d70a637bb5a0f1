//! The papers: what a newcomer reads first is short, complete and true of the tree.

use super::tree::Text;

/// The most lines ARCHITECTURE.md may have.
const ARCHITECTURE_LINES: usize = 150;

/// The commands README gives a newcomer: the main job, and the tests.
const DEMO: &str = "cargo run --release -- demo";
const TESTS: &str = "./test";

/// What is wrong with ARCHITECTURE.md, given the crates that exist.
pub fn architecture_faults(text: &str, crates: &[String]) -> Vec<String> {
    let mut faults = Vec::new();
    let lines = text.lines().count();
    if lines > ARCHITECTURE_LINES {
        faults.push(format!("{lines} lines; at most {ARCHITECTURE_LINES}"));
    }
    // In code quotes, since `joulebook` alone stands in every other name.
    let unnamed = crates.iter().filter(|name| !text.contains(&format!("`{name}`")));
    faults.extend(unnamed.map(|name| format!("does not name `{name}`")));
    faults
}

/// What is wrong with the two commands of README, and with CI, which runs the second.
pub fn front_door_faults(readme: &str, ci: &str, executable: bool) -> Vec<String> {
    // A command is a line of its own, or the start of one, in a code block.
    let gives = |text: &str, command: &str| {
        text.lines().any(|line| {
            let line = line.trim_start().trim_start_matches("$ ").trim_start_matches("exec ");
            line.strip_prefix(command).is_some_and(|rest| !rest.starts_with(|it: char| it != ' '))
        })
    };
    let mut faults = Vec::new();
    for command in [DEMO, TESTS] {
        if !gives(readme, command) {
            faults.push(format!("README.md has no line `{command}`"));
        }
    }
    if !gives(ci, TESTS) {
        faults.push(format!(".ci/run does not run `{TESTS}`"));
    }
    if !executable {
        faults.push("test and .ci/run must exist and be executable".to_owned());
    }
    faults
}

/// Lines that name a path of the machine the tree was built on.
pub fn build_machine_paths(texts: &[Text]) -> Vec<String> {
    // In pieces, so that this file is not its own finding.
    let path = ["/", "work", "/"].concat();
    let names_it = |line: &str| {
        line.match_indices(&path).any(|(at, _)| {
            let before = line.get(..at).and_then(|it| it.chars().next_back());
            // After a name it is a part of some other path or address.
            !before.is_some_and(|it| it.is_alphanumeric() || "._-~/".contains(it))
        })
    };
    let mut found = Vec::new();
    for text in texts {
        for (number, line) in text.content.lines().enumerate() {
            if names_it(line) {
                found.push(format!("{}:{}", text.path, number + 1));
            }
        }
    }
    found
}

#[test]
fn a_long_or_incomplete_architecture_is_found() {
    let crates = ["joulebook".to_owned(), "joulebook-core".to_owned()];
    assert!(architecture_faults("`joulebook` stands on `joulebook-core`.", &crates).is_empty());
    assert_eq!(architecture_faults("`joulebook-core`", &crates), ["does not name `joulebook`"]);
    let long = "`joulebook` `joulebook-core`\n".repeat(151);
    assert_eq!(architecture_faults(&long, &crates), ["151 lines; at most 150"]);
}

#[test]
fn a_missing_command_is_found() {
    let readme = "```sh\ncargo run --release -- demo\n./test     # all of it\n```\n";
    assert!(front_door_faults(readme, "set -e\nexec ./test </dev/null\n", true).is_empty());
    assert_eq!(
        front_door_faults("Run `cargo run --release -- demo`.\n./tests\n", "# ./test\n", false),
        [
            "README.md has no line `cargo run --release -- demo`",
            "README.md has no line `./test`",
            ".ci/run does not run `./test`",
            "test and .ci/run must exist and be executable",
        ]
    );
}

#[test]
fn a_path_of_a_build_machine_is_found() {
    let path = ["/", "work", "/here"].concat();
    let texts = [
        Text::new("bad", &format!("fine\nread \"{path}\"\n{path}")),
        Text::new("good", &format!("https://host{path} frame{path} ~{path} /workshop/ work/")),
    ];
    assert_eq!(build_machine_paths(&texts), ["bad:2", "bad:3"]);
}
