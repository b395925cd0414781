//! Run of one worker. It advances the trainer, records metrics and saves checkpoints.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use hdrhistogram::Histogram;
use iswitch_learn::algorithms::checkpoint::{self, RunKind};
use iswitch_learn::algorithms::metrics::MetricsWriter;
use iswitch_learn::algorithms::trainer::{Progress, Report, Trainer};
use serde_json::Value;

use crate::outcome::{Outcome, microseconds};
use crate::progress::{self, Shown};
use crate::tracking::{Tracker, Tracking};

/// Names of the metrics that are recorded before the losses of the algorithm.
const CHARTS: [&str; 4] =
    ["charts/episodic_return", "charts/episodic_length", "charts/mean_return_100", "charts/SPS"];
/// Names of the metrics that are recorded after the losses of the algorithm.
const AGGREGATION: [&str; 2] = ["aggregation/p50_us", "aggregation/p99_us"];

/// Options for the display and the checkpoints of a run.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// Run directory.
    pub out: PathBuf,
    /// Number of advances of the trainer between two checkpoints; 0 saves only the final state.
    pub checkpoint_every: u64,
    /// Whether to hide the progress display.
    pub quiet: bool,
    /// Whether the run continues from its checkpoint.
    pub resume: bool,
    /// Weights & Biases project in which the run is tracked, if any.
    pub tracking: Option<Tracking>,
    /// Whether this process displays the job's progress and writes its metrics.
    pub is_first: bool,
}

/// State of one worker's run: its display, metrics and aggregation times.
pub struct Session {
    options: SessionOptions,
    metrics: Option<MetricsWriter>,
    tracker: Option<Tracker>,
    tags: Vec<&'static str>,
    progress: progress::Progress,
    rate: Rate,
    /// Durations of this worker's gradient aggregations since the start, in nanoseconds.
    aggregation: Histogram<u64>,
    /// Durations of this worker's gradient aggregations in the latest advance of the trainer, in nanoseconds.
    aggregation_recent: Histogram<u64>,
    begin: Instant,
}

