//! The `train` command of a study.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context as _;
use clap::Args;
use iswitch_cli::group::{GroupArgs, Vectors};
use iswitch_cli::hyper;
use iswitch_cli::learner::{self, Aggregation};
use iswitch_cli::progress::Steps;
use iswitch_cli::run::RunArgs;
use iswitch_learn::algorithms::metrics::MetricsWriter;
use iswitch_learn::algorithms::trainer::World;
use iswitch_manual::print_line;
use serde::Serialize;

use crate::{Common, Hyperparameters, Record, Saved, Stage, Study, Training};

/// Arguments of the `train` command that are the same in every study.
#[derive(Args)]
pub struct TrainingArgs {
    /// Total number of iterations
    ///
    /// The default is the number in the preset; with --resume, it is the total of the resumed run.
    #[arg(long, value_name = "N")]
    iterations: Option<u64>,
    /// Seed of all random choices during training [default: 1]
    #[arg(long, value_name = "N", conflicts_with = "resume")]
    seed: Option<u64>,
    /// Value of a hyper-parameter, such as iterations=100; repeatable
    ///
    /// --list-parameters prints the names of all hyper-parameters.
    #[arg(long = "set", value_name = "NAME=VALUE", conflicts_with = "resume")]
    settings: Vec<String>,
    /// Print the hyper-parameters of this command as JSON, without training
    ///
    /// The printed values are those that this command would use for training.
    #[arg(long)]
    list_parameters: bool,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    group: GroupArgs,
}

/// Default number of workers.
const DEFAULT_WORKERS: u16 = 1;

/// Hyper-parameters of a study.
type Config<C> = <<C as Command>::Study as Study>::Config;
/// Task of a study.
type Task<C> = <<C as Command>::Study as Study>::Task;
/// Record of an iteration of a study.
type Iteration<C> = <<C as Command>::Study as Study>::Iteration;

/// The `train` command of one study.
pub trait Command {
    /// The study that is trained.
    type Study: Study;
    /// Input that is read before the hyper-parameters are determined.
    type Input;
    /// Result of a training run.
    type Outcome: Outcome;

    /// Name of the study in `iswitch NAME train`.
    const NAME: &'static str;
    /// Names of the training curves.
    const CHARTS: &'static [&'static str];
    /// Text that is appended to the printed command for resuming a training run, such as `, with the same files`; empty
    /// if the run directory contains all that is needed.
    const RESUMED_WITH: &'static str;

    /// Returns the arguments common to all studies.
    fn common(&self) -> &TrainingArgs;

    /// Returns the kind of the policy, which becomes part of the name of the run directory.
    fn kind(&self) -> String;

    /// Reads the input on which the hyper-parameters or the task depend. `saved` is the checkpoint of the run to
    /// resume, if any.
    ///
    /// # Errors
    /// Fails if a file cannot be read.
    fn input(&self, saved: Option<&Saved<Self::Study>>) -> anyhow::Result<Self::Input>;

    /// Returns the hyper-parameters of a new training run. The caller then sets those that are common to all studies.
    ///
    /// # Errors
    /// Fails if the arguments conflict with each other.
    fn preset(&self, input: &Self::Input) -> anyhow::Result<Config<Self>>;

    /// Creates the task of a training run with `workers` workers.
    ///
    /// # Errors
    /// Fails if a file cannot be read, or if the task does not fit the hyper-parameters.
    fn task(&self, input: Self::Input, config: &Config<Self>, workers: usize) -> anyhow::Result<Task<Self>>;

    /// Returns the value of each curve at an iteration, in the order of [`Self::CHARTS`]; `None` if a curve has no
    /// value there.
    fn charts(record: &Iteration<Self>) -> Vec<Option<f64>>;

    /// Returns a one-line description of an iteration, and of the best one so far.
    fn describe(record: &Iteration<Self>, best: Option<&Iteration<Self>>) -> String;

    /// Returns the result of a training run.
    fn outcome(training: &Training<Self::Study>) -> Self::Outcome;

    /// Writes the figures of a training run.
    ///
    /// # Errors
    /// Fails if a file cannot be written.
    fn draw(training: &Training<Self::Study>, out: &Path) -> anyhow::Result<()>;
}

/// Result of a training run. The names of its fields are keys of the JSON output.
pub trait Outcome: Serialize {
    /// Returns the result as text, or `None` if no iteration is complete. `seconds` is the duration of the training
    /// run.
    fn text(&self, seconds: f64) -> Option<String>;
}

/// Inputs of a training run, after defaults and the checkpoint have been taken into account.
struct Job<C: Command> {
    config: Config<C>,
    task: Task<C>,
    saved: Option<Saved<C::Study>>,
    out: PathBuf,
}

