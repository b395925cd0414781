//! Server of one shard of the experience replay.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{CommandFactory as _, Parser};
use iswitch_replay::cli::{ServeArgs, addresses, run};
use iswitch_replay::options::{ShardOptions, TableOptions};
use iswitch_replay::server::{Address, ShardConfig};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Exit status for invalid options. It equals the exit status for an invalid command line.
const BAD_OPTIONS: u8 = 2;

/// Serve one shard of experience replay until SIGTERM or SIGINT
#[derive(Parser)]
#[command(name = "replayd", version, max_term_width = 79, about)]
struct Cli {
    /// TOML file with options
    ///
    /// The keys are the names of the options below, with underscores instead of hyphens. Options on the command line
    /// override those in the file.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Table of the shard: name=NAME,capacity=ITEMS[,KEY=VALUE...]
    ///
    /// Repeatable. docs/replay.md lists the other keys.
    #[arg(long = "table", value_name = "WORDS")]
    tables: Vec<String>,
    /// Run without the sandbox
    ///
    /// The process keeps all its privileges and installs no system-call filter.
    #[arg(long)]
    no_sandbox: bool,
    #[command(flatten)]
    serve: ServeArgs,
}

fn main() -> ExitCode {
    if let Some(status) = iswitch_manual::write_if_asked(Cli::command) {
        return status;
    }
    let cli = Cli::parse();
    let (json, is_confined) = (cli.serve.json, !cli.no_sandbox);
    let filter = std::env::var("RUST_LOG").ok().and_then(|directives| directives.parse().ok());
    let filter = filter.unwrap_or_else(|| Targets::new().with_default(LevelFilter::INFO));
    let log = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    tracing_subscriber::registry().with(log).with(filter).init();
    let (config, addresses) = match options(cli) {
        Ok(options) => options,
        Err(error) => return fail(&error, BAD_OPTIONS),
    };
    match run(config, &addresses, json, is_confined) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error, 1),
    }
}

fn fail(error: &anyhow::Error, status: u8) -> ExitCode {
    eprintln!("replayd: {}", iswitch_manual::describe(error.as_ref()));
    ExitCode::from(status)
}

fn options(cli: Cli) -> anyhow::Result<(ShardConfig, Vec<Address>)> {
    let file = cli.config.as_deref().map(read).transpose()?.unwrap_or_default();
    let tables = cli.tables.iter().map(|words| TableOptions::parse(words)).collect::<Result<_, _>>()?;
    let mut options = ShardOptions { tables, ..cli.serve.options() }.or(file);
    if options.listen.is_empty() {
        options.listen.push("127.0.0.1:7800".to_owned());
    }
    let addresses = addresses(&options.listen)?;
    Ok((options.config()?.resolve()?, addresses))
}

fn read(path: &Path) -> anyhow::Result<ShardOptions> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(ShardOptions::parse(&path.display().to_string(), &text)?)
}
