//! The real switch core and the real worker protocol in a simulated world, in virtual time.
//!
//! One seed decides everything: how many workers, what they sum, what the network does to their packets, who
//! crashes, pauses or leaves, what clocks show. After every event the [`checker`] compares what was sent and
//! delivered with what may be. Then all faults end, and everything that is alive has to go on within a bounded
//! time. FoundationDB and TigerBeetle are tested in this way.
//!
//! A violation is reproduced by its seed, see [`simulate`].

mod addresses;
pub mod baselines;
pub mod checker;
pub mod network;
mod packets;
mod process;
mod queue;
pub mod report;
pub mod swarm;
pub mod transcript;
mod wires;
mod worker;
mod world;

use std::net::SocketAddrV4;
use std::panic::{AssertUnwindSafe, catch_unwind};

use iswitch_protocol::auth::Key;

use checker::{Rule, Violation};
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

/// Lines of the transcript of a seed that fails.
const TRANSCRIPT_LINES: usize = 400;

/// A seed that broke a rule.
#[derive(Debug)]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// What was simulated.
    pub scenario: Scenario,
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
    run_once(scenario, seed, &mut Transcript::off()).map_err(|_| {
        // Once more, for the transcript: it happens again in the same way.
        let mut transcript = Transcript::of_last(TRANSCRIPT_LINES);
        let violation = match run_once(scenario, seed, &mut transcript) {
            Err(violation) => violation,
            Ok(_) => Violation { rule: Rule::Panic, detail: "it does not happen again".into() },
        };
        Box::new(Failure { seed, scenario: scenario.clone(), violation, transcript })
    })
}

fn run_once(scenario: &Scenario, seed: u64, transcript: &mut Transcript) -> Result<Report, Violation> {
    catch_unwind(AssertUnwindSafe(|| World::new(scenario, seed, transcript).run())).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message");
        Err(Violation { rule: Rule::Panic, detail: text.to_owned() })
    })
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
