//! Attacks on real daemons with real packets, each with the promise that must hold against it. `testbench attack` runs
//! them.

mod cables;
mod clients;
mod forged;
mod places;
mod recorded;
mod testbed;
mod wire;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use iswitch_simulation::panic_message;
use strum::VariantArray as _;

use crate::neighbour::{self, Load};
use iswitch_harness::cluster::PortKind;

/// Duration and size of an attack.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Duration of the aggregation during an attack.
    pub duration: Duration,
    /// Number of packets in each attack that sends many packets.
    pub packets: usize,
    /// Seed of the random number generator.
    pub seed: u64,
}

impl Effort {
    /// Effort for CI.
    pub const QUICK: Self = Self { duration: Duration::from_millis(700), packets: 1_000, seed: 1 };
}

/// Outcome of an attack: a measurement if the promise under test held, otherwise a description of the violation.
pub type Verdict = Result<String, String>;

/// One attack.
#[derive(Clone, Copy, Debug)]
pub struct Attack {
    /// Name on the command line.
    pub name: &'static str,
    /// Description of the attack.
    pub what: &'static str,
    /// Promise that must hold.
    pub promise: &'static str,
    run: fn(&Effort) -> Verdict,
}

/// All attacks.
pub const ALL: &[Attack] = &[
    Attack {
        name: "reflection",
        what: "packets of all kinds with the forged source address of a host; raw and UDP ports, with and without keys",
        promise: "the host receives no more bytes than were sent with its address",
        run: forged::reflection,
    },
    Attack {
        name: "group-senders",
        what: "packets of all kinds from broadcast, group and loopback addresses",
        promise: "no answer",
        run: forged::group_senders,
    },
    Attack {
        name: "acks",
        what: "Acks with the forged source address of a non-member or of another switch",
        promise: "no answer",
        run: forged::acks,
    },
    Attack {
        name: "forged-orders",
        what: "forged Leaves, Resets, Halts and other requests from the members of a job with a key",
        promise: "every round includes all members, and sums are exact",
        run: forged::orders,
    },
    Attack {
        name: "random-bytes",
        what: "random and corrupted packets with the addresses of members of a job with a key and tags",
        promise: "the switch keeps running, every round includes all members, and sums are exact",
        run: forged::random_bytes,
    },
    Attack {
        name: "recorded-requests",
        what: "replay of all packets that a member of a job with a key and tags has sent, in this job and the next",
        promise: "every round includes all members, and sums are exact",
        run: recorded::requests,
    },
    Attack {
        name: "recorded-results",
        what: "replay of all packets that a member of a job with a key and tags has received, in this job and the next",
        promise: "sums are exact",
        run: recorded::results,
    },
    Attack {
        name: "squatters",
        what: "members without a key in as many jobs as the switch admits",
        promise: "a job with a key starts and completes rounds",
        run: places::squatters,
    },
    Attack {
        name: "hoarder",
        what: "jobs without a key that take all memory, with long segments and with short segments",
        promise: "a job with a key starts and completes rounds",
        run: places::hoarder,
    },
    Attack {
        name: "second-cable",
        what: "all frames from a worker also arrive at another port",
        promise: "each worker is counted once, and every round includes all workers",
        run: cables::second_cable,
    },
    Attack {
        name: "other-mac",
        what: "the MAC address of a worker changes in the middle of a round",
        promise: "the job continues, and every round includes all members",
        run: cables::other_mac,
    },
    Attack {
        name: "silent-clients",
        what: "incomplete requests on more connections to the metrics port and control socket than the daemon serves",
        promise: "the job continues, and clients are served once the connections close",
        run: clients::silent,
    },
    Attack {
        name: "neighbours",
        what: "every attack of `testbench neighbour`: members and clients that keep the switch busy",
        promise: "the job continues, and sums are exact",
        run: neighbours,
    },
];

/// Outcome of an attack.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The attack.
    pub attack: Attack,
    /// Whether the promise held.
    pub verdict: Verdict,
    /// Time that the attack took.
    pub elapsed: Duration,
}

impl Attack {
    /// Runs the attack. If a part of the testbench panics, the promise counts as broken.
    pub fn run(self, effort: &Effort) -> Outcome {
        let begin = Instant::now();
        let verdict = catch_unwind(AssertUnwindSafe(|| (self.run)(effort)));
        let verdict = verdict.unwrap_or_else(|panic| Err(panic_message(panic.as_ref()).to_owned()));
        Outcome { attack: self, verdict, elapsed: begin.elapsed() }
    }
}

fn neighbours(effort: &Effort) -> Verdict {
    let load = Load { workers: 2, floats: 10_119, seconds: effort.duration.as_secs_f64() };
    let testbed = neighbour::Testbed::new(load.workers, PortKind::Raw);
    let mut slowest = (f64::INFINITY, "");
    for &attack in neighbour::Attack::VARIANTS {
        let run = testbed.run(Some(attack), load)?;
        if !run.is_exact {
            return Err(format!("{attack}: a sum is wrong"));
        }
        // Limits on non-members may delay the Join of a worker among many forged Joins.
        let may_starve = attack == neighbour::Attack::ForgedJoinsFirst;
        if run.rounds_per_s == 0.0 && !may_starve {
            return Err(format!(
                "{attack}: {}",
                run.failure.unwrap_or_else(|| "no round was completed".to_owned())
            ));
        }
        if !may_starve && run.rounds_per_s < slowest.0 {
            slowest = (run.rounds_per_s, attack.name());
        }
    }
    Ok(format!("slowest under {}: {:.0} rounds/s", slowest.1, slowest.0))
}
