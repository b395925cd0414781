//! `iswitch route train`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use iswitch_learn::algorithms::metrics::MetricsWriter;
use iswitch_learn::algorithms::streams::{Purpose, stream};
use iswitch_learn::algorithms::trainer::Place;
use iswitch_manual::print_line;
use iswitch_routing::config::{Learner, RoutingConfig, ValueKind};
use iswitch_routing::measure::measure;
use iswitch_routing::policy::{Fill, PolicySpec};
use iswitch_routing::rates::{Arrivals, Rates};
use iswitch_routing::trained::Saved;
use iswitch_routing::training::{Iteration, Stage, Training, vector_len};
use serde::Serialize;

use super::network::{LOAD, STAGES, SWITCHES};
use super::plots;
use iswitch_cli::files::write;
use iswitch_cli::group::GroupArgs;
use iswitch_cli::hyper;
use iswitch_cli::learner::{self, Aggregation};
use iswitch_cli::progress::Steps;
use iswitch_cli::run::RunArgs;

/// Arguments of `iswitch route train`.
#[derive(Args)]
pub(crate) struct TrainArgs {
    #[command(flatten)]
    task: TaskArgs,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    group: GroupArgs,
}

#[derive(Args)]
struct TaskArgs {
    /// How the value of a policy is estimated [default: mlpi].
    #[arg(long, value_enum, conflicts_with = "resume")]
    learner: Option<LearnerName>,
    /// What the value is a function of [default: linear for mlpi, cnn for others].
    #[arg(long, value_enum, conflicts_with = "resume")]
    value: Option<ValueName>,
    /// Stages of the network [default: 3].
    #[arg(long, value_name = "S", conflicts_with = "resume")]
    stages: Option<usize>,
    /// Switches of a stage, and classes [default: 16].
    #[arg(long, value_name = "N", conflicts_with_all = ["resume", "rates"])]
    switches: Option<usize>,
    /// Load: the sum of all arrival rates over the links of a stage, above 0 and below 1 [default: 0.6].
    #[arg(long, value_name = "RHO", conflicts_with_all = ["resume", "rates"])]
    load: Option<f64>,
    /// Number of the draw of arrival rates, uniform over 0 to 1 and rescaled to the load [default: 1].
    #[arg(long, value_name = "N", conflicts_with_all = ["resume", "rates"])]
    draw: Option<u64>,
    /// Arrival rates from a CSV file, a line of N numbers for each of N switches.
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    rates: Option<PathBuf>,
    /// Policy iterations [default: 8; with --resume: those of the run].
    #[arg(long, value_name = "N")]
    iterations: Option<u64>,
    /// Seed of everything random but the rates [default: 1].
    #[arg(long, value_name = "N", conflicts_with = "resume")]
    seed: Option<u64>,
    /// Threads for matrix products of each worker, which only a cnn has [default: the cores, divided by the workers].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Any hyper-parameter, by the name that --list-parameters shows: --set window=100. Can be repeated.
    #[arg(long = "set", value_name = "NAME=VALUE", conflicts_with = "resume")]
    settings: Vec<String>,
    /// Print all hyper-parameters with the values that this command would train with, as JSON, and train nothing.
    #[arg(long)]
    list_parameters: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LearnerName {
    /// From simulated slots, with arrival rates estimated in few observed ones: maximum likelihood.
    Mlpi,
    /// From the costs that follow in the network itself: Monte Carlo.
    Mc,
    /// From the costs of 100 slots in the network itself and the value then: temporal difference.
    Td,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ValueName {
    /// Of how many queues have which length: seconds.
    Linear,
    /// The paper's convolutional network over all lengths: hours.
    Cnn,
}

/// One worker alone, unless asked for more.
const DEFAULT_WORKERS: u16 = 1;

/// A training after defaults and checkpoint.
struct Job {
    config: RoutingConfig,
    rates: Rates,
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
    learner::check_shares("environments", job.config.environments, workers)?;
    let out = job.out.clone();
    learner::start((&args.run, &args.group), &role, &out, len, |place| args.work(job, place, len))
}

impl TrainArgs {
    fn job(&self, workers: usize) -> anyhow::Result<Job> {
        let task = &self.task;
        let default_out = || {
            let learner = task.learner.unwrap_or(LearnerName::Mlpi);
            PathBuf::from(format!(
                "runs/route-{}-{}",
                format!("{learner:?}").to_lowercase(),
                task.seed.unwrap_or(1)
            ))
        };
        let out = self.run.directory(default_out(), &self.group);
        if self.run.resumes(&out) {
            let saved = Saved::read(&out).context("nothing to resume")?;
            let mut config = saved.config().clone();
            config.iterations = task.iterations.unwrap_or(config.iterations);
            return Ok(Job { rates: saved.rates().clone(), config, saved: Some(saved), out });
        }
        let stages = task.stages.unwrap_or(STAGES);
        let from_file = task.rates.as_ref().map(|path| Rates::read(path, stages)).transpose()?;
        let switches = from_file.as_ref().map(|rates| rates.shape().switches());
        let config = self.config(stages, switches.or(task.switches).unwrap_or(SWITCHES), workers)?;
        let drawn = || Rates::uniform(config.shape()?, task.load.unwrap_or(LOAD), task.draw.unwrap_or(1));
        let rates = from_file.map_or_else(drawn, Ok)?;
        Ok(Job { config, rates, saved: None, out })
    }

    fn config(&self, stages: usize, switches: usize, workers: usize) -> anyhow::Result<RoutingConfig> {
        let task = &self.task;
        let learner = match task.learner.unwrap_or(LearnerName::Mlpi) {
            LearnerName::Mlpi => Learner::Mlpi,
            LearnerName::Mc => Learner::Mc,
            LearnerName::Td => Learner::Td,
        };
        let value = match task.value {
            Some(ValueName::Linear) => ValueKind::Linear,
            None if learner == Learner::Mlpi => ValueKind::Linear,
            Some(ValueName::Cnn) | None => ValueKind::Cnn,
        };
        let mut preset = RoutingConfig::preset(learner, value, stages, switches);
        preset.environments = preset.environments.next_multiple_of(workers);
        preset.seed = task.seed.unwrap_or(preset.seed);
        preset.iterations = task.iterations.unwrap_or(preset.iterations);
        let config: RoutingConfig = hyper::apply(&preset, &task.settings, Vec::new())?;
        config.check()?;
        Ok(config)
    }

    /// One worker's run.
    fn work(&self, job: Job, place: Place, len: usize) -> anyhow::Result<()> {
        let Job { config, rates, saved, out } = job;
        let threads = self.task.threads.unwrap_or_else(|| super::threads(place.workers));
        let aggregator = self.group.join(place, len, self.run.supervised)?;
        let mut training = Training::new(config, rates, place, threads, aggregator)?;
        if let Some(saved) = &saved {
            saved.restore(&mut training)?;
        }
        self.run.stop_when_told(&training.stop_handle())?;
        let is_first = place.rank == 0;
        let begin = Instant::now();
        let begun = training.history().last().map(|record| record.iteration);
        let mut metrics = is_first.then(|| MetricsWriter::create(&out, &CHARTS, begun)).transpose()?;
        let mut progress =
            Steps::new("iterations", training.config().iterations + 1, self.run.quiet || !is_first);
        progress.set(training.history().len() as u64);
        while !training.is_finished() {
            let iteration = training.history().len();
            let mut show = |stage: Stage| {
                progress
                    .show(&format!("iteration {iteration}, {} {}/{}", stage.name, stage.done, stage.total));
            };
            let Some(record) = training.advance(&mut show)?.cloned() else { break };
            progress.advance(&describe(&record));
            if let Some(metrics) = &mut metrics {
                metrics.write(record.iteration, &charts(&record))?;
                training.save(&out)?;
            }
        }
        progress.finish();
        let outcome = Outcome::new(&mut training, begin)?;
        if is_first {
            outcome.print(self.run.json)?;
            draw(&training, &out)?;
            if !training.is_finished() {
                eprintln!("stopped; go on with: iswitch route train --resume --out {}", out.display());
            }
        }
        Ok(())
    }
}

const CHARTS: [&str; 6] = [
    "route/queued",
    "route/delay",
    "route/bound_queued",
    "route/bound_delay",
    "route/explained",
    "route/network_slots",
];

fn charts(record: &Iteration) -> [Option<f64>; 6] {
    let Iteration { queued, delay, bound_queued, bound_delay, explained, network_slots, .. } = *record;
    [Some(queued), Some(delay), Some(bound_queued), Some(bound_delay), explained, Some(network_slots as f64)]
}

fn describe(record: &Iteration) -> String {
    let Iteration { iteration, queued, bound_queued, delay, seconds, .. } = record;
    format!(
        "iteration {iteration}: queued {queued:.1} (bound {bound_queued:.1}), delay {delay:.3} slots, {seconds:.1} s"
    )
}

/// What policies without learning come to in the tests of a training.
fn baselines(training: &Training) -> anyhow::Result<Vec<(PolicySpec, f64, f64)>> {
    let (config, rates) = (training.config(), training.rates());
    let of = |spec: PolicySpec| {
        let (mut queued, mut delay) = (0.0, 0.0);
        for environment in 0..config.environments {
            let mut policy = spec.build(rates.shape(), Fill::Random, environment as u64);
            let mut arrivals = Arrivals::new(rates, stream(config.seed, Purpose::Evaluation, environment));
            let run = measure(policy.as_mut(), rates, &mut arrivals, config.test_slots, &mut |_, _, _| {})?;
            queued += run.queued / config.environments as f64;
            delay += run.delay / config.environments as f64;
        }
        Ok((spec, queued, delay))
    };
    [PolicySpec::Random, PolicySpec::JoinShortestQueue, PolicySpec::PowerOfTwo].into_iter().map(of).collect()
}

/// Figures 2 to 5 of the paper, for this run.
fn draw(training: &Training, out: &Path) -> anyhow::Result<()> {
    let Some(last) = training.history().last() else { return Ok(()) };
    let baselines = baselines(training)?;
    let of = format!("{} switches, load {:.2}", training.rates().shape().switches(), training.rates().load());
    let learner = format!("{:?}", training.config().learner).to_uppercase();
    let runs = [(learner, training.history())];
    let reference = |of: fn(&(PolicySpec, f64, f64)) -> f64, bound: f64| -> Vec<_> {
        let policies = baselines.iter().map(|it| (it.0.to_string(), of(it)));
        policies.chain([("bound".to_owned(), bound)]).collect()
    };
    let title = format!("Queued packets over policy iterations, {of}");
    let queued = plots::learning(title, &runs, |it| it.queued, reference(|it| it.1, last.bound_queued));
    write(&out.join("queued.svg"), &queued)?;
    let title = format!("Delay in slots over policy iterations, {of}");
    let delay = plots::learning(title, &runs, |it| it.delay, reference(|it| it.2, last.bound_delay));
    write(&out.join("delay.svg"), &delay)
}

/// What a training came to. The keys of the JSON object are an interface.
#[derive(Debug, Serialize)]
struct Outcome {
    learner: Learner,
    value: ValueKind,
    stages: usize,
    switches: usize,
    load: f64,
    iterations: u64,
    network_slots: u64,
    simulated_slots: u64,
    best_iteration: Option<u64>,
    queued: Option<f64>,
    delay: Option<f64>,
    bound_queued: Option<f64>,
    bound_delay: Option<f64>,
    #[serde(flatten)]
    aggregation: Aggregation,
}

impl Outcome {
    /// All workers must make it at the same time.
    fn new(training: &mut Training, begin: Instant) -> anyhow::Result<Self> {
        let replicas_identical = training.replicas_identical()?;
        let (config, shape) = (training.config(), training.rates().shape());
        let (last, best) = (training.history().last(), training.best());
        Ok(Self {
            learner: config.learner,
            value: config.value,
            stages: shape.stages(),
            switches: shape.switches(),
            load: training.rates().load(),
            iterations: last.map_or(0, |record| record.iteration),
            network_slots: last.map_or(0, |record| record.network_slots),
            simulated_slots: last.map_or(0, |record| record.simulated_slots),
            best_iteration: best.map(|record| record.iteration),
            queued: best.map(|record| record.queued),
            delay: best.map(|record| record.delay),
            bound_queued: best.map(|record| record.bound_queued),
            bound_delay: best.map(|record| record.bound_delay),
            aggregation: Aggregation::new(training.place(), training.aggregator(), replicas_identical, begin),
        })
    }

    fn print(&self, json: bool) -> anyhow::Result<()> {
        if json {
            print_line!("{}", serde_json::to_string(self)?)?;
            return Ok(());
        }
        let (Some(queued), Some(bound)) = (self.queued, self.bound_queued) else {
            print_line!("no iteration is complete")?;
            return Ok(());
        };
        print_line!(
            "{} stages of {} switches, load {:.2}, {} iterations: {} slots of the network, {} simulated, {:.1} s\n\
             the best policy, of iteration {}, queues {queued:.1} packets, {:.1} % above the bound; delay {:.3} slots\n\
             {}",
            self.stages,
            self.switches,
            self.load,
            self.iterations,
            self.network_slots,
            self.simulated_slots,
            self.aggregation.seconds(),
            self.best_iteration.unwrap_or(0),
            (queued / bound - 1.0) * 100.0,
            self.delay.unwrap_or(0.0),
            self.aggregation.line(),
        )?;
        Ok(())
    }
}
