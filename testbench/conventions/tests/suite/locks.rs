//! Check that the lock files of packages outside the workspace agree with the manifests of the workspace.
//!
//! The build of a package outside the workspace reads the manifests of this workspace, but no command run in the
//! workspace updates that package's lock file. So when a crate gains a dependency, `cargo test --locked` fails for that
//! package and nowhere else.

use std::collections::BTreeSet;

use iswitch_conventions::{Dependency, Package, metadata, report, sources};
use semver::{Version, VersionReq};
use serde::Deserialize;

/// Lock file of cargo.
#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

/// Package in a lock file.
#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    /// Registry; None for a package that is read from a directory.
    source: Option<String>,
    /// Names of the dependencies; the version follows if several versions are locked.
    #[serde(default)]
    dependencies: Vec<String>,
}

impl Lock {
    /// Returns the reasons why `package` cannot be built with this lock file.
    fn problems(&self, package: &Package) -> Vec<String> {
        let is_locked = |it: &&Locked| it.source.is_none() && it.name == package.name;
        let Some(locked) = self.package.iter().find(is_locked) else { return Vec::new() };
        let mut problems = Vec::new();
        if locked.version != package.version {
            problems.push(format!("{} is locked at {}", package.name, locked.version));
        }
        // Optional dependencies are not checked: the features that the package outside the workspace needs determine
        // which of them are locked.
        let needed =
            package.dependencies.iter().filter(|it| it.kind.as_deref() != Some("dev") && !it.optional);
        let missing = needed.filter(|dependency| !self.satisfies(locked, dependency));
        problems.extend(missing.map(|it| format!("{} needs {} {}", package.name, it.name, it.req)));
        let declared: BTreeSet<_> = package.dependencies.iter().map(|it| it.name.as_str()).collect();
        let names = locked.dependencies.iter().map(|it| it.split(' ').next().unwrap_or_default());
        let unused = names.filter(|name| !declared.contains(name));
        problems.extend(unused.map(|name| format!("{} does not depend on {name}", package.name)));
        problems
    }

    /// Returns whether the locked dependencies of a package include `dependency`, in a version that the manifest of the
    /// package allows.
    fn satisfies(&self, locked: &Locked, dependency: &Dependency) -> bool {
        let required = VersionReq::parse(&dependency.req);
        let required =
            required.unwrap_or_else(|error| panic!("{} {}: {error}", dependency.name, dependency.req));
        let is_allowed =
            |version: &str| Version::parse(version).is_ok_and(|version| required.matches(&version));
        locked.dependencies.iter().any(|entry| match entry.split_once(' ') {
            Some((name, version)) => name == dependency.name && is_allowed(version),
            None => {
                *entry == dependency.name
                    && self.package.iter().any(|it| it.name == *entry && is_allowed(&it.version))
            }
        })
    }
}

#[test]
fn lock_files_outside_the_workspace_match_its_manifests() {
    let metadata = metadata();
    let members: Vec<_> = metadata.packages.iter().filter(|package| package.source.is_none()).collect();
    let mut problems = Vec::new();
    let files = sources("Cargo.lock");
    assert!(files.len() > 1, "the only lock file is that of the workspace");
    for (path, text) in files {
        let lock: Lock = toml::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
        for member in &members {
            problems.extend(lock.problems(member).into_iter().map(|problem| format!("{path}: {problem}")));
        }
    }
    report(&problems);
}
