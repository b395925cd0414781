//! Policies as named on the command line, and their comparison on the same random inputs (draws).

use std::fmt::Display;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use iswitch_cli::learner::{self, check_names};
use iswitch_cli::mean::Mean;
use iswitch_cli::progress::Steps;
use iswitch_learn::algorithms::checkpoint::MODEL_FILE;
use iswitch_manual::{output, print_line};
use serde::Serialize;

use crate::external::External;
use crate::files::write;
use crate::table::Output;
use crate::{Saved, Study};

/// Arguments of the commands that run policies.
#[derive(Args)]
pub struct ResultArgs {
    /// CSV file for the results, with one line per policy and condition
    ///
    /// A condition is a setting under which all policies are compared, such as a load.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
    /// Do not show progress
    #[arg(long, short)]
    pub quiet: bool,
}

/// Short help of an argument that names a policy.
pub const POLICY_HELP: &str = "Policy: its name, or the run directory of a training run";
/// Short help of an argument that names a policy, which may be an external one.
pub const ANY_POLICY_HELP: &str = "Policy: its name, a run directory, or NAME=COMMAND";
/// Short help of an argument that names several policies.
pub const POLICIES_HELP: &str = "Policies to compare: names, run directories, or NAME=COMMAND";

/// Policy as named on the command line.
pub trait Contestant: Sized {
    /// Parses the name of a policy, or the path of a run directory.
    ///
    /// # Errors
    /// Fails if `text` is neither the name of a policy nor the path of a run directory, or if the checkpoint cannot be
    /// read.
    fn parse(text: &str) -> anyhow::Result<Self>;

    /// Returns the name by which results refer to the policy.
    fn name(&self) -> String;

    /// Returns the external policy, if it is one.
    fn external_mut(&mut self) -> Option<&mut External> {
        None
    }

    /// Sets the time limit for the answers from an external policy. Has no effect on other policies.
    #[must_use]
    fn with_answer_timeout(mut self, timeout: Duration) -> Self {
        if let Some(external) = self.external_mut() {
            external.set_answer_timeout(timeout);
        }
        self
    }
}

/// Reads the checkpoint in the run directory `text`. Returns `None` if `text` is not the path of a run directory.
///
/// # Errors
/// Fails if the checkpoint in the run directory cannot be read.
pub fn saved<S: Study>(text: &str) -> anyhow::Result<Option<Saved<S>>> {
    let path = Path::new(text);
    Ok(if path.join(MODEL_FILE).exists() { Some(Saved::read(path)?) } else { None })
}

