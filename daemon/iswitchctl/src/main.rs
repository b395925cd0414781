//! `iswitchctl`: shows and changes the state of a running iswitchd, diagnoses a set-up, captures traffic, and creates
//! keys.

mod ask;
mod capture;
mod doctor;
mod orders;
mod top;
mod tos;
mod view;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use iswitch_control::Request;
use iswitch_protocol::key_file;

use ask::QueryArgs;

const EXAMPLES: &str = "\
Examples:
  iswitchctl status                                  Show the state of the switch
  iswitchctl top                                     Monitor rates and stragglers
  iswitchctl doctor --switch 10.9.0.254:7711         Check the path to a switch
  iswitchctl job remove 7                            End a job
  iswitchctl reload                                  Reload the configuration
  iswitchctl keygen job.key                          Create a key for a job";

/// Inspect and control a running iswitchd, diagnose a set-up, create keys
#[derive(Parser)]
#[command(name = "iswitchctl", version, max_term_width = 79, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    ask: QueryArgs,
}

#[derive(Subcommand)]
enum Command {
    /// Show the state of the switch
    ///
    /// The output shows the version, the uptime, the ports, the numbers of jobs and members, the limits with their
    /// current usage, the state of the parents, and the workers that a round is waiting for.
    Status,
    /// Show all counters of the switch, of its card if it has one, and of each port
    Counters,
    /// Show the jobs and their members
    Jobs,
    /// Show status, counters and jobs in one consistent snapshot
    Snapshot,
    /// Print the latest events of each job, as lines of JSON
    ///
    /// The events come from the flight recorder of the daemon.
    Flight,
    /// Show the settings in force and where each value comes from
    Config,
    /// Reload the configuration without interrupting jobs
    ///
    /// These settings take effect at once: slow_ms, job_memory_mib, max_jobs_per_source, join_rate, total_join_rate,
    /// non_finite, key_files and log_level. A running job keeps its key until it ends. If any other setting has
    /// changed, or if the configuration is invalid, the daemon refuses the reload and nothing changes. SIGHUP does the
    /// same.
    Reload,
    /// Show, suspend, resume, reset or end a job
    #[command(subcommand)]
    Job(orders::JobCommand),
    /// Expel a member from its job
    #[command(subcommand)]
    Member(orders::MemberCommand),
    /// Stop the switch when the last job has ended
    ///
    /// While the switch drains, it creates no jobs. The only exception is a job whose workers rejoin with the sums that
    /// they already have.
    Drain(orders::Confirmation),
    /// Monitor rates, stragglers and drops on a live screen
    Top(top::TopArgs),
    /// Diagnose a set-up and suggest fixes
    ///
    /// Checks this machine, its daemon (if one is running) and, with --switch or --peer, the path to another machine.
    /// The exit status is 1 if a check has failed.
    Doctor(Box<doctor::DoctorArgs>),
    /// Capture iSwitch packets from network interfaces into a pcapng file
    ///
    /// Wireshark decodes the packets with the dissector packaging/wireshark/iswitch.lua.
    Capture(capture::CaptureArgs),
    /// Create a key file with a new random key
    ///
    /// Pass the file to iswitchd and to the workers with --key-file.
    Keygen {
        /// Path of the new key file, which must not exist yet
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
        Command::Config => ask.show(Request::Config),
        Command::Reload => orders::reload(&ask),
        Command::Job(command) => command.run(&ask),
        Command::Member(command) => command.run(&ask),
        Command::Drain(confirmation) => orders::drain(confirmation, &ask),
        Command::Top(args) => top::run(&args, &ask),
        Command::Doctor(args) => doctor::run(&args, &ask),
        Command::Capture(args) => capture::run(&args),
        Command::Keygen { path } => keygen(&path),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("iswitchctl: {}", iswitch_manual::describe(error.as_ref()));
        ExitCode::FAILURE
    })
}

fn keygen(path: &Path) -> anyhow::Result<ExitCode> {
    use anyhow::Context;

    key_file::create(path).with_context(|| format!("cannot create the key file {}", path.display()))?;
    Ok(ExitCode::SUCCESS)
}
