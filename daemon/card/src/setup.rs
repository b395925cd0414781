//! The register writes that configure a job, and those that change it while it runs.

use std::net::SocketAddrV4;

use iswitch_protocol::limits::{MIN_REPEATS, REPEATS_PER_RESULT, UDP_HEADER_LEN_BYTES};
use iswitch_protocol::wire::{Class, Classifier, FrameAddresses};
use iswitch_protocol::{Round, VectorLayout};

use crate::registers::offset;

/// Number of rows in the member table.
pub const MEMBERS: usize = 8;
/// Maximum number of floats per segment.
pub const MAX_FLOATS: u16 = 366;
/// Port of the host's first DMA queue, as a bit of `tuser`. Control packets and results are also sent to this port.
pub const HOST_PORT: u8 = 0x02;
/// Value of [`JobSetup::pace`] for 10 Gb/s ports and a 200 MHz clock: 6.25 bytes per cycle.
pub const PACE_10G: u8 = 25;
/// Bit of [`offset::CONTROL`] that makes the accelerator process the job's frames. While the job is halted, the
/// accelerator drops contributions.
const TAKES: u32 = 1;
const HALTED: u32 = 1 << 1;
const FORWARDS_STRANGERS: u32 = 1 << 2;
/// Bits of the second word of a member.
const VALID: u32 = 1 << 16;
const SWITCH: u32 = 1 << 17;
/// Bit of [`offset::RESET`] that discards all sums.
const CLEAR_SUMS: u32 = 1 << 4;

/// Member of the job: a worker or a child switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Address from which the member's contributions arrive.
    pub address: SocketAddrV4,
    /// Whether the member is a switch, whose contributions may contain the gradients of several workers.
    pub is_switch: bool,
    /// Board ports through which the member receives results, as bits of `tuser`; 0 if the host sends the results to
    /// the member.
    pub port: u8,
}

/// Configuration of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobSetup {
    /// Identifier of the job.
    pub id: u32,
    /// Segmentation of the job's vectors.
    pub layout: VectorLayout,
    /// First round of the job.
    pub base: Round,
    /// Threshold H: the number of contributions that complete a segment, from 1 to 64.
    pub threshold: u8,
    /// Members of the job by row.
    pub members: [Option<Member>; MEMBERS],
    /// Whether the accelerator retransmits results that members request. Otherwise, the budget of each member is 0.
    pub repeats: bool,
    /// Whether the accelerator forwards data packets from addresses that are not in the member table. Otherwise, it
    /// drops them.
    pub forwards_strangers: bool,
    /// Maximum average rate of results, in quarters of a byte per clock cycle; 0 means no limit. [`PACE_10G`] suits the
    /// ports of the NetFPGA-SUME.
    pub pace: u8,
    /// Addresses in the headers of results. The source is the address of the switch, to which members send.
    pub addresses: FrameAddresses,
    /// ToS values and UDP port of the job's packets.
    pub classifier: Classifier,
}

/// Reason why the hardware cannot run a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// The member table has only eight rows.
    #[error("the job has {0} members, expected at most {MEMBERS}")]
    TooManyMembers(usize),
    /// A slot of the buffer cannot hold the segment.
    #[error("the segments have {0} floats, expected at most {MAX_FLOATS}")]
    SegmentTooLong(u16),
}

impl JobSetup {
    /// Returns the budget of each member: the number of results that it may request again (requirement F-3), at most
    /// 65,535. The budget is 0 if `repeats` is false.
    #[must_use]
    pub fn budget(&self) -> u32 {
        if !self.repeats {
            return 0;
        }
        let most = REPEATS_PER_RESULT * u64::from(self.layout.segment_count());
        u32::from(u16::try_from(most.max(MIN_REPEATS)).unwrap_or(u16::MAX))
    }

    /// Returns the register writes that begin the job, in the order in which the host must perform them. The last two
    /// discard old sums and start the job. Until then, the accelerator drops the job's contributions, so that none of
    /// them is forwarded as ordinary traffic. Results of an earlier job that have not been sent yet keep the header of
    /// that job.
    ///
    /// # Errors
    /// Fails if the segments have more than [`MAX_FLOATS`] floats.
    pub fn begin(&self) -> Result<Vec<(u16, u32)>, SetupError> {
        if self.layout.segment_floats() > MAX_FLOATS {
            return Err(SetupError::SegmentTooLong(self.layout.segment_floats()));
        }
        let last = self.layout.segment_count() - 1;
        let last_floats = self.layout.gradient_len() - last * u32::from(self.layout.segment_floats());
        let Classifier { data_tos, control_tos, udp_port } = self.classifier;
        let port = u32::from(udp_port.swap_bytes());
        let mut writes = vec![
            (offset::CONTROL, TAKES | HALTED),
            (offset::THRESHOLD, u32::from(self.threshold)),
            (offset::BASE_ROUND, self.base.get()),
            (offset::LAST_INDEX, last),
            (offset::FLOATS, u32::from(self.layout.segment_floats()) | last_floats << 16),
            (offset::JOB, self.id),
            (offset::FILTER, u32::from(data_tos) | u32::from(control_tos) << 8 | port << 16),
        ];
        writes.extend(self.header());
        writes.extend((0..MEMBERS).flat_map(|row| self.member(row)));
        writes.push((offset::REPEATS, self.budget()));
        writes.push((offset::RESET, CLEAR_SUMS));
        writes.push(self.control(false));
        Ok(writes)
    }

