//! Simulation of the real switch core and the real worker protocol in virtual time.
//!
//! A seed determines the whole run: the number of workers, the vectors they contribute, the network's effect on their
//! packets, which processes crash, pause or leave, and what their clocks show. After every event, the [`checker`]
//! compares the packets sent and the sums delivered with what the protocol allows. At the end, all faults stop, and
//! every live process must make progress within a bounded time. FoundationDB and TigerBeetle are tested in the same
//! way.
//!
//! To reproduce a violation, run its seed again; see [`simulate`].

mod addresses;
pub mod asynchronous;
pub mod baselines;
pub mod checker;
pub mod core_load;
mod elements;
mod groups;
mod names;
pub mod network;
mod packets;
mod process;
pub mod queue;
pub mod report;
mod roaming;
pub mod search;
pub mod swarm;
pub mod transcript;
mod turns;
mod wires;
mod worker;
mod world;

use std::any::Any;
use std::net::SocketAddrV4;
use std::panic::{AssertUnwindSafe, catch_unwind};

use clap::ValueEnum;
use iswitch_protocol::auth::Key;
use iswitch_switch::{Keys, SECRET_LEN_BYTES};
use serde::{Deserialize, Serialize};

pub use elements::Elements;
pub use groups::Groups;
pub use names::Names;

use checker::{Rule, Violation, mix};
use report::Report;
use swarm::{Node, Scenario};
use transcript::Transcript;
use wires::{Ends, LinkEnds};
use world::World;

const JOB: u32 = 1;

/// Returns the key used for authenticated jobs.
fn job_key() -> Key {
    Key::new(b"of the simulated job").expect("16 to 64 bytes")
}

/// Returns the keys of one run of a switch: the secret of the switch, and the job key if the job has one.
fn keys(boot: u64, is_keyed: bool) -> Keys {
    let mut secret = [0; SECRET_LEN_BYTES];
    secret[..8].copy_from_slice(&mix(boot).to_le_bytes());
    let mut keys = Keys::new(secret);
    if is_keyed {
        keys.insert(Some(JOB), job_key());
    }
    keys
}

/// Number of transcript lines kept for a seed that fails.
const TRANSCRIPT_LINES: usize = 400;

/// Kind of the simulated job; see [`simulate`] and [`asynchronous::simulate`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum, strum::Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "lowercase")]
pub enum JobMode {
    /// Rounds, to which every member contributes once.
    #[default]
    Synchronous,
    /// Aggregates of whole vectors from any members.
    Asynchronous,
}

/// A simulation that violated a rule.
#[derive(Debug)]
pub struct Failure<S = Scenario> {
    /// The seed.
    pub seed: u64,
    /// The scenario that was simulated.
    pub scenario: S,
    /// The rule and how it was violated.
    pub violation: Violation,
    /// The last events before the violation.
    pub transcript: Transcript,
}

/// Runs the scenario drawn from a seed.
///
/// # Errors
/// Returns the first rule violation.
pub fn simulate(seed: u64) -> Result<Report, Box<Failure>> {
    run(&Scenario::draw(seed), seed)
}

/// Draws a scenario with a standby switch from a seed, and runs it.
///
/// # Errors
/// Returns the first rule violation.
pub fn simulate_with_standby(seed: u64) -> Result<Report, Box<Failure>> {
    run(&Scenario::draw_with_standby(seed), seed)
}

/// Runs a scenario; the seed determines the behaviour of the network.
///
/// # Errors
/// Returns the first rule violation.
pub fn run(scenario: &Scenario, seed: u64) -> Result<Report, Box<Failure>> {
    run_with_transcript(scenario, seed, |transcript| World::new(scenario, seed, transcript).run())
}

/// Runs a simulation. If it violates a rule, runs it a second time to record the transcript; the simulation is
/// deterministic, so the violation recurs.
fn run_with_transcript<S: Clone, R>(
    scenario: &S,
    seed: u64,
    simulation: impl Fn(&mut Transcript) -> Result<R, Violation>,
) -> Result<R, Box<Failure<S>>> {
    run_once(&simulation, &mut Transcript::off()).map_err(|_| {
        let mut transcript = Transcript::of_last(TRANSCRIPT_LINES);
        let violation = match run_once(&simulation, &mut transcript) {
            Err(violation) => violation,
            Ok(_) => Violation { rule: Rule::Panic, detail: "the violation does not recur".into() },
        };
        Box::new(Failure { seed, scenario: scenario.clone(), violation, transcript })
    })
}

fn run_once<R>(
    simulation: impl Fn(&mut Transcript) -> Result<R, Violation>,
    transcript: &mut Transcript,
) -> Result<R, Violation> {
    catch_unwind(AssertUnwindSafe(|| simulation(transcript))).unwrap_or_else(|panic| {
        Err(Violation { rule: Rule::Panic, detail: panic_message(panic.as_ref()).to_owned() })
    })
}

/// Returns the message of a caught panic.
pub fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}

/// A scheduled event.
#[derive(Clone, Copy, Debug)]
enum ScheduledEvent {
    /// A packet arrives at a switch. `link` has the sender at its lower end.
    AtSwitch { packet: u32, link: LinkEnds, is_bad: bool },
    /// A packet arrives at a member, perhaps through a group. `link` has the member at its lower end.
    AtMember { packet: u32, link: LinkEnds, group: Option<SocketAddrV4>, is_bad: bool },
    /// A deadline of a process expires.
    Wake(Node),
    /// The planned action with the given index occurs.
    Planned(usize),
    /// A worker process starts.
    StartWorker { worker: usize, new_port: bool },
    /// The switch with the given index starts; the root has index 0.
    StartSwitch(usize),
    /// A pause ends.
    Resume(Node),
    /// A partition of workers, or of a switch below the root, ends.
    Reconnect { ends: Ends, up: bool, down: bool },
    /// All faults end.
    Heal,
    /// The operator checks whether the job can make progress.
    Operate,
}
