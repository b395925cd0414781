//! Check that `cargo test` builds and runs the targets that have tests, and no others.

use iswitch_conventions::{metadata, report, root, sources};

/// Returns whether the file with the given path, relative to the root, belongs to the library or program whose root
/// file is `first`.
fn belongs(path: &str, first: &str) -> bool {
    let (directory, name) = first.rsplit_once('/').expect("a file must be in a directory");
    if name != "main.rs" && name != "lib.rs" {
        return path == first;
    }
    // Programs in `src/bin` are separate targets.
    path.strip_prefix(directory).is_some_and(|rest| {
        rest.starts_with('/') && !(directory.ends_with("src") && rest.starts_with("/bin/"))
    })
}

#[test]
fn targets_are_tested_if_they_have_tests() {
    let metadata = metadata();
    let own = metadata.packages.iter().filter(|package| package.source.is_none());
    let sources = sources(".rs");
    let mut problems = Vec::new();
    for target in own.flat_map(|package| &package.targets) {
        let is = |kind: &str| target.kind.iter().any(|own| own == kind);
        if !is("lib") && !is("bin") {
            continue;
        }
        let path = target
            .src_path
            .strip_prefix(root())
            .expect("below the root")
            .to_str()
            .expect("paths must be UTF-8");
        let files = || sources.iter().filter(|(file, _)| belongs(file, path));
        let contains = |is_sign: &dyn Fn(&str) -> bool| {
            files().any(|(_, text)| text.lines().map(str::trim_start).any(is_sign))
        };
        let has_tests = contains(&|line| line.starts_with("#[cfg(test)]"));
        if target.test && is("bin") && !has_tests {
            problems.push(format!("{path} has no tests; set test = false in its Cargo.toml"));
        }
        if !target.test && has_tests {
            problems.push(format!("{path} has tests, but its Cargo.toml has test = false"));
        }
        let is_example =
            |line: &str| ["/// ```", "//! ```", "#[cfg(doctest)]"].iter().any(|sign| line.starts_with(sign));
        let has_examples = contains(&is_example);
        if is("lib") && target.doctest != has_examples {
            problems.push(format!("{path}: doctest = {}, expected {has_examples}", target.doctest));
        }
    }
    report(&problems);
}
