//! `cargo test` builds and runs the targets that have tests, and no others.

use std::path::{Path, PathBuf};

use iswitch_conventions::{Target, entries, metadata, report, root};

/// The sources of a library or a program.
fn files(target: &Target) -> Vec<PathBuf> {
    if target.src_path.file_name().is_some_and(|name| name != "main.rs" && name != "lib.rs") {
        return vec![target.src_path.clone()];
    }
    let mut found = Vec::new();
    let directory = target.src_path.parent().expect("a file lies in a directory");
    let is_own = |path: &Path| path.extension().is_some_and(|extension| extension == "rs");
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for path in entries(&directory) {
            match path.is_dir() {
                // Programs of their own.
                true if path.ends_with("src/bin") => {}
                true => directories.push(path),
                false if is_own(&path) => found.push(path),
                false => {}
            }
        }
    }
    found
}

fn contain(files: &[PathBuf], is_sign: impl Fn(&str) -> bool) -> bool {
    let text = |path: &PathBuf| {
        std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    files.iter().any(|path| text(path).lines().map(str::trim_start).any(&is_sign))
}

#[test]
fn targets_are_tested_if_they_have_tests() {
    let metadata = metadata();
    let own = metadata.packages.iter().filter(|package| package.source.is_none());
    let mut problems = Vec::new();
    for target in own.flat_map(|package| &package.targets) {
        let is = |kind: &str| target.kind.iter().any(|own| own == kind);
        if !is("lib") && !is("bin") {
            continue;
        }
        let files = files(target);
        let path = target.src_path.strip_prefix(root()).unwrap_or(&target.src_path).display();
        let has_tests = contain(&files, |line| line.starts_with("#[cfg(test)]"));
        if target.test && is("bin") && !has_tests {
            problems.push(format!("{path} has no tests: test = false"));
        }
        if !target.test && has_tests {
            problems.push(format!("{path} has tests, and test = false"));
        }
        let is_example = |line: &str| ["/// ```", "//! ```"].iter().any(|fence| line.starts_with(fence));
        let has_examples = contain(&files, is_example);
        if is("lib") && target.doctest != has_examples {
            problems.push(format!("{path}: doctest = {}, expected {has_examples}", target.doctest));
        }
    }
    report(&problems);
}
