//! Check that the licences and sources of all dependencies are allowed by `.cargo/deny.toml`.

use std::collections::BTreeSet;

use iswitch_conventions::{Edge, Metadata, Package, metadata, report, root};
use serde::Deserialize;
use spdx::{Expression, LicenseReq};

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Lists in `.cargo/deny.toml` that this test uses; cargo-deny uses the same file.
#[derive(Deserialize)]
struct Policy {
    licenses: Licenses,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
}

fn allowed_licenses() -> BTreeSet<LicenseReq> {
    let text = std::fs::read_to_string(root().join(".cargo/deny.toml")).expect(".cargo/deny.toml must exist");
    let policy: Policy =
        toml::from_str(&text).expect(".cargo/deny.toml must be TOML with a list of licences");
    let requirement = |name: &String| {
        let expression = Expression::parse(name).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut requirements = expression.requirements();
        requirements.next().expect("an expression must name a licence").req.clone()
    };
    policy.licenses.allow.iter().map(requirement).collect()
}

/// Returns the packages that are part of the shipped programs, not only of tests.
fn shipped(metadata: &Metadata) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    let mut next: Vec<&str> = metadata.workspace_members.iter().map(String::as_str).collect();
    while let Some(id) = next.pop() {
        if !found.insert(id) {
            continue;
        }
        let node = metadata.resolve.nodes.iter().find(|node| node.id == id).expect("the node must exist");
        let is_shipped = |edge: &&Edge| edge.dep_kinds.iter().any(|it| it.kind.as_deref() != Some("dev"));
        next.extend(node.deps.iter().filter(is_shipped).map(|edge| edge.pkg.as_str()));
    }
    found
}

/// Returns the problem with the licence of a package, if there is one.
fn problem(license: Option<&str>, allowed: &BTreeSet<LicenseReq>) -> Option<String> {
    let Some(license) = license else { return Some("declares no licence".to_owned()) };
    // Some manifests still separate alternatives by a slash, which is not SPDX syntax.
    let expression = match Expression::parse(&license.replace('/', " OR ")) {
        Ok(expression) => expression,
        Err(error) => {
            return Some(format!("has the licence {license:?}, which is not an SPDX expression: {error}"));
        }
    };
    let is_allowed = expression.evaluate(|requirement| allowed.contains(requirement));
    (!is_allowed).then(|| format!("has the licence {license:?}, which .cargo/deny.toml does not allow"))
}

#[test]
fn licences_and_sources_are_allowed() {
    let allowed = allowed_licenses();
    let mut problems = Vec::new();
    let metadata = metadata();
    let shipped = shipped(&metadata);
    assert!(shipped.len() > 100, "expected more than 100 packages, got {}", shipped.len());
    for Package { id, name, version, license, source, dependencies, .. } in &metadata.packages {
        let found = problem(license.as_deref(), &allowed).filter(|_| shipped.contains(id.as_str()));
        problems.extend(found.map(|problem| format!("{name} {version} {problem}")));
        match source {
            Some(source) if source == CRATES_IO => {}
            Some(source) => {
                problems.push(format!("{name} {version} comes from {source}, expected {CRATES_IO}"));
            }
            None => {
                let any_version = dependencies.iter().filter(|it| it.req == "*" && it.path.is_none());
                problems.extend(any_version.map(|it| format!("{name} accepts any version of {}", it.name)));
            }
        }
    }
    report(&problems);
}

#[test]
fn a_disallowed_licence_is_detected() {
    let allowed = allowed_licenses();
    for license in ["MIT", "MIT OR GPL-3.0-only", "MIT/Apache-2.0", "(MIT OR Apache-2.0) AND Unicode-3.0"] {
        assert_eq!(problem(Some(license), &allowed), None, "{license}");
    }
    for license in [None, Some("GPL-3.0-only"), Some("MIT AND GPL-3.0-only"), Some("no licence at all")] {
        assert!(problem(license, &allowed).is_some(), "{license:?}");
    }
}
