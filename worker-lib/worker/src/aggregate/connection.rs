//! TCP connections between the members of a ring, or between workers and a parameter server.
//!
//! After the greeting, the stream carries the floats of vectors, little-endian and without framing: both ends know the
//! length of a vector. No super-frames need to be built, because the kernel segments the stream itself.

use std::error::Error;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::thread::sleep;
use std::time::{Duration, Instant};

use iswitch_protocol::limits::FLOAT_LEN_BYTES;

use super::AggregateError;
use crate::reception::{GREETING_TIMEOUT, GreetedConnection, Reception, Refusal};

const MAGIC: [u8; 4] = *b"iSW1";
const HELLO_LEN_BYTES: usize = 16;
const CONNECT_RETRY: Duration = Duration::from_millis(20);
/// Maximum number of missing ranks that an error lists.
const NAMED_RANKS: usize = 16;
/// Maximum number of bytes read from a socket in one call: large enough for the data that a connection has in flight,
/// and small enough to fit in a core's cache.
pub(super) const READ_LEN_BYTES: usize = 256 << 10;

/// Order in which the parts of a vector are summed and forwarded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// Order used in the iSwitch paper (Li et al., ISCA 2019, figure 1): each step begins only when the previous one
    /// is complete. A parameter server gathers the vectors of all workers before it sends the sum back; a ring
    /// forwards whole chunks.
    Paper,
    /// Partial results are forwarded while the rest is still arriving.
    #[default]
    Pipelined,
}

/// Reason why a group of workers was not formed.
#[derive(Debug)]
pub enum ConnectError {
    /// A socket failed.
    Io {
        /// Operation that failed.
        what: &'static str,
        /// Address of the peer or, if the listener failed, the address on which it listens.
        address: SocketAddr,
        /// Error of the operating system.
        error: io::Error,
    },
    /// The peer did not accept a connection within the timeout.
    Timeout {
        /// Preposition that precedes the address in the error message, such as "to".
        what: &'static str,
        /// Address of the peer.
        address: SocketAddr,
        /// Time waited.
        waited: Duration,
    },
    /// Some members did not connect within the timeout.
    Incomplete {
        /// Address on which this end listens.
        address: SocketAddr,
        /// Ranks of the missing members.
        missing: Vec<u16>,
        /// Time since the last member connected.
        waited: Duration,
        /// Connections that were refused during the wait.
        refused: RefusedMeanwhile,
    },
    /// The next member of a ring closed the connection before the ring was complete.
    Left {
        /// Address of the next member.
        address: SocketAddr,
        /// Connections that this worker refused during the wait.
        refused: RefusedMeanwhile,
    },
    /// The process at `address` does not speak this protocol.
    Foreign {
        /// Address of that process.
        address: SocketAddr,
    },
    /// The two ends belong to different groups.
    Mismatch {
        /// Name of the field that differs.
        field: &'static str,
        /// Address of the other end.
        address: SocketAddr,
        /// Value of the field at the other end.
        theirs: u32,
        /// Value of the field at this end.
        own: u32,
    },
    /// An option is invalid.
    BadOption {
        /// Name of the option.
        field: &'static str,
        /// Value of the option.
        value: usize,
        /// Expected value.
        expected: &'static str,
    },
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { what, address, error } => write!(f, "{what} {address}: {error}"),
            Self::Timeout { what, address, waited } => {
                write!(f, "no connection {what} {address} within {waited:?}")
            }
            Self::Incomplete { address, missing, waited, refused } => {
                let missing = Ranks(missing);
                write!(f, "{missing} did not connect to {address} within {waited:?}{refused}")
            }
            Self::Left { address, refused } => write!(
                f,
                "{address} closed the connection while the ring was forming; check the log of that worker{refused}"
            ),
            Self::Foreign { address } => {
                write!(f, "{address} is neither a member of a ring nor a parameter server")
            }
            Self::Mismatch { field, address, theirs, own } => {
                write!(f, "{field} is {theirs} at {address}, but {own} in this process")
            }
            Self::BadOption { field, value, expected } => {
                write!(f, "{field} is {value}, expected {expected}")
            }
        }
    }
}

