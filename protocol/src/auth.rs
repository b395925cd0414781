//! Authentication of packets with the key of a job (SPEC, section 8).
//!
//! ```text
//!  0                        n         n + 8             n + 24
//! +--- control packet -----+-----------+------------------+
//! | Action ... Value, zeros |  counter  |       tag        |
//! +-------------------------+-----------+------------------+
//!
//!  0       8                 8 + 4 n       16 + 4 n
//! +-------+-------------------+--------------+
//! |  Seg  |  f32 x n          |     tag      |
//! +-------+-------------------+--------------+
//! ```
//!
//! A [`Key`] signs and verifies packets. A [`Conversation`] holds a member's state: its session and counters. The
//! switch decides which packets must be authentic.

use core::fmt;
use core::hash::Hasher;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use siphasher::sip::SipHasher13;
use zeroize::Zeroize;

use crate::limits::{DATA_TAG_LEN_BYTES, MAX_KEY_LEN_BYTES, MIN_KEY_LEN_BYTES, TRAILER_LEN_BYTES};
use crate::wire::control::announce_trailer;
use crate::wire::{Action, ControlPacket};

const COUNTER_LEN_BYTES: usize = 8;
/// Length of the truncated HMAC-SHA256, in bytes (128 bits).
const TAG_LEN_BYTES: usize = TRAILER_LEN_BYTES - COUNTER_LEN_BYTES;
/// Label used to derive the keys of data packets, so that no key equals the tag of a control packet.
const DATA_KEY_LABEL: &[u8] = b"iswitch data";
const TAG_KEY_LEN_BYTES: usize = 16;

/// Context that is signed with a packet that does not belong to a session (requirement A-3).
pub const NO_SESSION: u64 = 0;

/// Direction of a packet. The tag covers the direction, so a packet reflected to its sender is not accepted as
/// authentic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Direction {
    /// From a member to the switch.
    ToSwitch = 1,
    /// From the switch to a member.
    ToMember = 2,
}

/// Key that the members of a job share with its switches. It is erased from memory when dropped.
#[derive(Clone)]
pub struct Key {
    bytes: [u8; MAX_KEY_LEN_BYTES],
    len: usize,
}

/// Reason why a key is invalid. The error never contains the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyError {
    /// The key is too short or too long; the field is the length of the key in bytes.
    Length(usize),
    /// The text contains a character that is not a hexadecimal digit, or an odd number of digits.
    NotHex,
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(len) => {
                write!(f, "the key is {len} bytes long, expected {MIN_KEY_LEN_BYTES} to {MAX_KEY_LEN_BYTES}")
            }
            Self::NotHex => {
                f.write_str("the key is not valid, expected one line of hexadecimal digits, two per byte")
            }
        }
    }
}

impl core::error::Error for KeyError {}

impl Key {
    /// Returns a key of 16 to 64 bytes.
    pub fn new(bytes: &[u8]) -> Result<Self, KeyError> {
        if !(MIN_KEY_LEN_BYTES..=MAX_KEY_LEN_BYTES).contains(&bytes.len()) {
            return Err(KeyError::Length(bytes.len()));
        }
        let mut key = Self { bytes: [0; MAX_KEY_LEN_BYTES], len: bytes.len() };
        key.bytes[..bytes.len()].copy_from_slice(bytes);
        Ok(key)
    }

    /// Parses a key from hexadecimal digits, optionally surrounded by whitespace.
    pub fn from_hex(text: &[u8]) -> Result<Self, KeyError> {
        let digits = text.trim_ascii();
        let (pairs, rest) = digits.as_chunks::<2>();
        if !rest.is_empty() || !digits.iter().all(u8::is_ascii_hexdigit) {
            return Err(KeyError::NotHex);
        }
        if !(MIN_KEY_LEN_BYTES..=MAX_KEY_LEN_BYTES).contains(&pairs.len()) {
            return Err(KeyError::Length(pairs.len()));
        }
        let mut key = Self { bytes: [0; MAX_KEY_LEN_BYTES], len: pairs.len() };
        for (byte, [high, low]) in key.bytes.iter_mut().zip(pairs) {
            *byte = nibble(*high) << 4 | nibble(*low);
        }
        Ok(key)
    }

