//! Transfer of a learner's state between workers: a worker that joins late gets the weights from another worker.
//!
//! Every worker that shares its state listens on TCP, at the address and port number of its UDP socket. The switch
//! gives this address to workers that join. A newcomer first asks a peer to prepare. From then on, the peer keeps a
//! copy of its state at each round boundary. Only then does the newcomer join and fetch the copy of the round at which
//! it starts. In any other order, the two workers could wait for each other forever.
//!
//! ```text
//! newcomer                          peer
//!   | magic, job u32       ------->  |
//!   |                                | (copies its state at the next boundary)
//!   | <-------      ready: round u32 |
//!   | (joins at round n)             |
//!   | n u32                ------->  |
//!   | <-------   len u64, the state  |
//! ```

use std::collections::VecDeque;
use std::error::Error;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::reception::{GreetedConnection, Reception, Refusal, RefusalCounters, Refusals};

/// First bytes of a connection; the last byte is the version of this exchange.
const MAGIC: [u8; 8] = *b"iswstat1";
/// Length of the greeting: the magic and the number of the job.
const GREETING_LEN_BYTES: usize = MAGIC.len() + 4;
/// Maximum number of newcomers that are served at the same time.
const MAX_NEWCOMERS: usize = 4;
/// Number of copies that are kept: one for the round in progress and one for the previous round.
const KEPT: usize = 2;
/// Largest state that is accepted, in bytes.
const MAX_STATE_LEN_BYTES: u64 = 1 << 34;
/// Timeout of each step of the exchange: it is long because a peer may compute for a long time before it reaches a
/// round boundary.
const STEP_TIMEOUT: Duration = Duration::from_secs(120);
/// Minimum transfer rate of a state, in bytes per second: a transfer times out after the time that it would take at
/// this rate, plus [`STEP_TIMEOUT`].
const MIN_BYTES_PER_SECOND: u64 = 1 << 20;

/// Reason why the state could not be fetched.
#[non_exhaustive]
#[derive(Debug)]
pub enum StateError {
    /// The connection failed, or a step of the exchange took longer than two minutes.
    Io {
        /// Address of the peer.
        peer: SocketAddrV4,
        /// Underlying error.
        source: io::Error,
    },
    /// The peer no longer has the state before the requested round.
    TooLate {
        /// Address of the peer.
        peer: SocketAddrV4,
        /// Round number.
        round: u32,
    },
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { peer, source } => write!(f, "cannot fetch the state of worker {peer}: {source}"),
            Self::TooLate { peer, round } => {
                write!(f, "worker {peer} no longer has its state from before round {round}")
            }
        }
    }
}

impl Error for StateError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::TooLate { .. } => None,
        }
    }
}

