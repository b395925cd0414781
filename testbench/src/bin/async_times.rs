//! A worker of an asynchronous job, or the job's parameter server. The job trains no policy; it measures how often the
//! model is updated and how stale the gradients are. `testbench study replay --async` runs this program in each
//! namespace.
//!
//! To compute a gradient, the worker sleeps for a fixed time; the update is a real step of plain gradient descent. Runs
//! with the switch and runs with the server use the same learner.

use std::net::SocketAddrV4;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Parser;
use iswitch::pipeline::{PipelineConfig, digest};
use iswitch::{AsyncWorker, JoinOptions};
use iswitch_learn::algorithms::TrainError;
use iswitch_learn::algorithms::async_server::{AsyncClientOptions, AsyncServer, work};
use iswitch_learn::algorithms::asynchronous::train;
use iswitch_learn::algorithms::checkpoint::{Reader, Writer};
use iswitch_learn::algorithms::halves::{Counters, Halves, LocalHalf, SharedHalf, Tail};
use iswitch_learn::algorithms::replica::Replica;
use iswitch_learn::env::{EnvSpec, Environment as _};
use iswitch_testbench::study::images::Images;

const TIMEOUT: Duration = Duration::from_secs(60);
const RATE: f32 = 0.01;

/// Run a worker or the server of an asynchronous job, with replayed computation
#[derive(Debug, Parser)]
#[command(version, max_term_width = 79)]
struct Cli {
    /// Address of the switch to join
    #[arg(long, value_name = "ADDR:PORT", required_unless_present_any = ["server", "serve"])]
    switch: Option<SocketAddrV4>,
    /// Address of the parameter server to contribute to
    #[arg(long, value_name = "ADDR:PORT", conflicts_with_all = ["switch", "serve"])]
    server: Option<SocketAddrV4>,
    /// Serve as the parameter server at this address
    #[arg(long, value_name = "ADDR:PORT", conflicts_with = "switch")]
    serve: Option<SocketAddrV4>,
    /// Number of workers of the job
    #[arg(long, default_value_t = 4)]
    workers: u16,
    /// Rank of this worker, starting from 0
    #[arg(long, default_value_t = 0)]
    rank: u16,
    /// Number of floats in each vector, including the learner's trailing counters
    #[arg(long)]
    floats: u32,
    /// Time to compute a gradient, in microseconds
    #[arg(long)]
    compute_us: u64,
    /// Number of applied gradients after which the job ends
    #[arg(long)]
    gradients: u64,
    /// Staleness bound S, in updates
    #[arg(long, default_value_t = 3)]
    staleness: u32,
}

/// Local half of the learner. It sleeps, and then returns the gradient of half the squared distance to a point that
/// only this worker knows.
struct Sleeper {
    compute: Duration,
    target: f32,
    spec: EnvSpec,
    /// Whether the last gradient was too stale. The next gradient then replaces it and must not be counted again.
    is_skipped: bool,
}

impl LocalHalf for Sleeper {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn gradient(&mut self, model: &[f32], gradient: &mut [f32]) -> Result<Tail, TrainError> {
        std::thread::sleep(self.compute);
        gradient.iter_mut().zip(model).for_each(|(g, x)| *g = x - self.target);
        let steps = if std::mem::take(&mut self.is_skipped) { 0.0 } else { 1.0 };
        Ok(Tail { steps, ..Tail::default() })
    }

    fn skipped(&mut self) {
        self.is_skipped = true;
    }

    fn write(&self, _writer: &mut Writer) {}

    fn read(&mut self, _files: &[Reader<'_>]) -> Result<Vec<usize>, TrainError> {
        Ok(Vec::new())
    }
}

/// Time of each update, and the number of gradients applied to the model by that time.
type Updates = Arc<Mutex<Vec<(Instant, u64)>>>;

/// Shared half of the learner, which performs gradient descent.
struct Descent {
    updates: Updates,
}

impl SharedHalf for Descent {
    fn update(&mut self, model: &mut [f32], gradient: &mut [f32], counters: &Counters) {
        model.iter_mut().zip(gradient).for_each(|(x, gradient)| *x -= RATE * *gradient);
        let now = (Instant::now(), counters.steps);
        self.updates.lock().unwrap_or_else(PoisonError::into_inner).push(now);
    }

    fn loss_names(&self) -> &'static [&'static str] {
        &[]
    }

    fn write(&self, _model: &[f32], _writer: &mut Writer) {}

    fn read(&mut self, _model: &mut [f32], _reader: &Reader<'_>) -> Result<(), TrainError> {
        Ok(())
    }
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("async_times: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> anyhow::Result<serde_json::Value> {
    let vector_len = cli.floats as usize;
    let gradient_len = vector_len
        .checked_sub(Tail::LEN)
        .filter(|len| *len > 0)
        .with_context(|| format!("--floats is {vector_len}, expected more than {}", Tail::LEN))?;
    let updates = Updates::default();
    let model = vec![0.0; gradient_len];
    let local = Box::new(Sleeper {
        compute: Duration::from_micros(cli.compute_us),
        target: f32::from(cli.rank),
        spec: Images::default().spec().clone(),
        is_skipped: false,
    });
    let replica = Replica::new(Box::new(Descent { updates: Arc::clone(&updates) }), cli.gradients);
    if let Some(address) = cli.serve {
        let server = AsyncServer::bind(address, vector_len, cli.staleness)?;
        println!("ready: {}", server.local_addr()?);
        let report = server.run(model, replica, &AtomicBool::new(false), &mut |_, _, _| Ok(()))?;
        return Ok(render(&updates, &report.staleness, report.skipped));
    }
    if let Some(server) = cli.server {
        let options = AsyncClientOptions { server, vector_len, model_len: gradient_len, timeout: TIMEOUT };
        let sent = work(local, &options, Arc::default())?;
        return Ok(serde_json::json!({ "rank": cli.rank, "sent": sent }));
    }
    let switch = cli.switch.context("--switch is missing")?;
    let mut join = JoinOptions::new(switch, cli.workers, cli.floats);
    (join.rank, join.workers_timeout) = (cli.rank, Some(TIMEOUT));
    let shape = Tail::after(gradient_len);
    let halves = Halves { algorithm: "none", config: "{}".into(), model, shape, local, replica };
    let config = PipelineConfig { staleness_bound: cli.staleness, ..PipelineConfig::default() };
    let worker = AsyncWorker::join(join)?;
    let report =
        train(halves, worker, usize::from(cli.workers), config, Arc::default(), &mut |_, _, _| Ok(()))?;
    let staleness = report.staleness.at_commit();
    let mut result = render(&updates, staleness.counts(), report.staleness.skipped());
    result["rank"] = cli.rank.into();
    result["inclusion"] = report.staleness.at_inclusion().counts().into();
    result["digest"] = format!("{:016x}", digest(&report.model)).into();
    Ok(result)
}

/// Returns the results of the last 90 % of the updates, as JSON.
fn render(updates: &Updates, staleness: &[u64], skipped: u64) -> serde_json::Value {
    let updates = updates.lock().unwrap_or_else(PoisonError::into_inner);
    let first = updates.len() / 10;
    let (from, to) = (updates.get(first), updates.last());
    let (seconds, gradients) = from
        .zip(to)
        .map_or((0.0, 0), |((from, gradients), (to, all))| ((*to - *from).as_secs_f64(), all - gradients));
    serde_json::json!({
        "updates": updates.len().saturating_sub(first + 1), "gradients": gradients, "seconds": seconds,
        "staleness": staleness, "skipped": skipped,
    })
}
