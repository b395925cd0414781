//! Actors, all in one process, that write items to replay servers, each over its own connection. `testbench replay`
//! runs this program.
//!
//! An actor pauses for a random time, inserts one item, and waits until the item is stored. Its first item is empty
//! and only establishes the connection. Once all actors are connected, the program prints "ready" on standard error.
//! It then reads from standard input the time at which the inserts begin, in milliseconds since the Unix epoch. At the
//! end, it prints the latencies of the inserts that began during the measurement.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;
use iswitch_replay::Bytes;
use iswitch_replay::client::{ClientConfig, ReplayClient, Writer};
use iswitch_replay::table::NewItem;
use iswitch_testbench::contest::wait_for_start;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::json;
use tokio::time::{Instant, sleep_until};

/// Timeout for a link that thousands of actors share. It is long, because each actor may have to wait a long time for
/// an answer.
const PATIENCE: Duration = Duration::from_secs(600);

/// Write items to replay servers as many actors would
#[derive(Debug, Parser)]
#[command(version, max_term_width = 79)]
struct Cli {
    /// Addresses of the servers
    ///
    /// An address is http://HOST:PORT for a shard, or reverb://HOST:PORT for a Reverb server.
    #[arg(long, required = true, value_delimiter = ',')]
    shards: Vec<String>,
    /// Number of actors in this process
    #[arg(long)]
    actors: usize,
    /// Number of the first actor in this process
    #[arg(long, default_value_t = 0)]
    first: usize,
    /// Number of threads that the actors share
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    threads: u16,
    /// Size of an item, in bytes
    #[arg(long)]
    bytes: usize,
    /// Mean pause of an actor between two inserts, in seconds
    #[arg(long, default_value_t = 0.0)]
    think_s: f64,
    /// Time from the first inserts to the start of the measurement, in seconds
    #[arg(long, default_value_t = 0.0)]
    warm_up_s: f64,
    /// Measured time, in seconds
    #[arg(long)]
    measured_s: f64,
}

#[derive(Clone, Copy)]
struct Times {
    start: Instant,
    begin: Instant,
    end: Instant,
    think_s: f64,
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("replay_writers: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> anyhow::Result<()> {
    let runtime = match cli.threads {
        1 => tokio::runtime::Builder::new_current_thread().enable_all().build()?,
        // The worker threads run the actors; the current thread only waits.
        threads => {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            builder.worker_threads(usize::from(threads)).enable_all().build()?
        }
    };
    let latencies_ms = runtime.block_on(write(cli))?;
    println!("{}", json!({ "latencies_ms": latencies_ms }));
    Ok(())
}

async fn write(cli: &Cli) -> anyhow::Result<Vec<f64>> {
    let writers = connect(cli).await?;
    let start = Instant::now() + wait_for_start()?;
    let begin = start + Duration::try_from_secs_f64(cli.warm_up_s).context("--warm-up-s")?;
    let end = begin + Duration::try_from_secs_f64(cli.measured_s).context("--measured-s")?;
    let times = Times { start, begin, end, think_s: cli.think_s };
    // Random bytes cannot be compressed.
    let mut payload = vec![0; cli.bytes];
    rand::Rng::fill_bytes(&mut ChaCha8Rng::seed_from_u64(0), &mut payload);
    let payload = Bytes::from(payload);
    let mut actors = tokio::task::JoinSet::new();
    for (actor, writer) in writers {
        actors.spawn(act(writer, payload.clone(), times, ChaCha8Rng::seed_from_u64(actor)));
    }
    let mut latencies_ms = Vec::new();
    while let Some(of_actor) = actors.join_next().await {
        latencies_ms.extend(of_actor.context("a task of an actor failed")??);
    }
    Ok(latencies_ms)
}

/// Connects the actors one by one. Returns the number and the writer of each.
async fn connect(cli: &Cli) -> anyhow::Result<Vec<(u64, Writer)>> {
    let mut writers = Vec::with_capacity(cli.actors);
    for number in 0..cli.actors {
        let actor = (cli.first + number) as u64;
        let config = ClientConfig {
            wait: PATIENCE,
            patience: PATIENCE,
            seed: actor,
            ..ClientConfig::new(&cli.shards)
        };
        let writer = ReplayClient::new(config)?.writer("t", actor);
        writer.insert(item(Bytes::new())).await?;
        writers.push((actor, writer));
    }
    Ok(writers)
}

fn item(payload: Bytes) -> NewItem {
    NewItem { priority: 1.0, version: 0, payload }
}

/// Runs one actor, and returns the latencies of its inserts, in milliseconds.
async fn act(writer: Writer, payload: Bytes, times: Times, mut rng: ChaCha8Rng) -> anyhow::Result<Vec<f64>> {
    let mut latencies_ms = Vec::new();
    // The first insert is at a random point of the first pause.
    let mut next = times.start + Duration::from_secs_f64(times.think_s * rng.random_range(0.0..=1.0));
    loop {
        // The actor skips its last pause, because no insert follows it.
        if next >= times.end {
            return Ok(latencies_ms);
        }
        sleep_until(next).await;
        let asked = Instant::now();
        writer.insert(item(payload.clone())).await?;
        if asked >= times.begin {
            latencies_ms.push(asked.elapsed().as_secs_f64() * 1e3);
        }
        // The pause is 0.5 to 1.5 times the mean, so that actors do not synchronize.
        next = Instant::now() + Duration::from_secs_f64(times.think_s * rng.random_range(0.5..=1.5));
    }
}
