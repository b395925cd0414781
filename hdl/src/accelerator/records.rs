//! Records that the modules of the accelerator exchange.

use rust_hdl::prelude::*;

use crate::axis::{Halves, Lanes};

/// Maximum number of members that the accelerator supports.
pub const MEMBERS: usize = iswitch_card::MEMBERS;
/// Maximum number of floats in a segment, for an MTU of 1500 bytes.
pub const MAX_FLOATS: u16 = iswitch_card::MAX_FLOATS;

/// Header fields from the first 64 bytes of a frame. `data` and `control` are both clear if the frame does not belong
/// to the job.
#[derive(Default, Copy, Clone, PartialEq, Debug, LogicStruct)]
pub struct Header {
    pub data: Bit,
    pub control: Bit,
    /// Whether the frame is a fragment, has inconsistent lengths, or ends before the length in `tuser`.
    pub malformed: Bit,
    /// Whether the sender is in the member table. If it is, `member` is its row.
    pub known: Bit,
    pub member: Bits<3>,
    /// Bytes 42 to 49 of the frame: the Seg of a data packet, or the start of a control packet.
    pub seg: RawSeg,
    /// UDP length in bytes.
    pub udp_len: Bits<16>,
    /// Bytes 54 and 55 of the frame: the threshold of a SetH.
    pub value: Bits<16>,
}

/// The eight bytes of a Seg, as 16-bit half-words in stream order.
#[derive(Default, Copy, Clone, PartialEq, Debug, LogicStruct)]
pub struct RawSeg {
    pub s0: Bits<16>,
    pub s1: Bits<16>,
    pub s2: Bits<16>,
    pub s3: Bits<16>,
}

/// Request to the Seg counter to decide about a contribution or, if `forced` is set, about a segment that the host
/// wants to finish.
#[derive(Default, Copy, Clone, PartialEq, Debug, LogicStruct)]
pub struct Key {
    pub index: Bits<24>,
    pub round: Bits<24>,
    /// Number of worker gradients in the packet.
    pub weight: Bits<16>,
    pub udp_len: Bits<16>,
    pub member: Bits<3>,
    pub known: Bit,
    pub malformed: Bit,
    /// Set if the request comes from the host and not from a packet. If `only_complete` is also set, the segment is
    /// finished only if enough members have contributed.
    pub forced: Bit,
    pub only_complete: Bit,
    /// Set together with `forced` if the sum of a finished segment is requested again, for `member` only. If
    /// `only_complete` is also set, the request comes from a Help, otherwise from a late contribution.
    pub repeats: Bit,
}

/// State of a slot, as one 86-bit word. A slot that is neither open nor done is empty.
///
/// A slot has two banks of the buffer, which the segments that use the slot occupy in turn. While the sum of one
/// segment is open or done, the sum of the segment before it can therefore still be read.
#[derive(Default, Copy, Clone, PartialEq, Debug, LogicStruct)]
pub struct Entry {
    pub open: Bit,
    pub done: Bit,
    /// Whether the segment is the last one of the vector that uses this slot.
    pub wraps: Bit,
    /// Bits 23 to 7 of the segment's index.
    pub tag: Bits<17>,
    pub round: Bits<24>,
    /// Bitmap of the members that have contributed to the sum: bit i stands for member i.
    pub members: Bits<8>,
    /// Number of worker gradients in the sum.
    pub total: Bits<16>,
    /// Bank of the sum. The other bank holds the sum of the segment that used the slot before, if `has_previous` is
    /// set; `previous_total` is the number of worker gradients in it.
    pub bank: Bit,
    pub has_previous: Bit,
    pub previous_total: Bits<16>,
}

/// Decision about the frame at the head of the queue or, if `forced` is set, about a segment that the host finishes
/// without a frame.
#[derive(Default, Copy, Clone, PartialEq, Debug, LogicStruct)]
pub struct Decision {
    pub bypass: Bit,
    pub drop: Bit,
    pub forced: Bit,
    /// Whether this is the first contribution to the segment. If it is, it is added to zero, regardless of the content
    /// of the buffer.
    pub first: Bit,
    /// Whether this is the last contribution to the segment. If it is, the sum is sent.
    pub last: Bit,
    /// Buffer address of the segment's first burst. The lowest bit is the bank.
    pub address: Bits<15>,
    /// Number of bursts after the first.
    pub more: Bits<6>,
    /// Number of floats in the last burst; 0 stands for eight.
    pub tail: Bits<3>,
    /// Whether a frame that bypasses the sums also goes to the host.
    pub copied: Bit,
    /// Whether the frame is a well-formed control packet from `member`.
    pub trusted: Bit,
    pub member: Bits<3>,
}

/// Eight floats and the buffer address of the sums to which they are added.
#[derive(Default, Copy, Clone, PartialEq, Debug, LogicStruct)]
pub struct Burst {
    pub lanes: Lanes,
    pub address: Bits<15>,
    pub first: Bit,
    pub last: Bit,
}

/// Contribution to a finished segment. The result is retransmitted to the sender of the contribution.
#[derive(Default, Copy, Clone, PartialEq, Debug, LogicStruct)]
pub struct Late {
    pub index: Bits<24>,
    pub round: Bits<24>,
    pub member: Bits<3>,
}