    /// Returns the write that suspends or resumes the job.
    #[must_use]
    pub fn control(&self, is_halted: bool) -> (u16, u32) {
        let halted = if is_halted { HALTED } else { 0 };
        let strangers = if self.forwards_strangers { FORWARDS_STRANGERS } else { 0 };
        (offset::CONTROL, TAKES | halted | strangers | u32::from(self.pace) << 8)
    }

    /// Returns the write that makes the accelerator forward all frames as ordinary traffic.
    #[must_use]
    pub const fn end() -> (u16, u32) {
        (offset::CONTROL, 0)
    }

    /// Returns the writes for one row of the member table. A row without a member, such as one whose member has left,
    /// takes one write.
    #[must_use]
    pub fn member(&self, row: usize) -> Vec<(u16, u32)> {
        let at = offset::MEMBERS + 8 * row as u16;
        let Some(member) = self.members.get(row).copied().flatten() else { return vec![(at + 4, 0)] };
        let port = u32::from(member.address.port().swap_bytes());
        let flags = VALID | if member.is_switch { SWITCH } else { 0 } | u32::from(member.port) << 24;
        vec![(at, u32::from_le_bytes(member.address.ip().octets())), (at + 4, port | flags)]
    }

    /// Returns the register writes for the header fields that all results share.
    #[must_use]
    pub fn header(&self) -> [(u16, u32); 7] {
        let headers = self.result_headers(0);
        let word = |at: usize| u32::from_le_bytes(headers[at..at + 4].try_into().expect("four bytes"));
        let half = |at: usize| u32::from(u16::from_le_bytes([headers[at], headers[at + 1]]));
        // This sums the half-words of the IPv4 header except total length and checksum. A one's-complement sum does not
        // depend on the byte order.
        let sum: u32 = (14..34).step_by(2).filter(|at| ![16, 24].contains(at)).map(half).sum();
        let folded = (sum & 0xffff) + (sum >> 16);
        let folded = (folded & 0xffff) + (folded >> 16);
        let ports = half(34) | half(36) << 16;
        let tos = u32::from(self.classifier.data_tos);
        [
            (offset::TO_MAC, word(0)),
            (offset::MACS, word(4)),
            (offset::FROM_MAC, word(8)),
            (offset::FROM_ADDRESS, word(26)),
            (offset::TO_ADDRESS, word(30)),
            (offset::PORTS, ports),
            (offset::RESULT, tos | u32::from(HOST_PORT) << 8 | folded << 16),
        ]
    }

    /// Returns the headers that precede the Seg in a result whose UDP payload is `payload_len` bytes long.
    #[must_use]
    pub fn result_headers(&self, payload_len: usize) -> Vec<u8> {
        let mut headers = self.classifier.emit_headers(Class::Data, &self.addresses, payload_len).to_vec();
        // The accelerator sends every result with the TTL of unicast packets.
        set_time_to_live(&mut headers);
        // The UDP checksum is omitted, because the header is sent before all of the sums are known.
        let at = headers.len() - UDP_HEADER_LEN_BYTES + 6;
        headers[at..at + 2].fill(0);
        headers
    }
}

/// Offsets of the TTL and of the checksum of the IPv4 header in a frame, in bytes.
const TTL_AT: usize = 22;
const IP_CHECKSUM_AT: usize = 24;
/// TTL of all results.
const TIME_TO_LIVE: u8 = 64;

/// Sets the TTL and corrects the checksum of the IPv4 header (RFC 1624).
fn set_time_to_live(headers: &mut [u8]) {
    let half = |headers: &[u8], at: usize| u16::from_be_bytes([headers[at], headers[at + 1]]);
    let before = half(headers, TTL_AT);
    headers[TTL_AT] = TIME_TO_LIVE;
    let sum =
        u32::from(!half(headers, IP_CHECKSUM_AT)) + u32::from(!before) + u32::from(half(headers, TTL_AT));
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    headers[IP_CHECKSUM_AT..IP_CHECKSUM_AT + 2].copy_from_slice(&(!(folded as u16)).to_be_bytes());
}
