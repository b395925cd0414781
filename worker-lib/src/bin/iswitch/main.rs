//! The `iswitch` command: trains and evaluates agents with gradients aggregated in the network.

mod eval;
mod launch;
mod outcome;
mod progress;
mod switch;
mod train;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Trains reinforcement-learning agents whose gradients are summed by the switch between the workers.
#[derive(Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Trains an agent with one or more workers.
    #[command(subcommand)]
    Train(Algorithm),
    /// Runs a trained agent and reports its returns.
    Eval(eval::EvalArgs),
}

#[derive(Subcommand)]
enum Algorithm {
    /// Proximal policy optimisation.
    Ppo(Box<train::PpoArgs>),
}

fn main() -> ExitCode {
    let filter = tracing_subscriber::EnvFilter::try_from_env("ISWITCH_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let result = match Cli::parse().command {
        Command::Train(Algorithm::Ppo(args)) => train::run(&args),
        Command::Eval(args) => eval::run(&args).map(|()| ExitCode::SUCCESS),
    };
    result.unwrap_or_else(|error| {
        eprintln!("iswitch: {error:#}");
        ExitCode::FAILURE
    })
}