/// Returns the name of a policy from a run directory: the last component of the path.
pub fn directory_name(text: &str) -> String {
    Path::new(text).file_name().map_or(text.to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Parses the name of a policy that needs no training. `expected` lists all valid names for the error message.
///
/// # Errors
/// Fails if no policy has this name.
pub fn plain<P: FromStr>(text: &str, expected: &str) -> anyhow::Result<P> {
    match text.parse() {
        Ok(policy) => Ok(policy),
        Err(_) if Path::new(text).is_dir() => {
            bail!(
                "policy is {text}, a directory without {MODEL_FILE}; expected the run directory of a training run"
            )
        }
        Err(_) => bail!("policy is {text}, expected {expected}"),
    }
}

/// Set of policies that run on the same draws. A draw is a numbered random input.
pub struct Contest<P> {
    policies: Vec<P>,
    /// Names of the policies, all of them distinct.
    pub names: Vec<String>,
}

/// One run of a contest: one policy on one draw under one condition.
pub struct Turn<'a, P, C, W> {
    /// Policy to run.
    pub policy: &'a P,
    /// Index of the policy in the contest.
    pub at: usize,
    /// Name of the policy.
    pub name: &'a str,
    /// Condition of the run.
    pub condition: &'a C,
    /// Number of the draw.
    pub draw: u64,
    /// Whether this is the first draw.
    pub is_first: bool,
    /// Input for the draw, as created by the `prepare` argument of [`Contest::run`].
    pub world: &'a W,
}

/// Runs of one policy under one condition.
#[derive(Clone, Debug)]
pub struct Series<C, T> {
    /// Name of the policy.
    pub policy: String,
    /// Condition of the runs.
    pub condition: C,
    /// Results of the runs, in the order of the draws.
    pub runs: Vec<T>,
}

impl<P: Contestant> Contest<P> {
    /// Creates a contest with a single policy.
    ///
    /// # Errors
    /// Fails if the policy does not exist.
    pub fn of_one(text: &str) -> anyhow::Result<Self> {
        Self::new(std::slice::from_ref(&text.to_owned()))
    }

    /// Creates a contest of the policies with these names.
    ///
    /// # Errors
    /// Fails if a policy does not exist, or if two policies have the same name.
    pub fn new(texts: &[String]) -> anyhow::Result<Self> {
        let policies: Vec<P> = texts.iter().map(|text| P::parse(text)).collect::<anyhow::Result<_>>()?;
        let names: Vec<_> = policies.iter().map(P::name).collect();
        check_names(&names)?;
        Ok(Self { policies, names })
    }

    /// Sets the time limit for the answers of external policies.
    #[must_use]
    pub fn with_answer_timeout(mut self, timeout: Duration) -> Self {
        let policies = self.policies.into_iter();
        self.policies = policies.map(|policy| policy.with_answer_timeout(timeout)).collect();
        self
    }

    /// Returns all policies.
    pub fn policies(&self) -> &[P] {
        &self.policies
    }

    /// Returns the index of the baseline policy: `asked`, if given; otherwise `default`, if it takes part in the
    /// contest; otherwise the first policy.
    ///
    /// # Errors
    /// Fails if `asked` does not take part in the contest.
    pub fn baseline(&self, asked: Option<&str>, default: &str) -> anyhow::Result<usize> {
        learner::baseline(asked, default, &self.names, |text| Ok(P::parse(text)?.name()))
    }

    /// Runs all policies on all draws under all conditions. `prepare` creates the input for a draw under a condition;
    /// `run` runs a policy on this input and reports the policy's progress. The results are ordered by condition, then
    /// by policy.
    ///
    /// # Errors
    /// Returns the first error of `prepare` or `run`.
    pub fn run<C: Clone + Display, W, T>(
        &self,
        conditions: &[C],
        draws: Range<u64>,
        quiet: bool,
        mut prepare: impl FnMut(&C, u64) -> anyhow::Result<W>,
        mut run: impl FnMut(Turn<'_, P, C, W>, &mut dyn FnMut(&str)) -> anyhow::Result<T>,
    ) -> anyhow::Result<Vec<Series<C, T>>> {
        let each = (conditions.len() * self.policies.len()) as u64;
        let mut progress = Steps::new("runs", draws.end.saturating_sub(draws.start) * each, quiet);
        let mut all = Vec::new();
        for condition in conditions {
            let series = |name: &String| Series {
                policy: name.clone(),
                condition: condition.clone(),
                runs: Vec::new(),
            };
            let mut of_condition: Vec<_> = self.names.iter().map(series).collect();
            for draw in draws.clone() {
                let world = prepare(condition, draw)?;
                let is_first = draw == draws.start;
                for (at, (policy, series)) in self.policies.iter().zip(&mut of_condition).enumerate() {
                    let name = self.names[at].as_str();
                    let label = format!("{condition}draw {draw}, {name}");
                    let turn = Turn { policy, at, name, condition, draw, is_first, world: &world };
                    series.runs.push(run(turn, &mut |text| progress.show(&format!("{label}: {text}")))?);
                    progress.advance(&label);
                }
            }
            all.extend(of_condition);
        }
        progress.finish();
        Ok(all)
    }
}

impl<C, T> Series<C, T> {
    /// Returns the mean of a value over the runs.
    pub fn mean(&self, of: impl Fn(&T) -> f64) -> Mean {
        Mean::of(&self.runs.iter().map(of).collect::<Vec<_>>())
    }

    /// Returns the mean of a value over the runs, or `None` if a run lacks the value.
    pub fn mean_of_all(&self, of: impl Fn(&T) -> Option<f64>) -> Option<Mean> {
        let values: Option<Vec<f64>> = self.runs.iter().map(of).collect();
        values.map(|values| Mean::of(&values))
    }

    /// Returns, for each draw, a value of this policy's run divided by that of the baseline's run. Returns `None` if
    /// any run lacks the value.
    pub fn ratios(&self, baseline: &Self, of: impl Fn(&T) -> Option<f64>) -> Option<Vec<f64>> {
        let pairs = self.runs.iter().zip(&baseline.runs);
        pairs.map(|(run, base)| Some(of(run)? / of(base)?)).collect()
    }
}

impl ResultArgs {
    /// Writes the results as CSV if `--csv` is given.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn write(&self, csv: impl FnOnce() -> Output) -> anyhow::Result<()> {
        match &self.csv {
            Some(path) => write(path, &csv().into_text()),
            None => Ok(()),
        }
    }

    /// Prints the results of a comparison as one JSON object or as a table.
    ///
    /// # Errors
    /// Fails if standard output cannot be written to.
    pub fn print<S: Serialize>(
        &self,
        baseline: Option<&str>,
        results: &[S],
        table: impl FnOnce() -> String,
    ) -> anyhow::Result<()> {
        #[derive(Serialize)]
        struct Object<'a, S> {
            #[serde(skip_serializing_if = "Option::is_none")]
            baseline: Option<&'a str>,
            results: &'a [S],
        }
        if self.json {
            print_line!("{}", serde_json::to_string(&Object { baseline, results })?)?;
        } else {
            output::print(format_args!("{}", table()))?;
        }
        Ok(())
    }

    /// Prints the result of one policy as one JSON object or as text.
    ///
    /// # Errors
    /// Fails if standard output cannot be written to.
    pub fn print_one<S: Serialize>(
        &self,
        result: &S,
        text: impl FnOnce() -> std::io::Result<()>,
    ) -> anyhow::Result<()> {
        if self.json {
            print_line!("{}", serde_json::to_string(result)?)?;
        } else {
            text()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Policy whose result is its input multiplied by its own number.
    struct Times(f64);

    impl Contestant for Times {
        fn parse(text: &str) -> anyhow::Result<Self> {
            plain(text, "a number").map(Self)
        }

        fn name(&self) -> String {
            format!("times-{}", self.0)
        }
    }

    fn contest(policies: &[&str]) -> anyhow::Result<Contest<Times>> {
        Contest::new(&policies.iter().map(|&policy| policy.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn all_policies_run_on_the_same_draws_under_all_conditions() {
        let contest = contest(&["1", "3"]).unwrap();
        let mut prepared = Vec::new();
        let prepare = |condition: &u64, draw| {
            prepared.push((*condition, draw));
            Ok((condition * draw) as f64)
        };
        let runs =
            contest.run(&[10, 100], 1..3, true, prepare, |turn, _| Ok(turn.world * turn.policy.0)).unwrap();
        let found: Vec<_> =
            runs.iter().map(|it| (it.condition, it.policy.as_str(), it.runs.as_slice())).collect();
        let want: [(u64, &str, &[f64]); 4] = [
            (10, "times-1", &[10.0, 20.0]),
            (10, "times-3", &[30.0, 60.0]),
            (100, "times-1", &[100.0, 200.0]),
            (100, "times-3", &[300.0, 600.0]),
        ];
        assert_eq!(found, want);
        assert_eq!(prepared, [(10, 1), (10, 2), (100, 1), (100, 2)]);
        assert_eq!(runs[1].ratios(&runs[0], |run| Some(*run)), Some(vec![3.0, 3.0]));
        assert_eq!(runs[1].ratios(&runs[0], |run| (*run < 50.0).then_some(*run)), None);
        assert_eq!(runs[1].mean(|run| *run).mean, 45.0);
        assert!(runs[1].mean_of_all(|run| (*run < 50.0).then_some(*run)).is_none());
    }

    #[test]
    fn incomparable_policies_are_reported_by_name() {
        let text = |policies: &[&str]| contest(policies).err().unwrap().to_string();
        assert_eq!(text(&["1", "one"]), "policy is one, expected a number");
        assert_eq!(text(&["2", "2"]), "two policies are named times-2; give each policy a different name");
        let directory = tempfile::tempdir().unwrap();
        let name = directory.path().display().to_string();
        assert_eq!(
            text(&[&name]),
            format!(
                "policy is {name}, a directory without model.safetensors; expected the run directory of a training run"
            )
        );
        let contest = contest(&["1", "2"]).unwrap();
        assert_eq!(contest.baseline(None, "times-2").unwrap(), 1);
        assert_eq!(contest.baseline(None, "times-9").unwrap(), 0);
        assert_eq!(contest.baseline(Some("2"), "times-1").unwrap(), 1);
        let error = contest.baseline(Some("3"), "times-1").unwrap_err().to_string();
        assert_eq!(error, "baseline is 3, expected one of the policies compared: times-1, times-2");
    }
}
