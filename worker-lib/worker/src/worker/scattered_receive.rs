//! Reception of results directly into the sum.
//!
//! Results usually arrive in the order of the segments, so their positions in the sum are known in advance. The kernel
//! writes their floats directly to these positions. Packets that turn out not to be the expected results are
//! reassembled.

use std::io::{self, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddrV4};

use iswitch_protocol::limits::{MAX_SUPERFRAME_DATAGRAMS, SEG_LEN_BYTES};
use iswitch_socket::Received;

/// Maximum number of buffers: two for each datagram (its Seg and its floats), and one for the bytes that remain.
const MAX_PARTS: usize = 2 * MAX_SUPERFRAME_DATAGRAMS + 1;

/// Received datagrams: this struct holds their Segs, and the sum holds their floats.
#[derive(Debug)]
pub(super) struct ScatteredReceive {
    segs: [[u8; SEG_LEN_BYTES]; MAX_SUPERFRAME_DATAGRAMS],
    /// Result of the receive call.
    pub(super) received: Received,
}

impl ScatteredReceive {
    /// Calls `receive` with two buffers for each segment, in order: one for its Seg and one for its floats. The floats
    /// are written to `floats_of_sum`, which has room for `segment_floats` floats of each segment; the last segment may
    /// have fewer. Bytes that do not fit in these buffers are written to `rest`.
    ///
    /// # Errors
    /// Returns the errors of `receive`.
    pub(super) fn receive(
        floats_of_sum: &mut [f32],
        segment_floats: usize,
        rest: &mut [u8],
        receive: impl FnOnce(&mut [IoSliceMut<'_>]) -> io::Result<Received>,
    ) -> io::Result<Self> {
        let mut segs = [[0; SEG_LEN_BYTES]; MAX_SUPERFRAME_DATAGRAMS];
        let mut parts: [IoSliceMut<'_>; MAX_PARTS] = std::array::from_fn(|_| IoSliceMut::new(&mut []));
        let mut count = 0;
        for (seg, floats) in segs.iter_mut().zip(floats_of_sum.chunks_mut(segment_floats)) {
            parts[count] = IoSliceMut::new(seg);
            parts[count + 1] = IoSliceMut::new(bytemuck::cast_slice_mut(floats));
            count += 2;
        }
        parts[count] = IoSliceMut::new(rest);
        let received = receive(&mut parts[..=count])?;
        Ok(Self { segs, received })
    }

    /// Works like [`Self::receive`], but takes bytes that are already in memory: datagrams of `stride` bytes.
    pub(super) fn scatter(
        floats_of_sum: &mut [f32],
        segment_floats: usize,
        rest: &mut [u8],
        bytes: &[u8],
        stride: usize,
    ) -> Self {
        let nobody = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
        let scattered = Self::receive(floats_of_sum, segment_floats, rest, |parts| {
            let mut left = bytes;
            for part in parts {
                let (here, beyond) = left.split_at(left.len().min(part.len()));
                part[..here.len()].copy_from_slice(here);
                left = beyond;
            }
            Ok(Received {
                len: bytes.len() - left.len(),
                stride: stride.max(1),
                tos: None,
                source: nobody,
                destination: *nobody.ip(),
                truncated: !left.is_empty(),
            })
        });
        scattered.expect("copying does not fail")
    }

    /// Returns the number of datagrams that have arrived.
    fn count(&self) -> usize {
        self.received.len.div_ceil(self.received.stride)
    }

    /// Returns the length of the last datagram, in bytes.
    pub(super) fn last_len(&self) -> usize {
        self.received.len - self.received.stride * self.count().saturating_sub(1)
    }

    /// Returns the Segs of the datagrams if all datagrams have the length of a full segment, except that the last one
    /// may be shorter; all floats are then at their destinations. Otherwise, returns an empty slice.
    pub(super) fn segs(&self, full_packet_len: usize) -> &[[u8; SEG_LEN_BYTES]] {
        let is_laid_out = match self.count() {
            0 => false,
            1 => self.received.len <= full_packet_len,
            count => count <= MAX_SUPERFRAME_DATAGRAMS && self.received.stride == full_packet_len,
        };
        if is_laid_out { &self.segs[..self.count()] } else { &[] }
    }

    /// Reassembles the bytes of the datagrams, beginning with datagram number `from`.
    pub(super) fn gather(
        &self,
        from: usize,
        floats_of_sum: &[f32],
        segment_floats: usize,
        rest: &[u8],
    ) -> Vec<u8> {
        let floats = floats_of_sum.chunks(segment_floats).map(bytemuck::cast_slice);
        let parts = self.segs.iter().zip(floats).flat_map(|(seg, floats)| [&seg[..], floats]);
        let mut bytes = Vec::with_capacity(self.received.len + segment_floats * size_of::<f32>());
        for part in parts.chain([rest]) {
            if bytes.len() >= self.received.len {
                break;
            }
            bytes.extend_from_slice(part);
        }
        bytes.truncate(self.received.len);
        bytes.drain(..(from * self.received.stride).min(bytes.len()));
        bytes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_received_super_frame_can_be_reassembled(
            floats in 1usize..400, segment_floats in 1usize..20, stride in 1usize..100,
            bytes in proptest::collection::vec(any::<u8>(), 0..2000), from in 0usize..5,
        ) {
            let (mut floats_of_sum, mut rest) = (vec![0.0; floats], vec![0; 2000]);
            let scattered = ScatteredReceive::scatter(&mut floats_of_sum, segment_floats, &mut rest, &bytes, stride);
            prop_assert_eq!(scattered.received.len, bytes.len());
            let from = from.min(bytes.len() / stride);
            let gathered = scattered.gather(from, &floats_of_sum, segment_floats, &rest);
            prop_assert_eq!(&gathered, &bytes[from * stride..]);
        }
    }

    #[test]
    fn only_packets_of_full_segments_are_scattered_directly() {
        let (mut floats_of_sum, mut rest) = (vec![0.0; 10], vec![0; 2000]);
        // Packets of 8 + 3 * 4 bytes.
        let mut segs = |len: usize, stride: usize| {
            ScatteredReceive::scatter(&mut floats_of_sum, 3, &mut rest, &vec![7; len], stride).segs(20).len()
        };
        assert_eq!([segs(60, 20), segs(56, 20), segs(20, 20), segs(12, 12)], [3, 3, 1, 1]);
        assert_eq!([segs(0, 1), segs(24, 24), segs(36, 12), segs(42, 21)], [0; 4]);
    }
}
