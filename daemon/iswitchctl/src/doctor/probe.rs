//! A single request over the network, and its possible outcomes.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

use iswitch_socket::{Options, UdpSocket};

/// Maximum length of an answer, in bytes.
const ANSWER_LEN_MAX_BYTES: usize = 65_536;

/// Answer to a request.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) payload: Vec<u8>,
    /// ToS with which the answer arrived.
    pub(super) tos: u8,
    pub(super) round_trip: Duration,
}

/// Reason why there is no answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Silence {
    /// No answer arrived in time.
    Timeout,
    /// The other machine reports that the UDP port is closed.
    Refused,
    /// This machine or a router has no route to the destination.
    NoRoute(String),
    /// A firewall of this machine forbids sending.
    Forbidden,
    /// The packet exceeds the known MTU of the path.
    TooLong {
        path_mtu_bytes: usize,
    },
    Other(String),
}

impl Silence {
    fn of(error: &io::Error, socket: &UdpSocket) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::Refused,
            io::ErrorKind::PermissionDenied => Self::Forbidden,
            io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkDown => Self::NoRoute(error.to_string()),
            // EMSGSIZE has no `ErrorKind`, and the socket operations used here return it only for a packet that is
            // too long.
            _ if error.raw_os_error() == Some(EMSGSIZE) => {
                Self::TooLong { path_mtu_bytes: socket.path_mtu_bytes().unwrap_or(0) }
            }
            _ => Self::Other(error.to_string()),
        }
    }
}

/// Error number for a message that exceeds the path MTU, from `asm-generic/errno.h`.
const EMSGSIZE: i32 = 90;

/// Timeout and number of attempts for a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    pub(super) timeout: Duration,
    pub(super) tries: u32,
}

/// Socket that is connected to the destination of the requests.
#[derive(Debug)]
pub(super) struct Probe {
    socket: UdpSocket,
    patience: Patience,
    buffer: Vec<u8>,
}

impl Probe {
    pub(super) fn connect(to: SocketAddrV4, patience: Patience) -> Result<Self, Silence> {
        let any = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
        let open = || UdpSocket::bind(any, &Options { offload: false, ..Options::default() });
        let socket = open().map_err(|error| Silence::Other(error.to_string()))?;
        socket.connect(to).map_err(|error| Silence::of(&error, &socket))?;
        Ok(Self { socket, patience, buffer: vec![0; ANSWER_LEN_MAX_BYTES] })
    }

    /// Returns the address at which the other machine sees this one, unless the path translates addresses.
    pub(super) fn local(&self) -> Option<Ipv4Addr> {
        self.socket.local_addr().ok().map(|address| *address.ip())
    }

    /// Returns the MTU of the path, in bytes, as far as the kernel knows it.
    pub(super) fn path_mtu_bytes(&self) -> Option<usize> {
        self.socket.path_mtu_bytes().ok()
    }

    /// Sends a request until `is_answer` accepts an answer or the attempts are exhausted.
    pub(super) fn ask(
        &mut self,
        tos: u8,
        payload: &[u8],
        is_answer: impl Fn(&[u8]) -> bool,
    ) -> Result<Answer, Silence> {
        let mut last = Silence::Timeout;
        for _ in 0..self.patience.tries {
            match self.try_once(tos, payload, &is_answer) {
                Ok(answer) => return Ok(answer),
                // The next attempt may have a different outcome, for instance because routers limit the rate of their
                // error messages.
                Err(silence @ (Silence::Timeout | Silence::Refused)) => last = silence,
                Err(silence) => return Err(silence),
            }
        }
        Err(last)
    }

    fn try_once(
        &mut self,
        tos: u8,
        payload: &[u8],
        is_answer: impl Fn(&[u8]) -> bool,
    ) -> Result<Answer, Silence> {
        let begin = Instant::now();
        let len = payload.len().max(1);
        if let Err(error) = self.socket.send(tos, None, None, payload, len) {
            return Err(Silence::of(&error, &self.socket));
        }
        loop {
            let left = self.patience.timeout.saturating_sub(begin.elapsed());
            let is_ready = self.socket.wait_readable(Some(left));
            if left.is_zero() || !is_ready.map_err(|error| Silence::Other(error.to_string()))? {
                return Err(Silence::Timeout);
            }
            let received = match self.socket.recv(&mut self.buffer) {
                Ok(received) => received,
                Err(error) => return Err(Silence::of(&error, &self.socket)),
            };
            let payload = &self.buffer[..received.len];
            if is_answer(payload) {
                let (payload, tos) = (payload.to_vec(), received.tos.unwrap_or(0));
                return Ok(Answer { payload, tos, round_trip: begin.elapsed() });
            }
        }
    }
}
