//! `iswitch place train`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use iswitch_learn::algorithms::metrics::MetricsWriter;
use iswitch_learn::algorithms::trainer::Place;
use iswitch_manual::print_line;
use iswitch_placement::learned::config::{Network, PlacementConfig};
use iswitch_placement::learned::saved::Saved;
use iswitch_placement::learned::training::{Iteration, Training, vector_len};
use iswitch_placement::workload::Workload;
use serde::Serialize;

use super::plots;
use super::rules::Saving;
use super::workload::{Condition, ScenarioArgs};
use iswitch_cli::files::write;
use iswitch_cli::group::GroupArgs;
use iswitch_cli::hyper;
use iswitch_cli::learner::{self, Aggregation};
use iswitch_cli::progress::Steps;
use iswitch_cli::run::RunArgs;

/// Arguments of `iswitch place train`. Hyper-parameters say how often GPUs fail and when jobs save their state, in each
/// environment something else; with --rate-factor or --checkpoint it is that alone.
#[derive(Args)]
pub(crate) struct TrainArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    #[command(flatten)]
    task: TaskArgs,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    group: GroupArgs,
}

#[derive(Args)]
struct TaskArgs {
    /// The network [default: shared].
    #[arg(long, value_enum, conflicts_with = "resume")]
    network: Option<NetworkName>,
    /// Iterations [default: those of the network's preset; with --resume: those of the run].
    #[arg(long, value_name = "N")]
    iterations: Option<u64>,
    /// Seed of everything random [default: 1].
    #[arg(long, value_name = "N", conflicts_with = "resume")]
    seed: Option<u64>,
    /// For schedulers that cannot suspend a job and go on with it later: the shared network decides about the queue and
    /// GPUs alone.
    #[arg(long, conflicts_with = "resume")]
    no_suspend: bool,
    /// Any hyper-parameter, by the name that --list-parameters shows: --set courses=16. Can be repeated.
    #[arg(long = "set", value_name = "NAME=VALUE", conflicts_with = "resume")]
    settings: Vec<String>,
    /// Print all hyper-parameters with the values that this command would train with, as JSON, and train nothing.
    #[arg(long)]
    list_parameters: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum NetworkName {
    /// Scores jobs and GPUs one by one, on top of the policy saving: for clusters of any size.
    Shared,
    /// The patent's, for a cluster of one size whose GPUs it knows by their place.
    Patent,
}

/// One worker alone, unless asked for more.
const DEFAULT_WORKERS: u16 = 1;

/// A training after defaults and checkpoint.
struct Job {
    config: PlacementConfig,
    saved: Option<Saved>,
    out: PathBuf,
}

/// Trains as one worker, or starts all workers and what sums for them.
pub(crate) fn run(args: &TrainArgs) -> anyhow::Result<ExitCode> {
    let role = args.run.role(&args.group, DEFAULT_WORKERS)?;
    let workers = role.place().workers;
    // Before anybody is started: what is wrong with the files is said once.
    let workload = args.scenario.load()?;
    let job = args.job(workers, workload.cluster.gpus())?;
    let len = vector_len(&job.config)?;
    if args.task.list_parameters {
        print_line!("{}", serde_json::to_string_pretty(&job.config)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    learner::check_shares("environments", job.config.environments, workers)?;
    job.config.check_gpus(workload.cluster.gpus())?;
    let out = job.out.clone();
    learner::start((&args.run, &args.group), &role, &out, len, |place| args.work(job, workload, place, len))
}

impl TrainArgs {
    fn job(&self, workers: usize, gpus: usize) -> anyhow::Result<Job> {
        let task = &self.task;
        let network = match task.network.unwrap_or(NetworkName::Shared) {
            NetworkName::Shared => Network::Shared,
            NetworkName::Patent => Network::Patent,
        };
        let name = format!("runs/place-{}-{}", format!("{network:?}").to_lowercase(), task.seed.unwrap_or(1));
        let out = self.run.directory(PathBuf::from(name), &self.group);
        if self.run.resumes(&out) {
            let saved = Saved::read(&out).context("nothing to resume")?;
            let mut config = saved.config().clone();
            config.iterations = task.iterations.unwrap_or(config.iterations);
            return Ok(Job { config, saved: Some(saved), out });
        }
        let mut preset = PlacementConfig::preset(network, gpus);
        preset.environments = preset.environments.next_multiple_of(workers);
        preset.seed = task.seed.unwrap_or(preset.seed);
        preset.iterations = task.iterations.unwrap_or(preset.iterations);
        preset.suspends &= !task.no_suspend;
        self.condition(&mut preset)?;
        let config: PlacementConfig = hyper::apply(&preset, &task.settings, Vec::new())?;
        config.check()?;
        Ok(Job { config, saved: None, out })
    }

    /// Trains under one condition only, if one was asked for.
    fn condition(&self, preset: &mut PlacementConfig) -> anyhow::Result<()> {
        let Condition { rate_factor, saving } = self.scenario.condition();
        if rate_factor != 1.0 {
            (preset.factor_min, preset.factor_max) = (rate_factor, rate_factor);
        }
        preset.checkpoint_cost = self.scenario.cost().checkpoint_cost;
        match saving {
            Saving::None => {}
            Saving::Every(seconds) => preset.checkpoint_intervals = vec![seconds],
            Saving::YoungDaly => {
                bail!("checkpoint is young-daly, expected none or a number of seconds for a training")
            }
        }
        Ok(())
    }

    /// One worker's run.
    fn work(&self, job: Job, workload: Workload, place: Place, len: usize) -> anyhow::Result<()> {
        let Job { config, saved, out } = job;
        let aggregator = self.group.join(place, len, self.run.supervised)?;
        let mut training = Training::new(config, workload, place, aggregator)?;
        if let Some(saved) = &saved {
            saved.restore(&mut training)?;
        }
        self.run.stop_when_told(&training.stop_handle())?;
        let is_first = place.rank == 0;
        let begin = Instant::now();
        let begun = training.history().last().map(|record| record.iteration);
        let mut metrics = is_first.then(|| MetricsWriter::create(&out, &CHARTS, begun)).transpose()?;
        let total = training.config().iterations + 1;
        let mut progress = Steps::new("iterations", total, self.run.quiet || !is_first);
        progress.set(training.history().len() as u64);
        while !training.is_finished() {
            let Some(record) = training.advance()?.cloned() else { break };
            progress.advance(&describe(&record, training.best()));
            if let Some(metrics) = &mut metrics {
                metrics.write(record.iteration, &charts(&record))?;
                if record.gain.is_some() {
                    training.save(&out)?;
                }
            }
        }
        if is_first && !training.history().is_empty() {
            training.save(&out)?;
        }
        progress.finish();
        let outcome = Outcome::new(&mut training, begin)?;
        if is_first {
            outcome.print(self.run.json)?;
            write(&out.join("gain.svg"), &plots::learning(training.history(), &outcome.reference))?;
            if !training.is_finished() {
                eprintln!(
                    "stopped; go on with: iswitch place train --resume --out {}, and the same files",
                    out.display()
                );
            }
        }
        Ok(())
    }
}

const CHARTS: [&str; 3] = ["placement/gain", "placement/reward", "placement/choices"];

fn charts(record: &Iteration) -> [Option<f64>; 3] {
    [record.gain, record.reward, Some(record.choices as f64)]
}

fn describe(record: &Iteration, best: Option<&Iteration>) -> String {
    let best = best.and_then(|best| best.gain).map_or(String::new(), |gain| format!(", best test {gain:.4}"));
    let reward = record.reward.map_or(String::new(), |reward| format!(", reward {reward:.4}"));
    format!("iteration {}{reward}{best}, {:.1} s", record.iteration, record.seconds)
}

/// What a training came to. The keys of the JSON object are an interface.
#[derive(Debug, Serialize)]
struct Outcome {
    network: Network,
    parameters: usize,
    iterations: u64,
    courses: u64,
    best_iteration: Option<u64>,
    /// What the network was compared with.
    reference: String,
    /// Its makespan over the network's in the test.
    gain: Option<f64>,
    #[serde(flatten)]
    aggregation: Aggregation,
}

impl Outcome {
    /// All workers must make it at the same time.
    fn new(training: &mut Training, begin: Instant) -> anyhow::Result<Self> {
        let replicas_identical = training.replicas_identical()?;
        let config = training.config();
        let history = training.history();
        Ok(Self {
            network: config.network,
            parameters: config.parameter_count(),
            iterations: history.last().map_or(0, |record| record.iteration),
            courses: history.iter().map(|record| record.courses).sum(),
            best_iteration: training.best().map(|record| record.iteration),
            reference: config.reference().to_string(),
            gain: training.best().and_then(|record| record.gain),
            aggregation: Aggregation::new(training.place(), training.aggregator(), replicas_identical, begin),
        })
    }

    fn print(&self, json: bool) -> anyhow::Result<()> {
        if json {
            print_line!("{}", serde_json::to_string(self)?)?;
            return Ok(());
        }
        let (Some(gain), Some(best)) = (self.gain, self.best_iteration) else {
            print_line!("no iteration is complete")?;
            return Ok(());
        };
        print_line!(
            "{} parameters, {} iterations, {} courses, {:.1} s\n\
             the best network, of iteration {best}: {} takes {gain:.4} times as long in the test\n\
             {}",
            self.parameters,
            self.iterations,
            self.courses,
            self.aggregation.seconds(),
            self.reference,
            self.aggregation.line(),
        )?;
        Ok(())
    }
}
