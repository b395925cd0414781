//! `iswitch route compare`: several policies on the same arrivals.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use iswitch_manual::{output, print_line};
use iswitch_routing::measure::Measurement;
use iswitch_routing::network::Shape;
use iswitch_routing::policy::Fill;

use super::evaluate::{note_overload, run_once};
use super::network::{RunsArgs, ShapeArgs};
use super::plots;
use super::results::Summary;
use super::source::{POLICIES, PolicySource};
use iswitch_cli::files::{make_directory, write};
use iswitch_cli::learner::check_names;
use iswitch_cli::progress::Steps;

/// Arguments of `iswitch route compare`.
#[derive(Args)]
pub(crate) struct CompareArgs {
    #[arg(
        value_name = "POLICY",
        default_values = ["rand", "jsq", "po2", "drill:2:1", "maxweight", "central-jsq-exits", "colouring", "mlpi"],
        help = format!("Policies: {POLICIES}")
    )]
    policies: Vec<String>,
    #[command(flatten)]
    shape: ShapeArgs,
    #[command(flatten)]
    runs: RunsArgs,
    /// Loads, each above 0 and below 1.
    #[arg(long, value_name = "RHO,...", value_delimiter = ',', default_values_t = [0.5, 0.6, 0.7, 0.8])]
    loads: Vec<f64>,
    /// How packets that are not heads of their queues find a link under jsq, po2 and drill: random, or by their rule.
    #[arg(long, default_value = "random")]
    fill: Fill,
    /// Write figures into this directory: queued.svg and delay.svg over the load, heat-LOAD.svg of the first draw, and
    /// learning.svg if run directories are among the policies.
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
    /// Write the table as CSV.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
    /// Show no progress.
    #[arg(long, short)]
    quiet: bool,
}

/// All policies at one load.
struct AtLoad {
    load: f64,
    /// Of the first draw, by policy.
    first: Vec<Measurement>,
}

/// Compares policies.
pub(crate) fn run(args: &CompareArgs) -> anyhow::Result<()> {
    let sources: Vec<_> =
        args.policies.iter().map(|text| PolicySource::parse(text)).collect::<anyhow::Result<_>>()?;
    let names: Vec<_> = sources.iter().map(PolicySource::name).collect();
    check_names(&names)?;
    let shape = common_shape(args, &sources)?;
    let loads = if args.runs.is_file() { vec![f64::NAN] } else { args.loads.clone() };
    let total = loads.len() as u64 * args.runs.numbers().count() as u64 * sources.len() as u64;
    let mut progress = Steps::new("runs", total, args.quiet);
    let mut summaries = Vec::new();
    let mut at_loads = Vec::new();
    for load in loads {
        let mut results = vec![Vec::new(); sources.len()];
        let mut actual = load;
        for draw in args.runs.numbers() {
            let rates = args.runs.rates(shape, load, draw)?;
            actual = rates.load();
            note_overload(&rates, draw);
            for ((source, results), name) in sources.iter().zip(&mut results).zip(&names) {
                let ignore = &mut |_: u64, _: u64, _: &[u32]| {};
                results.push(run_once(source, &rates, args.fill, draw, args.runs.slots, ignore)?);
                progress.advance(&format!("load {actual:.2}, {name}"));
            }
        }
        let size = (shape.stages(), shape.switches());
        let named = names.iter().zip(&results);
        summaries.extend(named.map(|(name, runs)| Summary::new(name.clone(), size, actual, runs)));
        let first = results.into_iter().map(|mut runs| runs.swap_remove(0)).collect();
        at_loads.push(AtLoad { load: actual, first });
    }
    progress.finish();
    if let Some(path) = &args.csv {
        write(path, &csv(&summaries))?;
    }
    if let Some(directory) = &args.plots {
        make_directory(directory)?;
        draw(directory, shape, &names, &summaries, &at_loads)?;
        draw_learning(directory, &sources, shape)?;
    }
    if args.json {
        print_line!("{}", serde_json::json!({ "results": summaries }))?;
    } else {
        output::print(format_args!("{}", table(&summaries)))?;
    }
    Ok(())
}

fn common_shape(args: &CompareArgs, sources: &[PolicySource]) -> anyhow::Result<Shape> {
    let trained = sources.iter().find_map(PolicySource::shape);
    args.shape.shape(args.runs.shape_of_file()?.or(trained))
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

fn csv(summaries: &[Summary]) -> String {
    let mut text =
        "stages,switches,load,policy,runs,slots,queued,queued_ci95,delay,delay_ci95,tracked_delay,\
         bound_queued,bound_delay,above_bound\n"
            .to_owned();
    let ci95 = |ci95: Option<f64>| ci95.map_or(String::new(), |ci95| ci95.to_string());
    for it in summaries {
        let _ = writeln!(
            text,
            "{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
            it.stages,
            it.switches,
            it.load,
            it.policy,
            it.runs,
            it.slots,
            it.queued.mean,
            ci95(it.queued.ci95),
            it.delay.mean,
            ci95(it.delay.ci95),
            it.tracked_delay.mean,
            it.bound_queued.mean,
            it.bound_delay.mean,
            it.above_bound,
        );
    }
    text
}

fn draw(
    directory: &std::path::Path,
    shape: Shape,
    names: &[String],
    summaries: &[Summary],
    at_loads: &[AtLoad],
) -> anyhow::Result<()> {
    let of = format!("{} stages of {} switches", shape.stages(), shape.switches());
    let queued = format!("Queued packets over the load, {of}");
    let svg = plots::over_load(queued, names, summaries, |it| it.queued, |it| it.bound_queued);
    write(&directory.join("queued.svg"), &svg)?;
    let delay = format!("Delay in slots over the load, {of}");
    let svg = plots::over_load(delay, names, summaries, |it| it.delay, |it| it.bound_delay);
    write(&directory.join("delay.svg"), &svg)?;
    for AtLoad { load, first } in at_loads {
        let runs: Vec<_> = names.iter().cloned().zip(first).collect();
        let svg = plots::heat(format!("Queued packets by switch and class, load {load:.2}"), shape, &runs);
        write(&directory.join(format!("heat-{load:.2}.svg")), &svg)?;
    }
    Ok(())
}

fn draw_learning(directory: &std::path::Path, sources: &[PolicySource], shape: Shape) -> anyhow::Result<()> {
    let histories = sources
        .iter()
        .filter_map(|source| match source {
            PolicySource::Saved(saved, _) => Some(saved.history().map(|history| (source.name(), history))),
            PolicySource::Plain(_) | PolicySource::Mlpi => None,
        })
        .collect::<Result<Vec<_>, _>>()?;
    if histories.is_empty() {
        return Ok(());
    }
    let runs: Vec<_> = histories.iter().map(|(name, history)| (name.clone(), history.as_slice())).collect();
    let title = format!("Queued packets over policy iterations, {} switches", shape.switches());
    let svg = plots::learning(title, &runs, |record| record.queued, Vec::new());
    write(&directory.join("learning.svg"), &svg)
}
