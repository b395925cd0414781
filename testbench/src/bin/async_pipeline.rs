//! Runs the asynchronous pipeline on a toy problem and reports its progress.
//!
//! Every worker of a job runs one instance. To compute a gradient, the worker sleeps for a fixed time, as if it waited
//! for its environment, so workers that share a processor do not slow each other down. The switch compares digests of
//! the models; if replicas differ, the run fails.

use std::net::SocketAddrV4;
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use iswitch::pipeline::{
    LearnerError, LocalGradient, LocalUpdate, PipelineConfig, PipelineReport, digest, run,
};
use iswitch::{AsyncWorker, JoinOptions};

/// Learning rate: the fraction of the distance to the optimum that an update with the mean gradient covers.
const RATE: f32 = 0.01;

/// Run the asynchronous pipeline on a toy problem
#[derive(Clone, Debug, Parser)]
#[command(version, max_term_width = 79)]
struct Cli {
    /// Address of the switch
    #[arg(long, value_name = "ADDR:PORT")]
    switch: SocketAddrV4,
    /// Number of workers
    #[arg(long)]
    workers: u16,
    /// Rank of this worker, starting from 0
    #[arg(long)]
    rank: u16,
    /// Number of floats in the vector
    #[arg(long, default_value_t = 10_119)]
    floats: u32,
    /// Time to compute a gradient, in microseconds
    #[arg(long, default_value_t = 2_000)]
    compute_us: u64,
    /// Time to run, in seconds
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Threshold H; 0 means the current number of workers
    #[arg(long, default_value_t = 0)]
    threshold: u16,
    /// Staleness bound S, in updates
    #[arg(long, default_value_t = 3)]
    staleness_bound: u32,
    /// Print the result as one line of JSON
    #[arg(long)]
    json: bool,
}

/// Gradient of half the squared distance to a point that only this worker knows.
struct Quadratic {
    target: f32,
    compute: Duration,
}

impl LocalGradient for Quadratic {
    fn gradient(&mut self, model: &[f32], gradient: &mut [f32]) -> Result<(), LearnerError> {
        std::thread::sleep(self.compute);
        gradient.iter_mut().zip(model).for_each(|(g, x)| *g = x - self.target);
        Ok(())
    }
}

/// Update step of the learner: gradient descent that ends at a given time.
struct Descent {
    end: Instant,
}

impl LocalUpdate for Descent {
    fn update(
        &mut self,
        model: &mut [f32],
        sum: &[f32],
        contributions: u16,
    ) -> Result<ControlFlow<()>, LearnerError> {
        let scale = RATE / f32::from(contributions);
        model.iter_mut().zip(sum).for_each(|(x, gradient)| *x -= scale * gradient);
        Ok(if Instant::now() < self.end { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match train(&cli) {
        Ok(report) => {
            println!("{}", render(&cli, &report));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("async_pipeline: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn train(cli: &Cli) -> anyhow::Result<PipelineReport> {
    let options = JoinOptions {
        workers_timeout: Some(Duration::from_secs(60)),
        ..JoinOptions::new(cli.switch, cli.workers, cli.floats)
    };
    let worker = AsyncWorker::join(options)?;
    if cli.rank == 0 && cli.threshold > 0 {
        worker.set_threshold(cli.threshold)?;
    }
    let config = PipelineConfig { staleness_bound: cli.staleness_bound, ..PipelineConfig::default() };
    let gradients = Quadratic { target: f32::from(cli.rank), compute: Duration::from_micros(cli.compute_us) };
    let updates = Descent { end: Instant::now() + Duration::from_secs_f64(cli.seconds) };
    Ok(run(worker, config, vec![0.0; cli.floats as usize], gradients, updates)?)
}

fn render(cli: &Cli, report: &PipelineReport) -> String {
    let staleness = &report.staleness;
    let result = serde_json::json!({
        "rank": cli.rank,
        "updates": staleness.updates(),
        "updates_s": report.updates_per_second(),
        "contributed": report.counters.admitted,
        "contributed_s": report.counters.admitted as f64 / report.elapsed.as_secs_f64(),
        "skipped": staleness.skipped(),
        "lost": staleness.lost(),
        "staleness_at_commit": staleness.at_commit().mean(),
        "staleness_at_inclusion": staleness.at_inclusion().mean(),
        "staleness_max": staleness.at_inclusion().max(),
        "retransmitted": report.counters.retransmitted,
        "helps": report.counters.helps,
        "digest": format!("{:016x}", digest(&report.model)),
    });
    if cli.json { result.to_string() } else { format!("{result:#}") }
}
