//! Dependencies between crates: the table in ARCHITECTURE.md, and limits on the number of linked packages.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use iswitch_conventions::{linked, metadata, report, root};

/// Heading of the section with the table.
const SECTION: &str = "## Crates";

/// Limits on what a package links or builds with its default features. Each entry contains the package, the kinds of
/// dependencies to count, their maximum number including the package itself, and the packages that must not be among
/// them.
const BUDGETS: [(&str, &str, usize, &[&str]); 2] = [
    // The library that a training binary links.
    (
        "iswitch",
        "normal",
        25,
        &["iswitch-runtime", "iswitch-switch", "iswitch-learn", "gemm", "rand", "clap", "tokio"],
    ),
    // The command that the README starts with.
    (
        "iswitch-cli",
        "normal,build",
        140,
        &["tonic", "hyper", "tokio", "rustls", "plotters", "csv", "iswitch-daemon", "iswitch-study"],
    ),
];

/// Returns the crates in ARCHITECTURE.md and the crates that each may depend on.
fn allowed() -> BTreeMap<String, BTreeSet<String>> {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md must exist");
    let section = text.split(SECTION).nth(1).unwrap_or_else(|| panic!("there is no section {SECTION:?}"));
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let names = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
        let [name] = &names(cells[1])[..] else { panic!("{row}: expected one crate in the first cell") };
        (name.clone(), names(cells[cells.len() - 2]).into_iter().collect())
    })
    .collect()
}

#[test]
fn crate_dependencies_match_the_architecture() {
    let allowed = allowed();
    let metadata = metadata();
    let members: Vec<_> =
        metadata.packages.iter().filter(|package| metadata.workspace_members.contains(&package.id)).collect();
    let mut problems = Vec::new();
    for package in &members {
        let Some(allowed) = allowed.get(&package.name) else {
            problems.push(format!("{} is not in ARCHITECTURE.md, section {SECTION:?}", package.name));
            continue;
        };
        let is_linked = |kind: Option<&str>| kind != Some("dev");
        let own = package.dependencies.iter().filter(|it| it.path.is_some() && is_linked(it.kind.as_deref()));
        let own: BTreeSet<_> = own.map(|dependency| dependency.name.clone()).collect();
        let extra: Vec<_> = own.difference(allowed).collect();
        let unused: Vec<_> = allowed.difference(&own).collect();
        if !extra.is_empty() || !unused.is_empty() {
            let name = &package.name;
            problems.push(format!(
                "{name} depends on {extra:?}, which ARCHITECTURE.md does not list, but not on {unused:?}, which it does"
            ));
        }
    }
    let is_gone = |name: &&String| !members.iter().any(|package| package.name == **name);
    problems.extend(allowed.keys().filter(is_gone).map(|name| format!("there is no crate {name}")));
    report(&problems);
}

#[test]
fn documented_dependencies_point_to_lower_layers() {
    // The rows are in the order of the layers, the lowest first.
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md must exist");
    let at = |name: &str| {
        text.find(&format!("\n| `{name}` ")).unwrap_or_else(|| panic!("there is no row for {name}"))
    };
    let mut problems = Vec::new();
    for (name, below) in allowed() {
        let upward = below.iter().filter(|other| at(other) > at(&name));
        problems.extend(upward.map(|other| format!("{name} is listed above {other} but depends on it")));
    }
    report(&problems);
}

#[test]
fn programs_link_no_more_than_they_need() {
    let mut problems = Vec::new();
    for (package, edges, most, never) in BUDGETS {
        let linked = linked(package, edges);
        if linked.len() > most {
            problems
                .push(format!("{package} has {} crates, expected at most {most}: {linked:?}", linked.len()));
        }
        for name in &linked {
            if never.contains(&name.split(' ').next().unwrap_or_default()) {
                problems.push(format!("{package} links {name}"));
            }
        }
    }
    report(&problems);
}
