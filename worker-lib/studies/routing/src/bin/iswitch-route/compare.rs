//! `iswitch route compare`: runs several policies on the same arrivals.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use iswitch_routing::network::Shape;
use iswitch_routing::policy::Fill;
use iswitch_study::contest::{Contest, POLICIES_HELP, ResultArgs};
use iswitch_study::external::{EXTERNAL_HELP, ExternalArgs};
use iswitch_study::files::write;
use iswitch_study::table::{OrEmpty, Output};

use super::evaluate::{note_overload, run_once};
use super::network::{LOAD, RunsArgs, ShapeArgs};
use super::plots;
use super::results::{Load, PolicyRuns, Run, Summary};
use super::source::{LatestTraining, POLICIES, PolicySource};
use iswitch_cli::files::make_directory;

/// Arguments of `iswitch route compare`.
#[derive(Args)]
pub(crate) struct CompareArgs {
    #[arg(
        value_name = "POLICY",
        default_values = ["rand", "jsq", "po2", "drill:2:1", "maxweight", "central-jsq-exits", "colouring", "mlpi"],
        help = POLICIES_HELP,
        long_help = format!("Policies to compare: {POLICIES}; or {EXTERNAL_HELP}")
    )]
    policies: Vec<String>,
    #[command(flatten)]
    shape: ShapeArgs,
    #[command(flatten)]
    runs: RunsArgs,
    /// Loads, each above 0 and below 1
    ///
    /// The load is the sum of all arrival rates, divided by the number of links between two stages.
    #[arg(long, value_name = "RHO,...", value_delimiter = ',', default_values_t = [LOAD])]
    loads: Vec<f64>,
    /// Link choice for packets behind the head of a queue: random or rule
    ///
    /// Only the policies jsq, po2 and drill use this option. With `random`, a packet behind the head of a queue takes a
    /// random link among those still idle. With `rule`, it takes the link that the policy's rule selects, as the head
    /// of a queue always does.
    #[arg(long, default_value = "random")]
    fill: Fill,
    /// Directory in which to write figures
    ///
    /// queued.svg and delay.svg show the queued packets and the delay as functions of the load. heat-LOAD.svg shows the
    /// mean queue lengths in the first draw at LOAD. If run directories are among the policies, learning.svg shows
    /// their learning curves.
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
    #[command(flatten)]
    external: ExternalArgs,
    #[command(flatten)]
    results: ResultArgs,
}

/// Runs and compares several policies.
pub(crate) fn run(args: &CompareArgs) -> anyhow::Result<ExitCode> {
    let contest: Contest<PolicySource> = Contest::new(&args.policies)?;
    let contest = contest.with_answer_timeout(args.external.answer_timeout());
    let shape = common_shape(args, contest.policies())?;
    let loads = if args.runs.is_file() { vec![f64::NAN] } else { args.loads.clone() };
    let loads: Vec<_> = loads.into_iter().map(Load).collect();
    let prepare = |load: &Load, draw| {
        let rates = args.runs.rates(shape, load.0, draw)?;
        note_overload(&rates, draw);
        Ok(rates)
    };
    let mut latest = LatestTraining::default();
    let runs = contest.run(&loads, args.runs.numbers(), args.results.quiet, prepare, |turn, _| {
        let ignore = &mut |_: u64, _: u64, _: &[u32]| {};
        let mut policy = turn.policy.build_for(turn.world, args.fill, turn.draw, &mut latest)?;
        let measured = run_once(policy.as_mut(), turn.world, turn.draw, args.runs.slots, ignore)?;
        Ok(Run { measured, load: turn.world.load() })
    })?;
    let summaries: Vec<_> = runs.iter().map(|series| Summary::new(shape, series)).collect();
    args.results.write(|| csv(&summaries))?;
    if let Some(directory) = &args.plots {
        make_directory(directory)?;
        draw(directory, shape, &contest.names, &summaries, &runs)?;
        draw_learning(directory, contest.policies(), shape)?;
    }
    args.results.print(None, &summaries, || table(&summaries))?;
    Ok(ExitCode::SUCCESS)
}

