//! What the modules of the accelerator hand to each other.

use rust_hdl::prelude::*;

use crate::axis::Lanes;

/// Members that the accelerator tells apart.
pub const MEMBERS: usize = 8;
/// Floats in a segment, at most: an MTU of 1500.
pub const MAX_FLOATS: u16 = 366;

/// What a frame's first 64 bytes say. Other frames than those of the job have `data` and `control` clear.
#[derive(Default, Copy, Clone, PartialEq, Debug, LogicStruct)]
pub struct Header {
    pub data: Bit,
    pub control: Bit,
    /// A fragment, or lengths that contradict each other.
    pub malformed: Bit,
    /// Whether the sender is in the member table, and where.
    pub known: Bit,
    pub member: Bits<3>,
    /// Bytes 42 to 49: Seg, or the start of a control packet.
    pub seg: RawSeg,
    /// UDP length in bytes.
    pub udp_len: Bits<16>,
    /// Bytes 54 and 55: the threshold of a SetH.
    pub value: Bits<16>,
}

/// Seg as it lies on the stream.
#[derive(Default, Copy, Clone, PartialEq, Debug, LogicStruct)]
pub struct RawSeg {
    pub s0: Bits<16>,
    pub s1: Bits<16>,
    pub s2: Bits<16>,
    pub s3: Bits<16>,
}

/// What the Seg counter looks up.
#[derive(Default, Copy, Clone, PartialEq, Debug, LogicStruct)]
pub struct Key {
    pub index: Bits<24>,
    pub round: Bits<24>,
    /// Worker gradients in the packet.
    pub weight: Bits<16>,
    pub udp_len: Bits<16>,
    pub member: Bits<3>,
    pub known: Bit,
    pub malformed: Bit,
    /// No packet: the host asks to finish the segment, if `only_complete` when enough have contributed.
    pub forced: Bit,
    pub only_complete: Bit,
}

/// State of a slot: one word of 72 bits. Neither open nor done: empty.
#[derive(Default, Copy, Clone, PartialEq, Debug, LogicStruct)]
pub struct Entry {
    pub open: Bit,
    pub done: Bit,
    /// No later segment of the vector has this slot.
    pub wraps: Bit,
    /// Upper bits of the segment's index.
    pub tag: Bits<17>,
    pub round: Bits<24>,
    /// Bit i: member i is in the sum.
    pub members: Bits<8>,
    /// Worker gradients in the sum.
    pub total: Bits<16>,
    pub spare: Bits<4>,
}

/// What becomes of the frame at the head of the queue, or, if `forced`, of a segment without any frame.
#[derive(Default, Copy, Clone, PartialEq, Debug, LogicStruct)]
pub struct Decision {
    pub bypass: Bit,
    pub drop: Bit,
    pub forced: Bit,
    /// The first contribution: the buffer reads as zero.
    pub first: Bit,
    /// The last contribution: the sum goes out.
    pub last: Bit,
    /// Address of the first burst.
    pub address: Bits<14>,
    /// Bursts after the first.
    pub more: Bits<6>,
    /// Floats in the last burst; 0 is eight.
    pub tail: Bits<3>,
}

/// Eight floats and where they are added.
#[derive(Default, Copy, Clone, PartialEq, Debug, LogicStruct)]
pub struct Burst {
    pub lanes: Lanes,
    pub address: Bits<14>,
    pub first: Bit,
    pub last: Bit,
}

/// The packet that a complete sum makes.
#[derive(Default, Copy, Clone, PartialEq, Debug, LogicStruct)]
pub struct ResultInfo {
    pub seg: RawSeg,
    pub floats: Bits<9>,
}

/// The job, as the host has set it.
#[derive(Default, Copy, Clone, PartialEq, Debug, LogicStruct)]
pub struct Job {
    /// Its first round.
    pub base: Bits<24>,
    /// Index of the last segment.
    pub last_index: Bits<24>,
    pub segment_floats: Bits<9>,
    pub last_floats: Bits<9>,
    /// Its number.
    pub id: Bits<32>,
}

/// Which frames are the job's. Halves as on the stream.
#[derive(Default, Copy, Clone, PartialEq, Debug, LogicStruct)]
pub struct Filter {
    /// Without it every frame is ordinary traffic.
    pub enable: Bit,
    pub data_tos: Bits<8>,
    pub control_tos: Bits<8>,
    pub port: Bits<16>,
}

/// The constant part of a result's header, in halves as on the stream.
#[derive(Default, Copy, Clone, PartialEq, Debug, LogicStruct)]
pub struct Template {
    pub to_mac0: Bits<16>,
    pub to_mac1: Bits<16>,
    pub to_mac2: Bits<16>,
    pub from_mac0: Bits<16>,
    pub from_mac1: Bits<16>,
    pub from_mac2: Bits<16>,
    pub from_ip0: Bits<16>,
    pub from_ip1: Bits<16>,
    pub to_ip0: Bits<16>,
    pub to_ip1: Bits<16>,
    pub from_port: Bits<16>,
    pub to_port: Bits<16>,
    pub tos: Bits<8>,
    /// `tuser` destination of results; their source is 0.
    pub ports: Bits<8>,
    /// One's-complement sum of the halves of the IPv4 header that are the same in all results.
    pub checksum: Bits<16>,
}

/// Which counter a decision raises. The codes are offsets in the register map.
pub mod event {
    /// A frame that is not the job's.
    pub const ORDINARY: u64 = 0;
    /// A control packet of the job; it went on to the host.
    pub const CONTROL: u64 = 1;
    /// A contribution that completed nothing.
    pub const SUMMED: u64 = 2;
    /// A contribution that completed its segment.
    pub const COMPLETED: u64 = 3;
    /// A segment that the host finished.
    pub const FORCED: u64 = 4;
    /// Drop: the sender is no member.
    pub const UNKNOWN_MEMBER: u64 = 5;
    /// Drop: a fragment, or lengths that contradict each other.
    pub const MALFORMED: u64 = 6;
    /// Drop: the job is halted.
    pub const HALTED: u64 = 7;
    /// Drop: an index beyond the vector.
    pub const SEG_OUT_OF_RANGE: u64 = 8;
    /// Drop: not as long as its segment.
    pub const LENGTH_MISMATCH: u64 = 9;
    /// Drop: a worker with several gradients, or a total that does not fit.
    pub const BAD_WEIGHT: u64 = 10;
    /// Drop: the member is in the open sum.
    pub const DUPLICATE: u64 = 11;
    /// Drop: the segment is finished.
    pub const LATE: u64 = 12;
    /// Drop: the round is over.
    pub const STALE_ROUND: u64 = 13;
    /// Drop: the round cannot open yet, or the slot is taken by another segment.
    pub const EARLY_ROUND: u64 = 14;
    /// Drop: the round began without this member.
    pub const NOT_PARTICIPANT: u64 = 15;
    /// Names of the counters, in the order of the codes.
    pub const NAMES: [&str; 16] = [
        "ordinary",
        "control",
        "summed",
        "completed",
        "forced",
        "unknown_member",
        "malformed",
        "halted",
        "seg_out_of_range",
        "length_mismatch",
        "bad_weight",
        "duplicate",
        "late",
        "stale_round",
        "early_round",
        "not_participant",
    ];
}
