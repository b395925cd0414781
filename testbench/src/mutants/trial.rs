//! One trial of a mutant: plants the bug, builds the simulation or the core's tests with it, and runs them to see
//! whether they find it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Bug, Mutant, Sources};
use iswitch_harness::binaries::executable;
use iswitch_simulation::JobMode;
use iswitch_simulation::checker::Rule;

/// Profile in the workspace's manifest that minimizes the sum of build time and run time.
const PROFILE: &str = "mutants";
/// Name of the simulation's program.
const SIMULATE: &str = "simulate";
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Package and name of the tests for bugs that simulations cannot find.
const TEST_PACKAGE: &str = "iswitch-switch";
const TEST_SUITE: &str = "suite";
/// Exit status of a test program if a test has failed.
const TEST_FAILED: i32 = 101;
/// Maximum number of lines of a program's error output that are shown.
const SHOWN_LINES: usize = 20;

/// Environment in which mutants are tried.
#[derive(Debug)]
pub struct Bench {
    sources: Sources,
    /// Target directory of the copy, so that dependencies are built once. Nothing else is built there: cargo cannot
    /// distinguish a package of the copy from the same package of the workspace, and would use a mutant's build for it.
    target: PathBuf,
    /// Directory for the output of programs.
    output: PathBuf,
    /// Simulation built without a bug.
    control: PathBuf,
    seeds: Seeds,
    time_limit: Duration,
}

/// Number of simulations per mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Seeds {
    /// Number of simulations per mutant for synchronous jobs.
    pub synchronous: u64,
    /// Number of simulations per mutant for asynchronous jobs.
    pub asynchronous: u64,
}

impl Default for Seeds {
    /// Returns numbers of seeds that are several times those needed to find the hardest mutants. The number for
    /// asynchronous jobs is lower, because their simulations take longer.
    fn default() -> Self {
        Self { synchronous: 150_000, asynchronous: 300 }
    }
}

impl Seeds {
    /// Returns the same number of seeds for synchronous and asynchronous jobs.
    pub fn of_each(count: u64) -> Self {
        Self { synchronous: count, asynchronous: count }
    }

    fn of(self, mode: JobMode) -> u64 {
        match mode {
            JobMode::Synchronous => self.synchronous,
            JobMode::Asynchronous => self.asynchronous,
        }
    }
}

/// Result of testing a mutant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trial {
    /// Outcome of the trial.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Time to build, in seconds.
    pub build_seconds: f64,
    /// Time to simulate or to run the test, in seconds.
    pub run_seconds: f64,
}

/// Outcome of a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// A simulation violated a rule.
    Found {
        /// Seed of the simulation.
        seed: u64,
        /// Number of simulations up to and including this one.
        seeds: u64,
        /// Rule that was violated, as the checker names it.
        rule: Rule,
        /// Description of the violation by the checker.
        detail: String,
    },
    /// The test of the core failed.
    Failing {
        /// Name of the test.
        test: String,
    },
    /// No simulation violated a rule.
    Survived {
        /// Number of simulations.
        seeds: u64,
    },
    /// The test of the core passed.
    Passing {
        /// Name of the test.
        test: String,
    },
    /// The trial gave no result, because the mutant does not fit the source, does not compile, or the simulation did
    /// not finish.
    Failed {
        /// Reason.
        error: String,
    },
}

/// Part of the output of `simulate --json` that a trial needs.
#[derive(Debug, Deserialize)]
struct Search {
    first: u64,
    seeds: u64,
    violation: Option<Found>,
}

#[derive(Debug, Deserialize)]
struct Found {
    seed: u64,
    rule: Rule,
    detail: String,
}

impl Trial {
    /// Returns whether a simulation or a test has found the bug.
    pub fn is_found(&self) -> bool {
        matches!(self.outcome, Outcome::Found { .. } | Outcome::Failing { .. })
    }

    /// Returns whether a trial without a bug was completed and found no violation.
    pub fn is_clean(&self) -> bool {
        matches!(self.outcome, Outcome::Survived { .. } | Outcome::Passing { .. })
    }
}

