//! Layout of folders, files and `impl` blocks.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use iswitch_conventions::{cargo, entries, metadata, output, report, root, sources};

const TOP_FOLDERS: usize = 9;
const FILE_LINES: usize = 800;
/// Maximum number of files with inherent `impl` blocks of one type.
const IMPL_FILES: usize = 3;

#[test]
fn the_top_level_directory_has_few_entries() {
    let is_ignored = |path: &Path| {
        // git ignores build output and the results of runs.
        let mut command = std::process::Command::new("git");
        command.current_dir(root()).args(["check-ignore", "--quiet"]).arg(path);
        command.status().is_ok_and(|status| status.success())
    };
    let name = |path: &Path| path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    let folders: Vec<_> = entries(root())
        .into_iter()
        .filter(|path| path.is_dir() && !name(path).starts_with('.') && name(path) != "target")
        .filter(|path| !is_ignored(path))
        .map(|path| name(&path))
        .collect();
    assert!(
        folders.len() <= TOP_FOLDERS,
        "{} folders, expected at most {TOP_FOLDERS}: {folders:?}",
        folders.len()
    );
}

#[test]
fn paths_in_the_documentation_exist() {
    let names = |path: &Path| path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
    let tops: BTreeSet<String> =
        entries(root()).iter().filter(|path| path.is_dir()).filter_map(|path| names(path)).collect();
    // Files that builds and runs have written, such as those of the README's first command, differ between machines.
    let ignored = fs::read_to_string(root().join(".gitignore")).expect(".gitignore must be readable");
    let ignored: BTreeSet<&str> = ignored.lines().map(|line| line.trim_matches('/')).collect();
    let mut problems = Vec::new();
    // The changelog is excluded, because it describes former states of the tree.
    for (page, text) in sources(".md").into_iter().filter(|(path, _)| path != "CHANGELOG.md") {
        for word in text.split('`').skip(1).step_by(2) {
            let is_path =
                word.chars().all(|c| c.is_alphanumeric() || "/._-".contains(c)) && word.contains('/');
            let top = word.split('/').next().unwrap_or_default();
            let is_built = ignored.contains(top) || word.contains("__");
            if is_path && tops.contains(top) && !is_built && !root().join(word).exists() {
                problems.push(format!("{page}: {word} does not exist"));
            }
        }
    }
    report(&problems);
}

#[test]
fn files_do_not_exceed_the_line_limit() {
    let mut problems = Vec::new();
    for (path, text) in sources(".rs") {
        let lines = text.lines().count();
        if lines > FILE_LINES {
            problems.push(format!("{path}: {lines} lines, expected at most {FILE_LINES}"));
        }
    }
    report(&problems);
}

/// Returns the name of the type if a line begins an inherent `impl` block.
fn implemented(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("impl")?;
    let rest = match rest.strip_prefix('<') {
        None => rest,
        Some(parameters) => {
            let mut depth = 1;
            let end = parameters.find(|c| {
                depth += match c {
                    '<' => 1,
                    '>' => -1,
                    _ => 0,
                };
                depth == 0
            })?;
            &parameters[end + 1..]
        }
    };
    let is_of_a_trait = rest.contains(" for ");
    let name = rest.trim_start().split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    (!is_of_a_trait && !name.is_empty()).then_some(name)
}

/// Returns the name of the type that a line defines.
fn defined(line: &str) -> Option<&str> {
    let keyword = ["struct ", "enum ", "union "]
        .into_iter()
        .find_map(|keyword| Some((line.find(keyword)?, keyword)))?;
    let rest = &line[keyword.0 + keyword.1.len()..];
    let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    (!line.trim_start().starts_with("//") && name.starts_with(char::is_uppercase)).then_some(name)
}

/// Returns the number of leading components that two paths share.
fn shared(a: &str, b: &str) -> usize {
    a.split('/').zip(b.split('/')).take_while(|(a, b)| a == b).count()
}

#[test]
fn a_type_is_implemented_in_few_files() {
    let sources = sources(".rs");
    let mut definitions: BTreeMap<&str, BTreeSet<&String>> = BTreeMap::new();
    for (path, text) in &sources {
        for name in text.lines().filter_map(defined) {
            definitions.entry(name).or_default().insert(path);
        }
    }
    let mut files: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for (path, text) in &sources {
        for name in text.lines().filter_map(implemented) {
            // If several types have the same name, the type in the nearest file is meant.
            let candidates = definitions.get(name).into_iter().flatten();
            let nearest = candidates.max_by_key(|other| (**other == path, shared(other, path)));
            if let Some(definition) = nearest {
                files.entry((*definition, name)).or_default().insert(path);
            }
        }
    }
    let spread = files.iter().filter(|(_, files)| files.len() > IMPL_FILES);
    let problems: Vec<_> = spread
        .map(|((definition, name), files)| {
            let count = files.len();
            format!("{name} of {definition} has impl blocks in {count} files, expected at most {IMPL_FILES}: {files:?}")
        })
        .collect();
    report(&problems);
}

#[test]
fn names_of_implemented_types_are_found() {
    assert_eq!(implemented("impl Switch {"), Some("Switch"));
    assert_eq!(implemented("impl<'a, T: Into<u8>> View<'a, T> {"), Some("View"));
    assert_eq!(implemented("impl fmt::Display for Switch {"), None);
    assert_eq!(implemented("    impl Inner {"), None);
}

/// This test does not run `cargo --locked`, which would detect an outdated lock file, because cargo would then need
/// downloads that a new machine does not have.
#[test]
fn the_lock_files_of_the_examples_list_the_packages_they_use() {
    check_lock_file("worker-lib/worker/examples/burn");
    check_lock_file("worker-lib/studies/examples/policies");
}

fn check_lock_file(directory: &str) {
    let text = fs::read_to_string(root().join(directory).join("Cargo.lock"))
        .expect("the example must have a lock file");
    let lock: toml::Table = toml::from_str(&text).expect("the lock file must be TOML");
    let packages = lock["package"].as_array().expect("the lock file must list packages").iter();
    let own = packages.filter(|package| package.get("source").is_none());
    let locked: BTreeSet<_> =
        own.map(|package| package["name"].as_str().expect("a package must have a name").to_owned()).collect();

    let manifest = format!("{directory}/Cargo.toml");
    let mut command = cargo();
    command.args(["metadata", "--format-version", "1", "--no-deps", "--manifest-path", &manifest]);
    let example: serde_json::Value =
        serde_json::from_str(&output(&mut command)).expect("cargo must print JSON");
    let all = metadata().packages;
    let name =
        |value: &serde_json::Value| value["name"].as_str().expect("a package must have a name").to_owned();
    let mut used = BTreeSet::from([name(&example["packages"][0])]);
    let dependencies = example["packages"][0]["dependencies"].as_array().expect("a list of dependencies");
    let mut open: Vec<_> =
        dependencies.iter().filter(|dependency| dependency["path"].is_string()).map(name).collect();
    while let Some(name) = open.pop() {
        let package = all.iter().find(|package| package.name == name).expect("the package must exist");
        let below = package.dependencies.iter();
        let below = below.filter(|it| it.path.is_some() && it.kind.as_deref() != Some("dev"));
        open.extend(below.map(|dependency| dependency.name.clone()));
        used.insert(name);
    }
    assert_eq!(locked, used, "the lock file is out of date; run cargo update --workspace in {directory}");
}