impl Session {
    /// Starts the session of a run whose progress so far is `at`. `loss_names` are the names of its losses.
    pub fn new(
        options: SessionOptions,
        run: &RunKind<'_>,
        at: &Progress,
        loss_names: &[&'static str],
    ) -> anyhow::Result<Self> {
        const SIGNIFICANT_DIGITS: u8 = 3;
        let resumed = options.resume.then_some(at.steps);
        let tags: Vec<_> = CHARTS.iter().chain(loss_names).chain(&AGGREGATION).copied().collect();
        let progress = progress::Progress::new(at.total_steps, options.quiet || !options.is_first);
        let (mut metrics, mut tracker) = (None, None);
        if options.is_first {
            let settings = settings(run)?;
            // Start tracking before creating files: if it fails, there are no files that prevent the user from
            // repeating the command.
            let begin = |tracking| Tracker::begin(tracking, &options.out, &settings, options.resume);
            tracker = options.tracking.as_ref().map(begin).transpose()?;
            let mut writer = MetricsWriter::create(&options.out, &tags, resumed)?;
            writer.write_hyper_parameters(&texts(&settings))?;
            metrics = Some(writer);
        }
        if let Some(tracker) = tracker.as_ref().filter(|_| !options.quiet) {
            progress.note(&format!("tracked by Weights & Biases: {}", tracker.place()));
        }
        Ok(Self {
            metrics,
            tracker,
            tags,
            progress,
            rate: Rate::new(at.steps),
            options,
            aggregation: Histogram::new(SIGNIFICANT_DIGITS)?,
            aggregation_recent: Histogram::new(SIGNIFICANT_DIGITS)?,
            begin: Instant::now(),
        })
    }

    /// Starts the session of a trainer.
    pub fn of(trainer: &dyn Trainer, options: SessionOptions) -> anyhow::Result<Self> {
        let (env, config) = (&trainer.spec().id, trainer.config_json());
        let run = RunKind { algorithm: trainer.algorithm(), env, config: &config };
        Self::new(options, &run, &trainer.progress(), trainer.loss_names())
    }

    /// Trains until the run is complete or a worker requests a stop. Then saves the final state in a checkpoint.
    pub fn run(&mut self, trainer: &mut dyn Trainer) -> anyhow::Result<Outcome> {
        if let Some(note) = trainer.note().filter(|_| self.options.is_first) {
            self.note(&note);
        }
        while !trainer.progress().finished {
            let before = trainer.progress();
            let report = trainer
                .advance()
                .with_context(|| format!("worker {}, step {}", trainer.world().rank, before.steps))?;
            let at = trainer.progress();
            let last = report.stopped || at.finished;
            self.show(&at, &report, trainer.aggregation_times())?;
            if self.is_checkpoint_due(&at, last) {
                checkpoint::save(trainer, &self.options.out)?;
            }
            if last {
                break;
            }
        }
        Ok(Outcome::collect(trainer, &self.aggregation, self.elapsed())?)
    }

    /// Returns whether a checkpoint is due after this advance. If `last` is set, a checkpoint is always due.
    pub fn is_checkpoint_due(&self, at: &Progress, last: bool) -> bool {
        let every = self.options.checkpoint_every;
        last || (every > 0 && at.advances.is_multiple_of(every))
    }

    /// Returns the time since the start of the session.
    pub fn elapsed(&self) -> Duration {
        self.begin.elapsed()
    }

    /// Prints a line of text above the progress bar.
    pub fn note(&self, text: &str) {
        self.progress.note(text);
    }

    /// Sends a row of metrics to the tracker. If the tracker fails, the run continues without tracking.
    fn track(&mut self, step: u64, row: &[Option<f64>]) {
        let Some(tracker) = &mut self.tracker else { return };
        if let Err(error) = tracker.log(step, &self.tags, row) {
            self.progress.note(&format!(
                "iswitch: the run is no longer tracked: {}",
                iswitch_manual::describe(error.as_ref())
            ));
            self.tracker = None;
        }
    }

    /// Displays and records one advance of the trainer. `times` are the durations of the advance's aggregations.
    pub fn show(&mut self, at: &Progress, report: &Report, times: &[Duration]) -> anyhow::Result<()> {
        self.aggregation_recent.reset();
        for time in times {
            self.aggregation_recent.record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(1))?;
        }
        self.aggregation.add(&self.aggregation_recent)?;
        let steps_per_second = self.rate.update(at.steps, report.elapsed);
        if let Some(metrics) = &mut self.metrics {
            let charts =
                [report.episodic_return, report.episodic_length, at.mean_return, Some(steps_per_second)];
            let recent = &self.aggregation_recent;
            let aggregation =
                [0.5, 0.99].map(|quantile| (!recent.is_empty()).then(|| microseconds(recent, quantile)));
            let losses = report.losses.iter().copied().map(Some);
            let row: Vec<_> = charts.into_iter().chain(losses).chain(aggregation).collect();
            metrics.write(at.steps, &row)?;
            self.track(at.steps, &row);
        }
        let shown = Shown {
            steps: at.steps,
            mean_return: at.mean_return,
            steps_per_second,
            aggregation_us_p50: (!self.aggregation.is_empty()).then(|| microseconds(&self.aggregation, 0.5)),
        };
        self.progress.update(shown, report.stopped || at.finished);
        Ok(())
    }
}

/// Returns the algorithm, the environment and the hyper-parameters of a run as a JSON object.
fn settings(run: &RunKind<'_>) -> anyhow::Result<Value> {
    let mut settings: Value = serde_json::from_str(run.config)?;
    (settings["algorithm"], settings["env"]) = (run.algorithm.into(), run.env.into());
    Ok(settings)
}

/// Returns the entries of a JSON object, each as its name and its value in text form.
fn texts(settings: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let entries = settings.as_object().into_iter().flatten();
    entries.map(|(name, value)| (name.clone(), text(value))).collect()
}

/// Rate in steps per second, measured over a time window.
struct Rate {
    steps: u64,
    time: Duration,
    per_second: f64,
}

impl Rate {
    /// Minimum length of the window. It is long enough for a learner to receive several step counts from remote actors.
    const WINDOW: Duration = Duration::from_millis(500);

    fn new(steps: u64) -> Self {
        Self { steps, time: Duration::ZERO, per_second: 0.0 }
    }

    /// Updates the rate with the current step count of the run, and returns the rate. `elapsed` is the time since the
    /// previous update.
    fn update(&mut self, steps: u64, elapsed: Duration) -> f64 {
        self.time += elapsed;
        let present = steps.saturating_sub(self.steps) as f64 / self.time.as_secs_f64();
        if self.time >= Self::WINDOW || self.per_second == 0.0 {
            self.per_second = present;
        }
        if self.time >= Self::WINDOW {
            (self.steps, self.time) = (steps, Duration::ZERO);
        }
        self.per_second
    }
}