impl Error for ConnectError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Io { error, .. } => Some(error),
            _ => None,
        }
    }
}

/// Formats ranks for an error message: all of them or, if there are many, the first few and how many others there are.
struct Ranks<'a>(&'a [u16]);

impl fmt::Display for Ranks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.len() == 1 { "rank " } else { "ranks " })?;
        for (at, rank) in self.0.iter().take(NAMED_RANKS).enumerate() {
            write!(f, "{}{rank}", if at == 0 { "" } else { ", " })?;
        }
        let more = self.0.len().saturating_sub(NAMED_RANKS);
        if more > 0 { write!(f, " and {more} more") } else { Ok(()) }
    }
}

/// Connections that were refused while the group was forming.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefusedMeanwhile {
    /// Number of refused connections.
    pub count: u64,
    /// Description of the last refused connection that sent a member's greeting, with the reason for the refusal.
    pub last: Option<String>,
}

impl fmt::Display for RefusedMeanwhile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.last, self.count) {
            (_, 0) => Ok(()),
            (None, count) => write!(f, "; refused meanwhile: {count} connections from non-members"),
            (Some(last), count) => {
                write!(f, "; refused meanwhile: {count} connections, the last one: {last}")
            }
        }
    }
}

/// Greeting that each end of a connection sends first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    /// Rank of the sender; a parameter server replies with the rank of the worker.
    pub(super) rank: u16,
    pub(super) workers: u16,
    pub(super) gradient_len: u32,
}

impl Hello {
    fn to_bytes(self) -> [u8; HELLO_LEN_BYTES] {
        let mut bytes = [0; HELLO_LEN_BYTES];
        bytes[0..4].copy_from_slice(&MAGIC);
        bytes[4..6].copy_from_slice(&self.rank.to_le_bytes());
        bytes[6..8].copy_from_slice(&self.workers.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.gradient_len.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: [u8; HELLO_LEN_BYTES]) -> Option<Self> {
        let [a, b, c, d, rank @ .., _, _, _, _] = bytes;
        let [r0, r1, w0, w1, g0, g1, g2, g3] = rank;
        ([a, b, c, d] == MAGIC).then_some(Self {
            rank: u16::from_le_bytes([r0, r1]),
            workers: u16::from_le_bytes([w0, w1]),
            gradient_len: u32::from_le_bytes([g0, g1, g2, g3]),
        })
    }

    /// Checks that this greeting, which was received from `address`, matches this end's own greeting. The error names
    /// the first field that differs.
    pub(super) fn expect(self, own: Self, address: SocketAddr) -> Result<(), ConnectError> {
        let fields = [
            ("number of workers", u32::from(self.workers), u32::from(own.workers)),
            ("gradient length", self.gradient_len, own.gradient_len),
            ("rank", u32::from(self.rank), u32::from(own.rank)),
        ];
        let differs = fields.into_iter().find(|(_, theirs, own)| theirs != own);
        differs.map_or(Ok(()), |(field, theirs, own)| {
            Err(ConnectError::Mismatch { field, address, theirs, own })
        })
    }
}

/// A connection whose ends have exchanged greetings. After [`Self::begin`] it never blocks.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    peer: SocketAddr,
}

