//! The host's side of the registers: what it writes to begin a job.

use std::net::{Ipv4Addr, SocketAddrV4};

use iswitch_protocol::limits::{DEFAULT_CONTROL_TOS, DEFAULT_DATA_TOS, DEFAULT_PORT, UDP_HEADER_LEN_BYTES};
use iswitch_protocol::wire::{Class, Classifier, FrameAddresses};
use iswitch_protocol::{Round, Seg, VectorLayout};

use crate::accelerator::records::{MAX_FLOATS, MEMBERS};
use crate::accelerator::registers::offset;

/// One of the job's workers, or a switch below this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Where its contributions come from.
    pub address: SocketAddrV4,
    /// A switch's contributions stand for several workers.
    pub is_switch: bool,
}

/// A job as the registers hold it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobSetup {
    /// Its number.
    pub id: u32,
    /// How its vectors are cut.
    pub layout: VectorLayout,
    /// Its first round.
    pub base: Round,
    /// H.
    pub threshold: u8,
    /// At most eight.
    pub members: Vec<Member>,
}

/// Why a job cannot be done in hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// The member table has eight rows.
    #[error("the job has {0} members, expected at most {MEMBERS}")]
    TooManyMembers(usize),
    /// A slot of the buffer holds no more.
    #[error("the segments have {0} floats, expected at most {MAX_FLOATS}")]
    SegmentTooLong(u16),
}

/// Addresses in results, and the port mask that they leave by: a broadcast, which the switch floods.
pub const RESULT_ADDRESSES: FrameAddresses = FrameAddresses {
    source_mac: [0x02, 0, 0, 0, 0, 0x53],
    destination_mac: [0xff; 6],
    source: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), DEFAULT_PORT),
    destination: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 255), DEFAULT_PORT),
};
/// `tuser` destination of results: the four network ports.
pub const RESULT_PORTS: u8 = 0x55;
/// Bytes before the floats.
pub const HEADER_LEN_BYTES: usize = 50;
/// The shortest Ethernet frame, without its checksum.
pub const MIN_FRAME_LEN_BYTES: usize = 60;

impl JobSetup {
    /// The registers to write, in order; the last ones clear old sums and start the job.
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
            (offset::CONTROL, 0b10),
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
            writes.push((at + 4, port | 1 << 16 | u32::from(member.is_switch) << 17));
        }
        writes.push((offset::RESET, 1 << 4));
        writes.push((offset::CONTROL, 0b01));
        Ok(writes)
    }
}

/// What all results have in common.
fn template_writes() -> [(u16, u32); 7] {
    let headers = result_headers(0);
    let word = |at: usize| u32::from_le_bytes(headers[at..at + 4].try_into().expect("four bytes"));
    let half = |at: usize| u32::from(u16::from_le_bytes([headers[at], headers[at + 1]]));
    // The halves of the IPv4 header without total length and checksum, which end-around carries do not reorder.
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
        (offset::RESULT, u32::from(DEFAULT_DATA_TOS) | u32::from(RESULT_PORTS) << 8 | folded << 16),
    ]
}

fn result_headers(payload_len: usize) -> Vec<u8> {
    let mut headers =
        Classifier::default().emit_headers(Class::Data, &RESULT_ADDRESSES, payload_len).to_vec();
    // No UDP checksum: the header leaves before the sums are known.
    let at = headers.len() - UDP_HEADER_LEN_BYTES + 6;
    headers[at..at + 2].fill(0);
    headers
}

/// The frame that carries a result: Seg and floats as they come from the software switch.
pub fn result_frame(payload: &[u8]) -> Vec<u8> {
    padded([&result_headers(payload.len()), payload].concat())
}

/// A member's frame.
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

/// A contribution as a UDP payload.
pub fn contribution(seg: Seg, floats: &[u32]) -> Vec<u8> {
    seg.to_bytes().into_iter().chain(floats.iter().flat_map(|bits| bits.to_le_bytes())).collect()
}

fn padded(mut frame: Vec<u8>) -> Vec<u8> {
    frame.resize(frame.len().max(MIN_FRAME_LEN_BYTES), 0);
    frame
}
