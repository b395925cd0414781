//! Attacks on real daemons by real packets, each with what is promised against it. `testbench attack` runs them.

mod cables;
mod clients;
mod forged;
mod places;
mod recorded;
mod site;
mod wire;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use iswitch_simulation::panic_message;
use strum::VariantArray as _;

use crate::neighbour::{self, Load};
use iswitch_harness::cluster::PortKind;

/// How long each attack may take.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// For how long workers sum beside an attack.
    pub duration: Duration,
    /// Packets of an attack that consists of many.
    pub packets: usize,
    /// Decides what is random.
    pub seed: u64,
}

impl Effort {
    /// For CI.
    pub const QUICK: Self = Self { duration: Duration::from_millis(700), packets: 1_000, seed: 1 };
}

/// What was measured, or what was promised and did not hold.
pub type Verdict = Result<String, String>;

/// One attack.
#[derive(Clone, Copy, Debug)]
pub struct Attack {
    /// For the command line.
    pub name: &'static str,
    /// What the attacker does.
    pub what: &'static str,
    /// What must hold.
    pub promise: &'static str,
    run: fn(&Effort) -> Verdict,
}

/// All of them.
pub const ALL: &[Attack] = &[
    Attack {
        name: "reflection",
        what: "packets of all kinds in the name of a host that sent none; raw and UDP ports, with keys and without",
        promise: "the host gets no more bytes than were sent in its name",
        run: forged::reflection,
    },
    Attack {
        name: "group-senders",
        what: "Joins from broadcast, group and loop-back addresses",
        promise: "no answer",
        run: forged::group_senders,
    },
    Attack {
        name: "acks",
        what: "Acks in the name of a stranger and of another switch",
        promise: "no answer",
        run: forged::acks,
    },
    Attack {
        name: "forged-orders",
        what: "Leaves, Resets, Halts and other requests in the name of the members of a job with a key",
        promise: "no round lacks a member, sums are exact",
        run: forged::orders,
    },
    Attack {
        name: "random-bytes",
        what: "random and half valid packets, from strangers and in the name of members of a job with a key and tags",
        promise: "the switch runs, no round lacks a member, sums are exact",
        run: forged::random_bytes,
    },
    Attack {
        name: "recorded-requests",
        what: "everything that a member of a job with a key and tags has sent, again, in this job and the next",
        promise: "no round lacks a member, sums are exact",
        run: recorded::requests,
    },
    Attack {
        name: "recorded-results",
        what: "everything that a member of a job with a key and tags has received, again, in this job and the next",
        promise: "sums are exact",
        run: recorded::results,
    },
    Attack {
        name: "squatters",
        what: "members without a key in as many jobs as the switch lets them have",
        promise: "a job with a key begins and sums",
        run: places::squatters,
    },
    Attack {
        name: "hoarder",
        what: "jobs without a key that take all memory, with long segments and with short ones",
        promise: "a job with a key begins and sums",
        run: places::hoarder,
    },
    Attack {
        name: "second-cable",
        what: "all frames of a worker arrive at another port as well",
        promise: "each worker is counted once, no round lacks it",
        run: cables::second_cable,
    },
    Attack {
        name: "other-mac",
        what: "the MAC address of a worker changes in the middle of a round",
        promise: "the job continues, no round lacks a member",
        run: cables::other_mac,
    },
    Attack {
        name: "silent-clients",
        what: "connections to metrics and control socket that ask half a question, more than there may be descriptors",
        promise: "the job continues, and clients are answered after",
        run: clients::silent,
    },
    Attack {
        name: "neighbours",
        what: "all that `testbench neighbour` measures: members and clients that keep the switch busy",
        promise: "the job continues, sums are exact",
        run: neighbours,
    },
];

/// What came of an attack.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Which one.
    pub attack: Attack,
    /// Whether the promise held.
    pub verdict: Verdict,
    /// How long it took.
    pub elapsed: Duration,
}

impl Attack {
    /// Runs it. A part of the testbench that panics is a promise that does not hold.
    pub fn run(self, effort: &Effort) -> Outcome {
        let begin = Instant::now();
        let verdict = catch_unwind(AssertUnwindSafe(|| (self.run)(effort)));
        let verdict = verdict.unwrap_or_else(|panic| Err(panic_message(panic.as_ref()).to_owned()));
        Outcome { attack: self, verdict, elapsed: begin.elapsed() }
    }
}

fn neighbours(effort: &Effort) -> Verdict {
    let load = Load { workers: 2, floats: 10_119, seconds: effort.duration.as_secs_f64() };
    let site = neighbour::Site::new(load.workers, PortKind::Raw);
    let mut slowest = (f64::INFINITY, "");
    for &attack in neighbour::Attack::VARIANTS {
        let run = site.run(Some(attack), load)?;
        if !run.is_exact {
            return Err(format!("{attack}: a sum is wrong"));
        }
        // Limits on strangers may hold up a newcomer among many of them.
        let may_starve = attack == neighbour::Attack::ForgedJoinsFirst;
        if run.rounds_per_s == 0.0 && !may_starve {
            return Err(format!("{attack}: {}", run.failure.unwrap_or_else(|| "no round".to_owned())));
        }
        if !may_starve && run.rounds_per_s < slowest.0 {
            slowest = (run.rounds_per_s, attack.name());
        }
    }
    Ok(format!("slowest beside {}: {:.0} rounds/s", slowest.1, slowest.0))
}