impl Connection {
    /// Connects to a peer. If the peer is not listening yet, retries until the timeout expires.
    pub(super) fn connect(to: SocketAddrV4, hello: Hello, timeout: Duration) -> Result<Self, ConnectError> {
        let (begin, address) = (Instant::now(), SocketAddr::V4(to));
        loop {
            let left = timeout.saturating_sub(begin.elapsed());
            match TcpStream::connect_timeout(&address, left.max(CONNECT_RETRY)) {
                Ok(stream) => return Self::introduce(stream, address, hello),
                Err(error) if is_not_there_yet(&error) && begin.elapsed() < timeout => sleep(CONNECT_RETRY),
                Err(error) if is_not_there_yet(&error) => {
                    return Err(ConnectError::Timeout { what: "to", address, waited: begin.elapsed() });
                }
                Err(error) => return Err(ConnectError::Io { what: "cannot connect to", address, error }),
            }
        }
    }

    fn introduce(mut stream: TcpStream, address: SocketAddr, hello: Hello) -> Result<Self, ConnectError> {
        let sent = stream.set_nodelay(true).and_then(|()| stream.write_all(&hello.to_bytes()));
        sent.map_err(|error| ConnectError::Io { what: "cannot send the greeting to", address, error })?;
        Ok(Self { stream, peer: address })
    }

    /// Reads the greeting of the other end.
    pub(super) fn read_hello(&mut self) -> Result<Hello, ConnectError> {
        let address = self.peer;
        let mut bytes = [0; HELLO_LEN_BYTES];
        let read = self
            .stream
            .set_read_timeout(Some(GREETING_TIMEOUT))
            .and_then(|()| self.stream.read_exact(&mut bytes));
        match read {
            Ok(()) => Hello::from_bytes(bytes).ok_or(ConnectError::Foreign { address }),
            Err(error) => Err(ConnectError::Io { what: "cannot receive the greeting from", address, error }),
        }
    }

    /// Sends this end's greeting to a peer that has connected.
    pub(super) fn reply(&mut self, hello: Hello) -> Result<(), ConnectError> {
        let address = self.peer;
        let sent = self.stream.write_all(&hello.to_bytes());
        sent.map_err(|error| ConnectError::Io { what: "cannot send the greeting to", address, error })
    }

    /// Makes the connection non-blocking.
    pub(super) fn begin(&self) -> Result<(), ConnectError> {
        let address = self.peer;
        let set = self.stream.set_nonblocking(true);
        set.map_err(|error| ConnectError::Io { what: "cannot connect to", address, error })
    }

    /// Returns whether the other end has closed the connection. [`Self::begin`] must have been called. A close is
    /// detected only after all earlier bytes have been read.
    pub(super) fn is_closed(&self) -> bool {
        match self.stream.peek(&mut [0]) {
            Ok(len) => len == 0,
            Err(error) => !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted),
        }
    }

    /// Returns whether unread bytes are available. [`Self::begin`] must have been called.
    pub(super) fn has_bytes(&self) -> bool {
        self.stream.peek(&mut [0]).is_ok_and(|len| len > 0)
    }

    pub(super) fn peer(&self) -> SocketAddr {
        self.peer
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// Reads the available bytes; returns zero if there are none.
    pub(super) fn read_some(&mut self, buffer: &mut [u8]) -> Result<usize, AggregateError> {
        match self.stream.read(buffer) {
            Ok(0) if !buffer.is_empty() => Err(self.lost()),
            outcome => self.done(outcome),
        }
    }

    /// Writes as many bytes as the send buffer has room for; returns zero if it has none.
    pub(super) fn write_some(&mut self, buffer: &[u8]) -> Result<usize, AggregateError> {
        let outcome = self.stream.write(buffer);
        self.done(outcome)
    }

    fn done(&self, outcome: io::Result<usize>) -> Result<usize, AggregateError> {
        match outcome {
            Ok(len) => Ok(len),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(0),
                io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Err(self.lost()),
                _ => Err(error.into()),
            },
        }
    }

    fn lost(&self) -> AggregateError {
        AggregateError::PeerLost { peer: self.peer, silent: Duration::ZERO }
    }
}

