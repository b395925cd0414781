//! Code shared by the commands that serve a shard.

mod descriptors;
mod sandbox;

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};

use crate::options::{ShardOptions, Size};
use crate::server::{Address, Listener, Reserved, Shard, ShardConfig, serve};
use crate::store::Durability;

/// Arguments of a shard, except its tables.
#[derive(Clone, Debug, Args)]
pub struct ServeArgs {
    /// Listening address: IP:PORT or unix:PATH
    ///
    /// Repeatable. Default: 127.0.0.1:7800.
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Vec<String>,
    /// Maximum memory for items, requests and responses
    ///
    /// Default: 1GiB.
    #[arg(long, value_name = "SIZE")]
    pub memory_max: Option<Size>,
    /// Maximum size of an item's payload
    ///
    /// At most 1GiB. Default: 16MiB.
    #[arg(long, value_name = "SIZE")]
    pub item_max: Option<Size>,
    /// Maximum number of concurrent connections
    ///
    /// Default: 4096, or fewer if the limit on open files does not allow 4096.
    #[arg(long, value_name = "COUNT")]
    pub connections_max: Option<usize>,
    /// File with the bearer token that every request must carry
    ///
    /// The file contains one line. Without this option, the shard serves every client.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// PEM file with the certificate chain for TLS
    ///
    /// With this option, all connections over TCP must use TLS.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// PEM file with the private key of --tls-cert
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// PEM file with the CA certificates of clients
    ///
    /// With this option, each client must present a certificate issued by one of these CAs.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_client_ca: Option<PathBuf>,
    /// Directory for the journal and the snapshots
    ///
    /// Without this option, all items are lost when the process exits.
    #[arg(long, value_name = "PATH")]
    pub data_dir: Option<PathBuf>,
    /// Durability of acknowledged inserts: none, write or sync
    ///
    /// With write, acknowledged inserts survive the process exiting. With sync, they also survive a crash of the
    /// machine. With none, only items in the last snapshot survive. Default: write with --data-dir, none without it.
    #[arg(long, value_name = "WHAT", value_parser = durability)]
    pub durability: Option<Durability>,
    /// Interval between snapshots, in seconds
    ///
    /// The shard also writes snapshots to keep the journal short.
    #[arg(long, value_name = "SECONDS")]
    pub snapshot_every: Option<f64>,
    /// Seed for the selectors' random choices
    ///
    /// Default: 0.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Print a line of JSON when the shard is ready and when it stops
    ///
    /// The last line contains the description of the shard.
    #[arg(long)]
    pub json: bool,
}

impl ServeArgs {
    /// Converts the arguments to the options that an options file may contain. Tables are not included.
    pub fn options(self) -> ShardOptions {
        ShardOptions {
            listen: self.listen,
            tables: Vec::new(),
            memory_max: self.memory_max,
            item_max: self.item_max,
            connections_max: self.connections_max,
            token_file: self.token_file,
            tls_cert: self.tls_cert,
            tls_key: self.tls_key,
            tls_client_ca: self.tls_client_ca,
            data_dir: self.data_dir,
            durability: self.durability,
            snapshot_every: self.snapshot_every,
            seed: self.seed,
        }
    }
}

fn durability(text: &str) -> Result<Durability, String> {
    text.parse().map_err(|_| "expected none, write or sync".to_owned())
}

/// Parses the addresses to listen on.
///
/// # Errors
/// Fails at the first invalid address.
pub fn addresses(listen: &[String]) -> anyhow::Result<Vec<Address>> {
    listen.iter().map(|address| address.parse().map_err(anyhow::Error::msg)).collect()
}

#[derive(Serialize)]
struct Ready {
    listening: Vec<String>,
    restored_items: u64,
    damaged_bytes: u64,
    damaged_files: u64,
}

/// Serves a shard until SIGTERM or SIGINT. If `is_confined` is set, the process permanently enters its sandbox; the
/// process must have only one thread when it does so.
///
/// # Errors
/// Fails if the shard cannot be restored, an address cannot be bound, or the process cannot enter the sandbox.
pub fn run(
    mut config: ShardConfig,
    addresses: &[Address],
    json: bool,
    is_confined: bool,
) -> anyhow::Result<()> {
    config.connections_max = descriptors::connections(config.connections_max)?;
    let refused = |address: &Address| format!("cannot listen on {address}");
    let reserved = addresses.iter().map(|address| Reserved::new(address).with_context(|| refused(address)));
    let reserved: Vec<_> = reserved.collect::<Result<_, _>>()?;
    let mut builder = sandbox::runtime();
    let sandbox = is_confined.then(|| sandbox::enter(config.data_dir.as_deref(), addresses)).transpose()?;
    let runtime = builder.build()?;
    let shard = Arc::new(Shard::open(config)?);
    runtime.block_on(async {
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let mut listeners = Vec::new();
        for (reserved, address) in reserved.into_iter().zip(addresses) {
            listeners.push(reserved.listen().await.with_context(|| refused(address))?);
        }
        if let Some(sandbox) = sandbox {
            sandbox::filter(sandbox);
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
            print_line(&shard.describe())?;
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
        let damaged_files = shard.damaged_files();
        print_line(&Ready { listening, restored_items, damaged_bytes, damaged_files })?;
    }
    Ok(())
}

/// Prints a line of JSON. Ignores the error if standard output is closed, because clients may still use the shard.
fn print_line(value: &impl Serialize) -> anyhow::Result<()> {
    let line = serde_json::to_string(value)?;
    let mut output = std::io::stdout().lock();
    if let Err(error) = writeln!(output, "{line}").and_then(|()| output.flush()) {
        tracing::warn!("cannot print to standard output: {error}");
    }
    Ok(())
}
