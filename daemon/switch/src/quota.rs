//! Creation of jobs, within the limits of the switch and the quota of each address.
//!
//! Only a sender with a proven return path can create a job, so forged Joins consume no resources. Each address
//! has a quota of jobs. Two kinds of jobs count towards it: those that the address created and that are still waiting
//! for workers, and those whose members all have this address. If the switch has any keys, all jobs without a key
//! together may use at most half of the job indexes, of the slots and of the memory for sums, so that jobs without a
//! key never lock out jobs with a key (M-13).

use core::net::Ipv4Addr;

use iswitch_protocol::limits::{
    DATA_TAG_LEN_BYTES, KEYLESS_SHARE, MAX_PAYLOAD_LEN_BYTES, tagged_segment_floats,
};
use iswitch_protocol::wire::{JoinRepr, Limit, Status};
use iswitch_protocol::{ElementType, VectorLayout};

use crate::event::Event;
use crate::ids::JobIndex;
use crate::job::{Beginning, Job, Memory};
use crate::jobs::{Footprint, Share};
use crate::reply::Refusal;
use crate::state::State;

impl Footprint {
    /// Returns the footprint of a job, or `None` on overflow.
    fn of(join: &JoinRepr, layout: &VectorLayout, is_ordered: bool, has_parent: bool) -> Option<Self> {
        Some(Self {
            slots: Job::slots_len(join, layout, has_parent),
            sums: Job::sums_len(join, layout, is_ordered, has_parent)?,
        })
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.sums.saturating_mul(size_of::<f32>())
    }

    /// Returns the memory, in bytes, that the sums of a job with `slots` slots would take if the ratio of sums to slots
    /// were the same as in this footprint.
    fn memory_bytes_for(&self, slots: usize) -> usize {
        let bytes = self.memory_bytes() as u128 * slots as u128 / self.slots.max(1) as u128;
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }
}

/// Creates a job, if the switch has the resources and the quota of the address that creates the job allows it.
pub(crate) fn create_job(
    state: &mut State,
    id: u32,
    founder: Ipv4Addr,
    join: &JoinRepr,
) -> Result<JobIndex, Refusal> {
    let layout = VectorLayout::with_elements(join.gradient_len, join.segment_floats, join.elements)
        .map_err(|_| Status::BadLayout)?;
    check_partials(state, join)?;
    if join.tagged && state.keys.of(id).is_none() {
        return Err((Status::TagMismatch, 0).into());
    }
    let tagged_len = layout.longest_packet_len() + DATA_TAG_LEN_BYTES;
    if join.tagged && tagged_len > MAX_PAYLOAD_LEN_BYTES {
        return Err(Status::BadLayout.into());
    }
    if state.is_draining && join.resume.is_none() {
        return Err(Refusal::no_capacity(Limit::Draining, 0, 0));
    }
    let at = free_index(state, id)
        .ok_or_else(|| Refusal::no_capacity(limit_on_jobs(state), state.job_capacity(), 0))?;
    if !may_take_index(state, id) {
        return Err(Refusal::no_capacity(Limit::KeylessJobs, keyless_job_capacity(state), 0));
    }
    let max_jobs_per_source = state.config.max_jobs_per_source;
    if jobs_of(state, founder, id) >= max_jobs_per_source {
        return Err(Refusal::no_capacity(Limit::JobsPerSource, max_jobs_per_source, 0));
    }
    let has_parent = !state.uplinks.is_empty();
    let footprint = Footprint::of(join, &layout, state.config.ordered, has_parent);
    let memory = footprint.as_ref().and_then(|footprint| take_memory(state, id, footprint));
    let memory = memory.ok_or_else(|| {
        let (limit, value) = exceeded_memory(state, id, footprint.as_ref());
        Refusal::no_capacity(limit, value, room_kib(state, id, footprint.as_ref()))
    })?;
    let (epoch, position) = state.jobs.take_origin();
    let key = state.keys.of(id);
    let is_for_card = state.config.card.is_some_and(|card| card.admit(join, has_parent))
        && key.is_none()
        && !state.jobs.iter().any(|(_, job)| job.is_for_card());
    let beginning = Beginning {
        layout,
        founder,
        created: state.now,
        epoch,
        position,
        has_key: key.is_some(),
        tag_key: key.filter(|_| join.tagged).map(|key| key.result_key(epoch, id)),
        has_parent,
        is_ordered: state.config.ordered,
        is_for_card,
        memory,
    };
    state.jobs.insert(at, Job::new(id, join, beginning));
    state.journal.begin(at, id);
    let JoinRepr { gradient_len, workers, .. } = *join;
    state.report(Event::JobCreated { job: id, gradient_len, workers });
    Ok(at)
}

