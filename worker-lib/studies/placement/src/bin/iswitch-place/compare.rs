//! `iswitch place compare`: compares the results of several policies on the same draws.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use iswitch_placement::policy::PolicySpec;
use iswitch_study::contest::{Contest, POLICIES_HELP};
use iswitch_study::external::{EXTERNAL_HELP, ExternalArgs};
use iswitch_study::files::write;

use super::evaluate::scaled;
use super::output::OutputArgs;
use super::plots;
use super::results::{Ratio, Summary};
use super::rules::Saving;
use super::runs::{Recording, Runs};
use super::source::POLICIES;
use super::workload::{Condition, Workload, WorkloadArgs};
use super::{DAY_S, HOUR_S};
use iswitch_cli::files::make_directory;
use iswitch_cli::learner::repeated;

/// Default baseline of the ratios.
const BASELINE: &str = "random";

/// Arguments of `iswitch place compare`.
#[derive(Args)]
pub(crate) struct CompareArgs {
    #[arg(
        value_name = "POLICY",
        default_values_t = PolicySpec::all().map(|policy| policy.to_string()),
        help = POLICIES_HELP,
        long_help = format!("Policies to compare: {POLICIES}; or {EXTERNAL_HELP}")
    )]
    policies: Vec<String>,
    #[command(flatten)]
    workload: WorkloadArgs,
    /// Failure-rate factors to compare, instead of a single --rate-factor
    #[arg(
        long,
        value_name = "TIMES,...",
        value_delimiter = ',',
        conflicts_with = "rate_factor",
        allow_negative_numbers = true
    )]
    rate_factors: Vec<f64>,
    /// Checkpoint settings to compare, instead of a single --checkpoint
    #[arg(
        long,
        value_name = "WHEN,...",
        value_delimiter = ',',
        conflicts_with = "checkpoint",
        allow_negative_numbers = true
    )]
    checkpoints: Vec<Saving>,
    /// Baseline policy for the ratios of makespans and of completion times
    ///
    /// In each draw, the makespan and the mean completion time (JCT) of every policy are divided by those of the
    /// baseline. The default is `random` if it is among the policies, otherwise the first policy.
    #[arg(long, value_name = "POLICY")]
    baseline: Option<String>,
    /// Directory in which to write figures of makespans
    ///
    /// makespan-rate.svg shows makespans as a function of --rate-factors. With several --checkpoints, the command
    /// writes a separate makespan-rate-WHEN.svg for each of them. makespan-checkpoint.svg shows makespans as a function
    /// of --checkpoints. With several --rate-factors, the command writes a separate makespan-checkpoint-xTIMES.svg for
    /// each of them.
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
    #[command(flatten)]
    external: ExternalArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Conditions under which the policies are compared.
struct Sweep {
    factors: Vec<f64>,
    savings: Vec<Saving>,
}

/// Compares policies.
pub(crate) fn run(args: &CompareArgs) -> anyhow::Result<ExitCode> {
    let contest = Contest::new(&args.policies)?.with_answer_timeout(args.external.answer_timeout());
    let baseline = contest.baseline(args.baseline.as_deref(), BASELINE)?;
    // The default setting may not fit the other options: Young and Daly's interval needs checkpoints that take time.
    let workload = args.workload.load_with(args.checkpoints.first().copied())?;
    let sweep = Sweep::of(args, workload.condition())?;
    let runs =
        Runs::of(&contest, &workload, &sweep.conditions(), Recording::default(), args.output.results.quiet)?;
    let names = &contest.names;
    let groups = runs.policies.chunks(names.len());
    let summaries: Vec<_> = groups
        .flat_map(|group| group.iter().map(|runs| Summary::new(runs, Some(&group[baseline]))))
        .collect();
    args.output.write(runs, &summaries)?;
    if let Some(directory) = &args.plots {
        sweep.draw(directory, &summaries, names)?;
    }
    let baseline = &names[baseline];
    args.output
        .results
        .print(Some(baseline), &summaries, || table(&workload, baseline, summaries.chunks(names.len())))?;
    Ok(ExitCode::SUCCESS)
}

