//! One shard of experience replay.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use clap::{CommandFactory, Parser};
use iswitch_replay::options::{ShardOptions, Size, TableOptions};
use iswitch_replay::server::{Address, Listener, Shard, ShardConfig, serve};
use iswitch_replay::store::Durability;
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};

/// Exit status for options that cannot be used, as for a wrong command line.
const BAD_OPTIONS: u8 = 2;

/// Serves one shard of experience replay until SIGTERM or SIGINT.
#[derive(Parser)]
#[command(name = "replayd", version, about)]
struct Cli {
    /// Options in TOML, with the names below; the command line goes before it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// IP:PORT or unix:PATH; any number [default: 127.0.0.1:7800]
    #[arg(long, value_name = "ADDRESS")]
    listen: Vec<String>,
    /// name=NAME,capacity=ITEMS and more words of docs/replay.md, with commas between them; any number
    #[arg(long = "table", value_name = "WORDS")]
    tables: Vec<String>,
    /// All that items, requests and answers may take [default: 1GiB]
    #[arg(long, value_name = "SIZE")]
    memory_max: Option<Size>,
    /// Longest payload, up to 1GiB [default: 16MiB]
    #[arg(long, value_name = "SIZE")]
    item_max: Option<Size>,
    /// Connections at a time [default: 4096]
    #[arg(long, value_name = "COUNT")]
    connections_max: Option<usize>,
    /// Where journal and snapshots are; without it nothing survives the process
    #[arg(long, value_name = "PATH")]
    data_dir: Option<PathBuf>,
    /// What acknowledged inserts survive: none, write (the end of the process), sync (of the machine) [default: write]
    #[arg(long, value_name = "WHAT", value_parser = durability)]
    durability: Option<Durability>,
    /// Writes a snapshot this often, besides those that keep the journal short
    #[arg(long, value_name = "SECONDS")]
    snapshot_every: Option<f64>,
    /// Choices of the selectors follow from it [default: 0]
    #[arg(long)]
    seed: Option<u64>,
    /// Prints a line of JSON when it is ready, and one that describes the shard when it ends
    #[arg(long)]
    json: bool,
}

fn durability(text: &str) -> Result<Durability, String> {
    match text {
        "none" => Ok(Durability::None),
        "write" => Ok(Durability::Write),
        "sync" => Ok(Durability::Sync),
        _ => Err("expected none, write or sync".to_owned()),
    }
}

#[derive(Serialize)]
struct Ready {
    listening: Vec<String>,
    restored_items: u64,
    damaged_bytes: u64,
}

fn main() -> ExitCode {
    if let Some(status) = iswitch_manual::write_if_asked(Cli::command) {
        return status;
    }
    let cli = Cli::parse();
    let json = cli.json;
    tracing_subscriber::fmt()
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into()),
        )
        .with_writer(std::io::stderr)
        .init();
    let (config, addresses) = match options(cli) {
        Ok(options) => options,
        Err(error) => return fail(&error, BAD_OPTIONS),
    };
    match run(config, &addresses, json) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error, 1),
    }
}

fn fail(error: &anyhow::Error, status: u8) -> ExitCode {
    eprintln!("replayd: {error:#}");
    ExitCode::from(status)
}

fn options(cli: Cli) -> anyhow::Result<(ShardConfig, Vec<Address>)> {
    let file = cli.config.as_deref().map(read).transpose()?.unwrap_or_default();
    let line = ShardOptions {
        listen: cli.listen,
        tables: cli.tables.iter().map(|words| TableOptions::parse(words)).collect::<Result<_, _>>()?,
        memory_max: cli.memory_max,
        item_max: cli.item_max,
        connections_max: cli.connections_max,
        data_dir: cli.data_dir,
        durability: cli.durability,
        snapshot_every: cli.snapshot_every,
        seed: cli.seed,
    };
    let mut options = line.or(file);
    if options.listen.is_empty() {
        options.listen.push("127.0.0.1:7800".to_owned());
    }
    let addresses = options.listen.iter().map(|address| address.parse().map_err(anyhow::Error::msg));
    let addresses = addresses.collect::<anyhow::Result<_>>()?;
    Ok((options.config()?.resolve()?, addresses))
}

fn read(path: &Path) -> anyhow::Result<ShardOptions> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(ShardOptions::parse(&path.display().to_string(), &text)?)
}

fn run(config: ShardConfig, addresses: &[Address], json: bool) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let shard = Arc::new(Shard::open(config)?);
    runtime.block_on(async {
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let mut listeners = Vec::new();
        for address in addresses {
            let listener = Listener::bind(address).await;
            listeners.push(listener.with_context(|| format!("cannot listen on {address}"))?);
        }
        announce(&shard, &listeners, json)?;
        let stop = async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        serve(Arc::clone(&shard), listeners, stop).await?;
        if json {
            println!("{}", serde_json::to_string(&shard.describe())?);
        }
        Ok(())
    })
}

fn announce(shard: &Shard, listeners: &[Listener], json: bool) -> anyhow::Result<()> {
    let mut listening = Vec::new();
    for listener in listeners {
        listening.push(listener.address()?.to_string());
    }
    let (restored_items, damaged_bytes) = shard.restored();
    tracing::info!("listening on {}; {restored_items} items restored", listening.join(", "));
    if json {
        println!("{}", serde_json::to_string(&Ready { listening, restored_items, damaged_bytes })?);
    }
    Ok(())
}
