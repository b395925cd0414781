//! One worker's run: advances, curves, checkpoints.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use hdrhistogram::Histogram;
use iswitch_learn::algorithms::checkpoint;
use iswitch_learn::algorithms::metrics::MetricsWriter;
use iswitch_learn::algorithms::trainer::{Progress, Report, Trainer};

use crate::outcome::{Outcome, microseconds};
use crate::progress::{self, Shown};

/// Names of the curves before and after the losses, which are the algorithm's.
const CHARTS: [&str; 4] =
    ["charts/episodic_return", "charts/episodic_length", "charts/mean_return_100", "charts/SPS"];
const AGGREGATION: [&str; 2] = ["aggregation/p50_us", "aggregation/p99_us"];

/// How a run is to be shown and kept.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// Run directory.
    pub out: PathBuf,
    /// Advances between checkpoints; 0 only at the end.
    pub checkpoint_every: u64,
    /// Whether no progress is shown.
    pub quiet: bool,
    /// Whether the run continues from its checkpoint.
    pub resume: bool,
    /// Whether this process shows the job and writes its curves.
    pub is_first: bool,
}

/// What one worker keeps while it trains.
pub struct Session {
    options: SessionOptions,
    metrics: Option<MetricsWriter>,
    progress: progress::Progress,
    rate: Rate,
    /// Nanoseconds of each gradient aggregation of this worker, since the start and in the last advance.
    aggregation: Histogram<u64>,
    aggregation_recent: Histogram<u64>,
    begin: Instant,
}

impl Session {
    /// For a run that is at `at`, with these names of losses.
    pub fn new(options: SessionOptions, at: &Progress, loss_names: &[&'static str]) -> anyhow::Result<Self> {
        const SIGNIFICANT_DIGITS: u8 = 3;
        let resumed = options.resume.then_some(at.steps);
        let tags: Vec<_> = CHARTS.iter().chain(loss_names).chain(&AGGREGATION).copied().collect();
        let create = || MetricsWriter::create(&options.out, &tags, resumed);
        Ok(Self {
            metrics: options.is_first.then(create).transpose()?,
            progress: progress::Progress::new(at.total_steps, options.quiet || !options.is_first),
            rate: Rate::new(at.steps),
            options,
            aggregation: Histogram::new(SIGNIFICANT_DIGITS)?,
            aggregation_recent: Histogram::new(SIGNIFICANT_DIGITS)?,
            begin: Instant::now(),
        })
    }

    /// Trains to the end, or until a worker asks to stop; the last state is in the checkpoint.
    pub fn run(&mut self, trainer: &mut dyn Trainer) -> anyhow::Result<Outcome> {
        if let Some(note) = trainer.note().filter(|_| self.options.is_first) {
            self.note(&note);
        }
        while !trainer.progress().finished {
            let before = trainer.progress();
            let report = trainer
                .advance()
                .with_context(|| format!("worker {}, step {}", trainer.place().rank, before.steps))?;
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

    /// Whether the state after an advance, which may be the last one, is to be saved.
    pub fn is_checkpoint_due(&self, at: &Progress, last: bool) -> bool {
        let every = self.options.checkpoint_every;
        last || (every > 0 && at.advances.is_multiple_of(every))
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.begin.elapsed()
    }

    /// Says something besides.
    pub fn note(&self, text: &str) {
        self.progress.note(text);
    }

    /// Shows an advance, in which the aggregations took `times`.
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

/// Steps a second, over a time that is long enough to tell.
struct Rate {
    steps: u64,
    time: Duration,
    per_second: f64,
}

impl Rate {
    /// Learners hear of the steps of actors elsewhere a few times in this.
    const WINDOW: Duration = Duration::from_millis(500);

    fn new(steps: u64) -> Self {
        Self { steps, time: Duration::ZERO, per_second: 0.0 }
    }

    /// The rate, after so many steps of the run, of which the last took `elapsed`.
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
