//! `iswitch train ppo`: one worker's run, or the parent of all.

use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::Args;
use hdrhistogram::Histogram;
use iswitch::algorithms::checkpoint;
use iswitch::algorithms::metrics::MetricsWriter;
use iswitch::algorithms::ppo::{PpoConfig, PpoTrainer, RolloutReport};
use iswitch::{GradientAggregator, Loopback, env};

use iswitch_protocol::limits::MAX_MEMBERS;

use crate::launch::{self, Placement};
use crate::outcome::{Outcome, microseconds};
use crate::progress::{Progress, Shown};
use crate::switch::{self, KeyArgs};

/// Arguments of `iswitch train ppo`.
#[derive(Args)]
pub(crate) struct PpoArgs {
    /// Environment: PlanarHopper-v0 (the default), CartPole-v1, Pendulum-v1, or Hopper-v5 and HalfCheetah-v5, which
    /// need libmujoco (`pip install mujoco`, or MUJOCO_LIBRARY=FILE).
    #[arg(long, value_name = "ID")]
    env: Option<String>,
    /// Workers of the job [default: 4]. Batches are divided over them, so their number does not change what is
    /// learned. Without --switch this command starts a switch and all workers itself; a single worker needs none.
    #[arg(long, value_name = "N", overrides_with = "workers", value_parser = worker_count())]
    workers: Option<u16>,
    /// Switch to join. This process is then one worker, whose place --rank or the launcher tells.
    #[arg(long, value_name = "ADDR:PORT", env = "ISWITCH_SWITCH")]
    switch: Option<SocketAddrV4>,
    /// This worker, from 0. By default RANK and WORLD_SIZE, OMPI_COMM_WORLD_RANK and _SIZE, SLURM_PROCID and
    /// SLURM_NTASKS, or JOB_COMPLETION_INDEX with --workers, if a launcher has set them.
    #[arg(long, value_name = "R")]
    rank: Option<u16>,
    /// Number of the job at the switch; jobs of different numbers do not meet.
    #[arg(long, value_name = "N", default_value_t = 0)]
    job: u32,
    /// Environment steps over all workers [default: 1000000; with --resume: those of the run].
    #[arg(long, value_name = "N")]
    steps: Option<u64>,
    /// Seed of everything random [default: 1].
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Run directory: checkpoint, progress.csv and TensorBoard events [default: runs/ppo-ENV-SEED, with a number
    /// behind it if that holds a run]. With workers on several machines and --resume it must be shared by all.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Go on from the checkpoint in the run directory, with the hyper-parameters saved there.
    #[arg(long)]
    resume: bool,
    /// Discard the run that the run directory holds.
    #[arg(long, conflicts_with = "resume")]
    force: bool,
    /// Rollouts between checkpoints; 0 only at the end.
    #[arg(long, value_name = "N", default_value_t = 50)]
    checkpoint_every: u64,
    /// Print the result as one JSON object on the standard output.
    #[arg(long)]
    json: bool,
    /// Show no progress.
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    key: KeyArgs,
    #[command(flatten)]
    hyper: HyperParameters,
    /// Given by the parent process to its workers.
    #[arg(long, hide = true)]
    supervised: bool,
}

/// Hyper-parameters that differ from the environment's preset. All sizes are over all workers.
#[derive(Args)]
#[command(next_help_heading = "Hyper-parameters (default: the environment's preset)")]
struct HyperParameters {
    /// Environments of the job; the workers must divide it [default: 4, or one a worker if they are more].
    #[arg(long, value_name = "N", conflicts_with = "resume")]
    environments: Option<usize>,
    /// Steps of a rollout.
    #[arg(long, value_name = "N", conflicts_with = "resume")]
    rollout_steps: Option<usize>,
    /// Samples of a minibatch.
    #[arg(long, value_name = "N", conflicts_with = "resume")]
    minibatch_size: Option<usize>,
    /// Passes over each rollout.
    #[arg(long, value_name = "N", conflicts_with = "resume")]
    epochs: Option<usize>,
    /// Learning rate of Adam at the start; it falls linearly to 0.
    #[arg(long, value_name = "X", conflicts_with = "resume")]
    learning_rate: Option<f32>,
    /// Discount factor.
    #[arg(long, value_name = "X", conflicts_with = "resume")]
    gamma: Option<f32>,
    /// Lambda of generalised advantage estimation.
    #[arg(long, value_name = "X", conflicts_with = "resume")]
    gae_lambda: Option<f32>,
    /// Range of the probability ratio.
    #[arg(long, value_name = "X", conflicts_with = "resume")]
    clip_range: Option<f32>,
    /// Weight of the entropy bonus.
    #[arg(long, value_name = "X", conflicts_with = "resume")]
    entropy_coefficient: Option<f32>,
}

/// As many workers as a switch counts in one job.
fn worker_count() -> clap::builder::RangedI64ValueParser<u16> {
    clap::value_parser!(u16).range(1..=MAX_MEMBERS as i64)
}

const DEFAULT_ENV: &str = "PlanarHopper-v0";
const DEFAULT_WORKERS: u16 = 4;
const DEFAULT_STEPS: u64 = 1_000_000;
const DEFAULT_SEED: u64 = 1;
const PROGRESS_FILE: &str = "progress.csv";

/// Names of the curves, in the order of `curves`.
const TAGS: [&str; 13] = [
    "charts/episodic_return",
    "charts/episodic_length",
    "charts/mean_return_100",
    "charts/SPS",
    "charts/learning_rate",
    "losses/policy_loss",
    "losses/value_loss",
    "losses/entropy",
    "losses/approx_kl",
    "losses/clipfrac",
    "losses/gradient_norm",
    "aggregation/p50_us",
    "aggregation/p99_us",
];

/// What a run is, after defaults and checkpoint.
struct Job {
    env: String,
    config: PpoConfig,
    out: PathBuf,
}

/// Trains as one worker, or starts the switch and all workers.
pub(crate) fn run(args: &PpoArgs) -> anyhow::Result<ExitCode> {
    let lookup = |name: &str| std::env::var(name).ok();
    let rank = args.rank.map(usize::from);
    let placement = launch::placement(rank, args.workers.map(usize::from), lookup)?;
    let workers = usize::from(args.workers.unwrap_or(DEFAULT_WORKERS));
    let mut job = args.job()?;
    let is_alone = args.switch.is_none() && placement.is_none();
    if is_alone && args.out.is_none() && !args.resume && !args.force {
        job.out = unused(&job.out);
    }
    match (args.switch, placement) {
        (Some(switch), Some(placement)) => {
            args.prepare(&job, placement)?;
            args.work(&job, placement, Some(switch))?;
        }
        (Some(_), None) => {
            bail!("--switch needs --rank and --workers, or a launcher that sets RANK and WORLD_SIZE")
        }
        (None, Some(placement)) if placement.workers > 1 => {
            bail!(
                "this process is worker {} of {}, by --rank or a launcher's variables: --switch ADDR:PORT is needed",
                placement.rank,
                placement.workers
            );
        }
        (None, None) if workers > 1 => {
            args.prepare(&job, Placement { rank: 0, workers })?;
            let mut arguments: Vec<_> = std::env::args_os().skip(1).collect();
            if args.out.is_none() {
                arguments.extend(["--out".into(), job.out.into()]);
            }
            return launch::run_workers(workers, &arguments, &args.key);
        }
        (None, _) => {
            let placement = Placement { rank: 0, workers: 1 };
            args.prepare(&job, placement)?;
            args.work(&job, placement, None)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl PpoArgs {
    fn job(&self) -> anyhow::Result<Job> {
        let env = self.env.clone().unwrap_or_else(|| DEFAULT_ENV.to_owned());
        let seed = self.seed.unwrap_or(DEFAULT_SEED);
        let out = self.out.clone().unwrap_or_else(|| PathBuf::from(format!("runs/ppo-{env}-{seed}")));
        if !self.resume {
            let steps = self.steps.unwrap_or(DEFAULT_STEPS);
            let config = self.hyper.apply(PpoConfig { seed, total_steps: steps, ..PpoConfig::preset(&env) });
            return Ok(Job { env, config, out });
        }
        let (saved_env, mut config) = checkpoint::read_job(&out).context("nothing to resume")?;
        if self.env.is_some() && saved_env != env {
            bail!("{} holds a run of {saved_env}, not {env}", out.display());
        }
        if self.seed.is_some() && config.seed != seed {
            bail!("{} holds a run with seed {}, not {seed}", out.display(), config.seed);
        }
        config.total_steps = self.steps.unwrap_or(config.total_steps);
        Ok(Job { env: saved_env, config, out })
    }

    /// Makes the run directory, and refuses to overwrite a run. Worker 0's, or the parent's, task.
    fn prepare(&self, job: &Job, placement: Placement) -> anyhow::Result<()> {
        // A wrong id or a missing library is best told before anything is started.
        env::make(&job.env)?;
        if self.supervised || placement.rank > 0 {
            return Ok(());
        }
        let out = &job.out;
        if holds_run(out) && !self.resume && !self.force {
            bail!(
                "{} already holds a run: --resume goes on with it, --force discards it, --out takes another directory",
                out.display()
            );
        }
        if self.force {
            discard_run(out)?;
        }
        std::fs::create_dir_all(out).with_context(|| format!("making {}", out.display()))
    }

    /// One worker's run.
    fn work(&self, job: &Job, place: Placement, switch: Option<SocketAddrV4>) -> anyhow::Result<()> {
        let id = job.env.clone();
        let gradient_len = job.config.networks(env::make(&id)?.spec()).parameter_count();
        let aggregator: Box<dyn GradientAggregator> = match switch {
            Some(switch) => {
                let siblings = self.supervised.then_some(switch::SIBLINGS_TIMEOUT);
                switch::join(
                    switch,
                    self.job,
                    (place.rank, place.workers),
                    gradient_len,
                    siblings,
                    &self.key,
                )?
            }
            None => Box::new(Loopback::alone(gradient_len)),
        };
        let make = move || env::make(&id);
        let mut trainer =
            PpoTrainer::new(job.config.clone(), (place.rank, place.workers), &make, aggregator)?;
        if self.resume {
            let missing = checkpoint::resume(&mut trainer, &job.out)?;
            if !missing.is_empty() {
                eprintln!(
                    "iswitch: the checkpoint lacks environments {missing:?} of a lost worker; they start anew"
                );
            }
        }
        let stop = trainer.stop_handle();
        launch::stop_on_signal(&stop)?;
        if self.supervised {
            launch::obey_parent(stop);
        }
        let mut session = Session::new(self, &trainer, job)?;
        session.run(&mut trainer)?;
        let outcome = Outcome::collect(&mut trainer, &session.aggregation, session.begin.elapsed())?;
        if place.rank == 0 {
            outcome.print(self.json)?;
            if !trainer.finished() {
                session.progress.note(&format!(
                    "stopped after {} of {} rollouts; go on with: iswitch train ppo --resume --out {} --workers {}",
                    trainer.replica().rollouts,
                    trainer.rollouts_total(),
                    job.out.display(),
                    place.workers
                ));
            }
        }
        Ok(())
    }
}

impl HyperParameters {
    fn apply(&self, preset: PpoConfig) -> PpoConfig {
        PpoConfig {
            environments: self.environments.or(preset.environments),
            rollout_steps: self.rollout_steps.unwrap_or(preset.rollout_steps),
            minibatch_size: self.minibatch_size.unwrap_or(preset.minibatch_size),
            epochs: self.epochs.unwrap_or(preset.epochs),
            learning_rate: self.learning_rate.unwrap_or(preset.learning_rate),
            gamma: self.gamma.unwrap_or(preset.gamma),
            gae_lambda: self.gae_lambda.unwrap_or(preset.gae_lambda),
            clip_range: self.clip_range.unwrap_or(preset.clip_range),
            entropy_coefficient: self.entropy_coefficient.unwrap_or(preset.entropy_coefficient),
            ..preset
        }
    }
}

fn holds_run(out: &Path) -> bool {
    [checkpoint::MODEL_FILE, PROGRESS_FILE].iter().any(|name| out.join(name).exists())
}

/// The directory, or the first of DIR-2, DIR-3 and so on, that holds no run: so that a command can be repeated.
fn unused(out: &Path) -> PathBuf {
    let numbered = (2..).map(|number| PathBuf::from(format!("{}-{number}", out.display())));
    std::iter::once(out.to_owned())
        .chain(numbered)
        .find(|out| !holds_run(out))
        .expect("there is no end of numbers")
}

/// Removes the files of a run, and nothing else, from its directory.
fn discard_run(out: &Path) -> anyhow::Result<()> {
    let entries = std::fs::read_dir(out).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_ours = name == PROGRESS_FILE
            || name == checkpoint::MODEL_FILE
            || (name.starts_with("worker-") && name.ends_with(".safetensors"))
            || name.starts_with("events.out.tfevents.");
        if is_ours {
            std::fs::remove_file(&path).with_context(|| format!("removing {}", path.display()))?;
        }
    }
    Ok(())
}

/// What one worker keeps while it trains.
struct Session {
    out: PathBuf,
    checkpoint_every: u64,
    /// Worker 0's.
    metrics: Option<MetricsWriter>,
    progress: Progress,
    /// Nanoseconds of each gradient aggregation of this worker, since the start and in the last rollout.
    aggregation: Histogram<u64>,
    aggregation_recent: Histogram<u64>,
    begin: Instant,
}

impl Session {
    fn new(args: &PpoArgs, trainer: &PpoTrainer, job: &Job) -> anyhow::Result<Self> {
        const SIGNIFICANT_DIGITS: u8 = 3;
        let first = trainer.share().rank == 0;
        let resumed = args.resume.then_some(trainer.replica().steps);
        let total = trainer.rollouts_total() * trainer.share().rollout_steps() as u64;
        let progress = Progress::new(total, args.quiet || !first);
        note_rounding(&progress, trainer);
        Ok(Self {
            out: job.out.clone(),
            checkpoint_every: args.checkpoint_every,
            metrics: first.then(|| MetricsWriter::create(&job.out, &TAGS, resumed)).transpose()?,
            progress,
            aggregation: Histogram::new(SIGNIFICANT_DIGITS)?,
            aggregation_recent: Histogram::new(SIGNIFICANT_DIGITS)?,
            begin: Instant::now(),
        })
    }

    /// Trains to the end, or until a worker asks to stop; the last state is in the checkpoint.
    fn run(&mut self, trainer: &mut PpoTrainer) -> anyhow::Result<()> {
        while !trainer.finished() {
            let steps_before = trainer.replica().steps;
            let report = trainer.step_rollout().with_context(|| {
                format!("worker {}, rollout {}", trainer.share().rank, trainer.replica().rollouts)
            })?;
            self.show(trainer, &report, report.steps - steps_before)?;
            let last = report.stopped || report.finished;
            let due = self.checkpoint_every > 0 && report.rollouts.is_multiple_of(self.checkpoint_every);
            if last || due {
                checkpoint::save(trainer, &self.out)?;
            }
            if last {
                break;
            }
        }
        Ok(())
    }

    fn show(&mut self, trainer: &PpoTrainer, report: &RolloutReport, steps: u64) -> anyhow::Result<()> {
        self.aggregation_recent.reset();
        for time in trainer.aggregation_times() {
            self.aggregation_recent.record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(1))?;
        }
        self.aggregation.add(&self.aggregation_recent)?;
        let time: Duration = report.rollout_time + report.update_time;
        let steps_per_second = steps as f64 / time.as_secs_f64();
        if let Some(metrics) = &mut self.metrics {
            metrics.write(report.steps, &curves(report, steps_per_second, &self.aggregation_recent))?;
        }
        let shown = Shown {
            steps: report.steps,
            mean_return: report.mean_return,
            steps_per_second,
            aggregation_us_p50: microseconds(&self.aggregation, 0.5),
        };
        self.progress.update(shown, report.stopped || report.finished);
        Ok(())
    }
}

/// Tells when the sizes asked for do not divide evenly and others are used.
fn note_rounding(progress: &Progress, trainer: &PpoTrainer) {
    let (config, share) = (trainer.config(), trainer.share());
    let (rollout, minibatch) = (share.rollout_steps(), share.minibatch_size());
    if share.rank == 0 && (rollout, minibatch) != (config.rollout_steps, config.minibatch_size) {
        progress.note(&format!(
            "{} environments: rollouts of {rollout} steps and minibatches of {minibatch} instead of {} and {}",
            share.environments, config.rollout_steps, config.minibatch_size
        ));
    }
}

/// The numbers of a rollout, in the order of [`TAGS`].
fn curves(
    report: &RolloutReport,
    steps_per_second: f64,
    aggregation: &Histogram<u64>,
) -> [Option<f64>; TAGS.len()] {
    let losses = &report.losses;
    [
        report.episodic_return,
        report.episodic_length,
        report.mean_return,
        Some(steps_per_second),
        Some(f64::from(report.learning_rate)),
        Some(losses.policy),
        Some(losses.value),
        Some(losses.entropy),
        Some(losses.approx_kl),
        Some(losses.clip_fraction),
        Some(losses.gradient_norm),
        Some(microseconds(aggregation, 0.5)),
        Some(microseconds(aggregation, 0.99)),
    ]
}