impl Bench {
    /// Copies the sources of a workspace. Each mutant is then tested with the given number of seeds for at most
    /// `time_limit`.
    ///
    /// # Errors
    /// Fails if the sources cannot be copied.
    pub fn new(workspace: &Path, seeds: Seeds, time_limit: Duration) -> Result<Self> {
        let scratch = target_directory(workspace)?.join("mutation");
        let sources = Sources::copy(workspace, &scratch.join("sources"))?;
        let output = scratch.join("output");
        fs::create_dir_all(&output).with_context(|| format!("cannot create {}", output.display()))?;
        let control = output.join("control");
        Ok(Self { sources, target: scratch.join("target"), output, control, seeds, time_limit })
    }

    /// Builds the simulation with the unchanged sources, and returns the build time in seconds. A seed that violates a
    /// rule both with a bug and in this build does not show that the bug was found.
    ///
    /// # Errors
    /// Fails if the simulation does not build.
    pub fn prepare_control(&self) -> Result<f64> {
        let (program, seconds) = self.build_simulation()?;
        fs::copy(&program, &self.control).with_context(|| format!("cannot copy {}", program.display()))?;
        Ok(seconds)
    }

    fn build_simulation(&self) -> Result<(PathBuf, f64)> {
        self.build(&["-p", "iswitch-simulation", "--bin", SIMULATE], SIMULATE)
    }

    /// Builds the simulation with a bug, and searches for a seed that reveals it, starting with the recorded seed.
    fn search(&self, bug: &Bug) -> Result<Trial> {
        let (program, build_seconds) = self.build_simulation()?;
        let begin = Instant::now();
        let recorded = bug.seed.map(|seed| self.simulate(&program, bug.mode, &["--seed", &seed.to_string()]));
        let outcome = match recorded.transpose()? {
            Some(found @ Outcome::Found { .. }) => found,
            _ => self.simulate(&program, bug.mode, &["--seeds", &self.seeds.of(bug.mode).to_string()])?,
        };
        if let Outcome::Found { seed, .. } = outcome {
            let control = self.simulate(&self.control, bug.mode, &["--seed", &seed.to_string()])?;
            let is_clean = matches!(control, Outcome::Survived { .. });
            ensure!(is_clean, "seed {seed} violates a rule even without the bug: {control:?}");
        }
        Ok(Trial { outcome, build_seconds, run_seconds: begin.elapsed().as_secs_f64() })
    }

    /// Builds the core's tests with the current sources of the copy, and runs one of them.
    ///
    /// # Errors
    /// Fails if the build fails or the test gives no result. A failing test is not an error.
    pub fn control_test(&self, test: &str) -> Result<Trial> {
        let target = ["-p", TEST_PACKAGE, "--test", TEST_SUITE];
        let (program, build_seconds) = self.build(&target, TEST_SUITE)?;
        let (outcome, run_seconds) = self.run_test(&program, test)?;
        Ok(Trial { outcome, build_seconds, run_seconds })
    }

    /// Plants a bug, then runs the simulations or the test for it. The copy is restored afterwards.
    ///
    /// # Errors
    /// Fails if the copy cannot be restored.
    pub fn attempt(&self, mutant: &Mutant) -> Result<Trial> {
        let trial = self.sources.plant(mutant).and_then(|()| match &mutant.bug.test {
            None => self.search(&mutant.bug),
            Some(test) => self.control_test(test),
        });
        self.sources.restore(&mutant.bug.file)?;
        Ok(trial.unwrap_or_else(|error| Trial {
            outcome: Outcome::Failed { error: format!("{error:#}") },
            build_seconds: 0.0,
            run_seconds: 0.0,
        }))
    }