/// Beat of a well-formed control packet from a member, as it is forwarded to the host.
#[derive(Default, Copy, Clone, PartialEq, Debug, LogicStruct)]
pub struct ControlBeat {
    pub data: Halves,
    /// Whether there is a beat in this cycle.
    pub taken: Bit,
    /// Whether the beat is the last one of its frame.
    pub last: Bit,
    pub member: Bits<3>,
}

/// Request of a Help for the results of some segments.
#[derive(Default, Copy, Clone, PartialEq, Debug, LogicStruct)]
pub struct HelpRequest {
    /// First segment of the range.
    pub index: Bits<24>,
    pub round: Bits<24>,
    /// Number of segments in the range minus one, at most 127.
    pub last: Bits<7>,
    pub member: Bits<3>,
    /// Requested segments: bit i stands for segment `index` + i.
    pub wanted: Bits<128>,
}

/// Seg and number of floats of a result.
#[derive(Default, Copy, Clone, PartialEq, Debug, LogicStruct)]
pub struct ResultInfo {
    pub seg: RawSeg,
    pub floats: Bits<9>,
}

/// State of the rounds that the host can read. 0 and 1 are the parities of the rounds.
#[derive(Default, Copy, Clone, PartialEq, Debug, LogicStruct)]
pub struct RoundsView {
    /// Next round to open.
    pub next_round: Bits<24>,
    /// Number of segments that are not finished.
    pub unfinished0: Bits<25>,
    pub unfinished1: Bits<25>,
    /// H, and the members that take part.
    pub needed0: Bits<8>,
    pub needed1: Bits<8>,
    pub participants0: Bits<8>,
    pub participants1: Bits<8>,
}

/// Job configuration set by the host.
#[derive(Default, Copy, Clone, PartialEq, Debug, LogicStruct)]
pub struct Job {
    /// First round of the job.
    pub base: Bits<24>,
    /// Index of the last segment of the vector.
    pub last_index: Bits<24>,
    pub segment_floats: Bits<9>,
    pub last_floats: Bits<9>,
    /// Identifier of the job.
    pub id: Bits<32>,
}

/// Criteria that identify the job's frames. The 16-bit fields are in stream order.
#[derive(Default, Copy, Clone, PartialEq, Debug, LogicStruct)]
pub struct Filter {
    /// If clear, every frame is ordinary traffic.
    pub enable: Bit,
    /// If set, data packets from non-members are ordinary traffic.
    pub forwards_strangers: Bit,
    pub data_tos: Bits<8>,
    pub control_tos: Bits<8>,
    pub port: Bits<16>,
    /// IPv4 address of the switch; packets to any other address are ordinary traffic.
    pub address0: Bits<16>,
    pub address1: Bits<16>,
}

/// Header fields that all results of a job share. The 16-bit fields are in stream order.
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
    /// Destination bits of `tuser` in results; the source bits are 0. The host configures only its own ports; the
    /// datapath adds those of the members.
    pub ports: Bits<8>,
    /// One's-complement sum of the half-words of the IPv4 header that are the same in all results.
    pub checksum: Bits<16>,
}

/// Codes of the events that the counters count. The code of an event is the index of its counter in the register map.
pub mod event {
    /// A frame that does not belong to the job.
    pub const ORDINARY: u64 = 0;
    /// A control packet of the job, which is forwarded to the host.
    pub const CONTROL: u64 = 1;
    /// A contribution that does not complete its segment.
    pub const SUMMED: u64 = 2;
    /// A contribution that completes its segment.
    pub const COMPLETED: u64 = 3;
    /// A segment that the host finished.
    pub const FORCED: u64 = 4;
    /// Drop: the sender is not a member.
    pub const UNKNOWN_MEMBER: u64 = 5;
    /// Drop: the frame is a fragment, has inconsistent lengths, or ends before the length in `tuser`.
    pub const MALFORMED: u64 = 6;
    /// Drop: the job is halted.
    pub const HALTED: u64 = 7;
    /// Drop: the index is beyond the last segment of the vector.
    pub const SEG_OUT_OF_RANGE: u64 = 8;
    /// Drop: the UDP length does not match the segment.
    pub const LENGTH_MISMATCH: u64 = 9;
    /// Drop: a worker's contribution count is not 1, or the total count overflows.
    pub const BAD_WEIGHT: u64 = 10;
    /// Drop: the open sum already contains a contribution of the member.
    pub const DUPLICATE: u64 = 11;
    /// Drop: the segment is already finished. Its result is retransmitted to the sender if the sender's budget
    /// suffices.
    pub const LATE: u64 = 12;
    /// Drop: the round is over, or a later segment of the round has already used the slot.
    pub const STALE_ROUND: u64 = 13;
    /// Drop: the round cannot open yet, or another segment occupies the slot.
    pub const EARLY_ROUND: u64 = 14;
    /// Drop: the round opened without this member.
    pub const NOT_PARTICIPANT: u64 = 15;
    /// A result that is retransmitted to one member.
    pub const REPEATED: u64 = 16;
    /// A request for a result that is not kept, because the segment is not finished or its slot has been reused.
    pub const UNANSWERED: u64 = 17;
    /// Names of the counters, indexed by the event code.
    pub use iswitch_card::registers::COUNTER_NAMES as NAMES;
}
