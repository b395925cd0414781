//! Jobs without a key that try to take all capacity of the switch.

use std::net::SocketAddrV4;

use iswitch_protocol::wire::{JoinRepr, Status};

use super::testbed::{Testbed, undisturbed};
use super::{Effort, Verdict};
use crate::neighbour::member::Member;

/// Number of jobs that the attacker tries to begin. It exceeds the number that a switch admits.
const JOBS: u32 = 200;
/// Job number of the attacker's first job. The attacker's jobs have higher numbers than the workers' job.
const FIRST_JOB: u32 = 1000;
/// Number of floats in the vector of the attacker's first job. Whenever a job is refused, the next one has half as many
/// floats.
const FLOATS: u32 = 1 << 28;
/// Number of floats in a long segment. Jobs with long segments exhaust the memory for sums.
const LONG_SEGMENT_FLOATS: u16 = 366;
/// Number of floats in a short segment. Jobs with short segments exhaust the memory for the state of segments.
const SHORT_SEGMENT_FLOATS: u16 = 1;

/// Lets the attacker occupy the switch with `take`, which returns the members that the switch admitted. Then checks
/// that the workers, which have the key, aggregate undisturbed.
fn beside(effort: &Effort, take: impl Fn(SocketAddrV4) -> Result<Vec<Member>, String> + Sync) -> Verdict {
    let testbed = Testbed::new();
    // With this limit, one address can stand in for as many addresses as the attack needs.
    let arguments = [&testbed.key_arguments()[..], &["--max-jobs-per-source", "64"]].concat();
    let daemon = testbed.daemon(&arguments);
    let switch = daemon.address();
    let taken = testbed.attacker().enter(|| take(switch))?;
    let workers = testbed.workers(&daemon, &testbed.keyed());
    let rounds = undisturbed(workers, effort)?;
    let jobs = taken.len();
    drop(taken);
    daemon.stop();
    Ok(format!("{rounds} rounds with {jobs} other jobs on the switch"))
}

pub(super) fn squatters(effort: &Effort) -> Verdict {
    beside(effort, |switch| {
        let mut members = Vec::new();
        let mut refused = 0;
        for job in FIRST_JOB..FIRST_JOB + JOBS {
            let mut member = Member::open(switch, job)?;
            match member.join(JoinRepr { instance: job, ..JoinRepr::worker(4, 4, 0) }) {
                Ok(_) => members.push(member),
                Err(Status::NoCapacity | Status::JobFull) => refused += 1,
                Err(status) => return Err(format!("job {job}: {status:?}")),
            }
        }
        if refused == 0 {
            Err(format!("all {JOBS} jobs were admitted, expected the switch to refuse some of them"))
        } else {
            Ok(members)
        }
    })
}

pub(super) fn hoarder(effort: &Effort) -> Verdict {
    let long = beside(effort, |switch| hoard(switch, LONG_SEGMENT_FLOATS))?;
    let short = beside(effort, |switch| hoard(switch, SHORT_SEGMENT_FLOATS))?;
    Ok(format!("long segments: {long}; short segments: {short}"))
}

/// Adds jobs with segments of the given length until the switch refuses even a job of a single segment. Each job is as
/// large as the switch admits.
fn hoard(switch: SocketAddrV4, segment_floats: u16) -> Result<Vec<Member>, String> {
    let mut members = Vec::new();
    let mut floats = FLOATS;
    while floats >= u32::from(segment_floats) {
        let job = FIRST_JOB + members.len() as u32;
        let mut member = Member::open(switch, job)?;
        let join = JoinRepr { instance: job, ..JoinRepr::worker(floats, segment_floats, 0) };
        match member.join(join) {
            Ok(_) => members.push(member),
            Err(Status::NoCapacity | Status::BadLayout) => floats /= 2,
            Err(status) => return Err(format!("{floats} floats: {status:?}")),
        }
    }
    if members.is_empty() { Err("no job was admitted".to_owned()) } else { Ok(members) }
}
