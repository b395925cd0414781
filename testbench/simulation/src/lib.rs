//! The real switch core and the real worker protocol in a simulated world, in virtual time.
//!
//! One seed decides everything: how many workers, what they sum, what the network does to their packets, who
//! crashes, pauses or leaves, what clocks show. After every event the [`checker`] compares what was sent and
//! delivered with what may be. Then all faults end, and everything that is alive has to go on within a bounded
//! time. FoundationDB and TigerBeetle are tested in this way.
//!
//! A violation is reproduced by its seed, see [`simulate`].

mod addresses;
pub mod asynchronous;
pub mod baselines;
pub mod checker;
pub mod core_load;
pub mod network;
mod packets;
mod process;
pub mod queue;
pub mod report;
pub mod search;
pub mod swarm;
pub mod transcript;
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

use checker::{Rule, Violation, mix};
use report::Report;
use swarm::{Node, Scenario};
use transcript::Transcript;
use wires::Ends;
use world::World;

const JOB: u32 = 1;

/// The key of the job, if it has one.
fn job_key() -> Key {
    Key::new(b"of the simulated job").expect("16 to 64 bytes")
}

/// The secret of a run of a switch, and the key of the job if it has one.
fn keys(boot: u64, is_keyed: bool) -> Keys {
    let mut secret = [0; SECRET_LEN_BYTES];
    secret[..8].copy_from_slice(&mix(boot).to_le_bytes());
    let mut keys = Keys::new(secret);
    if is_keyed {
        keys.insert(Some(JOB), job_key());
    }
    keys
}

/// Lines of the transcript of a seed that fails.
const TRANSCRIPT_LINES: usize = 400;

/// Which kind of job is simulated, see [`simulate`] and [`asynchronous::simulate`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum, strum::Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "lowercase")]
pub enum JobMode {
    /// Rounds, to which every member contributes once.
    #[default]
    Synchronous,
    /// Aggregates of whole vectors, of whichever members.
    Asynchronous,
}

/// A seed that broke a rule.
#[derive(Debug)]
pub struct Failure<S = Scenario> {
    /// The seed.
    pub seed: u64,
    /// What was simulated.
    pub scenario: S,
    /// The rule, and how it was broken.
    pub violation: Violation,
    /// The last events before.
    pub transcript: Transcript,
}

/// Runs what a seed stands for.
///
/// # Errors
/// The first rule that was broken.
pub fn simulate(seed: u64) -> Result<Report, Box<Failure>> {
    run(&Scenario::draw(seed), seed)
}

/// Runs a scenario; the seed decides what the network does.
///
/// # Errors
/// The first rule that was broken.
pub fn run(scenario: &Scenario, seed: u64) -> Result<Report, Box<Failure>> {
    run_with_transcript(scenario, seed, |transcript| World::new(scenario, seed, transcript).run())
}

/// Runs a simulation, and if it breaks a rule once more, for the transcript: it happens again in the same way.
fn run_with_transcript<S: Clone, R>(
    scenario: &S,
    seed: u64,
    simulation: impl Fn(&mut Transcript) -> Result<R, Violation>,
) -> Result<R, Box<Failure<S>>> {
    run_once(&simulation, &mut Transcript::off()).map_err(|_| {
        let mut transcript = Transcript::of_last(TRANSCRIPT_LINES);
        let violation = match run_once(&simulation, &mut transcript) {
            Err(violation) => violation,
            Ok(_) => Violation { rule: Rule::Panic, detail: "it does not happen again".into() },
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

/// What a panic that was caught has said.
pub fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}

/// What happens next.
#[derive(Clone, Copy, Debug)]
enum Happening {
    /// A packet of a member arrives at its switch.
    AtSwitch { packet: u32, peer: SocketAddrV4, is_bad: bool },
    /// A packet of a switch arrives at its member.
    AtMember { packet: u32, peer: SocketAddrV4, is_bad: bool },
    /// A deadline of a process has come.
    Wake(Node),
    /// Something that was planned, by its position.
    Planned(usize),
    /// A worker process starts.
    StartWorker { worker: usize, new_port: bool },
    /// A switch starts, by its position: the root is 0.
    StartSwitch(usize),
    /// A pause ends.
    Resume(Node),
    /// A partition ends, of workers or of a switch below the root.
    Reconnect { ends: Ends, up: bool, down: bool },
    /// All faults end.
    Heal,
    /// An operator looks whether the job can go on.
    Operate,
}
