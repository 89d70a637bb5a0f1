//! What belongs to the repository: git's word where there is git, else the folders without what a
//! build leaves behind.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

/// A text file of the repository.
pub struct Text {
    /// From the root, with `/`.
    pub path: String,
    pub content: String,
}

impl Text {
    pub fn new(path: &str, content: &str) -> Self {
        Self { path: path.to_owned(), content: content.to_owned() }
    }
}

pub fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.ancestors().nth(2).expect("a crate lies two folders below the root").to_owned()
}

pub fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

pub fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

/// Every text file: tracked, or new and not ignored. What is not UTF-8 is no text.
pub fn texts() -> Vec<Text> {
    let root = root();
    let mut paths = listed_by_git(&root).unwrap_or_else(|| walked(&root));
    paths.sort();
    paths
        .into_iter()
        .filter_map(|path| {
            let content = fs::read_to_string(root.join(&path)).ok()?;
            Some(Text { path, content })
        })
        .collect()
}

/// `None` without git, or where git refuses (an archive, a checkout of another user).
fn listed_by_git(root: &Path) -> Option<Vec<String>> {
    let answer = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .ok()?;
    let list = String::from_utf8(answer.stdout).ok()?;
    let paths: Vec<String> =
        list.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect();
    // An archive unpacked inside somebody else's repository lists nothing of ours.
    (answer.status.success() && paths.iter().any(|path| path == "Cargo.toml")).then_some(paths)
}

fn walked(root: &Path) -> Vec<String> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the tree").flatten() {
            let path = entry.path();
            let name = entry.file_name();
            if entry.file_type().is_ok_and(|it| it.is_dir()) {
                if name != "target" && name != ".git" {
                    folders.push(path);
                }
            } else if let Ok(path) = path.strip_prefix(root) {
                files.push(path.to_string_lossy().into_owned());
            }
        }
    }
    files
}

#[test]
fn the_walk_and_git_see_the_same_tree() {
    let root = root();
    let walked = walked(&root);
    for path in ["Cargo.toml", ".ci/run", "crates/joulebook-cli/tests/house/tree.rs"] {
        assert!(walked.iter().any(|it| it == path), "{path}");
    }
    assert!(!walked.iter().any(|path| path.starts_with("target/")));
    if let Some(listed) = listed_by_git(&root) {
        for path in listed.iter().filter(|path| root.join(path).is_file()) {
            assert!(walked.contains(path), "{path} is in git, and the walk does not see it");
        }
    }
}
