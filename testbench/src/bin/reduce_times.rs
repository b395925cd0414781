//! A worker of a job that only sums vectors, through the switch, a parameter server or a ring. It measures the time of
//! each sum, and the CPU time and the memory of the process. `testbench peers` runs this program in each worker
//! namespace.
//!
//! As in training, there is no barrier between rounds: if a worker begins a round while others are still in the
//! previous one, its time for that round includes waiting for them.

use std::net::SocketAddrV4;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::{Parser, ValueEnum};
use iswitch::aggregate::{
    GradientAggregator, ParameterServer, ParameterServerClient, ParameterServerOptions, Ring, RingOptions,
    Style,
};
use iswitch::{ElementTypes, JoinOptions, Worker};
use iswitch_harness::process::own_peak_rss_kib;
use rustix::time::{ClockId, clock_gettime};

const TIMEOUT: Duration = Duration::from_secs(60);

/// Measure the time of sums, as one worker of a job or as its parameter server
#[derive(Debug, Parser)]
#[command(version, max_term_width = 79)]
struct Cli {
    /// Method of aggregation
    #[arg(long, value_enum)]
    through: Through,
    /// Address of the switch or of the parameter server
    ///
    /// The port is the UDP port of the switch, or the TCP port of the parameter server.
    #[arg(long, value_name = "ADDR:PORT", required_if_eq_any([("through", "switch"), ("through", "parameter-server")]))]
    at: Option<SocketAddrV4>,
    /// Addresses on which the workers of a ring listen, by rank
    #[arg(long, value_name = "ADDR:PORT", value_delimiter = ',', required_if_eq("through", "ring"))]
    members: Vec<SocketAddrV4>,
    /// Pipelining of the parameter server or of the ring
    #[arg(long, value_enum, default_value_t = Passing::Pipelined)]
    style: Passing,
    /// Rank of this worker, starting from 0
    #[arg(long, default_value_t = 0)]
    rank: u16,
    /// Number of workers of the job
    #[arg(long)]
    workers: u16,
    /// Number of floats in each vector
    #[arg(long)]
    floats: u32,
    /// Number of measured rounds
    #[arg(long, default_value_t = 100)]
    rounds: usize,
    /// Number of rounds before the measured ones
    #[arg(long, default_value_t = 10)]
    warm_up: usize,
    /// Simulated computation before each sum, in microseconds
    ///
    /// The worker sleeps for this long, so that workers that share a processor do not slow each other down.
    #[arg(long, default_value_t = 0)]
    compute_us: u64,
    /// Job identifier at the switch
    #[arg(long, default_value_t = 0)]
    job: u32,
    /// Element types of the switch's packets: f32, bf16, f16, bf16-f32, f16-f32
    ///
    /// With bf16-f32 and f16-f32, contributions have 16-bit elements, and results have 32-bit elements.
    #[arg(long, value_name = "TYPES", default_value_t = ElementTypes::F32)]
    wire: ElementTypes,
    /// Serve as the parameter server until all workers have left
    #[arg(long)]
    serve: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Through {
    /// Through iswitchd
    Switch,
    /// Through a parameter server that sums
    ParameterServer,
    /// Through a ring of the workers
    Ring,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Passing {
    /// Begin a step when the previous one is complete
    Paper,
    /// Pass on each part as soon as it has been summed
    Pipelined,
}

impl From<Passing> for Style {
    fn from(passing: Passing) -> Self {
        match passing {
            Passing::Paper => Self::Paper,
            Passing::Pipelined => Self::Pipelined,
        }
    }
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("reduce_times: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> anyhow::Result<serde_json::Value> {
    if cli.serve {
        let server = ParameterServer::bind(server_options(cli)?)?;
        println!("ready: {}", server.local_addr()?);
        let rounds = server.run(&AtomicBool::new(false))?;
        let (cpu, rss) = usage();
        return Ok(serde_json::json!({ "rounds": rounds, "cpu_seconds": cpu, "peak_rss_kib": rss }));
    }
    let mut aggregator = join(cli)?;
    let contribution: Vec<_> = (0..cli.floats).map(|at| value(cli.wire, cli.rank, at)).collect();
    for _ in 0..cli.warm_up {
        compute(cli);
        aggregator.reduce(&contribution)?;
    }
    let (cpu_before, _) = usage();
    let mut times = Vec::with_capacity(cli.rounds);
    let (all, mut computed) = (Instant::now(), Duration::ZERO);
    for _ in 0..cli.rounds {
        computed += compute(cli);
        let begin = Instant::now();
        aggregator.reduce(&contribution)?;
        times.push(begin.elapsed());
    }
    let mean_us = |time: Duration| time.as_secs_f64() * 1e6 / cli.rounds.max(1) as f64;
    let (iteration_us, compute_us) = (mean_us(all.elapsed()), mean_us(computed));
    let (cpu, rss) = usage();
    compute(cli);
    let (_, sum) = aggregator.reduce(&contribution)?;
    check(cli, sum)?;
    times.sort_unstable();
    let us = |quantile: f64| {
        let at = (times.len() as f64 * quantile) as usize;
        times.get(at.min(times.len().saturating_sub(1))).map_or(0.0, |time| time.as_secs_f64() * 1e6)
    };
    Ok(serde_json::json!({
        "rank": cli.rank, "rounds": cli.rounds, "us_p50": us(0.5), "us_p99": us(0.99), "us_min": us(0.0),
        "cpu_seconds": cpu - cpu_before, "peak_rss_kib": rss,
        "iteration_us": iteration_us, "compute_us": compute_us,
    }))
}

/// Sleeps for the simulated computation. Returns the actual duration, because a sleeping thread wakes late.
fn compute(cli: &Cli) -> Duration {
    let begin = Instant::now();
    if cli.compute_us > 0 {
        std::thread::sleep(Duration::from_micros(cli.compute_us));
    }
    begin.elapsed()
}

fn server_options(cli: &Cli) -> anyhow::Result<ParameterServerOptions> {
    Ok(ParameterServerOptions {
        server: cli.at.context("--at is missing")?,
        workers: cli.workers,
        gradient_len: cli.floats,
        style: cli.style.into(),
        timeout: TIMEOUT,
    })
}

fn join(cli: &Cli) -> anyhow::Result<Box<dyn GradientAggregator>> {
    Ok(match cli.through {
        Through::Switch => {
            let switch = cli.at.context("--at is missing")?;
            let mut options = JoinOptions::new(switch, cli.workers, cli.floats).with_elements(cli.wire);
            (options.job, options.rank) = (cli.job, cli.rank);
            options.workers_timeout = Some(TIMEOUT);
            Box::new(Worker::join(options)?)
        }
        Through::ParameterServer => Box::new(ParameterServerClient::join(&server_options(cli)?, cli.rank)?),
        Through::Ring => Box::new(Ring::join(&RingOptions {
            members: cli.members.clone(),
            rank: cli.rank,
            gradient_len: cli.floats,
            style: cli.style.into(),
            timeout: TIMEOUT,
        })?),
    })
}

/// Returns element `at` of a worker's vector. Elements are integers, so that sums are exact in any order. With 16-bit
/// elements, the sum over up to 23 workers fits in eight bits.
fn value(wire: ElementTypes, rank: u16, at: u32) -> f32 {
    if wire == ElementTypes::F32 {
        (u32::from(rank) + 1 + at % 1024) as f32
    } else {
        (u32::from(rank) % 4 + 1 + at % 8) as f32
    }
}

fn check(cli: &Cli, sum: &[f32]) -> anyhow::Result<()> {
    for (at, x) in (0..).zip(sum) {
        let expected: f32 = (0..cli.workers).map(|rank| value(cli.wire, rank, at)).sum();
        anyhow::ensure!(*x == expected, "element {at} of the sum is {x}, expected {expected}");
    }
    Ok(())
}

/// Returns the CPU time of this process, in seconds, and its peak memory, in KiB.
fn usage() -> (f64, u64) {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    (time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9, own_peak_rss_kib())
}
