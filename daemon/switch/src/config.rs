//! The configuration of a switch.

use core::time::Duration;

use iswitch_protocol::limits::MAX_JOBS;

use crate::accumulate::NonFinite;
use crate::job::Slot;
use crate::limiter::StrangerLimits;
use crate::uplink::Uplinks;

/// What the driver decides.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Identifies this run of the switch; drawn at random for each run. The epochs of its jobs are derived from it,
    /// and its upper 24 bits are the first round.
    pub boot: u64,
    /// Silence after which a member is expelled, in milliseconds.
    pub lease_ms: u32,
    /// Time that a round may wait for a member, while others are done, before that is reported, in milliseconds.
    pub slow_ms: u32,
    /// Memory for the sums of all jobs, in bytes. A job takes twice its vector, and if sums are ordered once
    /// more for each member that it may have; an asynchronous one at least eight times, and once more for each.
    pub memory_bytes: usize,
    /// Maximum part of that memory for one job, in bytes.
    pub job_memory_bytes: usize,
    /// Maximum number of jobs of one IPv4 address: those that it began and that still wait for workers, and those
    /// without members from elsewhere. Jobs with a key and jobs without one are counted apart.
    pub max_jobs_per_source: usize,
    /// Limits on senders that are no members.
    pub strangers: StrangerLimits,
    /// Receive buffer of the port, in bytes, which bounds the window.
    pub recv_buffer_bytes: usize,
    /// Treatment of NaN and infinities.
    pub non_finite: NonFinite,
    /// The parents of this switch, if it has any.
    pub uplinks: Option<Uplinks>,
    /// Whether to add contributions in the order of the members' ranks, so that the same contributions give the
    /// same bits in whatever order they arrive.
    pub ordered: bool,
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
            uplinks: None,
            ordered: false,
        }
    }
}

impl Config {
    /// Silence after which a member is expelled.
    pub(crate) fn lease(&self) -> Duration {
        Duration::from_millis(u64::from(self.lease_ms))
    }

    /// Time that a round may wait for a member before that is reported.
    pub(crate) fn slow_after(&self) -> Duration {
        Duration::from_millis(u64::from(self.slow_ms))
    }
}

/// Bytes of sums for which there is one slot. Jobs with much smaller segments run out of slots first.
pub(crate) const BYTES_PER_SLOT: usize = 256;

/// Bytes that a switch takes at its start for that much [memory for sums](Config::memory_bytes): the sums and their
/// slots.
pub const fn start_len_bytes(memory_bytes: usize) -> usize {
    memory_bytes + memory_bytes / BYTES_PER_SLOT * size_of::<Slot>()
}