/// Returns the time at which a timeout that begins now expires. If that time cannot be represented (a timeout of a
/// century or more), the timeout is reduced to one year.
pub(super) fn deadline(timeout: Duration) -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    let now = Instant::now();
    now.checked_add(timeout).unwrap_or_else(|| now + YEAR)
}

/// The listening side of a group that is forming. Connections from outside the group neither abort nor delay its
/// formation.
#[derive(Debug)]
pub(super) struct Forming {
    reception: Reception<HELLO_LEN_BYTES>,
    address: SocketAddr,
    last_refusal: Option<String>,
}

impl Forming {
    pub(super) fn new(listener: &TcpListener) -> Result<Self, ConnectError> {
        let address = listener.local_addr().unwrap_or(SocketAddr::from(([0, 0, 0, 0], 0)));
        let reception = listener.try_clone().and_then(|listener| Reception::new(listener, &MAGIC));
        let reception =
            reception.map_err(|error| ConnectError::Io { what: "cannot listen at", address, error })?;
        Ok(Self { reception, address, last_refusal: None })
    }

    /// Waits for a connection whose greeting identifies a member of any group. Returns `None` when the time `until`
    /// is reached or `watched` becomes readable.
    pub(super) fn next(
        &mut self,
        until: Instant,
        watched: Option<&Connection>,
    ) -> Result<Option<(Connection, Hello)>, ConnectError> {
        let address = self.address;
        let failed = |error| ConnectError::Io { what: "cannot listen at", address, error };
        let watched: Vec<_> = watched.iter().map(|connection| connection.as_fd()).collect();
        let Some(guest) = self.reception.next(Some(until), &watched).map_err(failed)? else {
            return Ok(None);
        };
        let GreetedConnection { stream, peer, greeting } = guest;
        let Some(hello) = Hello::from_bytes(greeting) else { return Ok(None) };
        // The peer may have closed the connection already; the first use of the connection will report that.
        let _ = stream.set_nodelay(true);
        Ok(Some((Connection { stream, peer }, hello)))
    }

    /// Logs why a member of another group, or a surplus member, is refused. The caller must drop the connection.
    pub(super) fn refuse(&mut self, peer: SocketAddr, error: &ConnectError) {
        self.reception.refuse(Refusal::OtherGroup, peer, error);
        self.last_refusal = Some(error.to_string());
    }

    /// Returns a summary of the refused connections, for an error.
    pub(super) fn refused(self) -> RefusedMeanwhile {
        RefusedMeanwhile { count: self.reception.refusals().read().total(), last: self.last_refusal }
    }

    /// Returns the error that names the missing members.
    pub(super) fn incomplete(self, missing: Vec<u16>, waited: Duration) -> ConnectError {
        ConnectError::Incomplete { address: self.address, missing, waited, refused: self.refused() }
    }
}

fn is_not_there_yet(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::TimedOut
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
    )
}

/// Opens a listener, even if another process stopped listening on that address only a moment ago.
pub(super) fn listen(at: SocketAddrV4) -> Result<TcpListener, ConnectError> {
    let address = SocketAddr::V4(at);
    TcpListener::bind(address).map_err(|error| ConnectError::Io { what: "cannot listen at", address, error })
}

/// Rejects a group without workers, with too many workers, or with empty vectors.
pub(super) fn check_group(workers: usize, gradient_len: u32) -> Result<(), ConnectError> {
    let bad = |field, value, expected| Err(ConnectError::BadOption { field, value, expected });
    if workers == 0 || workers > usize::from(u16::MAX) {
        return bad("number of workers", workers, "1 to 65,535");
    }
    if gradient_len == 0 {
        return bad("gradient length", 0, "at least one float");
    }
    Ok(())
}

/// Decodes the little-endian floats in `bytes`.
pub(super) fn floats(bytes: &[u8]) -> impl Iterator<Item = f32> + '_ {
    bytes.chunks_exact(FLOAT_LEN_BYTES).map(|x| f32::from_le_bytes([x[0], x[1], x[2], x[3]]))
}