    /// Returns the key as hexadecimal digits, as in a key file. The text is erased when dropped.
    #[cfg(feature = "key-file")]
    pub fn to_hex(&self) -> zeroize::Zeroizing<std::string::String> {
        use core::fmt::Write;

        let mut text = zeroize::Zeroizing::new(std::string::String::with_capacity(2 * self.len));
        for byte in &self.bytes[..self.len] {
            // Writing to a string never fails.
            let _ = write!(text, "{byte:02x}");
        }
        text
    }

    /// Signs a control packet: writes the trailer into its last [`TRAILER_LEN_BYTES`] bytes (requirements A-1 and A-2).
    ///
    /// # Panics
    /// Panics if the packet is shorter than its header and a trailer.
    pub fn sign(&self, direction: Direction, context: u64, counter: u64, packet: &mut [u8]) {
        announce_trailer(packet);
        let tag_at = packet.len() - TAG_LEN_BYTES;
        let (signed, tag) = packet.split_at_mut(tag_at);
        signed[tag_at - COUNTER_LEN_BYTES..].copy_from_slice(&counter.to_le_bytes());
        let full = self.mac(direction, context, &[signed]).finalize().into_bytes();
        tag.copy_from_slice(&full[..TAG_LEN_BYTES]);
    }

    /// Returns the counter of a control packet with a valid trailer, or `None` if the trailer is missing or invalid.
    #[inline]
    pub fn verify(&self, direction: Direction, context: u64, packet: &ControlPacket<'_>) -> Option<u64> {
        let (content, trailer) = packet.split_trailer()?;
        let (counter, tag) = trailer.split_first_chunk::<COUNTER_LEN_BYTES>()?;
        let mac = self.mac(direction, context, &[content, counter]);
        mac.verify_truncated_left(tag).ok().map(|()| u64::from_le_bytes(*counter))
    }

    /// Returns the key for the tags of the contributions of one membership (requirement A-9).
    #[inline]
    pub fn contribution_key(&self, session: u64) -> TagKey {
        self.tag_key(Direction::ToSwitch, session, 0)
    }

    /// Returns the key for the tags of the results of a job. `boot` is the epoch of the job's incarnation (requirement
    /// A-9).
    #[inline]
    pub fn result_key(&self, boot: u64, job: u32) -> TagKey {
        self.tag_key(Direction::ToMember, boot, job)
    }

    fn tag_key(&self, direction: Direction, context: u64, job: u32) -> TagKey {
        let mac = self.mac(direction, context, &[&job.to_le_bytes(), DATA_KEY_LABEL]);
        let full = mac.finalize().into_bytes();
        TagKey(full.first_chunk().copied().expect("SHA-256 should return 32 bytes"))
    }

    fn mac(&self, direction: Direction, context: u64, parts: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.bytes[..self.len]).expect("HMAC accepts any key");
        mac.update(&[direction as u8]);
        mac.update(&context.to_le_bytes());
        parts.iter().for_each(|part| mac.update(part));
        mac
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.bytes.zeroize();
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

/// State of a member's authenticated conversation with its switch. The member is a worker or a child switch.
#[derive(Clone, Copy, Debug)]
pub struct Conversation {
    session: u64,
    /// Counter of the next packet.
    next: u64,
    /// Highest counter received from the switch in this session.
    heard: u64,
    /// Highest of the member's own counters that the switch has repeated in an answer outside a session.
    answered: u64,
    /// Epoch of the packets received through a group, and the highest counter in these packets.
    grouped: (u64, u64),
}

impl Conversation {
    /// Returns a conversation without a session. `first_counter` must be at least 1, unpredictable, and greater than
    /// all counters that a process with the same address and instance has used.
    #[inline]
    pub const fn new(first_counter: u64) -> Self {
        let next = if first_counter == 0 { 1 } else { first_counter };
        Self { session: NO_SESSION, next, heard: 0, answered: next - 1, grouped: (NO_SESSION, 0) }
    }