impl Sweep {
    fn of(args: &CompareArgs, condition: Condition) -> anyhow::Result<Self> {
        let sweep = Self {
            factors: some_or(&args.rate_factors, condition.rate_factor),
            savings: some_or(&args.checkpoints, condition.saving),
        };
        if let Some(factor) = repeated(&sweep.factors) {
            bail!("--rate-factors: {factor} appears twice");
        }
        if let Some(saving) = repeated(&sweep.savings) {
            bail!("--checkpoints: {saving} appears twice");
        }
        if args.plots.is_some() && sweep.conditions().len() == 1 {
            bail!("--plots needs two or more --rate-factors or --checkpoints to plot makespans against");
        }
        Ok(sweep)
    }

    fn conditions(&self) -> Vec<Condition> {
        let with = |saving| self.factors.iter().map(move |factor| Condition { rate_factor: *factor, saving });
        self.savings.iter().copied().flat_map(with).collect()
    }

    fn draw(&self, directory: &Path, summaries: &[Summary], names: &[String]) -> anyhow::Result<()> {
        make_directory(directory)?;
        let (factors, savings) = (&self.factors, &self.savings);
        if factors.len() > 1 {
            for saving in savings {
                let file = match savings.len() {
                    1 => "makespan-rate.svg".to_owned(),
                    _ => format!("makespan-rate-{saving}.svg"),
                };
                write(&directory.join(file), &plots::over_rates(summaries, names, factors, *saving))?;
            }
        }
        if savings.len() > 1 {
            for factor in factors {
                let file = match factors.len() {
                    1 => "makespan-checkpoint.svg".to_owned(),
                    _ => format!("makespan-checkpoint-x{factor}.svg"),
                };
                write(&directory.join(file), &plots::over_checkpoints(summaries, names, savings, *factor))?;
            }
        }
        Ok(())
    }
}

fn some_or<T: Clone>(some: &[T], other: T) -> Vec<T> {
    if some.is_empty() { vec![other] } else { some.to_vec() }
}

fn table<'a>(workload: &Workload, baseline: &str, groups: impl Iterator<Item = &'a [Summary]>) -> String {
    let mut text = format!("{}\n", workload.describe());
    let mut has_unfinished = false;
    for group in groups {
        let width = group.iter().map(|summary| summary.policy.len()).max().unwrap_or(0).max(6);
        if let Some(first) = group.first() {
            let (factor, checkpoint) = (first.rate_factor, &first.checkpoint);
            let _ = writeln!(text, "\nfailure-rate factor {factor}; checkpoint {checkpoint}");
        }
        let _ = writeln!(
            text,
            "{:width$}  {:>16}  {:>19}  {:>16} {:>8} {:>8} {:>8}  {:>7}  {:>9} {:>9}  {:>5}  {:>6}  {:>5}",
            "policy",
            "makespan (d)",
            format!("/ {baseline}"),
            "JCT (h)",
            "p50",
            "p95",
            "p99",
            "stopped",
            "lost (h)",
            "idle (h)",
            "used",
            "ETTR",
            "left"
        );
        group.iter().for_each(|summary| line(&mut text, width, summary));
        has_unfinished |= group.iter().any(|summary| summary.unfinished.mean > 0.0);
    }
    if has_unfinished {
        text += "\nleft: jobs per draw that were incomplete at the horizon; the true makespan is then longer, and JCT \
                 excludes them\n";
    }
    text
}

fn line(text: &mut String, width: usize, it: &Summary) {
    let hours = |mean: Option<iswitch_cli::mean::Mean>| {
        mean.map_or("-".to_owned(), |mean| format!("{:.1}", scaled(mean, HOUR_S).mean))
    };
    let _ = writeln!(
        text,
        "{:width$}  {:>16}  {:>19}  {:>16} {:>8} {:>8} {:>8}  {:7.1}  {:9.1} {:9.0}  {:5.3}  {:>6}  {:5.1}",
        it.policy,
        scaled(it.makespan, DAY_S).text(2),
        it.makespan_ratio.map_or("-".to_owned(), Ratio::text),
        it.jct.mean.map_or("-".to_owned(), |mean| scaled(mean, HOUR_S).text(1)),
        hours(it.jct.p50),
        hours(it.jct.p95),
        hours(it.jct.p99),
        it.hits.mean,
        it.gpu_hours.lost.mean,
        it.gpu_hours.idle.mean,
        it.utilisation.mean,
        it.ettr.map_or("-".to_owned(), |ettr| format!("{:.4}", ettr.mean)),
        it.unfinished.mean
    );
}
