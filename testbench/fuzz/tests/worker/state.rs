//! Fuzz targets: the transfer of the learner's state from one worker to another, with an arbitrary peer.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpListener, TcpStream};
use std::panic::AssertUnwindSafe;
use std::sync::mpsc;
use std::time::Duration;

use iswitch::worker::state::{ReadyPeer, StateError, StateServer};
use iswitch_protocol::Round;

const JOB: u32 = 7;
const ROUND: u32 = 3;
const STATE_LEN_BYTES: usize = 100;
/// Time within which a side that has received everything must end the transfer.
const PATIENCE: Duration = Duration::from_secs(20);

/// Loopback addresses used in turn, so that closed connections, which keep their port for a while, do not exhaust the
/// ports.
struct Addresses(u8);

impl Addresses {
    fn next(&mut self, port: u16) -> SocketAddrV4 {
        self.0 = self.0 % 250 + 1;
        SocketAddrV4::new(Ipv4Addr::new(127, 0, 0, self.0), port)
    }
}

/// Returns the rounds that a worker reaches while a newcomer waits: first a fixed one, then the requested round and all
/// later ones.
fn published_rounds(hello: &[u8]) -> impl Iterator<Item = u32> {
    let wanted = hello.get(12..16).and_then(|bytes| bytes.try_into().ok()).map_or(ROUND, u32::from_le_bytes);
    let from = Round::new(wanted);
    std::iter::once(ROUND).chain((0..).map(move |distance| from.plus(distance).get()))
}

/// A newcomer gets an exact copy of the state or nothing, whatever it sends.
#[test]
fn server() {
    let anywhere = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
    let server = AssertUnwindSafe(StateServer::start(anywhere, JOB).expect("a port must be free"));
    let mut addresses = Addresses(0);
    bolero::check!().with_iterations(20).for_each(|hello: &[u8]| {
        let mut stream =
            TcpStream::connect(addresses.next(server.address().port())).expect("the server must listen");
        stream.set_read_timeout(Some(Duration::from_millis(1))).expect("the socket must be usable");
        // The write may fail, because the server may already have closed the connection.
        let _ = stream.write_all(hello).and_then(|()| stream.shutdown(Shutdown::Write));
        let mut answer = Vec::new();
        let begun = std::time::Instant::now();
        let mut rounds = published_rounds(hello);
        loop {
            server.publish(rounds.next().expect("there must be another round"), || vec![5; STATE_LEN_BYTES]);
            match stream.read_to_end(&mut answer) {
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    assert!(begun.elapsed() < PATIENCE, "the server must close the connection: {hello:?}");
                }
                _ => break,
            }
        }
        // The answer is the ready round, then a length and as many bytes. If the newcomer is too late, zeros replace
        // the length.
        let answer = answer.get(4..).unwrap_or_default();
        let whole = [&(STATE_LEN_BYTES as u64).to_le_bytes()[..], &[5; STATE_LEN_BYTES]].concat();
        assert!(whole.starts_with(answer) || answer == [0; 8], "{answer:?}");
    });
}

/// A newcomer gets the state that a peer sent or an error, whatever the peer sends.
#[test]
fn newcomer() {
    let listener =
        TcpListener::bind(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0)).expect("a port must be free");
    let port = listener.local_addr().expect("a bound socket must have an address").port();
    let (say, said) = mpsc::channel::<Vec<u8>>();
    std::thread::spawn(move || {
        for words in said {
            let (mut stream, _) = listener.accept().expect("the newcomer must connect");
            let _ = stream.write_all(&words).and_then(|()| stream.shutdown(Shutdown::Write));
            // Unread bytes would reset the connection.
            let _ = stream.read_to_end(&mut Vec::new());
        }
    });
    let mut addresses = Addresses(0);
    bolero::check!().with_iterations(300).for_each(|words: &[u8]| {
        say.send(words.to_vec()).expect("the peer must be running");
        let fetched = ReadyPeer::prepare(addresses.next(port), JOB).and_then(|peer| peer.fetch(ROUND));
        let announced = words.get(4..12).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
        match fetched {
            Ok(state) => {
                assert_eq!(Some(state.len() as u64), announced);
                assert!(words[12..].starts_with(&state));
            }
            Err(StateError::TooLate { .. }) => assert_eq!(announced, Some(0)),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    });
}
