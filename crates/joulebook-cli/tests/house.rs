//! The rules of the house, held against the tree itself. Each check is a function from facts to
//! complaints in `house/`, and is shown there to fail on a made-up breach.

#[cfg(test)]
mod house {
    mod code;
    mod crates;
    mod papers;
    mod strip;
    mod tree;

    use code::{impurities, too_long};
    use crates::{Crate, forbidden_edges, without_workspace_lints};
    use papers::{architecture_faults, build_machine_paths, front_door_faults};
    use tree::{Text, root, texts};

    /// Passes without complaints, and shows all of them otherwise.
    fn assert_clean(rule: &str, complaints: &[String]) {
        assert!(complaints.is_empty(), "{rule}:\n  {}\n", complaints.join("\n  "));
    }

    fn rust_files() -> Vec<Text> {
        let files: Vec<Text> =
            texts().into_iter().filter(|text| text.path.ends_with(".rs")).collect();
        assert!(files.len() >= 5, "the tree is read: {} Rust files", files.len());
        files
    }

    #[test]
    fn crates_depend_only_along_the_arrows() {
        assert_clean("edges between crates (ARCHITECTURE.md)", &forbidden_edges(&Crate::all()));
    }

    #[test]
    fn every_crate_has_the_lints_of_the_workspace() {
        let manifests: Vec<Text> = texts()
            .into_iter()
            .filter(|text| text.path.starts_with("crates/") && text.path.ends_with("/Cargo.toml"))
            .collect();
        assert_eq!(manifests.len(), Crate::all().len(), "one manifest a crate");
        assert_clean("`[lints] workspace = true`", &without_workspace_lints(&manifests));
    }

    #[test]
    fn no_rust_file_is_too_long() {
        assert_clean("at most 500 lines a file", &too_long(&rust_files()));
    }

    #[test]
    fn modules_are_foo_rs_beside_foo() {
        let found: Vec<String> = rust_files()
            .into_iter()
            .map(|text| text.path)
            .filter(|path| code::is_mod_rs(path))
            .collect();
        assert_clean("`foo.rs` + `foo/`, no `mod.rs`", &found);
    }

    #[test]
    fn the_core_is_arithmetic_alone() {
        let sources: Vec<Text> =
            rust_files().into_iter().filter(|text| code::is_core_source(&text.path)).collect();
        assert!(sources.len() >= 4, "the core is read: {} files", sources.len());
        assert_clean("no I/O, clock, thread, async, unsafe in the core", &impurities(&sources));
    }

    #[test]
    fn architecture_is_short_and_names_every_crate() {
        let text = tree::read("ARCHITECTURE.md");
        let names: Vec<String> = Crate::all().into_iter().map(|it| it.name).collect();
        assert_clean("ARCHITECTURE.md", &architecture_faults(&text, &names));
    }

    #[test]
    fn the_two_commands_of_the_readme_exist() {
        let script = root().join("test");
        let faults = front_door_faults(
            &tree::read("README.md"),
            &tree::read(".ci/run"),
            tree::is_executable(&script) && tree::is_executable(&root().join(".ci/run")),
        );
        assert_clean("README's commands", &faults);
    }

    #[test]
    fn no_file_names_a_path_of_a_build_machine() {
        assert_clean("paths of a build machine", &build_machine_paths(&texts()));
    }
}
