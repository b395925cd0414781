//! Jobs of the simulations and tests: their register writes, and the frames of members and results.

use std::net::{Ipv4Addr, SocketAddrV4};

use iswitch_card::MEMBERS;
pub use iswitch_card::{HOST_PORT, MIN_FRAME_LEN_BYTES, Member, PACE_10G, SetupError};
use iswitch_protocol::limits::DEFAULT_PORT;
use iswitch_protocol::wire::{Class, Classifier, FrameAddresses};
use iswitch_protocol::{Round, Seg, VectorLayout};

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
    /// Whether the accelerator forwards data packets from non-members, instead of dropping them.
    pub forwards_strangers: bool,
}

/// Addresses in the headers of results. The destination is the broadcast address, which all workers accept. The frames
/// go only to the ports that `tuser` names.
pub const RESULT_ADDRESSES: FrameAddresses = FrameAddresses {
    source_mac: [0x02, 0, 0, 0, 0, 0x53],
    destination_mac: [0xff; 6],
    source: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), DEFAULT_PORT),
    destination: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 255), DEFAULT_PORT),
};
/// Total size of the headers and the Seg, which precede the floats, in bytes.
pub const HEADER_LEN_BYTES: usize = 50;

impl JobSetup {
    /// Returns the `tuser` destination of results: the ports of all members and that of the host.
    pub fn result_ports(&self) -> u8 {
        self.members.iter().fold(HOST_PORT, |ports, member| ports | member.port)
    }

    /// Returns the register writes, in the order in which the host must perform them; see
    /// [`iswitch_card::JobSetup::begin`].
    pub fn writes(&self) -> Result<Vec<(u16, u32)>, SetupError> {
        if self.members.len() > MEMBERS {
            return Err(SetupError::TooManyMembers(self.members.len()));
        }
        self.on_card().begin()
    }

    /// Returns the budget of each member; see [`iswitch_card::JobSetup::budget`].
    pub fn budget(&self) -> u32 {
        self.on_card().budget()
    }

    fn on_card(&self) -> iswitch_card::JobSetup {
        let Self { id, layout, base, threshold, ref members, pace, forwards_strangers } = *self;
        let mut rows = [None; MEMBERS];
        rows.iter_mut().zip(members).for_each(|(row, member)| *row = Some(*member));
        let (addresses, classifier) = (RESULT_ADDRESSES, Classifier::default());
        iswitch_card::JobSetup {
            id,
            layout,
            base,
            threshold,
            members: rows,
            repeats: true,
            forwards_strangers,
            pace,
            addresses,
            classifier,
        }
    }
}

/// Returns the frame that carries a result. `payload` contains the Seg and the floats, as in a result of the software
/// switch.
pub fn result_frame(payload: &[u8]) -> Vec<u8> {
    let layout = VectorLayout::new(1, 1).expect("one float is a vector");
    let any = JobSetup {
        id: 0,
        layout,
        base: Round::new(0),
        threshold: 1,
        members: Vec::new(),
        pace: 0,
        forwards_strangers: false,
    };
    padded([&any.on_card().result_headers(payload.len()), payload].concat())
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
