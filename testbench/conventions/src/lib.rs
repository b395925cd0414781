//! The source tree and its package graph, as the tests of this crate read them.
//!
//! The crate depends on no other of the workspace, so that `cargo test -p iswitch-conventions` answers in seconds.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

/// Directories that hold no sources: build output and results of runs.
const SKIPPED: [&str; 3] = ["target", ".git", "runs"];

/// The root of the workspace.
///
/// # Panics
/// If the crate has been moved out of `testbench/`.
pub fn root() -> &'static Path {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().and_then(Path::parent);
    root.expect("the crate lies two levels below the root")
}

/// All files whose names end with `ending`: their paths from the root, and their texts.
///
/// # Panics
/// If there is none, or one cannot be read as UTF-8.
pub fn sources(ending: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut directories = vec![root().to_owned()];
    while let Some(directory) = directories.pop() {
        for path in entries(&directory) {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if path.is_dir() && !SKIPPED.contains(&name) {
                directories.push(path);
            } else if name.ends_with(ending) && path.is_file() {
                let relative = path.strip_prefix(root()).expect("below the root").display().to_string();
                let text = fs::read_to_string(&path);
                found.push((relative, text.unwrap_or_else(|error| panic!("{}: {error}", path.display()))));
            }
        }
    }
    assert!(!found.is_empty(), "there is no file whose name ends with {ending}");
    found.sort();
    found
}

/// The paths in a directory.
///
/// # Panics
/// If it cannot be read.
pub fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    entries.map(|entry| entry.expect("a directory's entries are readable").path()).collect()
}

/// Fails the calling test if there are problems, one on each line.
///
/// # Panics
/// If there is a problem.
#[track_caller]
pub fn report(problems: &[String]) {
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

/// The package graph, as `cargo metadata` prints it.
#[derive(Debug, Deserialize)]
pub struct Metadata {
    /// All packages.
    pub packages: Vec<Package>,
    /// Ids of the packages of the workspace.
    pub workspace_members: BTreeSet<String>,
    /// The resolved graph.
    pub resolve: Resolve,
}

/// The resolved graph of a workspace.
#[derive(Debug, Deserialize)]
pub struct Resolve {
    /// One node for each package.
    pub nodes: Vec<Node>,
}

/// A package and what it depends on.
#[derive(Debug, Deserialize)]
pub struct Node {
    /// Id of the package.
    pub id: String,
    /// The dependencies.
    pub deps: Vec<Edge>,
}

/// A dependency of a package.
#[derive(Debug, Deserialize)]
pub struct Edge {
    /// Id of the package that is depended on.
    pub pkg: String,
    /// The kinds of dependency.
    pub dep_kinds: Vec<EdgeKind>,
}

/// A kind of dependency.
#[derive(Debug, Deserialize)]
pub struct EdgeKind {
    /// `build` or `dev`; none for a normal dependency.
    pub kind: Option<String>,
}

/// A package.
#[derive(Debug, Deserialize)]
pub struct Package {
    /// Unique id.
    pub id: String,
    /// Name.
    pub name: String,
    /// Version.
    pub version: String,
    /// SPDX expression.
    pub license: Option<String>,
    /// The registry; none for a package of the workspace.
    pub source: Option<String>,
    /// Path of its Cargo.toml.
    pub manifest_path: String,
    /// The dependencies, as the manifest states them.
    pub dependencies: Vec<Dependency>,
    /// Libraries, programs, tests.
    pub targets: Vec<Target>,
}

/// What cargo builds of a package.
#[derive(Debug, Deserialize)]
pub struct Target {
    /// Such as `lib` and `bin`.
    pub kind: Vec<String>,
    /// Its first file.
    pub src_path: PathBuf,
    /// Whether `cargo test` builds it as a program of tests.
    pub test: bool,
    /// Whether `cargo test` runs the examples in its documentation.
    pub doctest: bool,
}

/// A dependency, as a manifest states it.
#[derive(Debug, Deserialize)]
pub struct Dependency {
    /// Name of the package.
    pub name: String,
    /// Required version.
    pub req: String,
    /// `build` or `dev`; none for a normal dependency.
    pub kind: Option<String>,
    /// Directory, if it is a package of the workspace.
    pub path: Option<String>,
}

/// The package graph with all features.
///
/// # Panics
/// If cargo fails.
pub fn metadata() -> Metadata {
    let mut command = cargo();
    command.args(["metadata", "--locked", "--all-features", "--format-version", "1"]);
    serde_json::from_str(&output(&mut command)).expect("cargo prints JSON")
}

/// The names of the packages that `package` links or builds with its default features on this platform, itself
/// included. `edges` are the kinds of dependencies that are followed, as `cargo tree --edges` takes them.
///
/// # Panics
/// If cargo fails.
pub fn linked(package: &str, edges: &str) -> BTreeSet<String> {
    let mut command = cargo();
    command.args(["tree", "--locked", "--package", package, "--edges", edges, "--prefix", "none"]);
    let name_and_version = |line: &str| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    output(&mut command).lines().filter(|line| !line.is_empty()).map(name_and_version).collect()
}

/// The cargo that runs the tests, at the root of the workspace.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// What a command prints.
///
/// # Panics
/// If it fails.
pub fn output(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}:\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("cargo prints UTF-8")
}
