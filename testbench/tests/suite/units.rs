//! Tests of the systemd units: whether their security exposure is low, and whether systemd accepts them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use iswitch_harness::requirements::programs;

/// Maximum exposure of a unit, in tenths of a point. `systemd-analyze security` reports values from 0 (none) to 10
/// points.
const EXPOSURE_MAX_TENTHS: u32 = 25;

/// Returns all units of the project.
fn units() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the workspace");
    let mut units = Vec::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).expect("the tree is readable").flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let is_source = name != "target" && !name.to_string_lossy().starts_with('.');
            if path.is_dir() && is_source {
                directories.push(path);
            } else if path.extension().is_some_and(|it| it == "service") {
                units.push(path);
            }
        }
    }
    assert!(units.len() >= 3, "{units:?}");
    units
}

fn analyze(arguments: &[&str], unit: &Path) {
    let output = Command::new("systemd-analyze").args(arguments).arg(unit).output().expect("it must start");
    let text =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success(), "{}: {text}", unit.display());
}

#[test]
fn units_stay_below_the_exposure_limit() {
    if !programs("units_stay_below_the_exposure_limit", &["systemd-analyze"]) {
        return;
    }
    let threshold = format!("--threshold={EXPOSURE_MAX_TENTHS}");
    for unit in units() {
        analyze(&["security", "--offline=yes", "--no-pager", &threshold], &unit);
    }
}

#[test]
fn systemd_accepts_the_units_without_warnings() {
    if !programs("systemd_accepts_the_units_without_warnings", &["systemd-analyze"]) {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory must be creatable");
    for unit in units() {
        // The programs are not installed on this machine, so `/bin/true` stands in for them.
        let text = fs::read_to_string(&unit).expect("the unit must be readable");
        let line = |line: &str| {
            let command = line.split_once('=').filter(|(name, _)| ["ExecStart", "ExecReload"].contains(name));
            match command.and_then(|(name, command)| Some((name, command.split_once(' ')?.1))) {
                Some((name, arguments)) => format!("{name}=/bin/true {arguments}\n"),
                None => format!("{line}\n"),
            }
        };
        let copy = directory.path().join(unit.file_name().expect("a unit must have a name"));
        fs::write(&copy, text.lines().map(line).collect::<String>()).expect("the copy must be writable");
        analyze(&["verify", "--man=no", "--recursive-errors=no"], &copy);
    }
}
