//! What simulations have shown, and which faults they went through.

use std::ops::AddAssign;
use std::time::Duration;

use serde::Serialize;

use super::network::LinkCounters;

/// Counts of one simulation, or of many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Rounds that were delivered and checked, over all workers.
    pub rounds: u64,
    /// Segments of them.
    pub segments: u64,
    /// Data packets that were put on the wire, for each recipient.
    pub data_packets: u64,
    /// Control packets that were put on the wire.
    pub control_packets: u64,
    /// Things that happened.
    pub events: u64,
    /// Virtual time that it took.
    #[serde(serialize_with = "as_seconds", rename = "virtual_seconds")]
    pub elapsed: Duration,
    /// What the network did.
    pub network: LinkCounters,
    /// Packets dropped by a full receive buffer of a process that was paused.
    pub buffer_overflows: u64,
    /// Worker processes that were killed.
    pub worker_crashes: u64,
    /// Times that the switch was killed.
    pub switch_crashes: u64,
    /// Times that a switch below it was killed.
    pub rack_crashes: u64,
    /// Pauses.
    pub pauses: u64,
    /// Clocks turned.
    pub clock_jumps: u64,
    /// Partitions.
    pub partitions: u64,
    /// Cuts between two switches.
    pub uplink_cuts: u64,
    /// Members that left.
    pub leaves: u64,
    /// Members that were expelled by their lease.
    pub expelled: u64,
    /// Members that learned that the switch had forgotten them, and joined again.
    pub rejoins: u64,
    /// Jobs that went on after the switch was restarted.
    pub resumed: u64,
    /// Rounds that a worker had to begin again.
    pub repeated_rounds: u64,
    /// Contributions refused for their NaN.
    pub poisoned: u64,
    /// SetH that the switch carried out.
    pub thresholds: u64,
    /// Halts that the switch carried out.
    pub halts: u64,
    /// Resets that the switch carried out.
    pub resets: u64,
    /// FBcasts asked for.
    pub forced: u64,
    /// Simulations in which damage passed the checksums, so that sums could not be checked.
    pub unchecked: u64,
    /// Simulations with switches below the switch.
    pub trees: u64,
    /// Simulations of a job with a key.
    pub authenticated: u64,
    /// Simulations in which sums were made in the order of ranks.
    pub ordered: u64,
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
    }
}
