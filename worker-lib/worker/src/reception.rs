//! Accepts TCP connections and admits those that send the expected greeting in time.
//!
//! A listening port is exposed to port scans and to clients that hold connections open. A connection that is silent,
//! closes early, or sends anything but the expected greeting is closed, counted and logged; such a connection occupies
//! neither a thread nor a member's slot.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use iswitch_socket::PollSet;

/// Time within which a connection must send its greeting.
pub const GREETING_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of connections that have not sent their greeting yet. An additional connection displaces the oldest
/// of them. This is harmless to genuine members, which send their greeting immediately.
pub const MAX_UNGREETED: usize = 64;
/// Maximum number of connections that are accepted in a row before any of their greetings are read.
const ACCEPT_BATCH: usize = 16;
/// Pause after a failed accept: without it, a failure such as a lack of free descriptors would recur immediately.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// Reason why a connection was closed.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The peer did not send its greeting within five seconds.
    Silent,
    /// The peer closed the connection before its greeting was complete.
    Closed,
    /// The peer sent data other than the expected greeting.
    Foreign,
    /// The peer had not sent its greeting when a newer connection needed the slot.
    Displaced,
    /// The greeting named a different group or job.
    OtherGroup,
    /// All slots are taken.
    Full,
}

impl Refusal {
    /// All reasons.
    pub const ALL: [Self; 6] =
        [Self::Silent, Self::Closed, Self::Foreign, Self::Displaced, Self::OtherGroup, Self::Full];

    /// Returns the name of the reason, as used in logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Silent => "silent",
            Self::Closed => "closed",
            Self::Foreign => "foreign",
            Self::Displaced => "displaced",
            Self::OtherGroup => "other_group",
            Self::Full => "full",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Silent => "no greeting within 5 s",
            Self::Closed => "the connection closed before the greeting arrived",
            Self::Foreign => "the greeting belongs to another protocol",
            Self::Displaced => "newer connections displaced this connection before the greeting arrived",
            Self::OtherGroup => "the greeting belongs to another group",
            Self::Full => "no more connections are accepted",
        })
    }
}

/// Number of refused connections, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals([u64; Refusal::ALL.len()]);

impl Refusals {
    /// Returns the number of connections refused for the given reason.
    pub fn of(&self, reason: Refusal) -> u64 {
        self.0[reason as usize]
    }

    /// Returns the total number of refused connections.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

/// Counters of refused connections, which other threads may read.
#[derive(Debug, Default)]
pub struct RefusalCounters([AtomicU64; Refusal::ALL.len()]);

impl RefusalCounters {
    /// Returns the current counts.
    pub fn read(&self) -> Refusals {
        Refusals(std::array::from_fn(|at| self.0[at].load(Ordering::Relaxed)))
    }

