//! Result of a run, printed as one JSON object or as a few lines of text.

use hdrhistogram::Histogram;
use iswitch_learn::algorithms::TrainError;
use iswitch_learn::algorithms::trainer::{Trainer, all_gather, replicas_identical};
use iswitch_manual::output;
use serde::Serialize;
use std::time::Duration;

/// Result of a run. Other programs rely on the keys of the JSON object and on their order.
#[derive(Debug, Serialize)]
pub struct Outcome {
    algorithm: &'static str,
    env: String,
    workers: usize,
    aggregator: &'static str,
    /// Number of environment steps, over all workers.
    steps: u64,
    /// Number of gradients that were aggregated and applied.
    iterations: u64,
    /// Mean return of the last 100 episodes; null if no episode has ended.
    final_return: Option<f64>,
    solved: bool,
    /// Duration of this invocation, in seconds. If the run was resumed, earlier invocations are not included.
    seconds: f64,
    aggregation_us_p50: f64,
    aggregation_us_p99: f64,
    replicas_identical: bool,
    /// Number of segments sent, over all workers.
    segments: u64,
    retransmitted: u64,
}

impl Outcome {
    /// Compares the replicas, and sums the counters over all workers. This is a collective operation, so all workers
    /// must call it.
    pub fn collect(
        trainer: &mut dyn Trainer,
        aggregation: &Histogram<u64>,
        elapsed: Duration,
    ) -> Result<Self, TrainError> {
        let replicas_identical = replicas_identical(trainer)?;
        let stats = trainer.aggregator().stats();
        let counters = all_gather(trainer, &[stats.segments, stats.retransmitted])?;
        let at = trainer.progress();
        let final_return = at.mean_return;
        Ok(Self {
            algorithm: trainer.algorithm(),
            env: trainer.spec().id.to_string(),
            workers: trainer.world().size,
            aggregator: trainer.aggregator().name(),
            steps: at.steps,
            iterations: at.iterations,
            final_return,
            solved: final_return.is_some_and(|mean| mean >= trainer.spec().solved_return),
            seconds: (elapsed.as_secs_f64() * 1e3).round() / 1e3,
            aggregation_us_p50: microseconds(aggregation, 0.5),
            aggregation_us_p99: microseconds(aggregation, 0.99),
            replicas_identical,
            segments: counters.iter().map(|worker| worker[0]).sum(),
            retransmitted: counters.iter().map(|worker| worker[1]).sum(),
        })
    }

    /// Prints the result to standard output.
    pub fn print(&self, json: bool) -> anyhow::Result<()> {
        let text = if json { serde_json::to_string(self)? + "\n" } else { self.text() };
        output::print(format_args!("{text}"))?;
        Ok(())
    }

    fn text(&self) -> String {
        let mean = self.final_return.map_or("none".to_owned(), |mean| format!("{mean:.1}"));
        format!(
            "{} on {}, {} worker(s): mean return of the last 100 episodes {mean} ({}) after {} steps, {:.1} s\n\
             aggregation by {}: {} iterations, p50 {:.1} us, p99 {:.1} us; {} segments sent, {} retransmitted\n\
             replicas identical: {}\n",
            self.algorithm.to_uppercase(),
            self.env,
            self.workers,
            if self.solved { "solved" } else { "not solved" },
            self.steps,
            self.seconds,
            self.aggregator,
            self.iterations,
            self.aggregation_us_p50,
            self.aggregation_us_p99,
            self.segments,
            self.retransmitted,
            if self.replicas_identical { "yes" } else { "NO" },
        )
    }
}

/// Returns a quantile of a histogram of nanoseconds, converted to microseconds and rounded to one decimal place.
pub fn microseconds(histogram: &Histogram<u64>, quantile: f64) -> f64 {
    (histogram.value_at_quantile(quantile) as f64 / 100.0).round() / 10.0
}