/// Trains as one worker, or starts all workers and the process that sums their gradients.
///
/// # Errors
/// Fails if the arguments or files are invalid, or if training fails.
pub fn run<C: Command>(args: &C) -> anyhow::Result<ExitCode> {
    let TrainingArgs { run, group, list_parameters, .. } = args.common();
    let role = run.role(group, DEFAULT_WORKERS)?;
    let workers = role.world().size;
    let name = format!("runs/{}-{}-{}", C::NAME, args.kind(), args.common().seed.unwrap_or(1));
    let out = run.directory(PathBuf::from(name), group);
    let saved = run.resumes(&out).then(|| Saved::<C::Study>::read(&out).context("nothing to resume"));
    let saved = saved.transpose()?;
    let input = args.input(saved.as_ref())?;
    let config = config(args, &input, saved.as_ref(), workers)?;
    let len = Training::<C::Study>::vector_len(&config)?;
    if *list_parameters {
        print_line!("{}", serde_json::to_string_pretty(&config)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    learner::check_shares(Config::<C>::SHARES, config.common().shares, workers)?;
    // Read the files here, so that an invalid file is reported once, before any worker starts.
    let task = args.task(input, &config, workers)?;
    let job = Job::<C> { config, task, saved, out: out.clone() };
    learner::start((run, group), &role, &out, len, |world| job.work(args.common(), world, len))
}

/// Returns the hyper-parameters of the training run. For a resumed run, these are the ones in the checkpoint, except
/// that the arguments may change the number of iterations; otherwise, they are those of the preset as modified by the
/// arguments.
fn config<C: Command>(
    args: &C,
    input: &C::Input,
    saved: Option<&Saved<C::Study>>,
    workers: usize,
) -> anyhow::Result<Config<C>> {
    let TrainingArgs { iterations, seed, settings, .. } = args.common();
    let mut config = match saved {
        Some(saved) => saved.config().clone(),
        None => args.preset(input)?,
    };
    let Common { seed: default_seed, iterations: default_iterations, shares } = config.common();
    let iterations = iterations.unwrap_or(default_iterations);
    if saved.is_some() {
        config.set_common(Common { seed: default_seed, iterations, shares });
        return Ok(config);
    }
    let shares = shares.next_multiple_of(workers);
    config.set_common(Common { seed: seed.unwrap_or(default_seed), iterations, shares });
    let config: Config<C> = hyper::apply(&config, settings, Vec::new())?;
    config.check()?;
    Ok(config)
}

impl<C: Command> Job<C> {
    /// Runs one worker.
    fn work(self, args: &TrainingArgs, world: World, len: usize) -> anyhow::Result<()> {
        let Self { config, task, saved, out } = self;
        let TrainingArgs { run, group, .. } = args;
        let group = group.with_default_name(C::NAME);
        let aggregator = group.join(world, Vectors::wide(len), run.supervised)?;
        let mut training = Training::new(config, task, world, aggregator)?;
        if let Some(saved) = &saved {
            saved.restore(&mut training)?;
        }
        run.stop_on_request(&training.stop_handle())?;
        let begin = Instant::now();
        let is_first = world.rank == 0;
        train::<C>(&mut training, is_first.then_some(&out), run.quiet)?;
        let replicas_identical = training.replicas_identical()?;
        if is_first {
            let sums = Aggregation::new(world, training.aggregator(), replicas_identical, begin);
            print(&C::outcome(&training), &sums, run.json)?;
            C::draw(&training, &out)?;
            if !training.is_finished() {
                let (name, with) = (C::NAME, C::RESUMED_WITH);
                eprintln!(
                    "stopped; to resume, run: iswitch {name} train --resume --out {}{with}",
                    out.display()
                );
            }
        }
        Ok(())
    }
}

/// Trains until all iterations are complete or training is stopped. If `out` is given, writes curves and checkpoints to
/// this directory.
fn train<C: Command>(
    training: &mut Training<C::Study>,
    out: Option<&PathBuf>,
    is_quiet: bool,
) -> anyhow::Result<()> {
    let begun = training.history().last().map(|record| record.mark().iteration);
    let mut metrics = out.map(|out| MetricsWriter::create(out, C::CHARTS, begun)).transpose()?;
    let total = training.config().common().iterations + 1;
    let mut progress = Steps::new("iterations", total, is_quiet || out.is_none());
    progress.set(training.history().len() as u64);
    let mut is_saved = training.history().is_empty();
    while !training.is_finished() {
        let iteration = training.history().len();
        let mut show = |Stage { name, done, total }| {
            progress.show(&format!("iteration {iteration}, {name} {done}/{total}"));
        };
        let Some(record) = training.advance_with(&mut show)?.cloned() else { break };
        progress.advance(&C::describe(&record, training.best()));
        if let Some(metrics) = &mut metrics {
            metrics.write(record.mark().iteration, &C::charts(&record))?;
        }
        is_saved = record.mark().is_tested;
        if let Some(out) = out.filter(|_| is_saved) {
            training.save(out)?;
        }
    }
    if let Some(out) = out.filter(|_| !is_saved) {
        training.save(out)?;
    }
    progress.finish();
    Ok(())
}

/// Prints the result of a training run and the statistics of its aggregations.
fn print<O: Outcome>(outcome: &O, sums: &Aggregation, is_json: bool) -> anyhow::Result<()> {
    #[derive(Serialize)]
    struct Object<'a, O> {
        #[serde(flatten)]
        outcome: &'a O,
        #[serde(flatten)]
        sums: &'a Aggregation,
    }
    if is_json {
        print_line!("{}", serde_json::to_string(&Object { outcome, sums })?)?;
    } else if let Some(text) = outcome.text(sums.seconds()) {
        print_line!("{text}\n{}", sums.line())?;
    } else {
        print_line!("stopped before the first iteration was complete")?;
    }
    Ok(())
}