    /// Counts a refusal. For each reason, only the 1st, 2nd, 4th, 8th... refusal is logged, so that a port scan cannot
    /// flood the log.
    fn note(&self, reason: Refusal, peer: SocketAddr, detail: &dyn fmt::Display) {
        let count = self.0[reason as usize].fetch_add(1, Ordering::Relaxed) + 1;
        if count.is_power_of_two() {
            tracing::warn!(%peer, reason = reason.name(), count, "refused a connection: {detail}");
        }
    }
}

/// A connection whose greeting has been received. It is in blocking mode.
#[derive(Debug)]
pub struct GreetedConnection<const LEN: usize> {
    /// Stream of the connection.
    pub stream: TcpStream,
    /// Address and port of the peer.
    pub peer: SocketAddr,
    /// Greeting that the peer sent.
    pub greeting: [u8; LEN],
}

/// A connection whose greeting has not been received yet.
#[derive(Debug)]
struct Ungreeted<const LEN: usize> {
    greeted: GreetedConnection<LEN>,
    received: usize,
    since: Instant,
}

/// Outcome of one attempt to read a greeting.
enum Progress {
    Waiting,
    Complete,
    Refused(Refusal),
}

/// Acceptor of connections whose greeting has `LEN` bytes and begins with `magic`.
#[derive(Debug)]
pub struct Reception<const LEN: usize> {
    listener: TcpListener,
    magic: &'static [u8],
    /// Connections that have not sent their greeting, oldest first.
    ungreeted: VecDeque<Ungreeted<LEN>>,
    waiting: PollSet,
    /// If an attempt to accept a connection failed, the earliest time of the next attempt.
    accept_from: Option<Instant>,
    refusals: Arc<RefusalCounters>,
}

impl<const LEN: usize> Reception<LEN> {
    /// Creates a reception that accepts the connections of `listener`.
    ///
    /// # Errors
    /// Fails if the listener cannot be made non-blocking.
    pub fn new(listener: TcpListener, magic: &'static [u8]) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener,
            magic,
            ungreeted: VecDeque::with_capacity(MAX_UNGREETED),
            waiting: PollSet::new(),
            accept_from: None,
            refusals: Arc::default(),
        })
    }

    /// Returns the counters of refused connections.
    pub fn refusals(&self) -> &Arc<RefusalCounters> {
        &self.refusals
    }

    /// Counts and logs the refusal of a connection after its greeting. The caller must drop the connection.
    pub fn refuse(&self, reason: Refusal, peer: SocketAddr, detail: &dyn fmt::Display) {
        self.refusals.note(reason, peer, detail);
    }

    /// Waits until a connection has sent its greeting, and returns the connection. Returns `None` when the time `until`
    /// is reached or one of `watched` becomes readable.
    ///
    /// # Errors
    /// Fails if the system call that waits for events fails.
    pub fn next(
        &mut self,
        until: Option<Instant>,
        watched: &[BorrowedFd<'_>],
    ) -> io::Result<Option<GreetedConnection<LEN>>> {
        loop {
            self.accept();
            if let Some(greeted) = self.read_greetings() {
                return Ok(Some(greeted));
            }
            let now = Instant::now();
            if until.is_some_and(|until| now >= until) || self.wait(now, until, watched)? {
                return Ok(None);
            }
        }
    }

    fn accept(&mut self) {
        if self.accept_from.is_some_and(|from| Instant::now() < from) {
            return;
        }
        self.accept_from = None;
        for _ in 0..ACCEPT_BATCH {
            match self.listener.accept() {
                Ok((stream, peer)) => self.receive(stream, peer),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    self.accept_from = Some(Instant::now() + ACCEPT_RETRY);
                    return;
                }
            }
        }
    }

    fn receive(&mut self, stream: TcpStream, peer: SocketAddr) {
        if stream.set_nonblocking(true).is_err() {
            return self.refusals.note(Refusal::Closed, peer, &Refusal::Closed);
        }
        if self.ungreeted.len() >= MAX_UNGREETED
            && let Some(oldest) = self.ungreeted.pop_front()
        {
            self.refusals.note(Refusal::Displaced, oldest.greeted.peer, &Refusal::Displaced);
        }
        let greeted = GreetedConnection { stream, peer, greeting: [0; LEN] };
        self.ungreeted.push_back(Ungreeted { greeted, received: 0, since: Instant::now() });
    }

    /// Returns the first connection whose greeting is complete, or `None` if there is no such connection. Closes
    /// connections that are refused.
    fn read_greetings(&mut self) -> Option<GreetedConnection<LEN>> {
        let mut at = 0;
        while let Some(connection) = self.ungreeted.get_mut(at) {
            match connection.read(self.magic) {
                Progress::Waiting => at += 1,
                Progress::Complete => {
                    let Some(Ungreeted { greeted, .. }) = self.ungreeted.remove(at) else { continue };
                    if greeted.stream.set_nonblocking(false).is_ok() {
                        return Some(greeted);
                    }
                }
                Progress::Refused(reason) => {
                    let peer = connection.greeted.peer;
                    self.ungreeted.remove(at);
                    self.refusals.note(reason, peer, &reason);
                }
            }
        }
        None
    }

    /// Waits until any socket is readable. Returns whether one of `watched` is readable.
    fn wait(&mut self, now: Instant, until: Option<Instant>, watched: &[BorrowedFd<'_>]) -> io::Result<bool> {
        self.waiting.clear();
        for fd in watched {
            self.waiting.push(*fd);
        }
        for connection in &self.ungreeted {
            self.waiting.push(connection.greeted.stream.as_fd());
        }
        if self.accept_from.is_none() {
            self.waiting.push(self.listener.as_fd());
        }
        let expiry = self.ungreeted.front().map(|oldest| oldest.since + GREETING_TIMEOUT);
        let next = [until, expiry, self.accept_from].into_iter().flatten().min();
        self.waiting.wait(next.map(|next| next.saturating_duration_since(now)))?;
        Ok((0..watched.len()).any(|index| self.waiting.is_ready(index)))
    }
}

