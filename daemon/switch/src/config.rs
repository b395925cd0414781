//! The configuration of a switch.

use core::time::Duration;

use iswitch_protocol::ElementTypes;
use iswitch_protocol::limits::{MAX_JOBS, MAX_WORK_COST};
use iswitch_protocol::wire::{JoinRepr, Mode};

use crate::accumulate::NonFinite;
use crate::job::Slot;
use crate::limiter::StrangerLimits;
use crate::uplink::Uplinks;

/// Limits of a card: hardware that sums the rounds of one job, while the core manages the membership of the job. If the
/// first Join of a job exceeds `members` or `segment_floats`, the core sums the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardLimits {
    /// Maximum number of members of the job, at most 8.
    pub members: u16,
    /// Maximum number of floats in a segment.
    pub segment_floats: u16,
    /// Maximum number of segments that a member may have in flight.
    pub window: u16,
}

impl CardLimits {
    /// Returns whether the job that a Join begins is within the limits. Does not check whether the job has a key.
    ///
    /// If the switch has a parent, the declared number of workers is not limited, because most of them may be below
    /// other switches.
    pub(crate) fn admit(&self, join: &JoinRepr, has_parent: bool) -> bool {
        join.mode == Mode::Synchronous
            && join.elements == ElementTypes::F32
            && join.segment_floats <= self.segment_floats
            && (has_parent || join.workers <= self.members)
    }
}

/// Configuration of a switch, supplied by the driver.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Boot id, which identifies this run of the switch; it is drawn at random for each run. The epochs of the jobs are
    /// derived from it, and its upper 24 bits are the first round of the first job.
    pub boot: u64,
    /// Lease in milliseconds: a member that is silent for longer is expelled.
    pub lease_ms: u32,
    /// Time in milliseconds after which a member is reported as slow, if a round waits for it while other members have
    /// contributed.
    pub slow_ms: u32,
    /// Memory for the sums of all jobs, in bytes. A synchronous job takes two vectors, plus one for each possible
    /// member if its sums are ordered. An asynchronous job takes at least eight vectors, plus one for each possible
    /// member.
    pub memory_bytes: usize,
    /// Maximum memory for the sums of one job, in bytes.
    pub job_memory_bytes: usize,
    /// Maximum number of jobs per IPv4 address. Two kinds of jobs count towards the limit: those that the address
    /// created and that are still waiting for workers, and those whose members all have this address. Jobs with a key
    /// and jobs without one are counted separately.
    pub max_jobs_per_source: usize,
    /// Rate limits on packets from non-members.
    pub strangers: StrangerLimits,
    /// Size of the receive buffer of the port, in bytes. It limits the windows of the members.
    pub recv_buffer_bytes: usize,
    /// Treatment of contributions that contain NaN or infinities.
    pub non_finite: NonFinite,
    /// Number of parts into which members divide long vectors, between 1 and
    /// [`MAX_PARTS`](iswitch_protocol::limits::MAX_PARTS). This switch sums the first part; members reach the switches
    /// for the other parts at the following UDP ports.
    pub parts: u8,
    /// Parents of this switch and the ports that lead to them, if it has any.
    pub uplinks: Option<Uplinks>,
    /// Whether to add contributions in the order of the members' ranks. The same contributions then always give
    /// bit-identical sums, regardless of their order of arrival.
    pub ordered: bool,
    /// Whether the switch may send one copy of a result to a multicast group of members. See also
    /// [`Switch::set_group_ports`](crate::Switch::set_group_ports).
    pub group_delivery: bool,
    /// Cost after which a turn of queued work ends, in the units of
    /// [`MAX_WORK_COST`](iswitch_protocol::limits::MAX_WORK_COST). Simulations reduce the limit, so that even short
    /// vectors have to wait in queues, as long vectors do in practice.
    pub work_per_turn: u32,
    /// Limits of the card, if there is one. The card sums one job at a time: a synchronous job with 32-bit elements and
    /// without a key that is within the limits. The core sums all other jobs.
    pub card: Option<CardLimits>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            boot: 0,
            lease_ms: 10_000,
            slow_ms: 1000,
            memory_bytes: 256 << 20,
            job_memory_bytes: usize::MAX,
            max_jobs_per_source: MAX_JOBS / 2,
            strangers: StrangerLimits::default(),
            recv_buffer_bytes: 212_992,
            non_finite: NonFinite::default(),
            parts: 1,
            uplinks: None,
            ordered: false,
            group_delivery: false,
            work_per_turn: MAX_WORK_COST,
            card: None,
        }
    }
}

impl Config {
    /// Returns the lease: a member that is silent for longer is expelled.
    pub(crate) fn lease(&self) -> Duration {
        Duration::from_millis(u64::from(self.lease_ms))
    }

    /// Returns the time for which a round may wait for a member before the member is reported as slow.
    pub(crate) fn slow_after(&self) -> Duration {
        Duration::from_millis(u64::from(self.slow_ms))
    }
}

/// Ratio of the memory for sums, in bytes, to the number of allocated slots. Jobs with much smaller segments run out of
/// slots before they run out of memory for sums.
pub(crate) const BYTES_PER_SLOT: usize = 256;

/// Returns the number of bytes that a switch allocates at start-up for `memory_bytes` of [memory for
/// sums](Config::memory_bytes): the sums and their slots.
pub const fn start_len_bytes(memory_bytes: usize) -> usize {
    memory_bytes + memory_bytes / BYTES_PER_SLOT * size_of::<Slot>()
}
