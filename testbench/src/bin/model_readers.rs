//! Actors, all in one process, that read the latest version of a model at the same moment. `testbench models` runs
//! this program. Once the program knows that version, it prints "ready" on standard error. It then reads from standard
//! input the time at which the actors begin, in milliseconds since the Unix epoch.
//!
//! The actors receive the bytes, check their CRC-32C, and drop them, because hundreds of models would not fit into the
//! memory of one machine.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;
use iswitch_models::{
    Bytes, ClientOptions, Endpoint, Manifest, ModelClient, ModelName, Sink, Times, Verification,
};
use iswitch_testbench::contest::wait_for_start;
use serde_json::json;

/// Timeouts for a link that hundreds of actors share. They are long, because each actor may have to wait a long time
/// for data.
const TIMES: Times = Times { connect: Duration::from_secs(60), stall: Duration::from_secs(120) };

/// Read a model as many actors would
#[derive(Debug, Parser)]
#[command(version, max_term_width = 79)]
struct Cli {
    /// Endpoints to read from
    ///
    /// Actor i reads from endpoint i modulo the number of endpoints.
    #[arg(long, required = true, value_delimiter = ',')]
    from: Vec<Endpoint>,
    /// Endpoint from which actors fetch the latest model before a turn starts
    #[arg(long)]
    control: Endpoint,
    /// Name of the model
    #[arg(long)]
    name: ModelName,
    /// Number of actors in this process
    #[arg(long)]
    actors: usize,
    /// Number of the first actor in this process
    #[arg(long, default_value_t = 0)]
    first: usize,
}

/// Sink that drops the bytes, because the client has already checked them.
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

/// Returns the time that each actor took, in milliseconds.
async fn read(cli: &Cli) -> anyhow::Result<Vec<f64>> {
    let options =
        ClientOptions { times: TIMES, verification: Verification::Crc32c, ..ClientOptions::default() };
    let control = ModelClient::new(cli.name.clone(), std::slice::from_ref(&cli.control), options.clone());
    let manifest =
        control?.latest().await.context("cannot ask the node at --control for the latest version")?;
    let start = tokio::time::Instant::now() + wait_for_start()?;
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
        latencies_ms.push(read.context("a task of an actor failed")??.as_secs_f64() * 1e3);
    }
    Ok(latencies_ms)
}
