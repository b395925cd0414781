//! Host side of the accelerator: the register writes that start a job, and the frames of members and results.

use std::net::{Ipv4Addr, SocketAddrV4};

use iswitch_protocol::limits::{
    DEFAULT_CONTROL_TOS, DEFAULT_DATA_TOS, DEFAULT_PORT, MIN_REPEATS, REPEATS_PER_RESULT,
    UDP_HEADER_LEN_BYTES,
};
use iswitch_protocol::wire::{Class, Classifier, FrameAddresses};
use iswitch_protocol::{Round, Seg, VectorLayout};

use crate::accelerator::records::{MAX_FLOATS, MEMBERS};
use crate::accelerator::registers::offset;

/// Member of the job: a worker or a child switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Address from which the member's contributions arrive.
    pub address: SocketAddrV4,
    /// Whether the member is a switch, whose contributions may contain the gradients of several workers.
    pub is_switch: bool,
    /// Port of the board that leads to the member, as a bit of `tuser`.
    pub port: u8,
}

/// Configuration of a job, to be written to the registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobSetup {
    /// Identifier of the job.
    pub id: u32,
    /// Segmentation of the job's vectors.
    pub layout: VectorLayout,
    /// First round of the job.
    pub base: Round,
    /// Threshold H: the number of contributions that complete a segment.
    pub threshold: u8,
    /// Members of the job, at most eight.
    pub members: Vec<Member>,
    /// Maximum average rate of results, in quarters of a byte per clock cycle; 0 means no limit. [`PACE_10G`] suits the
    /// ports of the NetFPGA-SUME.
    pub pace: u8,
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

/// Addresses in the headers of results. The destination is the broadcast address, which all workers accept. The frames
/// go only to the ports that `tuser` names.
pub const RESULT_ADDRESSES: FrameAddresses = FrameAddresses {
    source_mac: [0x02, 0, 0, 0, 0, 0x53],
    destination_mac: [0xff; 6],
    source: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), DEFAULT_PORT),
    destination: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 255), DEFAULT_PORT),
};
/// Port of the host's first DMA queue, as a bit of `tuser`. Control packets and results are also sent to this port.
pub const HOST_PORT: u8 = 0x02;
/// Value of [`JobSetup::pace`] for 10 Gb/s ports and a 200 MHz clock: 6.25 bytes per cycle.
pub const PACE_10G: u8 = 25;
/// Bit of [`offset::CONTROL`] that makes the accelerator process the job's frames. While the job is halted, the
/// accelerator drops contributions.
const TAKES: u32 = 1;
const HALTED: u32 = 1 << 1;
/// Size of everything before the floats, that is, of the headers and the Seg, in bytes.
pub const HEADER_LEN_BYTES: usize = 50;
/// Size of the shortest Ethernet frame without its checksum, in bytes.
pub const MIN_FRAME_LEN_BYTES: usize = 60;

impl JobSetup {
    /// Returns the `tuser` destination of results: the ports of all members and that of the host.
    pub fn result_ports(&self) -> u8 {
        self.members.iter().fold(HOST_PORT, |ports, member| ports | member.port)
    }

    /// Returns the number of results that each member may request again (requirement F-3), at most 65,535.
    pub fn budget(&self) -> u32 {
        let most = REPEATS_PER_RESULT * u64::from(self.layout.segment_count());
        u32::from(u16::try_from(most.max(MIN_REPEATS)).unwrap_or(u16::MAX))
    }

