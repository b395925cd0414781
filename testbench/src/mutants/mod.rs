//! Mutation tests: bugs that are planted in the real switch and the real worker, one at a time, and that simulations
//! must find (DeMillo, Lipton and Sayward, "Hints on Test Data Selection", 1978).
//!
//! Mutants test the checker, because a checker that never reports a violation may check nothing. Each mutant is a file
//! in `testbench/mutants/`; no mutant changes the checker itself. The simulations do not cover bugs that only an
//! attacker can exploit: the file of such a mutant names the test of the switch core that must fail.

mod copy;
mod trial;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

pub use copy::Sources;
pub use trial::{Bench, Outcome, Seeds, Trial};

use iswitch_simulation::JobMode;

/// Directory of the mutants, relative to the root of the workspace.
pub const DIRECTORY: &str = "testbench/mutants";
/// Directories of the files that mutants may change: the protocol as the switch and the workers run it.
const PLACES: [&str; 3] = ["daemon/switch/src/", "worker-lib/worker/src/worker/", "protocol/src/"];

/// Planted bug: a piece of source text, and its replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutant {
    /// Name of the mutant's file, without `.toml`.
    pub name: String,
    /// Content of the file.
    pub bug: Bug,
}

/// Content of a mutant's file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bug {
    /// Description of the bug.
    pub what: String,
    /// Requirement of the specification that the bug violates, such as `R-1`.
    pub breaks: String,
    /// Kind of job in which the bug occurs.
    #[serde(default)]
    pub mode: JobMode,
    /// Seed of a simulation that reveals the bug; it is tried before all other seeds. It is set for bugs that few seeds
    /// reveal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Test of the switch core's suite that must fail, such as `strangers::an_ack_is_never_answered`. If it is not set,
    /// simulations must find the bug.
    #[serde(default)]
    pub test: Option<String>,
    /// Path of the source file, relative to the root of the workspace.
    pub file: String,
    /// Text that occurs exactly once in the file.
    pub search: String,
    /// Replacement of that text.
    pub replace: String,
}

impl Mutant {
    /// Reads all mutants of a workspace. Mutants of the same source file are adjacent, so that little is rebuilt
    /// between them.
    ///
    /// # Errors
    /// Fails if a file is not a valid mutant. The error names the file and the reason.
    pub fn load_all(workspace: &Path) -> Result<Vec<Self>> {
        let directory = workspace.join(DIRECTORY);
        let entries =
            fs::read_dir(&directory).with_context(|| format!("cannot read {}", directory.display()))?;
        let mut mutants = Vec::new();
        for entry in entries {
            let path = entry.with_context(|| format!("cannot read {}", directory.display()))?.path();
            mutants.push(Self::load(&path).with_context(|| format!("cannot read {}", path.display()))?);
        }
        mutants.sort_by(|a, b| (&a.bug.file, &a.name).cmp(&(&b.bug.file, &b.name)));
        Ok(mutants)
    }

    fn load(path: &Path) -> Result<Self> {
        let name =
            path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".toml"));
        let name = name.context("its name does not end with .toml")?.to_owned();
        let bug: Bug = toml::from_str(&fs::read_to_string(path)?)?;
        let Bug { file, search, replace, .. } = &bug;
        ensure!(
            bug.seed.is_none() || bug.test.is_none(),
            "seed and test are both set, expected only one: set test for bugs that simulations cannot find"
        );
        let is_in_place = PLACES.iter().any(|place| file.starts_with(place)) && !file.contains("..");
        ensure!(is_in_place, "file is {file:?}, expected a file in {}", PLACES.join(", "));
        ensure!(!search.is_empty(), "search is empty, expected text that occurs in {file}");
        ensure!(search != replace, "replace equals search, expected different text");
        Ok(Self { name, bug })
    }

    /// Returns the source text of the mutant's file with the bug in it.
    ///
    /// # Errors
    /// Fails if the text to replace does not occur exactly once.
    pub fn apply(&self, source: &str) -> Result<String> {
        let Bug { file, search, replace, .. } = &self.bug;
        match source.matches(search.as_str()).count() {
            1 => Ok(source.replacen(search.as_str(), replace, 1)),
            count => bail!(
                "`search` of {DIRECTORY}/{}.toml occurs {count} times in {file}, expected 1; update the mutant to \
                 match the code",
                self.name
            ),
        }
    }
}

/// Returns the mutants with the given names, or all mutants if there are no names.
///
/// # Errors
/// Fails if no mutant has one of the names.
pub fn select(mutants: Vec<Mutant>, names: &[String]) -> Result<Vec<Mutant>> {
    for name in names {
        let known: Vec<_> = mutants.iter().map(|mutant| mutant.name.as_str()).collect();
        ensure!(
            known.contains(&name.as_str()),
            "unknown mutant {name:?}, expected one of {}",
            known.join(", ")
        );
    }
    let is_selected = |mutant: &Mutant| names.is_empty() || names.contains(&mutant.name);
    Ok(mutants.into_iter().filter(is_selected).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutant(search: &str) -> Mutant {
        let bug = Bug {
            what: "A count is too high.".into(),
            breaks: "R-1".into(),
            mode: JobMode::Synchronous,
            seed: None,
            test: None,
            file: "daemon/switch/src/job/mod.rs".into(),
            search: search.into(),
            replace: "a + 1".into(),
        };
        Mutant { name: "count".into(), bug }
    }

    #[test]
    fn a_replacement_requires_exactly_one_match() {
        assert_eq!(mutant("a").apply("let x = a;").unwrap(), "let x = a + 1;");
        for (source, count) in [("let x = b;", "0 times"), ("a - a", "2 times")] {
            let error = mutant("a").apply(source).unwrap_err().to_string();
            assert!(error.contains(count) && error.contains("count.toml"), "{error}");
        }
    }

    #[test]
    fn an_invalid_description_is_refused_with_the_name_of_its_field() {
        let directory = iswitch_harness::scratch::directory();
        let path = directory.path().join("mutant.toml");
        let text = |file: &str, more: &str| {
            format!("what = 'w'\nbreaks = 'R-1'\nfile = '{file}'\nsearch = 'a'\nreplace = 'b'\n{more}")
        };
        let load = |text: String| {
            fs::write(&path, text).unwrap();
            Mutant::load(&path).map_err(|error| format!("{error:#}"))
        };
        let good = "worker-lib/worker/src/worker/state.rs";
        assert_eq!(load(text(good, "mode = 'asynchronous'")).unwrap().bug.mode, JobMode::Asynchronous);
        for (text, field) in [
            (text("testbench/simulation/src/checker.rs", ""), "file is"),
            (text("daemon/switch/src/../../../x.rs", ""), "file is"),
            (text(good, "mode = 'other'"), "mode"),
            (text(good, "seed = -1"), "seed"),
            (text(good, "seed = 1\ntest = 'a::b'"), "seed and test are both set"),
            (text(good, "rule = 'x'"), "rule"),
            (text(good, "").replace("'b'", "'a'"), "replace"),
            (text(good, "").replace("'a'", "''"), "search"),
            (text(good, "").replace("what", "why"), "why"),
        ] {
            let error = load(text.clone()).unwrap_err();
            assert!(error.contains(field), "{text}\n{error}");
        }
    }
}
