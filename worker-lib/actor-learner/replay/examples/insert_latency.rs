//! Measures the latency of inserts. Each actor inserts items one after another into one or more shards.
//!
//! `cargo run --release -p iswitch-replay --example insert_latency -- --actors 16 --payload 64KiB --shards 1`
//!
//! The program starts the shards as separate processes on this machine, unless `--address` names running shards. It
//! prints one line of JSON.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, ensure};
use bytes::Bytes;
use clap::Parser;
use iswitch_replay::client::{ClientConfig, ReplayClient, Writer};
use iswitch_replay::options::{ShardOptions, Size, TableOptions};
use iswitch_replay::server::{Address, Listener, Shard, serve};
use iswitch_replay::table::NewItem;
use serde::Serialize;

/// Measure the latency of inserts
#[derive(Parser)]
struct Cli {
    /// Number of actors, each with one insert in flight
    #[arg(long, default_value_t = 16)]
    actors: u64,
    /// Size of an item's payload
    #[arg(long, default_value = "64KiB")]
    payload: Size,
    /// Number of shards to start
    #[arg(long, default_value_t = 1)]
    shards: usize,
    /// Address of a running shard to measure, instead of starting shards
    ///
    /// Repeatable.
    #[arg(long)]
    address: Vec<String>,
    /// Number of connections to each shard, shared by the actors
    #[arg(long, default_value_t = 16)]
    connections: u64,
    /// Number of items per insert
    #[arg(long, default_value_t = 1)]
    batch: usize,
    /// Duration of the measurement, in seconds
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// Warm-up time before the measurement, in seconds
    #[arg(long, default_value_t = 2.0)]
    warmup: f64,
    /// Durability of inserts: none, write or sync
    #[arg(long, default_value = "none")]
    durability: String,
    /// Maximum memory of each started shard
    #[arg(long, default_value = "1GiB")]
    memory_max: Size,
    /// Transport to started shards: unix or tcp
    #[arg(long, default_value = "tcp")]
    transport: String,
    /// Serve a shard at this address
    ///
    /// The program starts its shards with this option.
    #[arg(long, hide = true)]
    serve: Option<String>,
    #[arg(long, hide = true)]
    data_dir: Option<std::path::PathBuf>,
}

#[derive(Serialize)]
struct Report {
    actors: u64,
    payload_bytes: u64,
    shards: usize,
    connections_per_shard: u64,
    batch: usize,
    durability: String,
    transport: String,
    seconds: f64,
    items: u64,
    items_per_second: f64,
    payload_mb_per_second: f64,
    latency_us: Latency,
}

#[derive(Serialize)]
struct Latency {
    mean: f64,
    p50: f64,
    p90: f64,
    p99: f64,
    p999: f64,
    max: f64,
}

fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    if let Some(address) = &cli.serve {
        return runtime.block_on(shard(&cli, address));
    }
    let report = runtime.block_on(measure(&cli))?;
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}

async fn shard(cli: &Cli, address: &str) -> anyhow::Result<()> {
    let given = &cli.durability;
    let durability =
        given.parse().map_err(|_| anyhow!("durability is {given:?}, expected none, write or sync"))?;
    let options = ShardOptions {
        tables: vec![TableOptions::parse("name=t,capacity=100000000")?],
        memory_max: Some(cli.memory_max),
        item_max: Some(Size(cli.payload.0.max(1 << 20))),
        durability: Some(durability),
        data_dir: cli.data_dir.clone(),
        ..ShardOptions::default()
    };
    let shard = Arc::new(Shard::open(options.config()?)?);
    let listener = Listener::bind(&address.parse::<Address>().map_err(anyhow::Error::msg)?).await?;
    println!("{}", listener.address()?);
    serve(shard, vec![listener], std::future::pending()).await?;
    Ok(())
}

/// Shard processes, which are killed when this value is dropped.
struct Shards {
    children: Vec<Child>,
    _folder: tempfile::TempDir,
}

