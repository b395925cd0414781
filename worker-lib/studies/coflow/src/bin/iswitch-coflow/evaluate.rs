//! `iswitch coflow evaluate`: runs one policy.

use std::process::ExitCode;

use clap::Args;
use iswitch_study::contest::{ANY_POLICY_HELP, Contest};
use iswitch_study::external::{EXTERNAL_HELP, ExternalArgs};

use super::output::OutputArgs;
use super::results::{Summary, TimesSummary};
use super::runs::Runs;
use super::source::{POLICIES, PolicySource};
use super::workload::{Workload, WorkloadArgs};
use iswitch_manual::print_line;

/// Arguments of `iswitch coflow evaluate`.
#[derive(Args)]
pub(crate) struct EvaluateArgs {
    #[arg(help = ANY_POLICY_HELP, long_help = format!("Policy: {POLICIES}; or {EXTERNAL_HELP}"))]
    policy: String,
    #[command(flatten)]
    workload: WorkloadArgs,
    #[command(flatten)]
    external: ExternalArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Evaluates a policy on one or more draws of jobs.
pub(crate) fn run(args: &EvaluateArgs) -> anyhow::Result<ExitCode> {
    let contest: Contest<PolicySource> = Contest::of_one(&args.policy)?;
    let contest = contest.with_answer_timeout(args.external.answer_timeout());
    let workload = args.workload.load_on(contest.policies()[0].fabric()?)?;
    let runs = Runs::of(&contest, &workload, args.output.recorded_ports(), args.output.results.quiet)?;
    let summary = Summary::new(&runs.policies[0], None);
    args.output.write(runs, std::slice::from_ref(&summary))?;
    args.output.results.print_one(&summary, || print(&workload, &summary))?;
    Ok(ExitCode::SUCCESS)
}

fn print(workload: &Workload, summary: &Summary) -> std::io::Result<()> {
    let times = |name: &str, times: &TimesSummary| {
        let TimesSummary { mean, p50, p95, p99, max } = times;
        print_line!(
            "{name}: mean {} s, p50 {:.2}, p95 {:.1}, p99 {:.1}, max {:.1}",
            mean.text(2),
            p50.mean,
            p95.mean,
            p99.mean,
            max.mean
        )
    };
    print_line!("{}: {}", summary.policy, workload.describe())?;
    times("CCT", &summary.cct)?;
    times("JCT", &summary.jct)?;
    print_line!(
        "lower bounds on the mean JCT: {} s (isolated jobs), {} s (busiest port), {} s (relaxation)",
        summary.bound_isolated.text(2),
        summary.bound_port.text(2),
        summary.bound_relaxation.text(2)
    )?;
    print_line!("makespan {} s", summary.makespan.text(1))?;
    if let Some(met) = summary.deadlines_met {
        print_line!("share of deadlines met {}", met.text(3))?;
    }
    Ok(())
}
