//! Division of vectors into packets and super-frames.

use std::iter;

use iswitch_protocol::limits::{DEFAULT_SEGMENT_FLOATS, FLOAT_LEN_BYTES};

/// Overhead of an iSwitch data packet, in bytes: Ethernet preamble, header, check sequence and gap (38), IPv4 (20), UDP
/// (8) and iSwitch segment header (8).
const UDP_OVERHEAD_BYTES: usize = 74;
/// Overhead of a TCP segment, in bytes: Ethernet (38), IPv4 (20), and TCP with timestamps (32).
const TCP_OVERHEAD_BYTES: usize = 90;
const TCP_PAYLOAD_BYTES: usize = 1448;
/// Maximum number of segments in a TCP super-frame: as many as fit into 65,535 bytes.
const TCP_PACKETS: usize = 45;
/// Length of the shortest packet on the wire, including preamble and inter-packet gap, in bytes.
const MIN_WIRE_BYTES: usize = 84;

/// Division of a message into packets, and of packets into super-frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    /// Number of bytes of the vector in a full packet.
    pub payload_bytes: usize,
    /// Overhead of each packet, in bytes.
    pub overhead_bytes: usize,
    /// Number of packets in a super-frame, which a host passes to its network card as a unit.
    pub packets: usize,
}

impl Framing {
    /// Returns the framing of iSwitch data packets that carry 366 floats each, in super-frames of `packets` packets.
    pub fn segments(packets: usize) -> Self {
        let payload_bytes = usize::from(DEFAULT_SEGMENT_FLOATS) * FLOAT_LEN_BYTES;
        Self { payload_bytes, overhead_bytes: UDP_OVERHEAD_BYTES, packets: packets.max(1) }
    }

    /// Returns the framing that the kernel uses for a TCP stream.
    pub fn stream() -> Self {
        Self { payload_bytes: TCP_PAYLOAD_BYTES, overhead_bytes: TCP_OVERHEAD_BYTES, packets: TCP_PACKETS }
    }

    /// Returns the payload lengths of the super-frames of a message.
    pub fn frames(self, bytes: usize) -> impl Iterator<Item = usize> {
        parts(bytes, self.payload_bytes * self.packets)
    }

    /// Returns the payload lengths of the packets of a message.
    pub fn packets(self, bytes: usize) -> impl Iterator<Item = usize> {
        parts(bytes, self.payload_bytes)
    }

    /// Returns the number of bytes that a packet with this payload occupies on a link.
    pub fn wire_bytes(self, payload_bytes: usize) -> usize {
        (payload_bytes + self.overhead_bytes).max(MIN_WIRE_BYTES)
    }

    /// Returns the number of bytes that all packets of a message occupy on a link.
    pub fn message_wire_bytes(self, bytes: usize) -> usize {
        self.packets(bytes).map(|payload| self.wire_bytes(payload)).sum()
    }
}

fn parts(bytes: usize, part: usize) -> impl Iterator<Item = usize> {
    let full = bytes / part;
    iter::repeat_n(part, full).chain(iter::once(bytes - full * part).filter(|rest| *rest > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_of_the_paper_is_28_full_packets() {
        let framing = Framing::segments(44);
        assert_eq!(framing.frames(10_119 * 4).collect::<Vec<_>>(), [10_119 * 4]);
        assert_eq!(framing.packets(10_119 * 4).count(), 28);
        assert_eq!(framing.wire_bytes(1464), 1538);
        assert_eq!(framing.message_wire_bytes(10_119 * 4), 10_119 * 4 + 28 * 74);
        assert_eq!(framing.frames(0).count(), 0);
        assert_eq!(framing.frames(65 * 1464).collect::<Vec<_>>(), [44 * 1464, 21 * 1464]);
        assert_eq!(framing.wire_bytes(4), 84);
    }
}