/// A server from which newcomers fetch the state of a learner.
#[derive(Debug)]
pub struct StateServer {
    shared: Arc<Shared>,
    address: SocketAddr,
    refusals: Arc<RefusalCounters>,
    /// Socket that stops the server's thread when it is closed.
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    copies: Mutex<Copies>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Copies {
    newcomers: usize,
    kept: VecDeque<(u32, Arc<[u8]>)>,
    closed: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Copies> {
        self.copies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `find` returns a value, the server is closed, or [`STEP_TIMEOUT`] expires.
    fn wait_for<T>(&self, mut find: impl FnMut(&Copies) -> Option<T>) -> io::Result<T> {
        let mut found = None;
        let waiting = |copies: &mut Copies| {
            found = find(copies);
            found.is_none() && !copies.closed
        };
        let outcome = self.changed.wait_timeout_while(self.lock(), STEP_TIMEOUT, waiting);
        drop(outcome.unwrap_or_else(PoisonError::into_inner));
        found.ok_or_else(|| io::ErrorKind::TimedOut.into())
    }
}

impl StateServer {
    /// Starts a server that listens on `address` for newcomers of the job.
    ///
    /// A single thread handles all connections that have not sent their greeting yet; the number of these connections
    /// is limited. Each newcomer of the job is then served by a separate thread. At most four newcomers are served at a
    /// time.
    ///
    /// # Errors
    /// Fails if the address is in use, or the thread cannot be created.
    pub fn start(address: SocketAddrV4, job: u32) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let reception = Reception::new(listener, &MAGIC)?;
        let refusals = Arc::clone(reception.refusals());
        let (stop, stopped) = UnixStream::pair()?;
        let shared = Arc::new(Shared::default());
        let serving = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("iswitch-state".into())
            .spawn(move || receive(reception, &stopped, job, &serving))?;
        Ok(Self { shared, address, refusals, stop: Some(stop), thread: Some(thread) })
    }

    /// Returns the address on which the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the number of refused connections: connections that did not come from a newcomer of the job, and
    /// connections of newcomers while four others were being served.
    pub fn refusals(&self) -> Refusals {
        self.refusals.read()
    }

    /// Keeps a copy of the state before `round`, if a newcomer is being served and may therefore need it.
    pub fn publish(&self, round: u32, state: impl FnOnce() -> Vec<u8>) {
        if self.shared.lock().newcomers == 0 {
            return;
        }
        let copy: Arc<[u8]> = state().into();
        let mut copies = self.shared.lock();
        // A repeated round begins with the same state.
        copies.kept.retain(|(kept, _)| *kept != round);
        copies.kept.push_back((round, copy));
        while copies.kept.len() > KEPT {
            copies.kept.pop_front();
        }
        self.shared.changed.notify_all();
    }
}

impl Drop for StateServer {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_all();
        // Wakes the thread that waits for connections.
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Admits newcomers until the other end of `stopped` is closed.
fn receive(
    mut reception: Reception<GREETING_LEN_BYTES>,
    stopped: &UnixStream,
    job: u32,
    shared: &Arc<Shared>,
) {
    while !shared.lock().closed {
        match reception.next(None, &[stopped.as_fd()]) {
            Ok(Some(guest)) => admit(&reception, guest, job, shared),
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(%error, "this worker no longer serves its state to newcomers");
                return;
            }
        }
    }
}

fn admit(
    reception: &Reception<GREETING_LEN_BYTES>,
    guest: GreetedConnection<GREETING_LEN_BYTES>,
    job: u32,
    shared: &Arc<Shared>,
) {
    let GreetedConnection { stream, peer, greeting } = guest;
    let [.., a, b, c, d] = greeting;
    let theirs = u32::from_le_bytes([a, b, c, d]);
    if theirs != job {
        return reception.refuse(Refusal::OtherGroup, peer, &format!("its job is {theirs}, expected {job}"));
    }
    let Some(newcomer) = Newcomer::new(shared) else {
        let problem = format!("already serving {MAX_NEWCOMERS} newcomers; ask another worker");
        return reception.refuse(Refusal::Full, peer, &problem);
    };
    let serving = move || {
        if let Err(error) = serve(&newcomer.0, stream) {
            tracing::debug!(%peer, %error, "serving a newcomer failed");
        }
    };
    if let Err(error) = std::thread::Builder::new().name("iswitch-newcomer".into()).spawn(serving) {
        reception.refuse(Refusal::Full, peer, &error);
    }
}

/// Guard that counts a newcomer for as long as it is served.
struct Newcomer(Arc<Shared>);

impl Newcomer {
    /// Reserves one of the slots for newcomers. Returns `None` if all slots are in use.
    fn new(shared: &Arc<Shared>) -> Option<Self> {
        let mut copies = shared.lock();
        if copies.newcomers >= MAX_NEWCOMERS {
            return None;
        }
        copies.newcomers += 1;
        Some(Self(Arc::clone(shared)))
    }
}

impl Drop for Newcomer {
    fn drop(&mut self) {
        let mut copies = self.0.lock();
        copies.newcomers -= 1;
        if copies.newcomers == 0 {
            copies.kept.clear();
        }
    }
}

fn serve(shared: &Shared, mut stream: TcpStream) -> io::Result<()> {
    stream.set_write_timeout(Some(STEP_TIMEOUT))?;
    let ready = shared.wait_for(|copies| copies.kept.back().map(|(round, _)| *round))?;
    stream.write_all(&ready.to_le_bytes())?;
    let wanted = read_u32_within(&mut stream, STEP_TIMEOUT)?;
    let copy = shared.wait_for(|copies| {
        let exact = copies.kept.iter().find(|(round, _)| *round == wanted);
        let is_over = || copies.kept.front().is_some_and(|(round, _)| is_past(*round, wanted));
        exact.map(|(_, copy)| Some(Arc::clone(copy))).or_else(|| is_over().then_some(None))
    })?;
    // A length of zero means that the request came too late: a state is never empty.
    let copy = copy.unwrap_or_else(|| Arc::new([]));
    stream.write_all(&(copy.len() as u64).to_le_bytes())?;
    let transfer = Duration::from_secs(copy.len() as u64 / MIN_BYTES_PER_SECOND);
    write_all_within(&mut stream, &copy, STEP_TIMEOUT + transfer)
}

/// Reads a four-byte number, and fails if this takes longer than `limit` in total. The socket's timeout alone would
/// not suffice, because it restarts with each read.
fn read_u32_within(stream: &mut TcpStream, limit: Duration) -> io::Result<u32> {
    let deadline = Instant::now() + limit;
    let mut bytes = [0; 4];
    let mut received = 0;
    while received < bytes.len() {
        stream.set_read_timeout(Some(left(deadline)?))?;
        match stream.read(&mut bytes[received..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(len) => received += len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(u32::from_le_bytes(bytes))
}

/// Writes all bytes, and fails if this takes longer than `limit` in total.
fn write_all_within(stream: &mut TcpStream, bytes: &[u8], limit: Duration) -> io::Result<()> {
    let deadline = Instant::now() + limit;
    let mut sent = 0;
    while sent < bytes.len() {
        stream.set_write_timeout(Some(left(deadline)?))?;
        match stream.write(&bytes[sent..]) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(len) => sent += len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Returns the time until a deadline, for use as a socket timeout. Fails if the deadline has passed, because a socket
/// timeout of zero would mean no timeout.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

fn is_past(round: u32, wanted: u32) -> bool {
    iswitch_protocol::Round::new(wanted).is_before(iswitch_protocol::Round::new(round))
}

/// A peer that keeps copies of its state for this newcomer.
#[derive(Debug)]
pub struct ReadyPeer {
    peer: SocketAddrV4,
    stream: TcpStream,
}

impl ReadyPeer {
    /// Asks a worker to prepare for a transfer of its state, and waits until it is ready.
    pub fn prepare(peer: SocketAddrV4, job: u32) -> Result<Self, StateError> {
        let failed = |source| StateError::Io { peer, source };
        let mut stream = TcpStream::connect_timeout(&peer.into(), STEP_TIMEOUT).map_err(failed)?;
        let mut prepare = || {
            stream.set_read_timeout(Some(STEP_TIMEOUT))?;
            stream.set_write_timeout(Some(STEP_TIMEOUT))?;
            stream.write_all(&MAGIC)?;
            stream.write_all(&job.to_le_bytes())?;
            read_u32(&mut stream)
        };
        prepare().map_err(failed)?;
        Ok(Self { peer, stream })
    }

    /// Fetches the peer's state before round `round`.
    pub fn fetch(mut self, round: u32) -> Result<Vec<u8>, StateError> {
        let peer = self.peer;
        let state = self.read_state(round).map_err(|source| StateError::Io { peer, source })?;
        if state.is_empty() { Err(StateError::TooLate { peer, round }) } else { Ok(state) }
    }

    fn read_state(&mut self, round: u32) -> io::Result<Vec<u8>> {
        self.stream.write_all(&round.to_le_bytes())?;
        let mut len = [0; 8];
        self.stream.read_exact(&mut len)?;
        let len = u64::from_le_bytes(len);
        if len > MAX_STATE_LEN_BYTES {
            let problem = format!("the state is {len} bytes long, expected at most {MAX_STATE_LEN_BYTES}");
            return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
        }
        let mut state = Vec::new();
        (&mut self.stream).take(len).read_to_end(&mut state)?;
        if state.len() as u64 == len { Ok(state) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

fn read_u32(stream: &mut TcpStream) -> io::Result<u32> {
    let mut bytes = [0; 4];
    stream.read_exact(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reception::MAX_UNGREETED;

    const JOB: u32 = 7;

    fn server() -> (StateServer, SocketAddrV4) {
        let server = StateServer::start("127.0.0.1:0".parse().unwrap(), JOB).unwrap();
        let SocketAddr::V4(address) = server.address else { panic!("expected an IPv4 address") };
        (server, address)
    }

    #[test]
    fn no_state_is_copied_without_a_newcomer() {
        let (server, _) = server();
        server.publish(1, || unreachable!("no newcomer has requested the state"));
    }

    #[test]
    fn a_newcomer_gets_the_state_of_its_first_round() {
        let (server, address) = server();
        let newcomer = std::thread::spawn(move || {
            let peer = ReadyPeer::prepare(address, JOB).unwrap();
            peer.fetch(5)
        });
        for round in 3.. {
            if newcomer.is_finished() {
                break;
            }
            // A worker cannot pass the round in which the newcomer takes part.
            server.publish(round.min(5), || vec![round.min(5) as u8; 1000]);
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(newcomer.join().unwrap().unwrap(), vec![5; 1000]);
    }

    #[test]
    fn a_discarded_state_is_reported() {
        let (server, address) = server();
        let newcomer = std::thread::spawn(move || ReadyPeer::prepare(address, JOB).unwrap().fetch(2));
        for round in 3.. {
            if newcomer.is_finished() {
                break;
            }
            server.publish(round, || vec![1]);
            std::thread::sleep(Duration::from_millis(1));
        }
        let error = newcomer.join().unwrap().unwrap_err();
        assert!(matches!(error, StateError::TooLate { round: 2, .. }), "{error}");
    }

    #[test]
    fn a_member_of_another_group_is_not_served() {
        let (server, address) = server();
        let error = ReadyPeer::prepare(address, JOB + 1).unwrap_err();
        assert!(matches!(error, StateError::Io { .. }), "{error}");
        refused(&server, Refusal::OtherGroup, 1);
    }

    /// Waits until at least `at_least` connections were refused for `reason`.
    fn refused(server: &StateServer, reason: Refusal, at_least: u64) {
        while server.refusals().of(reason) < at_least {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Returns the number of threads of this process that are named `name`.
    fn threads(name: &str) -> usize {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
        names.filter(|found| found.trim() == name).count()
    }

    #[test]
    fn silent_connections_use_no_threads_and_do_not_block_a_newcomer() {
        let (server, address) = server();
        let silent: Vec<_> = (0..300).map(|_| TcpStream::connect(address).unwrap()).collect();
        refused(&server, Refusal::Displaced, 300 - MAX_UNGREETED as u64);
        // Other tests of this file may run at the same time and have a few such threads as well.
        assert!(threads("iswitch-newcome") < 10, "{} threads", threads("iswitch-newcome"));
        let newcomer = std::thread::spawn(move || ReadyPeer::prepare(address, JOB).unwrap().fetch(5));
        while !newcomer.is_finished() {
            server.publish(5, || vec![5; 10]);
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(newcomer.join().unwrap().unwrap(), [5; 10]);
        drop(silent);
    }

    #[test]
    fn the_number_of_newcomers_is_bounded() {
        let (server, address) = server();
        let greet = || {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(&MAGIC).unwrap();
            stream.write_all(&JOB.to_le_bytes()).unwrap();
            stream
        };
        let newcomers: Vec<_> = (0..MAX_NEWCOMERS + 3).map(|_| greet()).collect();
        refused(&server, Refusal::Full, 3);
        assert_eq!(server.shared.lock().newcomers, MAX_NEWCOMERS);
        drop(newcomers);
    }
}