impl Drop for Shards {
    fn drop(&mut self) {
        for child in &mut self.children {
            // The shard may already have ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn start_shards(cli: &Cli) -> anyhow::Result<(Shards, Vec<String>)> {
    let folder = tempfile::tempdir()?;
    let (mut children, mut addresses) = (Vec::new(), Vec::new());
    for number in 0..cli.shards {
        let address = match cli.transport.as_str() {
            "tcp" => "127.0.0.1:0".to_owned(),
            "unix" => format!("unix:{}", folder.path().join(format!("socket-{number}")).display()),
            other => anyhow::bail!("transport is {other:?}, expected tcp or unix"),
        };
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--serve", &address, "--durability", &cli.durability]);
        command.args([
            "--payload",
            &cli.payload.0.to_string(),
            "--memory-max",
            &cli.memory_max.0.to_string(),
        ]);
        if cli.durability != "none" {
            command.arg("--data-dir").arg(folder.path().join(format!("data-{number}")));
        }
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().context("cannot read the output of the shard")?;
        children.push(child);
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let line = line.trim();
        addresses.push(if line.starts_with("unix:") { line.to_owned() } else { format!("http://{line}") });
    }
    Ok((Shards { children, _folder: folder }, addresses))
}

async fn measure(cli: &Cli) -> anyhow::Result<Report> {
    ensure!(cli.actors > 0 && cli.connections > 0, "actors and connections must each be at least 1");
    let (shards, addresses) = if cli.address.is_empty() {
        start_shards(cli).map(|(shards, addresses)| (Some(shards), addresses))?
    } else {
        (None, cli.address.clone())
    };
    let clients =
        (0..cli.connections.min(cli.actors)).map(|_| ReplayClient::new(ClientConfig::new(&addresses)));
    let clients = clients.collect::<Result<Vec<_>, _>>()?;
    let begin = Instant::now() + Duration::from_secs_f64(cli.warmup);
    let end = begin + Duration::from_secs_f64(cli.seconds);
    let payload = Bytes::from(vec![0x5a; cli.payload.0 as usize]);
    let mut actors = tokio::task::JoinSet::new();
    for actor in 0..cli.actors {
        let writer = clients[(actor % clients.len() as u64) as usize].writer("t", actor);
        let item = NewItem { priority: 1.0, version: 0, payload: payload.clone() };
        actors.spawn(insert_until(writer, vec![item; cli.batch], begin, end));
    }
    let mut latencies = Vec::new();
    while let Some(actor) = actors.join_next().await {
        latencies.extend(actor??);
    }
    drop(shards);
    ensure!(!latencies.is_empty(), "no insert completed within {} seconds", cli.seconds);
    latencies.sort_unstable_by(f64::total_cmp);
    Ok(report(cli, addresses.len(), clients.len() as u64, &latencies))
}

/// Returns the latencies of the inserts that complete between `begin` and `end`, in microseconds.
async fn insert_until(
    writer: Writer,
    items: Vec<NewItem>,
    begin: Instant,
    end: Instant,
) -> anyhow::Result<Vec<f64>> {
    let mut latencies = Vec::new();
    loop {
        let asked = Instant::now();
        writer.insert_batch(items.clone()).await?;
        let now = Instant::now();
        if now >= end {
            return Ok(latencies);
        }
        if now >= begin {
            latencies.push((now - asked).as_secs_f64() * 1e6);
        }
    }
}

fn report(cli: &Cli, shards: usize, connections_per_shard: u64, latencies: &[f64]) -> Report {
    let at = |quantile: f64| latencies[((latencies.len() - 1) as f64 * quantile).round() as usize];
    let items = (latencies.len() * cli.batch) as u64;
    let items_per_second = items as f64 / cli.seconds;
    Report {
        actors: cli.actors,
        payload_bytes: cli.payload.0,
        shards,
        connections_per_shard,
        batch: cli.batch,
        durability: cli.durability.clone(),
        transport: cli.transport.clone(),
        seconds: cli.seconds,
        items,
        items_per_second,
        payload_mb_per_second: items_per_second * cli.payload.0 as f64 / 1e6,
        latency_us: Latency {
            mean: latencies.iter().sum::<f64>() / latencies.len() as f64,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: at(1.0),
        },
    }
}
