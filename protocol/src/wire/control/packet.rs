//! View of a control packet: the common header and the trailer.

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

    /// Checks that the length of the buffer is valid, so that no accessor can panic.
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

    /// Returns the length of the packet in bytes, including its trailer.
    #[inline]
    pub fn packet_len(&self) -> usize {
        self.buffer.len()
    }

    /// Returns whether the packet ends with a trailer (requirement A-1). Only [`crate::Key::verify`] checks that the
    /// trailer is valid.
    #[inline]
    pub fn is_authenticated(&self) -> bool {
        // In other protocol versions, the flags may have different meanings.
        self.version() == PROTOCOL_VERSION && self.flags() & AUTHENTICATED != 0
    }

    /// Returns the counter in the trailer, if there is one. Only [`crate::Key::verify`] checks that the counter is
    /// genuine.
    #[inline]
    pub fn counter(&self) -> Option<u64> {
        let (_, trailer) = self.split_trailer()?;
        trailer.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
    }

    /// Splits the packet into its content and its trailer. Returns `None` if there is no trailer.
    pub(crate) fn split_trailer(&self) -> Option<(&'a [u8], &'a [u8; TRAILER_LEN_BYTES])> {
        if self.is_authenticated() { self.buffer.split_last_chunk() } else { None }
    }

    /// Returns the packet without its trailer. The length rules apply to this part (requirement A-1).
    pub(super) fn content(&self) -> &'a [u8] {
        self.split_trailer().map_or(self.buffer, |(content, _)| content)
    }

    /// Returns the nonce of a Join, even if other fields of the Join are malformed. Returns `None` for a query, which
    /// needs no nonce, and for other packets.
    #[inline]
    pub fn join_nonce(&self) -> Option<u64> {
        let is_join = self.action_code() == Action::Join as u8 && self.content_len() >= JOIN_LEN_BYTES;
        let is_admission = is_join && self.buffer[join::field::FLAGS] & join::QUERY == 0;
        is_admission.then(|| u64_at(self.buffer, join::field::NONCE))
    }

    /// Returns the length of the packet without its trailer, in bytes.
    #[inline]
    pub fn content_len(&self) -> usize {
        self.content().len()
    }

    /// Returns the Action code.
    #[inline]
    pub fn action_code(&self) -> u8 {
        self.buffer[field::ACTION]
    }

    /// Returns the protocol version.
    #[inline]
    pub fn version(&self) -> u8 {
        self.buffer[field::VERSION]
    }

    /// Returns the number of the job.
    #[inline]
    pub fn job(&self) -> u32 {
        u32_at(self.buffer, field::JOB)
    }

    /// Returns the id of the request, which its Ack repeats.
    #[inline]
    pub fn request(&self) -> u32 {
        u32_at(self.buffer, field::REQUEST)
    }

    pub(super) fn flags(&self) -> u16 {
        u16_at(self.buffer, field::FLAGS)
    }
}