/// Refuses a Join whose segments have 16-bit elements and are so long that their partial sums do not fit into a packet
/// to the parent (H-10).
fn check_partials(state: &State, join: &JoinRepr) -> Result<(), Refusal> {
    let Some(uplinks) = state.config.uplinks.filter(|_| join.elements.contributions() != ElementType::F32)
    else {
        return Ok(());
    };
    let fitting = uplinks.segment_floats;
    let fitting = if join.tagged { tagged_segment_floats(fitting) } else { fitting };
    if join.segment_floats > fitting {
        return Err((Status::SegmentSizeMismatch, u32::from(fitting)).into());
    }
    Ok(())
}

/// Returns a free index for a new job, or `None` if all indexes are in use. If the switch has a parent, prefers the
/// index that the job had before.
fn free_index(state: &State, id: u32) -> Option<JobIndex> {
    let is_free = |at: &JobIndex| state.jobs.get(*at).is_none();
    let had = |at: &JobIndex| is_free(at) && state.uplink(*at).is_some_and(|uplink| uplink.served(id));
    let indexes = || JobIndex::first(state.job_capacity());
    indexes().find(had).or_else(|| indexes().find(is_free))
}

/// Returns the part of the indexes and of the memory that a job may use. If the job has no key, the rest is reserved
/// for jobs with a key.
fn share_of(state: &State, id: u32) -> Share {
    let is_keyless = state.keys.any() && state.keys.of(id).is_none();
    if is_keyless { Share::Keyless } else { Share::All }
}

/// Returns whether a job may take a further index. A job without a key may not take an index that is reserved for jobs
/// with a key.
fn may_take_index(state: &State, id: u32) -> bool {
    share_of(state, id) == Share::All || keyless_jobs(state) < keyless_job_capacity(state)
}

/// Returns which limit applies to the number of jobs. The value of this limit is [`State::job_capacity`].
pub(crate) fn limit_on_jobs(state: &State) -> Limit {
    if state.uplinks.is_empty() { Limit::Jobs } else { Limit::UplinkJobs }
}

pub(crate) fn keyless_jobs(state: &State) -> usize {
    state.jobs.iter().filter(|(_, job)| !job.has_key()).count()
}

/// Returns the maximum number of jobs without a key, which applies if the switch has any keys.
pub(crate) fn keyless_job_capacity(state: &State) -> usize {
    state.job_capacity() / KEYLESS_SHARE
}

/// Returns the limit on memory that a job with this footprint would exceed, and its value.
fn exceeded_memory(state: &State, id: u32, footprint: Option<&Footprint>) -> (Limit, usize) {
    let needed = footprint.map_or(usize::MAX, Footprint::memory_bytes);
    if needed > state.config.job_memory_bytes {
        return (Limit::JobMemory, state.config.job_memory_bytes);
    }
    let share = share_of(state, id);
    let capacity = state.jobs.capacity(share);
    match share {
        // The memory for sums would suffice, so the slots are the limit.
        _ if needed <= state.jobs.largest_gaps(share).memory_bytes() => (Limit::Slots, capacity.slots),
        Share::All => (Limit::Memory, capacity.memory_bytes()),
        Share::Keyless => (Limit::KeylessMemory, capacity.memory_bytes()),
    }
}

fn take_memory(state: &mut State, id: u32, footprint: &Footprint) -> Option<Memory> {
    if footprint.memory_bytes() > state.config.job_memory_bytes {
        return None;
    }
    let share = share_of(state, id);
    state.jobs.take_memory(footprint, share)
}

/// Returns the memory that a new job may take, in KiB. For a job with short segments, this depends on the number of
/// free slots.
fn room_kib(state: &State, id: u32, footprint: Option<&Footprint>) -> u32 {
    let free = state.jobs.largest_gaps(share_of(state, id));
    let room = free.memory_bytes().min(state.config.job_memory_bytes);
    let room = footprint.map_or(room, |footprint| room.min(footprint.memory_bytes_for(free.slots)));
    (room / 1024) as u32
}

/// Returns the number of jobs that count towards the quota of an address: those that the address created and that still
/// wait for workers, and those whose members all have this address. Jobs with a key and jobs without one are counted
/// separately, so that jobs without a key cannot prevent another user of the same host from creating jobs with a key.
fn jobs_of(state: &State, source: Ipv4Addr, id: u32) -> usize {
    jobs_of_source(state, source, state.keys.of(id).is_some())
}

/// Returns the number of jobs that count towards the quota of an address: jobs with a key if `has_key` is true,
/// otherwise jobs without a key.
pub(crate) fn jobs_of_source(state: &State, source: Ipv4Addr, has_key: bool) -> usize {
    let is_alone = |job: &Job| {
        job.members().endpoints(job.members().present()).all(|member| *member.peer.ip() == source)
    };
    let is_its_own = |job: &Job| (!job.is_formed() && job.founder() == source) || is_alone(job);
    state.jobs.iter().filter(|(_, job)| job.has_key() == has_key && is_its_own(job)).count()
}
