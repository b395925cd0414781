//! `cargo xtask`: commands for developers of the project.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use iswitch_conventions::{Metadata, cargo, metadata, output, root};

const HELP: &str = "\
Checks, tests and benchmarks iSwitch.

Usage: cargo xtask COMMAND

Commands:
  check [CRATE...]   check formatting and house rules, then lint and test the given crates (by default, those
                     whose files differ from the last commit); takes about a minute; run it after each edit
  check --since REV  run check for all crates whose files differ from the commit REV
  test               run all tests, as described in the README
  ci                 run everything that a submission must pass; needs root and installs its requirements
  bench              measure time and instructions of the switch core and of the hot loops
  interfaces         rewrite the snapshots of the public interfaces, after an intended change
  help               print this text
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments[..] {
        ["check", "--since", revision] => changed(revision).and_then(|crates| check(&crates)),
        ["check"] => changed("HEAD").and_then(|crates| check(&crates)),
        ["check", ref crates @ ..] if crates.iter().all(|name| !name.starts_with('-')) => {
            named(crates).and_then(|crates| check(&crates))
        }
        ["test"] => run(cargo().args(["test", "--locked", "--workspace"])),
        ["ci"] => run(Command::new("bash").arg(".ci/run").current_dir(root())),
        ["bench"] => bench(),
        ["interfaces"] => interfaces(),
        ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprint!("{HELP}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cargo xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs a command. The command prints its own error messages.
fn run(command: &mut Command) -> Result<()> {
    let begin = Instant::now();
    let words = command.get_args().map(|word| word.to_string_lossy().into_owned());
    let line: Vec<_> =
        std::iter::once(command.get_program().to_string_lossy().into_owned()).chain(words).collect();
    eprintln!("--- {}", line.join(" "));
    let status = command.status().with_context(|| format!("cannot run {}", line.join(" ")))?;
    ensure!(status.success(), "{} failed: {status}", line.join(" "));
    eprintln!("    {:.0} s", begin.elapsed().as_secs_f64());
    Ok(())
}

fn check(crates: &BTreeSet<String>) -> Result<()> {
    run(cargo().args(["fmt", "--all", "--check"]))?;
    run(cargo().args(["test", "--locked", "--quiet", "--package", "iswitch-conventions"]))?;
    let own = crates.iter().filter(|name| *name != "iswitch-conventions");
    let selection: Vec<&str> = own.flat_map(|name| ["--package", name]).collect();
    if selection.is_empty() {
        eprintln!("no crate has changed files; nothing to lint or test");
        return Ok(());
    }
    let mut lints = cargo();
    lints.args(["clippy", "--locked", "--quiet", "--all-targets"]).args(&selection);
    run(lints.args(["--", "--deny", "warnings"]))?;
    run(cargo().args(["test", "--locked", "--quiet"]).args(&selection))
}

/// Returns the given crate names as a set. Fails if one of them is not a crate of the workspace.
fn named(crates: &[&str]) -> Result<BTreeSet<String>> {
    let metadata = metadata();
    let members = directories(&metadata);
    for name in crates {
        let known: Vec<_> = members.iter().map(|(_, name)| name.as_str()).collect();
        ensure!(known.contains(name), "there is no crate {name:?}, expected one of {}", known.join(", "));
    }
    Ok(crates.iter().map(ToString::to_string).collect())
}

/// Returns the directory and the name of each crate of the workspace.
fn directories(metadata: &Metadata) -> Vec<(PathBuf, String)> {
    let own = metadata.packages.iter().filter(|package| metadata.workspace_members.contains(&package.id));
    own.filter_map(|package| {
        let manifest = Path::new(&package.manifest_path);
        Some((manifest.parent()?.strip_prefix(root()).ok()?.to_owned(), package.name.clone()))
    })
    .collect()
}

/// Returns the crates that contain files that differ from those in a commit, including new files.
fn changed(revision: &str) -> Result<BTreeSet<String>> {
    let git = |arguments: &[&str]| output(Command::new("git").current_dir(root()).args(arguments));
    if !root().join(".git").exists() {
        bail!(
            "the source tree is not a git checkout; name the crates, as in `cargo xtask check iswitch-switch`"
        );
    }
    let differing = git(&["diff", "--name-only", revision]);
    let new = git(&["ls-files", "--others", "--exclude-standard"]);
    let members = directories(&metadata());
    let of = |file: &str| {
        let holders = members.iter().filter(|(directory, _)| Path::new(file).starts_with(directory));
        holders.max_by_key(|(directory, _)| directory.components().count()).map(|(_, name)| name.clone())
    };
    Ok(differing.lines().chain(new.lines()).filter_map(of).collect())
}

fn bench() -> Result<()> {
    run(cargo().args(["bench", "--locked", "--package", "iswitch-testbench"]))?;
    run(cargo().args([
        "run",
        "--locked",
        "--release",
        "--package",
        "iswitch-testbench",
        "--bin",
        "testbench",
        "core",
    ]))
}

fn interfaces() -> Result<()> {
    let mut test = cargo();
    test.args(["test", "--locked", "--quiet", "--package", "iswitch-conventions", "interfaces"]);
    run(test.env("ISWITCH_UPDATE_INTERFACES", "1"))
}
