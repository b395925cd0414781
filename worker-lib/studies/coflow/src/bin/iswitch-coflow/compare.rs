//! `iswitch coflow compare`: runs several policies on the same jobs.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;
use iswitch_coflow::policy::PolicySpec;
use iswitch_study::contest::{Contest, POLICIES_HELP};
use iswitch_study::external::{EXTERNAL_HELP, ExternalArgs};

use super::output::OutputArgs;
use super::results::Summary;
use super::runs::Runs;
use super::source::POLICIES;
use super::workload::{Workload, WorkloadArgs};
use iswitch_cli::mean::Mean;

/// Default baseline.
const BASELINE: &str = "sebf";

/// Arguments of `iswitch coflow compare`.
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
    /// Baseline policy for the ratios of job completion times
    ///
    /// In each draw, the mean job completion time (JCT) of every policy is divided by that of the baseline. The default
    /// is `sebf` if it is among the policies, otherwise the first policy.
    #[arg(long, value_name = "POLICY")]
    baseline: Option<String>,
    #[command(flatten)]
    external: ExternalArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Runs and compares several policies.
pub(crate) fn run(args: &CompareArgs) -> anyhow::Result<ExitCode> {
    let contest = Contest::new(&args.policies)?.with_answer_timeout(args.external.answer_timeout());
    let baseline = contest.baseline(args.baseline.as_deref(), BASELINE)?;
    let workload = args.workload.load()?;
    let runs = Runs::of(&contest, &workload, args.output.recorded_ports(), args.output.results.quiet)?;
    let summary = |policy| Summary::new(policy, Some(&runs.policies[baseline]));
    let summaries: Vec<_> = runs.policies.iter().map(summary).collect();
    args.output.write(runs, &summaries)?;
    let baseline = &contest.names[baseline];
    args.output.results.print(Some(baseline), &summaries, || table(&workload, baseline, &summaries))?;
    Ok(ExitCode::SUCCESS)
}

fn table(workload: &Workload, baseline: &str, summaries: &[Summary]) -> String {
    let width = summaries.iter().map(|summary| summary.policy.len()).max().unwrap_or(0).max(6);
    let mut text = format!("{}\n", workload.describe());
    if let Some(first) = summaries.first() {
        let _ = writeln!(text, "lower bound on the mean JCT under any policy: {} s", first.bound().text(1));
    }
    let _ = writeln!(
        text,
        "{:width$}  {:>8} {:>7} {:>8} {:>8}  {:>18} {:>8} {:>8} {:>8}  {:>9}  {:>5}  {:>16}",
        "policy",
        "CCT (s)",
        "p50",
        "p95",
        "p99",
        "JCT (s)",
        "p50",
        "p95",
        "p99",
        "makespan",
        "met",
        format!("JCT / {baseline}")
    );
    for it in summaries {
        let met = it.deadlines_met.map_or("-".to_owned(), |met| format!("{:.3}", met.mean));
        let _ = writeln!(
            text,
            "{:width$}  {:8.2} {:7.2} {:8.1} {:8.1}  {:>18} {:8.2} {:8.1} {:8.1}  {:9.1}  {met:>5}  {:>16}",
            it.policy,
            it.cct.mean.mean,
            it.cct.p50.mean,
            it.cct.p95.mean,
            it.cct.p99.mean,
            it.jct.mean.text(2),
            it.jct.p50.mean,
            it.jct.p95.mean,
            it.jct.p99.mean,
            it.makespan.mean,
            it.jct_ratio.map_or("-".to_owned(), |ratio: Mean| ratio.text(3)),
        );
    }
    text
}
