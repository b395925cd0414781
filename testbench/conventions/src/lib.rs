//! Access to the source tree and its package graph, for the tests of this crate.
//!
//! The crate depends on no other crate of the workspace, so that `cargo test -p iswitch-conventions` takes only
//! seconds.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

/// Directories that hold no sources: build output and results of runs.
const SKIPPED: [&str; 3] = ["target", ".git", "runs"];
/// Directory below the root with the output of `packaging/release/build`.
const RELEASE: &str = "dist";

/// Returns the root directory of the workspace.
///
/// # Panics
/// Panics if the crate has been moved out of `testbench/`.
pub fn root() -> &'static Path {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().and_then(Path::parent);
    root.expect("the crate must be two levels below the root")
}

/// Returns the path, relative to the root, and the text of each file whose name ends with `ending`.
///
/// # Panics
/// Panics if no file name has this ending, or if a file cannot be read as UTF-8.
pub fn sources(ending: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut directories = vec![root().to_owned()];
    while let Some(directory) = directories.pop() {
        for path in entries(&directory) {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if path.is_dir() && !SKIPPED.contains(&name) && path != root().join(RELEASE) {
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

/// Returns the paths of the entries of a directory.
///
/// # Panics
/// Panics if the directory cannot be read.
pub fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    entries.map(|entry| entry.expect("the entries of a directory must be readable").path()).collect()
}

/// Fails the calling test if there are problems, and prints one problem per line.
///
/// # Panics
/// Panics if there is a problem.
#[track_caller]
pub fn report(problems: &[String]) {
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

/// Package graph, as printed by `cargo metadata`.
#[derive(Debug, Deserialize)]
pub struct Metadata {
    /// All packages.
    pub packages: Vec<Package>,
    /// Ids of the packages of the workspace.
    pub workspace_members: BTreeSet<String>,
    /// Resolved graph.
    pub resolve: Resolve,
}

/// Resolved graph of a workspace.
#[derive(Debug, Deserialize)]
pub struct Resolve {
    /// One node for each package.
    pub nodes: Vec<Node>,
}

/// Package and its dependencies in the resolved graph.
#[derive(Debug, Deserialize)]
pub struct Node {
    /// Id of the package.
    pub id: String,
    /// Dependencies of the package.
    pub deps: Vec<Edge>,
}

/// Dependency in the resolved graph.
#[derive(Debug, Deserialize)]
pub struct Edge {
    /// Id of the dependency.
    pub pkg: String,
    /// Kinds of the dependency.
    pub dep_kinds: Vec<EdgeKind>,
}

/// Kind of a dependency.
#[derive(Debug, Deserialize)]
pub struct EdgeKind {
    /// `build` or `dev`; None for a normal dependency.
    pub kind: Option<String>,
}

/// Package of the graph.
#[derive(Debug, Deserialize)]
pub struct Package {
    /// Unique id.
    pub id: String,
    /// Name.
    pub name: String,
    /// Version.
    pub version: String,
    /// SPDX expression of the licence.
    pub license: Option<String>,
    /// Registry that the package comes from; None for a package of the workspace.
    pub source: Option<String>,
    /// Path of the Cargo.toml of the package.
    pub manifest_path: String,
    /// Dependencies, as declared in the manifest.
    pub dependencies: Vec<Dependency>,
    /// Targets: libraries, programs, tests.
    pub targets: Vec<Target>,
}

/// Target that cargo builds from a package.
#[derive(Debug, Deserialize)]
pub struct Target {
    /// Kinds, such as `lib` and `bin`.
    pub kind: Vec<String>,
    /// Path of the root source file of the target.
    pub src_path: PathBuf,
    /// Whether `cargo test` builds the target as a test program.
    pub test: bool,
    /// Whether `cargo test` runs the examples in the documentation of the target.
    pub doctest: bool,
}

/// Dependency, as declared in a manifest.
#[derive(Debug, Deserialize)]
pub struct Dependency {
    /// Name of the package.
    pub name: String,
    /// Required version.
    pub req: String,
    /// `build` or `dev`; None for a normal dependency.
    pub kind: Option<String>,
    /// Whether the dependency is activated only by a feature.
    pub optional: bool,
    /// Directory, if the dependency is a package of the workspace.
    pub path: Option<String>,
}

/// Returns the package graph with all features.
///
/// # Panics
/// Panics if cargo fails.
pub fn metadata() -> Metadata {
    let mut command = cargo();
    command.args(["metadata", "--locked", "--all-features", "--format-version", "1"]);
    serde_json::from_str(&output(&mut command)).expect("cargo must print JSON")
}

/// Returns the names of the packages that `package` links or builds with its default features on this platform,
/// including itself. `edges` are the kinds of dependencies to follow, in the format of `cargo tree --edges`.
///
/// # Panics
/// Panics if cargo fails.
pub fn linked(package: &str, edges: &str) -> BTreeSet<String> {
    let mut command = cargo();
    command.args(["tree", "--locked", "--package", package, "--edges", edges, "--prefix", "none"]);
    let name_and_version = |line: &str| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    output(&mut command).lines().filter(|line| !line.is_empty()).map(name_and_version).collect()
}

/// Returns a command that invokes, at the root of the workspace, the same cargo that runs the tests.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Runs a command and returns its standard output.
///
/// # Panics
/// Panics if the command fails.
pub fn output(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}:\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("the command must print UTF-8")
}