    /// Returns the register writes, in the order in which the host must perform them. The last two discard old sums and
    /// start the job. Until then, the accelerator drops the job's contributions, so that none of them passes as
    /// ordinary traffic. Results of an earlier job that have not been sent yet keep the header of that job.
    pub fn writes(&self) -> Result<Vec<(u16, u32)>, SetupError> {
        if self.members.len() > MEMBERS {
            return Err(SetupError::TooManyMembers(self.members.len()));
        }
        if self.layout.segment_floats() > MAX_FLOATS {
            return Err(SetupError::SegmentTooLong(self.layout.segment_floats()));
        }
        let last = self.layout.segment_count() - 1;
        let last_floats = self.layout.gradient_len() - last * u32::from(self.layout.segment_floats());
        let port = u32::from(DEFAULT_PORT.swap_bytes());
        let mut writes = vec![
            (offset::CONTROL, TAKES | HALTED),
            (offset::THRESHOLD, u32::from(self.threshold)),
            (offset::BASE_ROUND, self.base.get()),
            (offset::LAST_INDEX, last),
            (offset::FLOATS, u32::from(self.layout.segment_floats()) | last_floats << 16),
            (offset::JOB, self.id),
            (offset::FILTER, u32::from(DEFAULT_DATA_TOS) | u32::from(DEFAULT_CONTROL_TOS) << 8 | port << 16),
        ];
        writes.extend(template_writes());
        for row in 0..MEMBERS {
            let at = offset::MEMBERS + 8 * row as u16;
            let Some(member) = self.members.get(row) else {
                writes.push((at + 4, 0));
                continue;
            };
            let port = u32::from(member.address.port().swap_bytes());
            writes.push((at, u32::from_le_bytes(member.address.ip().octets())));
            let flags = 1 << 16 | u32::from(member.is_switch) << 17 | u32::from(member.port) << 24;
            writes.push((at + 4, port | flags));
        }
        writes.push((offset::REPEATS, self.budget()));
        writes.push((offset::RESET, 1 << 4));
        writes.push((offset::CONTROL, TAKES | u32::from(self.pace) << 8));
        Ok(writes)
    }
}

/// Returns the register writes for the header fields that all results share.
fn template_writes() -> [(u16, u32); 7] {
    let headers = result_headers(0);
    let word = |at: usize| u32::from_le_bytes(headers[at..at + 4].try_into().expect("four bytes"));
    let half = |at: usize| u32::from(u16::from_le_bytes([headers[at], headers[at + 1]]));
    // This sums the half-words of the IPv4 header except total length and checksum. A one's-complement sum does not
    // depend on the byte order.
    let sum: u32 = (14..34).step_by(2).filter(|at| ![16, 24].contains(at)).map(half).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    let ports = half(34) | half(36) << 16;
    [
        (offset::TO_MAC, word(0)),
        (offset::MACS, word(4)),
        (offset::FROM_MAC, word(8)),
        (offset::FROM_ADDRESS, word(26)),
        (offset::TO_ADDRESS, word(30)),
        (offset::PORTS, ports),
        (offset::RESULT, u32::from(DEFAULT_DATA_TOS) | u32::from(HOST_PORT) << 8 | folded << 16),
    ]
}

fn result_headers(payload_len: usize) -> Vec<u8> {
    let mut headers =
        Classifier::default().emit_headers(Class::Data, &RESULT_ADDRESSES, payload_len).to_vec();
    // The UDP checksum is omitted, because the header is sent before all sums are known.
    let at = headers.len() - UDP_HEADER_LEN_BYTES + 6;
    headers[at..at + 2].fill(0);
    headers
}

/// Returns the frame that carries a result. `payload` contains the Seg and the floats, as in a result of the software
/// switch.
pub fn result_frame(payload: &[u8]) -> Vec<u8> {
    padded([&result_headers(payload.len()), payload].concat())
}

/// Returns a frame sent by a member.
pub fn member_frame(from: SocketAddrV4, class: Class, payload: &[u8]) -> Vec<u8> {
    let addresses = FrameAddresses {
        source_mac: [0x02, 0, 0, 0, 1, from.ip().octets()[3]],
        destination_mac: RESULT_ADDRESSES.source_mac,
        source: from,
        destination: RESULT_ADDRESSES.source,
    };
    let headers = Classifier::default().emit_headers(class, &addresses, payload.len());
    padded([&headers, payload].concat())
}

/// Returns a contribution as a UDP payload.
pub fn contribution(seg: Seg, floats: &[u32]) -> Vec<u8> {
    seg.to_bytes().into_iter().chain(floats.iter().flat_map(|bits| bits.to_le_bytes())).collect()
}

fn padded(mut frame: Vec<u8>) -> Vec<u8> {
    frame.resize(frame.len().max(MIN_FRAME_LEN_BYTES), 0);
    frame
}
