//! The crates and the arrows between them.

use std::{collections::BTreeSet, process::Command};

use serde_json::Value;

use super::tree::{Text, root};

/// Each crate, and the crates of the workspace that it may depend on.
const ARROWS: &[(&str, &[&str])] = &[
    ("joulebook-core", &[]),
    ("joulebook", &["joulebook-core"]),
    ("joulebook-store", &["joulebook-core"]),
    ("joulebook-proxy", &["joulebook-core", "joulebook"]),
    ("joulebook-lab", &["joulebook-core", "joulebook"]),
    (
        "joulebook-cli",
        &["joulebook-core", "joulebook", "joulebook-store", "joulebook-proxy", "joulebook-lab"],
    ),
    ("joulebook-py", &["joulebook", "joulebook-cli"]),
];

/// Whose dev-dependencies are free: every crate is tested on cards whose truth is known.
const LAB: &str = "joulebook-lab";

/// A crate of the workspace, as cargo sees it.
pub struct Crate {
    pub name: String,
    pub dependencies: Vec<Dependency>,
}

pub struct Dependency {
    pub name: String,
    pub dev: bool,
}

impl Crate {
    /// All crates of the workspace.
    pub fn all() -> Vec<Self> {
        let answer = Command::new(env!("CARGO"))
            .args(["metadata", "--format-version", "1", "--no-deps"])
            .current_dir(root())
            .output()
            .expect("cargo runs");
        let complaint = String::from_utf8_lossy(&answer.stderr);
        assert!(answer.status.success(), "cargo metadata: {complaint}");
        let crates = Self::from_metadata(&serde_json::from_slice(&answer.stdout).expect("JSON"));
        assert!(crates.len() >= 4, "the workspace is read: {} crates", crates.len());
        crates
    }

    fn from_metadata(metadata: &Value) -> Vec<Self> {
        let array = |value: &Value| value.as_array().expect("an array").clone();
        let text = |value: &Value| value.as_str().expect("a string").to_owned();
        array(&metadata["packages"])
            .iter()
            .map(|package| Self {
                name: text(&package["name"]),
                dependencies: array(&package["dependencies"])
                    .iter()
                    .map(|it| Dependency { name: text(&it["name"]), dev: it["kind"] == "dev" })
                    .collect(),
            })
            .collect()
    }
}

/// Edges between crates of the workspace that are no arrows.
pub fn forbidden_edges(crates: &[Crate]) -> Vec<String> {
    let names: BTreeSet<&str> = crates.iter().map(|it| it.name.as_str()).collect();
    let mut complaints = Vec::new();
    for Crate { name, dependencies } in crates {
        let Some((_, allowed)) = ARROWS.iter().find(|(from, _)| from == name) else {
            complaints.push(format!("{name} is not in the list of crates"));
            continue;
        };
        for Dependency { name: to, dev } in dependencies {
            let free = *dev && to == LAB;
            if names.contains(to.as_str()) && !allowed.contains(&to.as_str()) && !free {
                complaints.push(format!("{name} -> {to}"));
            }
        }
    }
    complaints
}

/// Manifests that do not take the lints of the workspace.
pub fn without_workspace_lints(manifests: &[Text]) -> Vec<String> {
    let takes_them = |text: &Text| {
        let manifest: toml::Table = toml::from_str(&text.content).expect("a manifest is TOML");
        manifest.get("lints").and_then(|it| it.get("workspace")?.as_bool()) == Some(true)
    };
    manifests.iter().filter(|it| !takes_them(it)).map(|it| it.path.clone()).collect()
}

#[test]
fn an_edge_against_the_arrows_is_found() {
    let metadata = serde_json::json!({"packages": [
        {"name": "joulebook-core", "dependencies": [
            {"name": "serde", "kind": null},
            {"name": "joulebook", "kind": null},
            {"name": "joulebook-lab", "kind": "dev"},
        ]},
        {"name": "joulebook", "dependencies": [
            {"name": "joulebook-core", "kind": null},
            {"name": "joulebook-lab", "kind": "build"},
            {"name": "joulebook-cli", "kind": "dev"},
        ]},
        {"name": "joulebook-lab", "dependencies": [{"name": "joulebook", "kind": null}]},
        {"name": "joulebook-cli", "dependencies": [{"name": "joulebook-lab", "kind": null}]},
        {"name": "joulebook-extra", "dependencies": []},
    ]});
    assert_eq!(
        forbidden_edges(&Crate::from_metadata(&metadata)),
        [
            "joulebook-core -> joulebook",
            "joulebook -> joulebook-lab",
            "joulebook -> joulebook-cli",
            "joulebook-extra is not in the list of crates",
        ]
    );
}

#[test]
fn the_arrows_have_no_cycle() {
    for (position, (name, allowed)) in ARROWS.iter().enumerate() {
        for to in *allowed {
            let at = ARROWS.iter().position(|(it, _)| it == to);
            assert!(at.is_some_and(|at| at < position), "{name} -> {to} points down the list");
        }
    }
}

#[test]
fn a_manifest_without_the_lints_is_found() {
    let manifests = [
        Text::new("good", "[package]\nname = 'x'\n[lints]\nworkspace = true\n"),
        Text::new("absent", "[package]\nname = 'x'\n"),
        Text::new("false", "[lints]\nworkspace = false\n"),
        Text::new("own", "[lints.rust]\nunsafe_code = 'allow'\n# [lints] workspace = true\n"),
    ];
    assert_eq!(without_workspace_lints(&manifests), ["absent", "false", "own"]);
}
