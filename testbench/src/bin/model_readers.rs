//! Actors of one process that read the latest version of a model, all at the same moment. What `testbench models` runs.
//!
//! They take the bytes, compare them with their CRC-32C, and drop them: hundreds of models would not fit into one
//! machine.

use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use clap::Parser;
use iswitch_models::{
    Bytes, ClientOptions, Endpoint, Manifest, ModelClient, ModelName, Sink, Times, Verification,
};
use serde_json::json;

/// A link that hundreds share serves each of them now and then only.
const TIMES: Times = Times { connect: Duration::from_secs(60), stall: Duration::from_secs(120) };

/// Reads a model as many actors would
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    /// Where to read: actor i asks the i-th of these, counted round and round
    #[arg(long, required = true, value_delimiter = ',')]
    from: Vec<Endpoint>,
    /// Where to ask for the version, before the start
    #[arg(long)]
    control: Endpoint,
    /// The model
    #[arg(long)]
    name: ModelName,
    /// Actors of this process
    #[arg(long)]
    actors: usize,
    /// Number of its first actor
    #[arg(long, default_value_t = 0)]
    first: usize,
    /// When all begin, in milliseconds since 1970
    #[arg(long)]
    start_unix_ms: u64,
}

/// Drops what it gets: the client has compared it.
struct Discard;

impl Sink for Discard {
    fn begin(&mut self, _: &Manifest) {}

    fn take(&mut self, _: Bytes) {}
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("model_readers: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let latencies_ms = runtime.block_on(read(cli))?;
    println!("{}", json!({ "latencies_ms": latencies_ms }));
    Ok(())
}

/// How long each actor has taken.
async fn read(cli: &Cli) -> anyhow::Result<Vec<f64>> {
    let options =
        ClientOptions { times: TIMES, verification: Verification::Crc32c, ..ClientOptions::default() };
    let control = ModelClient::new(cli.name.clone(), std::slice::from_ref(&cli.control), options.clone());
    let manifest = control?.latest().await.context("asking for the version")?;
    let start = UNIX_EPOCH + Duration::from_millis(cli.start_unix_ms);
    let wait = start
        .duration_since(SystemTime::now())
        .context("--start-unix-ms: the start was before we were ready")?;
    let start = tokio::time::Instant::now() + wait;
    let mut actors = tokio::task::JoinSet::new();
    for actor in cli.first..cli.first + cli.actors {
        let source = &cli.from[actor % cli.from.len()];
        let mut client = ModelClient::new(cli.name.clone(), std::slice::from_ref(source), options.clone())?;
        let manifest = manifest.clone();
        actors.spawn(async move {
            tokio::time::sleep_until(start).await;
            client.fetch(&manifest, &mut Discard).await
        });
    }
    let mut latencies_ms = Vec::with_capacity(cli.actors);
    while let Some(read) = actors.join_next().await {
        latencies_ms.push(read.context("an actor")??.as_secs_f64() * 1e3);
    }
    Ok(latencies_ms)
}
