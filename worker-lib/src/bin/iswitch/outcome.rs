//! What a run came to: one JSON object, or a few lines for people.

use hdrhistogram::Histogram;
use iswitch::algorithms::TrainError;
use iswitch::algorithms::ppo::PpoTrainer;
use serde::Serialize;
use std::time::Duration;

/// Result of a run. The keys of the JSON object, in this order, are an interface.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    algorithm: &'static str,
    env: String,
    workers: usize,
    aggregator: &'static str,
    /// Environment steps over all workers.
    steps: u64,
    /// Gradients aggregated and applied.
    iterations: u64,
    /// Mean return of the last 100 episodes; null if none ended.
    final_return: Option<f64>,
    solved: bool,
    /// Of this invocation.
    seconds: f64,
    aggregation_us_p50: f64,
    aggregation_us_p99: f64,
    replicas_identical: bool,
    /// Over all workers.
    segments: u64,
    retransmitted: u64,
}

impl Outcome {
    /// Compares the replicas and sums the counters over all workers; all must call it at the same time.
    pub(crate) fn collect(
        trainer: &mut PpoTrainer,
        aggregation: &Histogram<u64>,
        elapsed: Duration,
    ) -> Result<Self, TrainError> {
        let replicas_identical = trainer.replicas_identical()?;
        let stats = trainer.aggregator_stats();
        let counters = trainer.all_gather(&[stats.segments, stats.retransmitted])?;
        let replica = trainer.replica();
        let final_return = replica.recent_returns.mean();
        Ok(Self {
            algorithm: "ppo",
            env: trainer.spec().id.to_owned(),
            workers: trainer.share().workers,
            aggregator: trainer.aggregator_name(),
            steps: replica.steps,
            iterations: replica.iterations,
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

    /// Prints it to the standard output.
    pub(crate) fn print(&self, json: bool) -> anyhow::Result<()> {
        if json {
            println!("{}", serde_json::to_string(self)?);
            return Ok(());
        }
        let mean = self.final_return.map_or("none".to_owned(), |mean| format!("{mean:.1}"));
        println!(
            "{} on {}, {} worker(s): mean return of the last 100 episodes {mean} ({}) after {} steps, {:.1} s",
            self.algorithm.to_uppercase(),
            self.env,
            self.workers,
            if self.solved { "solved" } else { "not solved" },
            self.steps,
            self.seconds,
        );
        println!(
            "aggregation by {}: {} iterations, p50 {:.1} us, p99 {:.1} us; {} segments sent, {} again",
            self.aggregator,
            self.iterations,
            self.aggregation_us_p50,
            self.aggregation_us_p99,
            self.segments,
            self.retransmitted,
        );
        println!("replicas identical: {}", if self.replicas_identical { "yes" } else { "NO" });
        Ok(())
    }
}

/// A quantile of a histogram of nanoseconds, to a tenth of a microsecond.
pub(crate) fn microseconds(histogram: &Histogram<u64>, quantile: f64) -> f64 {
    (histogram.value_at_quantile(quantile) as f64 / 100.0).round() / 10.0
}
