//! `iswitch coflow train`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use iswitch_coflow::deepweave::config::DeepWeaveConfig;
use iswitch_coflow::deepweave::episodes::Task;
use iswitch_coflow::deepweave::net::NetKind;
use iswitch_coflow::deepweave::trained::Saved;
use iswitch_coflow::deepweave::training::{Iteration, Training, vector_len};
use iswitch_learn::algorithms::metrics::MetricsWriter;
use iswitch_learn::algorithms::trainer::Place;
use iswitch_manual::print_line;
use serde::Serialize;

use super::plots;
use super::workload::SourceArgs;
use iswitch_cli::files::write;
use iswitch_cli::group::GroupArgs;
use iswitch_cli::hyper;
use iswitch_cli::learner::{self, Aggregation};
use iswitch_cli::progress::Steps;
use iswitch_cli::run::RunArgs;

/// Arguments of `iswitch coflow train`.
#[derive(Args)]
pub(crate) struct TrainArgs {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    task: TaskArgs,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    group: GroupArgs,
}

#[derive(Args)]
struct TaskArgs {
    /// The network [default: node].
    #[arg(long, value_enum, conflicts_with = "resume")]
    network: Option<NetworkName>,
    /// Iterations [default: those of the network's preset; with --resume: those of the run].
    #[arg(long, value_name = "N")]
    iterations: Option<u64>,
    /// Seed of everything random [default: 1].
    #[arg(long, value_name = "N", conflicts_with = "resume")]
    seed: Option<u64>,
    /// Any hyper-parameter, by the name that --list-parameters shows: --set agents=32. Can be repeated.
    #[arg(long = "set", value_name = "NAME=VALUE", conflicts_with = "resume")]
    settings: Vec<String>,
    /// Print all hyper-parameters with the values that this command would train with, as JSON, and train nothing.
    #[arg(long)]
    list_parameters: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum NetworkName {
    /// A head for each coflow on top of JobSEBF, for jobs of any size.
    Node,
    /// The paper's: all coflows of a job at once, up to a greatest number.
    Paper,
}

/// One worker alone, unless asked for more.
const DEFAULT_WORKERS: u16 = 1;

/// A training after defaults and checkpoint.
struct Job {
    config: DeepWeaveConfig,
    saved: Option<Saved>,
    out: PathBuf,
}

/// Trains as one worker, or starts all workers and what sums for them.
pub(crate) fn run(args: &TrainArgs) -> anyhow::Result<ExitCode> {
    let role = args.run.role(&args.group, DEFAULT_WORKERS)?;
    let workers = role.place().workers;
    let job = args.job(workers)?;
    let len = vector_len(&job.config)?;
    if args.task.list_parameters {
        print_line!("{}", serde_json::to_string_pretty(&job.config)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    learner::check_shares("agents", job.config.agents, workers)?;
    // Before anybody is started: what is wrong with the files is said once.
    let task = args.source.task()?;
    let out = job.out.clone();
    learner::start((&args.run, &args.group), &role, &out, len, |place| args.work(job, task, place, len))
}

impl TrainArgs {
    fn job(&self, workers: usize) -> anyhow::Result<Job> {
        let task = &self.task;
        let kind = match task.network.unwrap_or(NetworkName::Node) {
            NetworkName::Node => NetKind::Node,
            NetworkName::Paper => NetKind::Paper,
        };
        let name = format!("runs/coflow-{}-{}", format!("{kind:?}").to_lowercase(), task.seed.unwrap_or(1));
        let out = self.run.directory(PathBuf::from(name), &self.group);
        if self.run.resumes(&out) {
            let saved = Saved::read(&out).context("nothing to resume")?;
            let mut config = saved.config().clone();
            config.iterations = task.iterations.unwrap_or(config.iterations);
            return Ok(Job { config, saved: Some(saved), out });
        }
        let mut preset = DeepWeaveConfig::preset(kind);
        preset.agents = preset.agents.next_multiple_of(workers);
        preset.seed = task.seed.unwrap_or(preset.seed);
        preset.iterations = task.iterations.unwrap_or(preset.iterations);
        let config: DeepWeaveConfig = hyper::apply(&preset, &task.settings, Vec::new())?;
        config.check()?;
        Ok(Job { config, saved: None, out })
    }

    /// One worker's run.
    fn work(&self, job: Job, task: Task, place: Place, len: usize) -> anyhow::Result<()> {
        let Job { config, saved, out } = job;
        let aggregator = self.group.join(place, len, self.run.supervised)?;
        let mut training = Training::new(config, task, place, aggregator)?;
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
            write(&out.join("gain.svg"), &plots::learning(training.history()))?;
            if !training.is_finished() {
                eprintln!(
                    "stopped; go on with: iswitch coflow train --resume --out {}, and the same files",
                    out.display()
                );
            }
        }
        Ok(())
    }
}

const CHARTS: [&str; 3] = ["coflow/gain", "coflow/job_time", "coflow/jobs"];

fn charts(record: &Iteration) -> [Option<f64>; 3] {
    [record.gain, record.job_time, Some(record.jobs as f64)]
}

fn describe(record: &Iteration, best: Option<&Iteration>) -> String {
    let best = best.and_then(|best| best.gain).map_or(String::new(), |gain| format!(", best test {gain:.4}"));
    let time = record.job_time.map_or(String::new(), |time| format!(", mean JCT {time:.0} s"));
    format!("iteration {}{time}{best}, {:.1} s", record.iteration, record.seconds)
}

/// What a training came to. The keys of the JSON object are an interface.
#[derive(Debug, Serialize)]
struct Outcome {
    network: NetKind,
    parameters: usize,
    iterations: u64,
    jobs: u64,
    best_iteration: Option<u64>,
    /// JobSEBF's mean job completion time over the network's in the test.
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
            parameters: config.net().parameter_count(),
            iterations: history.last().map_or(0, |record| record.iteration),
            jobs: history.iter().map(|record| record.jobs).sum(),
            best_iteration: training.best().map(|record| record.iteration),
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
            "{} parameters, {} iterations, {} jobs, {:.1} s\n\
             the best network, of iteration {best}: job-sebf takes {gain:.4} times as long in the test\n\
             {}",
            self.parameters,
            self.iterations,
            self.jobs,
            self.aggregation.seconds(),
            self.aggregation.line(),
        )?;
        Ok(())
    }
}