    /// Returns the nonce that identifies the session, or zero before the first challenge. A Join contains this nonce.
    #[inline]
    pub const fn session(&self) -> u64 {
        self.session
    }

    /// Adopts the nonce of a challenge as the session.
    #[inline]
    pub fn open_session(&mut self, nonce: u64) {
        if nonce != self.session {
            self.session = nonce;
            self.heard = 0;
        }
    }

    /// Returns the context and the counter of the next packet. A Join does not belong to a session; every other packet
    /// does (requirement A-3).
    #[inline]
    pub fn next(&mut self, action: Action) -> (u64, u64) {
        let counter = self.next;
        self.next = counter.saturating_add(1);
        (if action == Action::Join { NO_SESSION } else { self.session }, counter)
    }

    /// Returns whether a control packet comes from the switch and is not a replay (requirements A-4 and A-7).
    pub fn accept(&mut self, key: &Key, packet: &ControlPacket<'_>) -> bool {
        let verify = |context| key.verify(Direction::ToMember, context, packet);
        if self.session != NO_SESSION
            && let Some(counter) = verify(self.session)
        {
            let is_new = counter > self.heard;
            self.heard = self.heard.max(counter);
            return is_new;
        }
        // An answer outside a session repeats the counter of the packet that it answers.
        let own = self.answered + 1..self.next;
        let Some(counter) = verify(NO_SESSION).filter(|counter| own.contains(counter)) else { return false };
        self.answered = counter;
        true
    }

    /// Returns whether a control packet that arrived through the group of a job comes from the switch and is not a
    /// replay. `epoch` is the epoch of the job (requirement B-4).
    pub fn accept_from_group(&mut self, key: &Key, epoch: u64, packet: &ControlPacket<'_>) -> bool {
        let heard = if self.grouped.0 == epoch { self.grouped.1 } else { 0 };
        let counter = key.verify(Direction::ToMember, epoch, packet).filter(|counter| *counter > heard);
        self.grouped = counter.map_or(self.grouped, |counter| (epoch, counter));
        counter.is_some()
    }
}

fn nibble(digit: u8) -> u8 {
    char::from(digit).to_digit(16).map_or(0, |value| value as u8)
}

/// Key of the data packets in one direction. A tag is the SipHash-1-3 of the packet's Seg and elements.
#[derive(Clone, Copy)]
pub struct TagKey([u8; TAG_KEY_LEN_BYTES]);

impl TagKey {
    /// Writes the tag into the last [`DATA_TAG_LEN_BYTES`] bytes of a data packet.
    ///
    /// # Panics
    /// Panics if the packet is shorter than its tag.
    #[inline]
    pub fn sign(&self, packet: &mut [u8]) {
        let (content, tag) = packet.split_last_chunk_mut().expect("the packet should have room for its tag");
        *tag = self.tag(content);
    }

    /// Returns the data packet without its tag, or `None` if the tag is wrong.
    #[inline]
    pub fn verify<'a>(&self, packet: &'a [u8]) -> Option<&'a [u8]> {
        let (content, tag) = packet.split_last_chunk::<DATA_TAG_LEN_BYTES>()?;
        // Both tags are compared as one number, so that the duration does not reveal the position of the first
        // difference.
        (u64::from_le_bytes(self.tag(content)) == u64::from_le_bytes(*tag)).then_some(content)
    }

    fn tag(&self, content: &[u8]) -> [u8; DATA_TAG_LEN_BYTES] {
        let mut hasher = SipHasher13::new_with_key(&self.0);
        hasher.write(content);
        hasher.finish().to_le_bytes()
    }
}

impl fmt::Debug for TagKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TagKey")
    }
}