    /// Builds one target. Returns the path of the program with the given name and the seconds that the build took.
    fn build(&self, target: &[&str], name: &str) -> Result<(PathBuf, f64)> {
        let begin = Instant::now();
        let mut command = cargo();
        command.args(["build", "--locked", "--profile", PROFILE, "--message-format=json-render-diagnostics"]);
        command.args(target).arg("--target-dir").arg(&self.target);
        command.current_dir(self.sources.directory());
        let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "the build failed:\n{}", last_lines(&errors));
        let messages = String::from_utf8_lossy(&output.stdout);
        let program = messages.lines().filter_map(executable).find(|(built, _)| built == name);
        let (_, program) = program.with_context(|| format!("cargo did not build a program {name}"))?;
        Ok((program, begin.elapsed().as_secs_f64()))
    }

    fn run_test(&self, program: &Path, test: &str) -> Result<(Outcome, f64)> {
        let begin = Instant::now();
        let (results, errors) = (self.output.join("results"), self.output.join("errors"));
        let mut command = Command::new(program);
        command.args(["--exact", test]).current_dir(self.sources.directory());
        command.stdin(Stdio::null()).stdout(File::create(&results)?).stderr(File::create(&errors)?);
        let status = run_for(&mut command, self.time_limit)?;
        let results = fs::read_to_string(&results).context("cannot read the output of the tests")?;
        ensure!(results.contains("running 1 test\n"), "{TEST_PACKAGE} has no test {test}: {status}");
        let test = test.to_owned();
        let outcome = match status.code() {
            Some(0) => Outcome::Passing { test },
            Some(TEST_FAILED) => Outcome::Failing { test },
            _ => bail!("the test ended without a result: {status}"),
        };
        Ok((outcome, begin.elapsed().as_secs_f64()))
    }

    fn simulate(&self, program: &Path, mode: JobMode, seeds: &[&str]) -> Result<Outcome> {
        let (results, errors) = (self.output.join("results"), self.output.join("errors"));
        let mut command = Command::new(program);
        command.args(["--json", "--mode", &mode.to_string()]).args(seeds);
        command.stdin(Stdio::null()).stdout(File::create(&results)?).stderr(File::create(&errors)?);
        let status = run_for(&mut command, self.time_limit)?;
        let results = fs::read_to_string(&results).context("cannot read the output of the simulation")?;
        let Ok(search) = serde_json::from_str::<Search>(&results) else {
            let errors = fs::read(&errors).context("cannot read the errors of the simulation")?;
            let errors = String::from_utf8_lossy(&errors);
            bail!("the simulation ended without a result: {status}\n{}", last_lines(&errors));
        };
        search.outcome()
    }
}

impl Search {
    fn outcome(self) -> Result<Outcome> {
        let Some(Found { seed, rule, detail }) = self.violation else {
            return Ok(Outcome::Survived { seeds: self.seeds });
        };
        // A panic shows that the code itself detects the bug, not that the checker does.
        ensure!(
            rule != Rule::Panic,
            "seed {seed} panicked, expected the checker to detect the bug before the panic: {detail}"
        );
        Ok(Outcome::Found { seed, seeds: seed - self.first + 1, rule, detail })
    }
}

/// Returns a command for the cargo that started this program or, if no cargo did, for the one in the search path.
fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Returns the target directory of a workspace.
fn target_directory(workspace: &Path) -> Result<PathBuf> {
    let mut command = cargo();
    command.args(["metadata", "--format-version", "1", "--no-deps", "--locked"]).current_dir(workspace);
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim());
    let metadata: Value =
        serde_json::from_slice(&output.stdout).context("cannot read the output of cargo metadata")?;
    let directory = metadata["target_directory"]
        .as_str()
        .context("the output of cargo metadata lacks target_directory")?;
    Ok(directory.into())
}

/// Runs a program until it ends. If it exceeds the time limit, kills it and returns an error.
fn run_for(command: &mut Command, limit: Duration) -> Result<ExitStatus> {
    let begin = Instant::now();
    let mut child = command.spawn().with_context(|| format!("cannot run {command:?}"))?;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if begin.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            bail!("{} did not exit within {limit:?}", command.get_program().to_string_lossy());
        }
        sleep(POLL_INTERVAL);
    }
}

fn last_lines(text: &str) -> String {
    let lines: Vec<_> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(json: &str) -> Result<Outcome> {
        serde_json::from_str::<Search>(json)?.outcome()
    }

    #[test]
    fn the_output_of_a_simulation_is_parsed() {
        let survived = outcome(r#"{"first": 5, "seeds": 20, "violation": null, "total": {}}"#).unwrap();
        assert_eq!(survived, Outcome::Survived { seeds: 20 });
        let violation = |rule: &str| {
            let violation = serde_json::json!({ "seed": 7, "rule": rule, "detail": "d" });
            serde_json::json!({ "first": 5, "seeds": 20, "violation": violation }).to_string()
        };
        let found = Outcome::Found { seed: 7, seeds: 3, rule: Rule::Sum, detail: "d".into() };
        assert_eq!(outcome(&violation("sum")).unwrap(), found);
        outcome(&violation("panic")).unwrap_err();
    }

    #[test]
    fn a_hanging_program_is_killed() {
        let error = run_for(Command::new("sleep").arg("60"), Duration::from_millis(20)).unwrap_err();
        assert!(error.to_string().contains("20ms"), "{error}");
        assert!(run_for(&mut Command::new("true"), Duration::from_secs(60)).unwrap().success());
    }
}
