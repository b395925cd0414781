//! One worker's run: advances, curves, checkpoints.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context as _;
use hdrhistogram::Histogram;
use iswitch::algorithms::checkpoint;
use iswitch::algorithms::metrics::MetricsWriter;
use iswitch::algorithms::trainer::{Report, Trainer};

use crate::outcome::{Outcome, microseconds};
use crate::progress::{Progress, Shown};

/// Names of the curves before and after the losses, which are the algorithm's.
const CHARTS: [&str; 4] =
    ["charts/episodic_return", "charts/episodic_length", "charts/mean_return_100", "charts/SPS"];
const AGGREGATION: [&str; 2] = ["aggregation/p50_us", "aggregation/p99_us"];

/// How a run is to be shown and kept.
pub(crate) struct SessionOptions {
    /// Run directory.
    pub(crate) out: PathBuf,
    /// Advances between checkpoints; 0 only at the end.
    pub(crate) checkpoint_every: u64,
    pub(crate) quiet: bool,
    pub(crate) resume: bool,
}

/// What one worker keeps while it trains.
pub(crate) struct Session {
    options: SessionOptions,
    /// Worker 0's.
    metrics: Option<MetricsWriter>,
    progress: Progress,
    /// Nanoseconds of each gradient aggregation of this worker, since the start and in the last advance.
    aggregation: Histogram<u64>,
    aggregation_recent: Histogram<u64>,
    begin: Instant,
}

impl Session {
    pub(crate) fn new(options: SessionOptions, trainer: &dyn Trainer) -> anyhow::Result<Self> {
        const SIGNIFICANT_DIGITS: u8 = 3;
        let first = trainer.place().rank == 0;
        let at = trainer.progress();
        let resumed = options.resume.then_some(at.steps);
        let progress = Progress::new(at.total_steps, options.quiet || !first);
        if let Some(note) = trainer.note().filter(|_| first) {
            progress.note(&note);
        }
        let tags: Vec<_> = CHARTS.iter().chain(trainer.loss_names()).chain(&AGGREGATION).copied().collect();
        let metrics = first.then(|| MetricsWriter::create(&options.out, &tags, resumed)).transpose()?;
        Ok(Self {
            options,
            metrics,
            progress,
            aggregation: Histogram::new(SIGNIFICANT_DIGITS)?,
            aggregation_recent: Histogram::new(SIGNIFICANT_DIGITS)?,
            begin: Instant::now(),
        })
    }

    /// Trains to the end, or until a worker asks to stop; the last state is in the checkpoint.
    pub(crate) fn run(&mut self, trainer: &mut dyn Trainer) -> anyhow::Result<Outcome> {
        while !trainer.progress().finished {
            let before = trainer.progress();
            let report = trainer
                .advance()
                .with_context(|| format!("worker {}, step {}", trainer.place().rank, before.steps))?;
            let at = trainer.progress();
            let last = report.stopped || at.finished;
            self.show(trainer, &report, at.steps - before.steps, last)?;
            let every = self.options.checkpoint_every;
            if last || (every > 0 && at.advances.is_multiple_of(every)) {
                checkpoint::save(trainer, &self.options.out)?;
            }
            if last {
                break;
            }
        }
        Ok(Outcome::collect(trainer, &self.aggregation, self.begin.elapsed())?)
    }

    /// Says something besides.
    pub(crate) fn note(&self, text: &str) {
        self.progress.note(text);
    }

    fn show(&mut self, trainer: &dyn Trainer, report: &Report, steps: u64, last: bool) -> anyhow::Result<()> {
        self.aggregation_recent.reset();
        for time in trainer.aggregation_times() {
            self.aggregation_recent.record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(1))?;
        }
        self.aggregation.add(&self.aggregation_recent)?;
        let at = trainer.progress();
        let steps_per_second = steps as f64 / report.elapsed.as_secs_f64();
        if let Some(metrics) = &mut self.metrics {
            let charts =
                [report.episodic_return, report.episodic_length, at.mean_return, Some(steps_per_second)];
            let aggregation =
                [0.5, 0.99].map(|quantile| Some(microseconds(&self.aggregation_recent, quantile)));
            let losses = report.losses.iter().copied().map(Some);
            let row: Vec<_> = charts.into_iter().chain(losses).chain(aggregation).collect();
            metrics.write(at.steps, &row)?;
        }
        let shown = Shown {
            steps: at.steps,
            mean_return: at.mean_return,
            steps_per_second,
            aggregation_us_p50: microseconds(&self.aggregation, 0.5),
        };
        self.progress.update(shown, last);
        Ok(())
    }
}
