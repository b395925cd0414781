//! `iswitchctl`: shows the state of a running iswitchd, diagnoses a set-up, captures traffic, and creates keys.

mod ask;
mod capture;
mod doctor;
mod top;
mod tos;
mod view;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use iswitch_control::Request;
use iswitch_protocol::key_file;

use ask::AskArgs;

/// Shows what a running iswitchd is doing, looks for what is wrong with a set-up, and makes keys.
#[derive(Parser)]
#[command(name = "iswitchctl", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    ask: AskArgs,
}

#[derive(Subcommand)]
enum Command {
    /// Version, uptime, ports, number of jobs and members, parents that are lost, workers that a round waits for
    Status,
    /// Everything that is counted, by the switch and by each port
    Counters,
    /// Jobs and their members
    Jobs,
    /// All of these at one moment
    Snapshot,
    /// What happened last in each job, as lines of JSON
    Flight,
    /// Rates of jobs and members, who is late and what is dropped, on a screen that follows them
    Top(top::TopArgs),
    /// Looks for what is wrong with a set-up, and says what to do about it; exit status 1 if something is
    Doctor(Box<doctor::DoctorArgs>),
    /// Writes tagged traffic of interfaces into a pcapng file, for Wireshark
    Capture(capture::CaptureArgs),
    /// Writes a new random key into a new file, for `--key-file` of iswitchd and of the workers
    Keygen {
        /// The file; it must not exist
        path: PathBuf,
    },
}

fn main() -> ExitCode {
    if let Some(status) = iswitch_manual::write_if_asked(Cli::command) {
        return status;
    }
    let Cli { command, ask } = Cli::parse();
    let outcome = match command {
        Command::Status => ask.show(Request::Status),
        Command::Counters => ask.show(Request::Counters),
        Command::Jobs => ask.show(Request::Jobs),
        Command::Snapshot => ask.show(Request::Snapshot),
        Command::Flight => ask.show(Request::Flight),
        Command::Top(args) => top::run(&args, &ask),
        Command::Doctor(args) => doctor::run(&args, &ask),
        Command::Capture(args) => capture::run(&args),
        Command::Keygen { path } => keygen(&path),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("iswitchctl: {error:#}");
        ExitCode::FAILURE
    })
}

fn keygen(path: &Path) -> anyhow::Result<ExitCode> {
    use anyhow::Context;

    key_file::create(path).with_context(|| format!("cannot write a key into {}", path.display()))?;
    Ok(ExitCode::SUCCESS)
}
