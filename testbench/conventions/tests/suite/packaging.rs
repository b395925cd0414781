//! Checks of the scripts in `packaging/`: shellcheck accepts them, and the release notes match the changelog section.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use iswitch_conventions::{entries, report, root};

/// Changelog with two releases, in the format of Keep a Changelog.
const CHANGELOG: &str = "\
# Changelog

## [Unreleased]

## [0.2.0] - 2027-01-02

### Added
- `iswitchctl` ([Operations](docs/operations.md#drain)), [RFC](https://www.rfc-editor.org/rfc/rfc9000), [up](#added).
- A line
  of two.

## [0.1.0] - 2026-12-01
- The first release ([rack](./docs/guide/rack.md)).
";

/// Returns the paths of the shell scripts below a directory: the files whose first line begins with `#!` and names a
/// shell.
fn scripts(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for path in entries(directory) {
        if path.is_dir() {
            found.extend(scripts(&path));
            continue;
        }
        let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let first = String::from_utf8_lossy(bytes.split(|&byte| byte == b'\n').next().unwrap_or_default())
            .into_owned();
        if first.starts_with("#!") && (first.ends_with("sh") || first.contains("sh ")) {
            found.push(path.display().to_string());
        }
    }
    found
}

#[test]
fn shellcheck_accepts_the_scripts() {
    let mut paths = scripts(&root().join("packaging"));
    paths.extend(scripts(&root().join(".ci")));
    for expected in ["packaging/deb/build", "packaging/deb/debian/iswitchd.postrm", ".ci/run"] {
        assert!(
            paths.iter().any(|path| path.ends_with(expected)),
            "{expected} must be among the scripts {paths:?}"
        );
    }
    match Command::new("shellcheck").args(&paths).output() {
        Ok(output) if output.status.success() => {}
        Ok(output) => report(&[String::from_utf8_lossy(&output.stdout).into_owned()]),
        Err(_) => {
            let line = "SKIPPED shellcheck_accepts_the_scripts: shellcheck is not installed\n";
            assert!(std::env::var_os("ISWITCH_REQUIRE_ALL_TESTS").is_none(), "{line}");
            // The line is written directly, because the test harness captures the output of the print macros.
            std::io::stderr().write_all(line.as_bytes()).expect("standard error must be writable");
        }
    }
}

/// Extracts the release notes of a version from a changelog.
fn notes(version: &str, changelog: &str) -> Output {
    let mut script = Command::new(root().join("packaging/release/notes"));
    script.args([version, "/dev/stdin"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = script.spawn().expect("the script must start");
    let mut input = process.stdin.take().expect("standard input is a pipe");
    // A script that has already failed reads no input.
    let _ = input.write_all(changelog.as_bytes());
    drop(input);
    process.wait_with_output().expect("the script must end")
}

#[test]
fn release_notes_are_the_section_of_the_version() {
    let printed = |version| {
        let output = notes(version, CHANGELOG);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("the notes must be UTF-8")
    };
    let tree = |version| format!("https://github.com/iswitch-linux/iswitch/blob/v{version}");
    let expected = format!(
        "### Added\n- `iswitchctl` ([Operations]({}/docs/operations.md#drain)), [RFC]\
         (https://www.rfc-editor.org/rfc/rfc9000), [up](#added).\n- A line\n  of two.\n",
        tree("0.2.0")
    );
    assert_eq!(printed("0.2.0"), expected);
    let expected = format!("- The first release ([rack]({}/docs/guide/rack.md)).\n", tree("0.1.0"));
    assert_eq!(printed("0.1.0"), expected);
}

#[test]
fn release_notes_of_a_missing_or_empty_section_are_an_error() {
    let refused = |version, changelog: &str, reason: &str| {
        let output = notes(version, changelog);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
        assert!(error.contains(version) && error.contains(reason), "{error}");
    };
    // A dot in a version matches only a dot, not any character.
    refused("0.2x0", CHANGELOG, "has 0 sections");
    refused("0.2", CHANGELOG, "has 0 sections");
    refused("Unreleased", CHANGELOG, "is empty");
    refused("0.1.0", &format!("{CHANGELOG}\n## [0.1.0]\n- Twice.\n"), "has 2 sections");
}
