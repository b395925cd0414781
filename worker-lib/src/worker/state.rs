//! The learner's state from another worker: how one that joins late comes to the weights that the others have.
//!
//! Every worker that can give its state away listens on TCP, at the address and port number of its UDP socket,
//! which the switch tells to those who join. A newcomer first asks a peer to get ready; from then on the peer
//! keeps a copy of its state at each round boundary. Only then does the newcomer join, and fetch the copy of
//! the round that it starts with. In any other order both could wait for each other.
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
use std::io::{self, Read, Write};
use std::net::{SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// First bytes of a connection, with the version of this exchange at the end.
const MAGIC: [u8; 8] = *b"iswstat1";
/// Newcomers that are served at the same time.
const MAX_NEWCOMERS: usize = 4;
/// Copies that are kept: of the round under way, and of the one before.
const KEPT: usize = 2;
/// Largest state that is accepted, in bytes.
const MAX_STATE_LEN_BYTES: u64 = 1 << 34;
/// How long to wait for the other side: a peer may compute for long before it comes to a boundary.
const PATIENCE: Duration = Duration::from_secs(120);

/// Why the state could not be fetched.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The connection failed, or the peer was silent for two minutes.
    #[error("state of worker {peer}: {source}")]
    Io {
        /// The worker asked.
        peer: SocketAddrV4,
        /// What went wrong.
        source: io::Error,
    },
    /// The peer is already past that round.
    #[error("worker {peer} no longer has its state of round {round}")]
    TooLate {
        /// The worker asked.
        peer: SocketAddrV4,
        /// The round.
        round: u32,
    },
}

/// Gives the state of a learner to newcomers.
#[derive(Debug)]
pub struct StateServer {
    shared: Arc<Shared>,
    address: SocketAddr,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    job: u32,
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

    /// Waits until `find` has found something, the worker ends, or patience does.
    fn wait_for<T>(&self, mut find: impl FnMut(&Copies) -> Option<T>) -> io::Result<T> {
        let mut found = None;
        let waiting = |copies: &mut Copies| {
            found = find(copies);
            found.is_none() && !copies.closed
        };
        let outcome = self.changed.wait_timeout_while(self.lock(), PATIENCE, waiting);
        drop(outcome.unwrap_or_else(PoisonError::into_inner));
        found.ok_or_else(|| io::ErrorKind::TimedOut.into())
    }
}

impl StateServer {
    /// Begins to listen.
    ///
    /// # Errors
    /// If the address is taken, or there can be no thread.
    pub fn start(address: SocketAddrV4, job: u32) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared { job, ..Shared::default() });
        let serving = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("iswitch-state".into()).spawn(move || {
            for stream in listener.incoming() {
                if serving.lock().closed {
                    return;
                }
                let Ok(stream) = stream else { continue };
                if serving.lock().newcomers >= MAX_NEWCOMERS {
                    continue;
                }
                let shared = Arc::clone(&serving);
                // Who cannot be served asks another worker.
                let _ = std::thread::Builder::new().name("iswitch-newcomer".into()).spawn(move || {
                    if let Err(error) = serve(&shared, stream) {
                        tracing::debug!(%error, "a newcomer was not served");
                    }
                });
            }
        })?;
        Ok(Self { shared, address, thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Keeps a copy of the state before `round`, if a newcomer may need it.
    pub fn publish(&self, round: u32, state: impl FnOnce() -> Vec<u8>) {
        if self.shared.lock().newcomers == 0 {
            return;
        }
        let copy: Arc<[u8]> = state().into();
        let mut copies = self.shared.lock();
        // A round that is repeated begins with the same state.
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
        drop(TcpStream::connect_timeout(&self.address, Duration::from_secs(1)));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Counts a newcomer for as long as it is served.
struct Newcomer<'a>(&'a Shared);

impl<'a> Newcomer<'a> {
    fn new(shared: &'a Shared) -> Self {
        shared.lock().newcomers += 1;
        Self(shared)
    }
}

impl Drop for Newcomer<'_> {
    fn drop(&mut self) {
        let mut copies = self.0.lock();
        copies.newcomers -= 1;
        if copies.newcomers == 0 {
            copies.kept.clear();
        }
    }
}

fn serve(shared: &Shared, mut stream: TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut hello = [0; MAGIC.len()];
    stream.read_exact(&mut hello)?;
    if hello != MAGIC || read_u32(&mut stream)? != shared.job {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "not a worker of this job"));
    }
    let _newcomer = Newcomer::new(shared);
    let ready = shared.wait_for(|copies| copies.kept.back().map(|(round, _)| *round))?;
    stream.write_all(&ready.to_le_bytes())?;
    let wanted = read_u32(&mut stream)?;
    let copy = shared.wait_for(|copies| {
        let exact = copies.kept.iter().find(|(round, _)| *round == wanted);
        let is_over = || copies.kept.front().is_some_and(|(round, _)| is_past(*round, wanted));
        exact.map(|(_, copy)| Some(Arc::clone(copy))).or_else(|| is_over().then_some(None))
    })?;
    // Length zero: too late. A state is never empty.
    let copy = copy.unwrap_or_else(|| Arc::new([]));
    stream.write_all(&(copy.len() as u64).to_le_bytes())?;
    stream.write_all(&copy)
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
    /// Asks a worker to get ready, and waits until it is.
    pub fn prepare(peer: SocketAddrV4, job: u32) -> Result<Self, StateError> {
        let failed = |source| StateError::Io { peer, source };
        let mut stream = TcpStream::connect_timeout(&peer.into(), PATIENCE).map_err(failed)?;
        let mut prepare = || {
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            stream.write_all(&MAGIC)?;
            stream.write_all(&job.to_le_bytes())?;
            read_u32(&mut stream)
        };
        prepare().map_err(failed)?;
        Ok(Self { peer, stream })
    }

    /// The state before a round.
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
            let problem = format!("the state has {len} bytes, expected at most {MAX_STATE_LEN_BYTES}");
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

    const JOB: u32 = 7;

    fn server() -> (StateServer, SocketAddrV4) {
        let server = StateServer::start("127.0.0.1:0".parse().unwrap(), JOB).unwrap();
        let SocketAddr::V4(address) = server.address else { panic!("an IPv4 address was asked for") };
        (server, address)
    }

    #[test]
    fn nothing_is_copied_without_a_newcomer() {
        let (server, _) = server();
        server.publish(1, || unreachable!("nobody has asked"));
    }

    #[test]
    fn a_newcomer_gets_the_state_of_the_round_it_starts_with() {
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
    fn a_state_that_is_gone_is_named() {
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
    fn a_stranger_is_not_served() {
        let (_server, address) = server();
        let error = ReadyPeer::prepare(address, JOB + 1).unwrap_err();
        assert!(matches!(error, StateError::Io { .. }), "{error}");
    }
}