fn common_shape(args: &CompareArgs, sources: &[PolicySource]) -> anyhow::Result<Shape> {
    let trained = sources.iter().find_map(PolicySource::shape);
    args.shape.shape(args.runs.default_shape(trained)?)
}

fn table(summaries: &[Summary]) -> String {
    let width = summaries.iter().map(|summary| summary.policy.len()).max().unwrap_or(0).max(6);
    let mut text = format!(
        "{:>5}  {:width$}  {:>18}  {:>8}  {:>17}  {:>17}\n",
        "load", "policy", "queued", "bound", "delay (slots)", "tracked delay"
    );
    for summary in summaries {
        let _ = writeln!(
            text,
            "{:5.3}  {:width$}  {:>18}  {:+7.1}%  {:>17}  {:>17}",
            summary.load,
            summary.policy,
            summary.queued.text(1),
            summary.above_bound * 100.0,
            summary.delay.text(3),
            summary.tracked_delay.text(3),
        );
    }
    text
}

const CSV: &str = "stages,switches,load,policy,runs,slots,queued,queued_ci95,delay,delay_ci95,tracked_delay,\
    bound_queued,bound_delay,above_bound";

fn csv(summaries: &[Summary]) -> Output {
    let mut table = Output::new(CSV);
    for it in summaries {
        table.row(&[
            &it.stages,
            &it.switches,
            &it.load,
            &it.policy,
            &it.runs,
            &it.slots,
            &it.queued.mean,
            &OrEmpty(it.queued.ci95),
            &it.delay.mean,
            &OrEmpty(it.delay.ci95),
            &it.tracked_delay.mean,
            &it.bound_queued.mean,
            &it.bound_delay.mean,
            &it.above_bound,
        ]);
    }
    table
}

fn draw(
    directory: &Path,
    shape: Shape,
    names: &[String],
    summaries: &[Summary],
    runs: &[PolicyRuns],
) -> anyhow::Result<()> {
    let queued = format!("Queued packets by load under each routing policy, {shape}");
    let svg =
        plots::over_load(queued, plots::packets(), names, summaries, |it| it.queued, |it| it.bound_queued);
    write(&directory.join("queued.svg"), &svg)?;
    let delay = format!("Delay by load under each routing policy, {shape}");
    let svg = plots::over_load(delay, plots::delay(), names, summaries, |it| it.delay, |it| it.bound_delay);
    write(&directory.join("delay.svg"), &svg)?;
    // A heat map shows only the first draw.
    for at_load in runs.chunks(names.len()) {
        let first = at_load.iter().filter_map(|series| Some((series.policy.clone(), series.runs.first()?)));
        let runs: Vec<_> = first.map(|(name, run)| (name, &run.measured)).collect();
        let load = at_load[0].runs.last().map_or(f64::NAN, |run| run.load);
        let svg =
            plots::heat(format!("Queued packets by switch, class and stage, load {load:.2}"), shape, &runs);
        write(&directory.join(format!("heat-{load:.2}.svg")), &svg)?;
    }
    Ok(())
}

fn draw_learning(directory: &Path, sources: &[PolicySource], shape: Shape) -> anyhow::Result<()> {
    let histories = sources
        .iter()
        .filter_map(|source| match source {
            PolicySource::Saved(saved, name) => Some(saved.history().map(|history| (name.clone(), history))),
            PolicySource::Plain(_) | PolicySource::Mlpi | PolicySource::External(_) => None,
        })
        .collect::<Result<Vec<_>, _>>()?;
    if histories.is_empty() {
        return Ok(());
    }
    let runs: Vec<_> = histories.iter().map(|(name, history)| (name.clone(), history.as_slice())).collect();
    let title = format!("Queued packets by policy iteration, {} switches", shape.switches());
    let svg = plots::learning(title, plots::packets(), &runs, |record| record.queued, Vec::new());
    write(&directory.join("learning.svg"), &svg)
}
