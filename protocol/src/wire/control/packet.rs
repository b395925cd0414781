//! The view of a control packet: the header that all of them share, and the trailer.

use super::bytes::{at_least, u16_at, u32_at, u64_at};
use super::join::{self, JOIN_LEN_BYTES};
use super::{AUTHENTICATED, Action, HEADER_LEN_BYTES, field};
use crate::limits::{MAX_PAYLOAD_LEN_BYTES, PROTOCOL_VERSION, TRAILER_LEN_BYTES};
use crate::wire::WireError;

/// View of a control packet: the UDP payload.
#[derive(Clone, Copy, Debug)]
pub struct ControlPacket<'a> {
    buffer: &'a [u8],
}

impl<'a> ControlPacket<'a> {
    /// Wraps a buffer that holds at least the common header, and the trailer if the header announces one.
    #[inline]
    pub fn new_checked(buffer: &'a [u8]) -> Result<Self, WireError> {
        let packet = Self { buffer };
        packet.check_len()?;
        Ok(packet)
    }

    /// Ensures that no accessor panics.
    pub fn check_len(&self) -> Result<(), WireError> {
        match self.buffer.len() {
            0..HEADER_LEN_BYTES => Err(WireError::Truncated),
            HEADER_LEN_BYTES..=MAX_PAYLOAD_LEN_BYTES => {
                let trailer_len = if self.is_authenticated() { TRAILER_LEN_BYTES } else { 0 };
                at_least(self.buffer, HEADER_LEN_BYTES + trailer_len)
            }
            _ => Err(WireError::Overlong),
        }
    }

    /// Bytes of the packet, trailer included.
    #[inline]
    pub fn packet_len(&self) -> usize {
        self.buffer.len()
    }

    /// Whether a trailer ends the packet (requirement A-1). What it proves is for a key to say.
    #[inline]
    pub fn is_authenticated(&self) -> bool {
        // The flags of another version are not ours to read.
        self.version() == PROTOCOL_VERSION && self.flags() & AUTHENTICATED != 0
    }

    /// The counter in the trailer, if there is one. Only [`crate::Key::verify`] tells whether it is genuine.
    #[inline]
    pub fn counter(&self) -> Option<u64> {
        let (_, trailer) = self.split_trailer()?;
        trailer.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
    }

    /// The packet without its trailer, and the trailer.
    pub(crate) fn split_trailer(&self) -> Option<(&'a [u8], &'a [u8; TRAILER_LEN_BYTES])> {
        if self.is_authenticated() { self.buffer.split_last_chunk() } else { None }
    }

    /// What the length rules apply to (requirement A-1).
    pub(super) fn content(&self) -> &'a [u8] {
        self.split_trailer().map_or(self.buffer, |(content, _)| content)
    }

    /// The nonce of a Join, which need not be well-formed otherwise. There is none in a query, which needs no nonce,
    /// and in other packets.
    #[inline]
    pub fn join_nonce(&self) -> Option<u64> {
        let is_join = self.action_code() == Action::Join as u8 && self.content_len() >= JOIN_LEN_BYTES;
        let is_admission = is_join && self.buffer[join::field::FLAGS] & join::QUERY == 0;
        is_admission.then(|| u64_at(self.buffer, join::field::NONCE))
    }

    /// Bytes without the trailer.
    #[inline]
    pub fn content_len(&self) -> usize {
        self.content().len()
    }

    /// The Action code.
    #[inline]
    pub fn action_code(&self) -> u8 {
        self.buffer[field::ACTION]
    }

    /// The protocol version.
    #[inline]
    pub fn version(&self) -> u8 {
        self.buffer[field::VERSION]
    }

    /// The job.
    #[inline]
    pub fn job(&self) -> u32 {
        u32_at(self.buffer, field::JOB)
    }

    /// The request's id, which its Ack repeats.
    #[inline]
    pub fn request(&self) -> u32 {
        u32_at(self.buffer, field::REQUEST)
    }

    pub(super) fn flags(&self) -> u16 {
        u16_at(self.buffer, field::FLAGS)
    }
}
