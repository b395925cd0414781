//! Protocol between two machines that examine the path between them: `doctor --peer` sends questions, and `doctor
//! --answer` reports what arrived.
//!
//! ```text
//!  0       4         5     6          8           16             24
//! +-------+---------+-----+----------+-----------+--------------+-------
//! | magic | version | tos |  length  |  request  |  unix_nanos  | zeros
//! +-------+---------+-----+----------+-----------+--------------+-------
//! ```
//!
//! A question names the ToS and the length of the requested answer. An answer reports the ToS and the length of the
//! question, and the clock of the answering machine. An answer is never longer than its question, so that a forged
//! question cannot amplify traffic towards a third party. Integers are little-endian.

use std::net::SocketAddrV4;

use anyhow::Context;
use iswitch_socket::{Options, UdpSocket};

use super::switch::nanos_since_1970;
use crate::ask::print;

/// UDP port on which `doctor --answer` listens.
pub(super) const ECHO_PORT: u16 = 7712;
/// Length of a message without trailing zeros, in bytes.
pub(super) const ECHO_LEN_BYTES: usize = 24;

const QUESTION: [u8; 4] = *b"ISWq";
const ANSWER: [u8; 4] = *b"ISWa";
const VERSION: u8 = 1;
const LEN_MAX_BYTES: usize = 65_536;

/// Content of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Echo {
    /// In a question, the ToS of the requested answer; in an answer, the ToS of the question.
    pub(super) tos: u8,
    /// Length in bytes, without headers: in a question, the length of the requested answer; in an answer, the length of
    /// the question.
    pub(super) len_bytes: u16,
    /// Number that matches an answer to its question.
    pub(super) request: u64,
    /// Clock of the sender.
    pub(super) unix_nanos: u64,
}

impl Echo {
    /// Encodes a question of `len` bytes.
    pub(super) fn question(self, len: usize) -> Vec<u8> {
        self.emit(QUESTION, len)
    }

    /// Decodes a question.
    pub(super) fn parse_question(bytes: &[u8]) -> Option<Self> {
        Self::parse(QUESTION, bytes)
    }

    /// Decodes an answer.
    pub(super) fn parse_answer(bytes: &[u8]) -> Option<Self> {
        Self::parse(ANSWER, bytes)
    }

    /// Returns the answer to a question that arrived with this ToS and length, and the ToS with which to send the
    /// answer.
    pub(super) fn answer(self, tos: u8, len: usize) -> (Vec<u8>, u8) {
        let echo = Self { tos, len_bytes: len as u16, unix_nanos: nanos_since_1970(), ..self };
        (echo.emit(ANSWER, usize::from(self.len_bytes).min(len)), self.tos)
    }

    fn emit(self, magic: [u8; 4], len: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(len.max(ECHO_LEN_BYTES));
        bytes.extend(magic);
        bytes.extend([VERSION, self.tos]);
        bytes.extend(self.len_bytes.to_le_bytes());
        bytes.extend(self.request.to_le_bytes());
        bytes.extend(self.unix_nanos.to_le_bytes());
        bytes.resize(len.max(ECHO_LEN_BYTES), 0);
        bytes
    }

    fn parse(magic: [u8; 4], bytes: &[u8]) -> Option<Self> {
        let head: &[u8; ECHO_LEN_BYTES] = bytes.first_chunk()?;
        let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| head[at + byte]));
        let is_ours = head[..4] == magic && head[4] == VERSION;
        is_ours.then(|| Self {
            tos: head[5],
            len_bytes: u16::from_le_bytes([head[6], head[7]]),
            request: number(8),
            unix_nanos: number(16),
        })
    }
}

/// Answers questions until the process is terminated.
pub(super) fn answer(address: SocketAddrV4) -> anyhow::Result<()> {
    let options = Options { offload: false, ..Options::default() };
    let socket = UdpSocket::bind(address, &options).with_context(|| format!("cannot listen on {address}"))?;
    print(&format!("answering iswitchctl doctor --peer requests at {}\n", socket.local_addr()?));
    let mut buffer = vec![0; LEN_MAX_BYTES];
    loop {
        // An error affects only one question, which its sender repeats.
        let Ok(received) = socket.recv(&mut buffer) else { continue };
        let Some(question) = Echo::parse_question(&buffer[..received.len]) else { continue };
        let (bytes, tos) = question.answer(received.tos.unwrap_or(0), received.len);
        let source = address.ip().is_unspecified().then_some(received.destination);
        let _ = socket.send(tos, Some(received.source), source, &bytes, bytes.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_answer_describes_its_question_and_is_not_longer() {
        let question = Echo { tos: 0x1c, len_bytes: 1472, request: 9, unix_nanos: 0 };
        for len in [ECHO_LEN_BYTES, 100, 1472] {
            let bytes = question.question(len);
            assert_eq!((bytes.len(), Echo::parse_answer(&bytes)), (len, None));
            let (answer, tos) = Echo::parse_question(&bytes).unwrap().answer(0x04, len);
            assert_eq!((answer.len(), tos), (len, 0x1c));
            let echo = Echo::parse_answer(&answer).unwrap();
            assert_eq!((echo.tos, usize::from(echo.len_bytes), echo.request), (0x04, len, 9));
        }
        assert_eq!(Echo::parse_question(b"ISWq"), None);
        assert_eq!(Echo::parse_question(&[0; 64]), None);
    }
}
