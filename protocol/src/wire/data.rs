//! Data packets: an 8-byte Seg, followed by raw little-endian elements. The elements are f32, or of the 16-bit type
//! that the job declares.
//!
//! ```text
//!  0                8                               8 + 4 n or 8 + 2 n
//! +----------------+--------------------------------+
//! |      Seg       |   element x n, little-endian   |
//! +----------------+--------------------------------+
//! ```

use crate::limits::{FLOAT_LEN_BYTES, MAX_PAYLOAD_LEN_BYTES, SEG_LEN_BYTES, SHORT_LEN_BYTES};
use crate::segment::Seg;
use crate::wire::WireError;

mod field {
    use core::ops::{Range, RangeFrom};

    pub(super) const SEG: Range<usize> = 0..super::SEG_LEN_BYTES;
    pub(super) const ELEMENTS: RangeFrom<usize> = super::SEG_LEN_BYTES..;
}

/// View of a data packet: the UDP payload.
#[derive(Clone, Copy, Debug)]
pub struct DataPacket<'a> {
    buffer: &'a [u8],
}

impl<'a> DataPacket<'a> {
    /// Wraps a buffer that passes [`Self::check_len`].
    #[inline]
    pub fn new_checked(buffer: &'a [u8]) -> Result<Self, WireError> {
        let packet = Self { buffer };
        packet.check_len()?;
        Ok(packet)
    }

    /// Checks that no accessor can panic: the buffer holds Seg, at least one element of the shortest type, a whole
    /// number of such elements, and no more than the largest segment (requirement D-2).
    pub fn check_len(&self) -> Result<(), WireError> {
        let len = self.buffer.len();
        if len < SEG_LEN_BYTES + SHORT_LEN_BYTES {
            Err(WireError::Truncated)
        } else if len > MAX_PAYLOAD_LEN_BYTES {
            Err(WireError::Overlong)
        } else if !(len - SEG_LEN_BYTES).is_multiple_of(SHORT_LEN_BYTES) {
            Err(WireError::MisalignedPayload)
        } else {
            Ok(())
        }
    }

    /// Returns the segment and the round of the packet.
    #[inline]
    pub fn seg(&self) -> Seg {
        Seg::from_bytes(self.buffer[field::SEG].try_into().expect("the range is as long as Seg"))
    }

    /// Returns the elements as bytes; the length is a multiple of two.
    #[inline]
    pub fn element_bytes(&self) -> &'a [u8] {
        &self.buffer[field::ELEMENTS]
    }

    /// Returns an iterator over the elements of a packet that carries f32. Two bytes at the end that are not a whole
    /// float are ignored.
    #[inline]
    pub fn floats(&self) -> impl ExactSizeIterator<Item = f32> + use<'a> {
        let (words, _) = self.element_bytes().as_chunks::<FLOAT_LEN_BYTES>();
        words.iter().map(|word| f32::from_le_bytes(*word))
    }
}

/// Writes the Seg field at the start of a data packet and returns the rest of the buffer, for the elements.
///
/// # Panics
/// Panics if the buffer is shorter than Seg.
#[inline]
pub fn emit_seg(buffer: &mut [u8], seg: Seg) -> &mut [u8] {
    buffer[field::SEG].copy_from_slice(&seg.to_bytes());
    &mut buffer[field::ELEMENTS]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::{Round, SegmentIndex};

    const PACKET: [u8; 16] =
        [0x02, 0, 0, 0x07, 0, 0, 0x01, 0, 0x00, 0x00, 0x80, 0x3f, 0x00, 0x00, 0x20, 0xc0];

    #[test]
    fn deconstruct() {
        let packet = DataPacket::new_checked(&PACKET).unwrap();
        let seg = packet.seg();
        assert_eq!((seg.index.get(), seg.round.get(), seg.contributions), (2, 7, 1));
        assert_eq!(packet.element_bytes().len(), 8);
        assert!(packet.floats().eq([1.0, -2.5]));
    }

    #[test]
    fn construct() {
        let mut buffer = [0xff; 16];
        let seg = Seg { index: SegmentIndex::new(2).unwrap(), round: Round::new(7), contributions: 1 };
        let floats = emit_seg(&mut buffer, seg);
        floats[..4].copy_from_slice(&1.0f32.to_le_bytes());
        floats[4..].copy_from_slice(&(-2.5f32).to_le_bytes());
        assert_eq!(buffer, PACKET);
    }

    #[test]
    fn invalid_packet_lengths_are_refused() {
        let error = |len| DataPacket::new_checked(&[0; MAX_PAYLOAD_LEN_BYTES + 8][..len]).unwrap_err();
        assert_eq!(error(0), WireError::Truncated);
        assert_eq!(error(9), WireError::Truncated);
        assert_eq!(error(13), WireError::MisalignedPayload);
        assert_eq!(error(MAX_PAYLOAD_LEN_BYTES + 4), WireError::Overlong);
    }
}
