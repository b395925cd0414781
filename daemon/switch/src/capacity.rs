//! Limits of the switch and the current usage relative to each of them, for operators.

use core::net::Ipv4Addr;

use alloc::vec::Vec;

use iswitch_protocol::limits::MAX_MEMBERS;
use iswitch_protocol::wire::Limit;

use crate::job::Job;
use crate::jobs::{Footprint, Share};
use crate::quota::{jobs_of_source, keyless_job_capacity, keyless_jobs, limit_on_jobs};
use crate::state::State;

/// A limit enforced by the switch, and how much of it is currently in use. A Join that would exceed the limit is
/// refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct LimitStatus {
    /// Name of the limit, see [`Limit::name`].
    pub limit: &'static str,
    /// Current usage. For a limit that applies to each job or to each address, the highest usage by any one of them.
    pub used: u64,
    /// Value of the limit: a number of bytes if the name ends in `_bytes`, otherwise a count.
    pub value: u64,
    /// Option of iswitchd that raises the limit; `None` if the limit is fixed.
    pub option: Option<&'static str>,
}

impl LimitStatus {
    fn new(limit: Limit, used: usize, value: usize) -> Self {
        Self { limit: limit.name(), used: used as u64, value: value as u64, option: limit.option() }
    }

    /// Returns whether the switch divides the limit among its threads. If so, the values of all threads must be added.
    pub fn is_divided(&self) -> bool {
        [Limit::Memory, Limit::JobMemory, Limit::KeylessMemory, Limit::Slots]
            .iter()
            .any(|limit| limit.name() == self.limit)
    }
}

/// Returns all limits that apply. The limits on jobs without a key apply only if the switch has any keys.
pub(crate) fn limits(state: &State) -> Vec<LimitStatus> {
    let jobs = || state.jobs.iter().map(|(_, job)| job);
    let footprint = |job: &Job| Footprint { slots: job.memory().slots.len(), sums: job.memory().sums.len() };
    let all = state.jobs.capacity(Share::All);
    let used = |jobs: &mut dyn Iterator<Item = &Job>| {
        jobs.map(footprint).fold(Footprint { slots: 0, sums: 0 }, |sum, job| Footprint {
            slots: sum.slots + job.slots,
            sums: sum.sums + job.sums,
        })
    };
    let of_all = used(&mut jobs());
    let largest = jobs().map(|job| footprint(job).memory_bytes()).max().unwrap_or(0);
    let members = jobs().map(|job| job.members().present().len()).max().unwrap_or(0);
    let job_memory_bytes = state.config.job_memory_bytes.min(all.memory_bytes());
    let mut limits = Vec::from([
        LimitStatus::new(limit_on_jobs(state), jobs().count(), state.job_capacity()),
        LimitStatus::new(Limit::JobsPerSource, most_of_one_source(state), state.config.max_jobs_per_source),
        LimitStatus::new(Limit::Members, members.into(), MAX_MEMBERS),
        LimitStatus::new(Limit::Memory, of_all.memory_bytes(), all.memory_bytes()),
        LimitStatus::new(Limit::JobMemory, largest, job_memory_bytes),
        LimitStatus::new(Limit::Slots, of_all.slots, all.slots),
    ]);
    if state.keys.any() {
        let keyless = used(&mut jobs().filter(|job| !job.has_key())).memory_bytes();
        let capacity = state.jobs.capacity(Share::Keyless).memory_bytes();
        limits.push(LimitStatus::new(Limit::KeylessJobs, keyless_jobs(state), keyless_job_capacity(state)));
        limits.push(LimitStatus::new(Limit::KeylessMemory, keyless, capacity));
    }
    limits
}

/// Returns the largest number of jobs that count towards the limit of any one address.
fn most_of_one_source(state: &State) -> usize {
    let of_job = |job: &Job| -> Vec<Ipv4Addr> {
        let members = job.members().endpoints(job.members().present()).map(|member| *member.peer.ip());
        members.chain([job.founder()]).collect()
    };
    let sources = state.jobs.iter().flat_map(|(_, job)| of_job(job));
    let counts =
        sources.flat_map(|source| [true, false].map(|has_key| jobs_of_source(state, source, has_key)));
    counts.max().unwrap_or(0)
}
