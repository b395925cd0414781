//! The `testbench` program: random simulations of the switch and its workers, planted bugs that the simulations must
//! find, comparisons with simpler protocols, attacks, and benchmarks against other systems.

mod actors;
mod attack;
mod compare;
mod core;
mod core_threads;
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
mod year;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use iswitch_simulation::search;

/// Test the switch and the worker protocol, and measure them against other systems
#[derive(Debug, Parser)]
#[command(version, max_term_width = 79)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run random scenarios and stop at the first that violates a rule
    Simulate(search::Options),
    /// Plant bugs in the protocol, one at a time, and check that each is found
    ///
    /// Random scenarios must find each bug, unless the file of the bug names a test that must find it.
    Mutants(mutants::Options),
    /// Compare the protocol with simpler ones on the same networks
    Compare(compare::Options),
    /// Measure all-reduce against Open MPI, Gloo, a parameter server and a ring
    ///
    /// Needs root.
    Peers(peers::Options),
    /// Measure the same contenders as `peers`, with workers in racks
    ///
    /// Each rack has a child switch below one parent switch. Needs root.
    Scale(scale::Options),
    /// Calculate the time of a sum for 10 to 100,000 workers, with or without switches
    Scaling(scaling::Options),
    /// Repeat the study of the iSwitch paper: iteration times, convergence, racks
    Study(study::Options),
    /// Measure the switch core alone, in memory, against plain additions
    ///
    /// The plain additions read the same bytes.
    Core(core::Options),
    /// Count the instructions of the switch core per packet
    ///
    /// Needs Valgrind.
    Instructions(instructions::Options),
    /// Run the accelerator's RTL and the switch core in lock-step, and compare them
    Lockstep(lockstep::Options),
    /// Measure how long actors take to read a model, directly and through cells
    ///
    /// The actors read from the learner, or from cells, which are caches of models. Needs root.
    Models(models::Options),
    /// Measure the training time as a function of the number of actors
    ///
    /// Training time falls with the number of actors until the learner is always busy.
    Actors(actors::Options),
    /// Kill actors, cells, shards and learners, and measure their recovery times
    Recovery(actors::RecoveryOptions),
    /// Attack real daemons, and check the promise that must hold under each attack
    ///
    /// Needs root.
    Attack(attack::Options),
    /// Measure the goodput of a job while its neighbours on the switch misbehave
    ///
    /// Needs root.
    Neighbour(neighbour::Options),
    /// Measure how long actors take to write to sharded replay, compared with Reverb
    ///
    /// Needs root.
    Replay(replay::Options),
    /// Inject faults into the accelerator's RTL, and check that the tests find them
    ///
    /// Needs Verilator and Icarus Verilog.
    RtlMutants(rtl_mutants::Options),
    /// Perform random operator actions on a daemon that serves several jobs
    ///
    /// Every sum must be exact, and a job may end only if an action ends it. The table shows the longest round of the
    /// jobs during each kind of action. Needs root.
    Year(year::Options),
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
        Command::Year(options) => year::run(&options),
    }
}