impl<const LEN: usize> Ungreeted<LEN> {
    fn read(&mut self, magic: &[u8]) -> Progress {
        loop {
            match self.greeted.stream.read(&mut self.greeted.greeting[self.received..]) {
                Ok(0) => return Progress::Refused(Refusal::Closed),
                Ok(len) => self.received += len,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => return Progress::Refused(Refusal::Closed),
            }
            let known = self.received.min(magic.len());
            if self.greeted.greeting[..known] != magic[..known] {
                return Progress::Refused(Refusal::Foreign);
            }
            if self.received == LEN {
                return Progress::Complete;
            }
        }
        let is_late = self.since.elapsed() >= GREETING_TIMEOUT;
        if is_late { Progress::Refused(Refusal::Silent) } else { Progress::Waiting }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const MAGIC: &[u8] = b"magi";

    fn reception() -> (Reception<6>, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        (Reception::new(listener, MAGIC).unwrap(), address)
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[test]
    fn a_fragmented_greeting_is_admitted() {
        let (mut reception, address) = reception();
        let mut member = TcpStream::connect(address).unwrap();
        for piece in [&b"mag"[..], b"i1"] {
            member.write_all(piece).unwrap();
            let shortly = Some(Instant::now() + Duration::from_millis(10));
            assert!(reception.next(shortly, &[]).unwrap().is_none());
        }
        member.write_all(b"2").unwrap();
        let greeted = reception.next(Some(soon()), &[]).unwrap().unwrap();
        assert_eq!((&greeted.greeting, greeted.peer), (b"magi12", member.local_addr().unwrap()));
        assert_eq!(reception.refusals().read().total(), 0);
    }

    #[test]
    fn connections_without_a_valid_greeting_are_closed_and_counted() {
        let (mut reception, address) = reception();
        drop(TcpStream::connect(address).unwrap());
        let mut foreign = TcpStream::connect(address).unwrap();
        // Shorter than a greeting, but already known to be foreign.
        foreign.write_all(b"G").unwrap();
        let silent = TcpStream::connect(address).unwrap();
        while reception.refusals().read().total() < 2 {
            assert!(reception.next(Some(Instant::now() + Duration::from_millis(5)), &[]).unwrap().is_none());
        }
        assert_eq!(reception.refusals().read().of(Refusal::Closed), 1);
        assert_eq!(reception.refusals().read().of(Refusal::Foreign), 1);
        // Simulates that the greeting timeout has passed.
        reception.ungreeted[0].since -= GREETING_TIMEOUT;
        assert!(reception.next(Some(Instant::now()), &[]).unwrap().is_none());
        assert_eq!(reception.refusals().read().of(Refusal::Silent), 1);
        for mut closed in [foreign, silent] {
            assert!(matches!(closed.read(&mut [0]), Ok(0) | Err(_)));
        }
    }

    #[test]
    fn silent_connections_are_bounded_and_delay_no_member() {
        let (mut reception, address) = reception();
        let mut silent = Vec::new();
        for _ in 0..MAX_UNGREETED + 10 {
            silent.push(TcpStream::connect(address).unwrap());
            reception.next(Some(Instant::now()), &[]).unwrap();
        }
        let mut member = TcpStream::connect(address).unwrap();
        member.write_all(b"magi12").unwrap();
        assert_eq!(&reception.next(Some(soon()), &[]).unwrap().unwrap().greeting, b"magi12");
        assert!(reception.ungreeted.len() < MAX_UNGREETED);
        assert_eq!(reception.refusals().read().of(Refusal::Displaced), 11);
    }

    #[test]
    fn a_closed_watched_connection_ends_the_wait() {
        let (mut reception, _) = reception();
        let (end, other) = std::os::unix::net::UnixStream::pair().unwrap();
        drop(other);
        assert!(reception.next(None, &[end.as_fd()]).unwrap().is_none());
    }
}
