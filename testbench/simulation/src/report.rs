//! Results of simulations and the faults they covered.

use std::ops::AddAssign;
use std::time::Duration;

use serde::Serialize;

use super::network::LinkCounters;

/// Counts from one simulation or the total of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Number of rounds delivered and checked, over all workers.
    pub rounds: u64,
    /// Number of segments of the delivered rounds.
    pub segments: u64,
    /// Number of data packets put on the wire, counted once per recipient.
    pub data_packets: u64,
    /// Number of control packets put on the wire.
    pub control_packets: u64,
    /// Events processed.
    pub events: u64,
    /// Elapsed virtual time.
    #[serde(serialize_with = "as_seconds", rename = "virtual_seconds")]
    pub elapsed: Duration,
    /// Network faults and packets sent.
    pub network: LinkCounters,
    /// Number of packets dropped because the receive buffer of a paused process was full.
    pub buffer_overflows: u64,
    /// Number of worker processes killed.
    pub worker_crashes: u64,
    /// Number of times that the root switch was killed.
    pub switch_crashes: u64,
    /// Number of times that a switch below the root was killed.
    pub rack_crashes: u64,
    /// Process pauses.
    pub pauses: u64,
    /// Clock jumps.
    pub clock_jumps: u64,
    /// Partitions of workers.
    pub partitions: u64,
    /// Number of cuts of a link between two switches.
    pub uplink_cuts: u64,
    /// Members that left.
    pub leaves: u64,
    /// Number of members expelled because their lease expired.
    pub expelled: u64,
    /// Number of members that rejoined after the switch had lost their membership.
    pub rejoins: u64,
    /// Number of jobs resumed after a restart of the switch.
    pub resumed: u64,
    /// Number of rounds that a worker had to repeat.
    pub repeated_rounds: u64,
    /// Number of contributions refused because they contained a NaN.
    pub poisoned: u64,
    /// Number of SetH requests that the switch carried out.
    pub thresholds: u64,
    /// Number of Halt requests that the switch carried out.
    pub halts: u64,
    /// Number of Reset requests that the switch carried out.
    pub resets: u64,
    /// FBcast requests sent.
    pub forced: u64,
    /// Number of simulations in which corruption could pass the checksums, so that sums could not be checked.
    pub unchecked: u64,
    /// Number of simulations with switches below the root.
    pub trees: u64,
    /// Number of simulations of a job with a key.
    pub authenticated: u64,
    /// Number of simulations in which sums were computed in rank order.
    pub ordered: u64,
    /// Number of simulations with workers that can hear a group.
    pub grouped: u64,
    /// Number of data packets sent to groups.
    pub group_packets: u64,
    /// Number of times that a member began to receive results through a group.
    pub group_members: u64,
    /// Number of times that a group stopped reaching a member.
    pub group_losses: u64,
    /// Number of times that a worker moved to its other switch.
    #[serde(skip_serializing_if = "is_zero")]
    pub moves: u64,
    /// Number of times that a switch interrupted a job whose workers have several switches.
    #[serde(skip_serializing_if = "is_zero")]
    pub interrupted: u64,
}

/// Returns whether a count is zero. Counts that are always zero without a standby switch are omitted from the
/// serialized report if they are zero.
pub(crate) fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn as_seconds<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

impl AddAssign for Report {
    fn add_assign(&mut self, other: Self) {
        self.rounds += other.rounds;
        self.segments += other.segments;
        self.data_packets += other.data_packets;
        self.control_packets += other.control_packets;
        self.events += other.events;
        self.elapsed += other.elapsed;
        self.network += other.network;
        self.buffer_overflows += other.buffer_overflows;
        self.worker_crashes += other.worker_crashes;
        self.switch_crashes += other.switch_crashes;
        self.rack_crashes += other.rack_crashes;
        self.pauses += other.pauses;
        self.clock_jumps += other.clock_jumps;
        self.partitions += other.partitions;
        self.uplink_cuts += other.uplink_cuts;
        self.leaves += other.leaves;
        self.expelled += other.expelled;
        self.rejoins += other.rejoins;
        self.resumed += other.resumed;
        self.repeated_rounds += other.repeated_rounds;
        self.poisoned += other.poisoned;
        self.thresholds += other.thresholds;
        self.halts += other.halts;
        self.resets += other.resets;
        self.forced += other.forced;
        self.unchecked += other.unchecked;
        self.trees += other.trees;
        self.authenticated += other.authenticated;
        self.ordered += other.ordered;
        self.grouped += other.grouped;
        self.group_packets += other.group_packets;
        self.group_members += other.group_members;
        self.group_losses += other.group_losses;
        self.moves += other.moves;
        self.interrupted += other.interrupted;
    }
}
