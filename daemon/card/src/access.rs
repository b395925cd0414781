//! Access to a card: its registers, and the frames at its ports.

use std::io;

use crate::registers::{ID, VERSION, offset};

/// Length of the shortest Ethernet frame without its frame check sequence, in bytes.
pub const MIN_FRAME_LEN_BYTES: usize = 60;

/// Ethernet frame that enters or leaves a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Bytes of the frame, starting with the destination MAC address, without the frame check sequence.
    pub bytes: Vec<u8>,
    /// Port through which the frame arrived, as a bit of `tuser`. Results have 0.
    pub source: u8,
    /// Ports to which the frame is sent, one bit per port as in `tuser`.
    pub destination: u8,
}

/// Reason why a card cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CardError {
    /// A system call on the card failed.
    #[error("the card failed: {0}")]
    Io(#[from] io::Error),
    /// A register does not have the value that identifies the accelerator or the version of its registers.
    #[error("register {name} of the card is {value:#010x}, expected {expected:#010x}")]
    Identity {
        /// Name of the register.
        name: &'static str,
        /// Value of the register.
        value: u32,
        /// Expected value.
        expected: u32,
    },
    /// The simulated card sent an answer that the protocol does not allow.
    #[error("the simulated card answered with code {code:#04x}, expected {expected}")]
    Answer {
        /// Code of the answer.
        code: u8,
        /// Codes that the protocol allows at this point.
        expected: &'static str,
    },
}

/// A card, used by one thread at a time. If a method fails, the card is no longer usable.
pub trait Card: Send {
    /// Returns the value of the register at a byte offset.
    fn read(&mut self, offset: u16) -> Result<u32, CardError>;

    /// Writes the register at a byte offset.
    fn write(&mut self, offset: u16, value: u32) -> Result<(), CardError>;

    /// Performs the writes in order, and reads the given registers after each write. Appends the values to `values`.
    /// With a simulated card, this takes a single exchange instead of one per register.
    fn read_after_each(
        &mut self,
        writes: &[(u16, u32)],
        reads: &[u16],
        values: &mut Vec<u32>,
    ) -> Result<(), CardError> {
        for (at, value) in writes {
            self.write(*at, *value)?;
            for read in reads {
                values.push(self.read(*read)?);
            }
        }
        Ok(())
    }

    /// Passes frames to the card, lets it run until it is idle, and appends the frames that leave it to `leaving`, in
    /// order.
    fn exchange(&mut self, arriving: &[Frame], leaving: &mut Vec<Frame>) -> Result<(), CardError>;
}

/// Checks that a card is the accelerator, with the register map of this crate.
///
/// # Errors
/// Fails if the register ID or VERSION does not have the expected value, or cannot be read.
pub fn check_identity(card: &mut dyn Card) -> Result<(), CardError> {
    for (name, at, expected) in [("ID", offset::ID, ID), ("VERSION", offset::VERSION, VERSION)] {
        let value = card.read(at)?;
        if value != expected {
            return Err(CardError::Identity { name, value, expected });
        }
    }
    Ok(())
}
