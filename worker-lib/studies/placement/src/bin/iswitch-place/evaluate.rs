//! `iswitch place evaluate`: prints the results of one policy.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use super::gantt::{Recorder, SPANS_MAX};
use super::output::OutputArgs;
use super::results::{GpuHours, Summary};
use super::runs::{Recording, Runs};
use super::source::POLICIES;
use super::workload::{Workload, WorkloadArgs};
use super::{DAY_S, HOUR_S};
use iswitch_cli::mean::Mean;
use iswitch_manual::print_line;
use iswitch_study::contest::{ANY_POLICY_HELP, Contest};
use iswitch_study::external::{EXTERNAL_HELP, ExternalArgs};
use iswitch_study::files::write;

/// Default number of GPUs in the Gantt chart.
const GANTT_GPUS: u64 = 128;

/// Arguments of `iswitch place evaluate`.
#[derive(Args)]
pub(crate) struct EvaluateArgs {
    #[arg(help = ANY_POLICY_HELP, long_help = format!("Policy: {POLICIES}; or {EXTERNAL_HELP}"))]
    policy: String,
    #[command(flatten)]
    workload: WorkloadArgs,
    /// SVG file for a Gantt chart of the first draw
    ///
    /// The chart shows which job holds each GPU at each time, and when GPUs fail.
    #[arg(long, value_name = "FILE")]
    gantt: Option<PathBuf>,
    /// Maximum number of GPUs in the Gantt chart
    ///
    /// The chart shows the GPUs with the lowest ids.
    #[arg(
        long, value_name = "N", requires = "gantt", default_value_t = GANTT_GPUS,
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    gantt_gpus: u64,
    /// CSV file for the decisions, failures and repairs in the first draw
    ///
    /// With `--trace` and `--failures`, this is a dry run: the file shows what the policy would have done on your
    /// cluster. It has one row for each start, suspension and completion of a job, each failure and repair of a GPU,
    /// and each job that a failure stops. The rows are in chronological order and contain the ids of the GPUs and the
    /// numbers of waiting jobs, running jobs and free GPUs after the event.
    #[arg(long, value_name = "FILE")]
    decisions: Option<PathBuf>,
    #[command(flatten)]
    external: ExternalArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Evaluates a policy on one or more draws.
pub(crate) fn run(args: &EvaluateArgs) -> anyhow::Result<ExitCode> {
    let contest = Contest::of_one(&args.policy)?.with_answer_timeout(args.external.answer_timeout());
    let workload = args.workload.load()?;
    let gantt_gpus = args.gantt.as_ref().map(|_| usize::try_from(args.gantt_gpus).unwrap_or(usize::MAX));
    let conditions = [workload.condition()];
    let recording = Recording { gantt_gpus, decisions: args.decisions.is_some() };
    let mut runs = Runs::of(&contest, &workload, &conditions, recording, args.output.results.quiet)?;
    let summary = Summary::new(&runs.policies[0], None);
    let first = runs.policies[0].runs.first_mut();
    let (gantt, decisions) = first.map(|run| (run.gantt.take(), run.decisions.take())).unwrap_or_default();
    args.output.write(runs, std::slice::from_ref(&summary))?;
    if let Some(path) = &args.gantt {
        draw(path, gantt, &summary.policy)?;
    }
    if let Some(path) = &args.decisions {
        match decisions {
            None => explain_missing("decisions", &summary.policy),
            Some(decisions) => write(path, &decisions.into_text())?,
        }
    }
    args.output.results.print_one(&summary, || print(&workload, &summary))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the Gantt chart of a run, or prints why there is none.
fn draw(path: &Path, gantt: Option<Recorder>, policy: &str) -> anyhow::Result<()> {
    match gantt {
        None => explain_missing("Gantt chart", policy),
        Some(recorder) => match recorder.draw(policy) {
            Some(svg) => write(path, &svg)?,
            None => eprintln!(
                "cannot draw the Gantt chart: it would have more than {SPANS_MAX} bars; lower --gantt-gpus"
            ),
        },
    }
    Ok(())
}

fn explain_missing(what: &str, policy: &str) {
    eprintln!("cannot write the {what}: policy {policy} chooses among finished runs, which are not recorded");
}

fn print(workload: &Workload, summary: &Summary) -> std::io::Result<()> {
    let hours = |mean: Option<Mean>| mean.map_or("-".to_owned(), |it| scaled(it, HOUR_S).text(1));
    print_line!("{}: {}", summary.policy, workload.describe())?;
    print_line!("failure-rate factor {}; checkpoint {}", summary.rate_factor, summary.checkpoint)?;
    print_line!("makespan {} d", scaled(summary.makespan, DAY_S).text(2))?;
    let jct = &summary.jct;
    print_line!(
        "JCT: mean {} h, p50 {}, p95 {}, p99 {}",
        hours(jct.mean),
        hours(jct.p50),
        hours(jct.p95),
        hours(jct.p99)
    )?;
    print_line!(
        "failures {}, of which {} stopped a job; {} suspensions",
        summary.failures.text(1),
        summary.hits.text(1),
        summary.suspensions.text(1)
    )?;
    let GpuHours { useful, lost, overhead, held, failed, idle } = summary.gpu_hours;
    print_line!(
        "GPU-hours: useful {}, lost {}, restarts and checkpoints {}, held {}, failed {}, idle {}",
        useful.text(0),
        lost.text(1),
        overhead.text(1),
        held.text(1),
        failed.text(1),
        idle.text(0)
    )?;
    print_line!("utilisation {}", summary.utilisation.text(3))?;
    if let Some(ettr) = summary.ettr {
        print_line!("effective training time ratio {}", ettr.text(4))?;
    }
    if summary.unfinished.mean > 0.0 {
        print_line!(
            "{} jobs per draw were incomplete at the horizon: the true makespan is longer, and JCT excludes them",
            summary.unfinished.text(1)
        )?;
    }
    Ok(())
}

/// Converts a mean to a unit that is `unit` times as large.
pub(super) fn scaled(mean: Mean, unit: f64) -> Mean {
    Mean { mean: mean.mean / unit, ci95: mean.ci95.map(|ci95| ci95 / unit) }
}
