//! Simulations of the switch and its workers: random ones, those that have to find planted bugs, and the comparison
//! with simpler protocols. And the benchmark beside what others have.

mod actors;
mod attack;
mod compare;
mod core;
mod instructions;
mod lockstep;
mod models;
mod mutants;
mod neighbour;
mod output;
mod peers;
mod replay;
mod rtl_mutants;
mod scale;
mod scaling;
mod study;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use iswitch_simulation::search;

/// Proves the switch and the worker protocol by simulation, and measures them beside others.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run random scenarios, and stop at the first that breaks a rule
    Simulate(search::Options),
    /// Plant bugs into the protocol, one at a time, and expect random scenarios to find each
    Mutants(mutants::Options),
    /// Compare the protocol with simpler ones on the same networks
    Compare(compare::Options),
    /// Measure the switch beside Open MPI, Gloo, a parameter server and a ring; needs root
    Peers(peers::Options),
    /// Measure them with racks of workers below a switch above their switches; needs root
    Scale(scale::Options),
    /// Calculate how long a sum takes with 10 to 100,000 workers, through switches and without
    Scaling(scaling::Options),
    /// Repeat the paper's study: iterations, staleness, training to a return, racks
    Study(study::Options),
    /// Measure the switch core alone, in memory, beside plain adds of the same bytes
    Core(core::Options),
    /// Count the instructions of the switch core for one packet; needs Valgrind
    Instructions(instructions::Options),
    /// Run the accelerator's RTL beside the switch core, and compare every result
    Lockstep(lockstep::Options),
    /// Measure how long actors take to read a model, from the learner and from caches in cells; needs root
    Models(models::Options),
    /// Measure how training time falls with the number of actors, until the learner is busy all the time
    Actors(actors::Options),
    /// Kill actors, cells, shards and learners of a run, and measure how soon they are back
    Recovery(actors::RecoveryOptions),
    /// Attack real daemons, and check what is promised against each attack; needs root
    Attack(attack::Options),
    /// Measure what a job gets while its neighbours on the switch misbehave; needs root
    Neighbour(neighbour::Options),
    /// Measure how long actors take to write to replay, in shards, beside Reverb; needs root
    Replay(replay::Options),
    /// Put faults into the accelerator's RTL, and expect its checks to find each; needs Verilator and Icarus
    RtlMutants(rtl_mutants::Options),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Simulate(options) => search::run(&options),
        Command::Mutants(options) => mutants::run(&options),
        Command::Compare(options) => compare::compare(&options),
        Command::Peers(options) => peers::run(&options),
        Command::Scale(options) => scale::run(&options),
        Command::Scaling(options) => scaling::run(&options),
        Command::Study(options) => study::run(&options),
        Command::Core(options) => core::run(&options),
        Command::Instructions(options) => instructions::run(&options),
        Command::Lockstep(options) => lockstep::run(&options),
        Command::Models(options) => models::run(&options),
        Command::Actors(options) => actors::run(&options),
        Command::Recovery(options) => actors::recover(&options),
        Command::Attack(options) => attack::run(&options),
        Command::Neighbour(options) => neighbour::run(&options),
        Command::Replay(options) => replay::run(&options),
        Command::RtlMutants(options) => rtl_mutants::run(&options),
    }
}
