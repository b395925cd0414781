//! Policies on the command line, and their comparison on the same draws.

use std::fmt::Display;
use std::ops::Range;
use std::path::Path;
use std::str::FromStr;

use anyhow::bail;
use iswitch_cli::learner::{self, check_names};
use iswitch_cli::mean::Mean;
use iswitch_cli::progress::Steps;
use iswitch_learn::algorithms::checkpoint::MODEL_FILE;
use iswitch_manual::{output, print_line};
use serde::Serialize;

use crate::{Saved, Study};

/// A policy that the command line names.
pub trait Contestant: Sized {
    /// Parses the policy's name; a run directory is one too.
    ///
    /// # Errors
    /// If there is no such policy, or its checkpoint cannot be read.
    fn parse(text: &str) -> anyhow::Result<Self>;

    /// Name of the policy in results.
    fn name(&self) -> String;
}

/// The training of a run directory, if `text` is the path of one.
///
/// # Errors
/// If its checkpoint cannot be read.
pub fn saved<S: Study>(text: &str) -> anyhow::Result<Option<Saved<S>>> {
    let path = Path::new(text);
    Ok(if path.join(MODEL_FILE).exists() { Some(Saved::read(path)?) } else { None })
}

/// Name of a policy of a run directory: the path's last part.
pub fn directory_name(text: &str) -> String {
    Path::new(text).file_name().map_or(text.to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Parses the name of a policy without training; `expected` names all that are accepted.
///
/// # Errors
/// If there is none of that name.
pub fn plain<P: FromStr>(text: &str, expected: &str) -> anyhow::Result<P> {
    match text.parse() {
        Ok(policy) => Ok(policy),
        Err(_) if Path::new(text).is_dir() => {
            bail!("policy is {text}, which holds no {MODEL_FILE}: train into it first")
        }
        Err(_) => bail!("policy is {text}, expected {expected}"),
    }
}

/// Policies that run on the same draws.
pub struct Contest<P> {
    policies: Vec<P>,
    /// Names of the policies, all different.
    pub names: Vec<String>,
}

/// One run of a contest.
pub struct Turn<'a, P, C, W> {
    /// The policy that runs.
    pub policy: &'a P,
    /// Place of the policy in the contest.
    pub at: usize,
    /// Name of the policy.
    pub name: &'a str,
    /// Condition of the run.
    pub condition: &'a C,
    /// Number of the draw.
    pub draw: u64,
    /// Whether it is the first draw.
    pub is_first: bool,
    /// The draw.
    pub world: &'a W,
}

/// Runs of one policy under one condition.
#[derive(Clone, Debug)]
pub struct Series<C, T> {
    /// Name of the policy.
    pub policy: String,
    /// Condition of the runs.
    pub condition: C,
    /// Results, by draw.
    pub runs: Vec<T>,
}

impl<P: Contestant> Contest<P> {
    /// One policy.
    ///
    /// # Errors
    /// If there is no such policy.
    pub fn of_one(text: &str) -> anyhow::Result<Self> {
        Self::new(std::slice::from_ref(&text.to_owned()))
    }

    /// Policies of these names.
    ///
    /// # Errors
    /// If one does not exist, or two have the same name.
    pub fn new(texts: &[String]) -> anyhow::Result<Self> {
        let policies: Vec<P> = texts.iter().map(|text| P::parse(text)).collect::<anyhow::Result<_>>()?;
        let names: Vec<_> = policies.iter().map(P::name).collect();
        check_names(&names)?;
        Ok(Self { policies, names })
    }

    /// All policies.
    pub fn policies(&self) -> &[P] {
        &self.policies
    }

    /// Place of the policy that others are compared with: `asked`, or `default` if it is among them, or the first.
    ///
    /// # Errors
    /// If `asked` is not among them.
    pub fn baseline(&self, asked: Option<&str>, default: &str) -> anyhow::Result<usize> {
        learner::baseline(asked, default, &self.names, |text| Ok(P::parse(text)?.name()))
    }

    /// Runs all policies on all draws under all conditions: `prepare` makes a draw, and `run` runs a policy on it and
    /// reports its progress. The results are in the order of the conditions, then of the policies.
    ///
    /// # Errors
    /// The first of `prepare` or `run`.
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
    /// Mean of a number over the runs.
    pub fn mean(&self, of: impl Fn(&T) -> f64) -> Mean {
        Mean::of(&self.runs.iter().map(of).collect::<Vec<_>>())
    }

    /// Mean of a number over the runs, if all of them have it.
    pub fn mean_of_all(&self, of: impl Fn(&T) -> Option<f64>) -> Option<Mean> {
        let values: Option<Vec<f64>> = self.runs.iter().map(of).collect();
        values.map(|values| Mean::of(&values))
    }

    /// Ratios of a number to that of a baseline on the same draws, if all runs have it.
    pub fn ratios(&self, baseline: &Self, of: impl Fn(&T) -> Option<f64>) -> Option<Vec<f64>> {
        let pairs = self.runs.iter().zip(&baseline.runs);
        pairs.map(|(run, base)| Some(of(run)? / of(base)?)).collect()
    }
}

/// Prints the results of a comparison: one JSON object, or a table.
///
/// # Errors
/// If the standard output is closed.
pub fn print<S: Serialize>(
    is_json: bool,
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
    if is_json {
        print_line!("{}", serde_json::to_string(&Object { baseline, results })?)?;
    } else {
        output::print(format_args!("{}", table()))?;
    }
    Ok(())
}
