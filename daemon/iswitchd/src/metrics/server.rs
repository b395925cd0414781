//! HTTP/1.1 listener for Prometheus. It implements only what a scrape needs and serves a single page.
//!
//! One thread outside the packet path multiplexes all clients, so that a slow client does not delay the others. If a
//! client does not send its request and read the answer within [`CLIENT_TIMEOUT`], its connection is closed. A new
//! client is always accepted: if there are too many clients, the address with the most connections loses its oldest
//! one. All clients that are waiting for the page receive the same page, and the thread serves other clients in the
//! meantime.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::TryRecvError;
use std::time::{Duration, Instant};

use iswitch_socket::PollSet;

use super::process::Process;
use super::render;
use crate::log;
use crate::side_thread::SideThread;
use iswitch_runtime::handle::{ANSWER_TIMEOUT, Handle, PendingSnapshot};

/// Time limit of a connection.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of simultaneous clients.
const CLIENTS_MAX: usize = 64;
/// Maximum number of connections to accept in one turn, before the clients that are already connected are served.
const ACCEPTS_MAX: usize = 32;
/// Maximum number of reads and writes for one client before the next client is served.
const STEPS_MAX: usize = 16;
/// Polling interval for the answer from the packet loop.
const ANSWER_POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Maximum length of the head of a request, in bytes.
const HEAD_LEN_MAX_BYTES: usize = 8192;
/// Maximum number of header fields in a request.
const FIELDS_MAX: usize = 64;

const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
const WELCOME: &str = "iswitchd: Prometheus metrics are served at /metrics\n";

/// A bound listener that does not answer yet.
#[derive(Debug)]
pub struct MetricsListener {
    listener: TcpListener,
    process: Option<Process>,
}

impl MetricsListener {
    /// Listens on `address`. Opens the files that describe this process, because they cannot be opened in the sandbox.
    ///
    /// # Errors
    /// Fails if the address is in use or does not belong to this machine.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let warn = |error: &io::Error| tracing::warn!(%error, "process metrics are unavailable");
        Ok(Self { listener, process: Process::open().inspect_err(warn).ok() })
    }

    /// Returns the address of the listener.
    ///
    /// # Errors
    /// Fails if the system does not report the address.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Starts the thread that answers with the state of the packet loop of `handle`.
    ///
    /// # Errors
    /// Fails if the thread cannot be started.
    pub fn serve(self, handle: Handle) -> io::Result<MetricsServer> {
        let Self { listener, process } = self;
        let thread = SideThread::spawn("metrics", move |stopped| serve(&listener, stopped, handle, process))?;
        Ok(MetricsServer { _thread: thread })
    }
}

/// A listener that answers clients. Dropping it ends its thread.
#[derive(Debug)]
pub struct MetricsServer {
    _thread: SideThread,
}

/// A connection of a client.
struct Client {
    stream: TcpStream,
    address: IpAddr,
    deadline: Instant,
    turn: Turn,
}

/// State of a connection.
enum Turn {
    /// The client is sending its request; holds the part received so far.
    Request(Vec<u8>),
    /// The connection waits for the snapshot of the packet loop. `has_body` is false for a HEAD request.
    Page { has_body: bool },
    /// The answer is being written.
    Answer(Answer),
    /// The answer has been written, and the server waits until the client closes the connection. Further input is read
    /// and discarded, because closing with unread input could destroy the answer in transit (RFC 9112, section 9.6).
    End,
}

/// An answer, and the number of its bytes already written.
struct Answer {
    head: Vec<u8>,
    body: Arc<str>,
    written_bytes: usize,
}

impl Answer {
    /// Returns the bytes to write next; the slice is empty once all are written.
    fn rest(&self) -> &[u8] {
        match self.head.get(self.written_bytes..) {
            Some(head) if !head.is_empty() => head,
            _ => &self.body.as_bytes()[self.written_bytes - self.head.len()..],
        }
    }
}

/// Pending request to the packet loop.
struct PendingRequest {
    answer: PendingSnapshot,
    deadline: Instant,
}

/// All clients, and the request that is pending for them.
struct Clients {
    /// Clients, the oldest first.
    all: Vec<Client>,
    handle: Handle,
    process: Option<Process>,
    asked: Option<PendingRequest>,
}

fn serve(listener: &TcpListener, stopped: &UnixStream, handle: Handle, process: Option<Process>) {
    let mut poll = PollSet::new();
    let mut clients = Clients { all: Vec::new(), handle, process, asked: None };
    loop {
        poll.clear();
        let stopping = poll.push(stopped.as_fd());
        let connecting = poll.push(listener.as_fd());
        let places: Vec<_> = clients.all.iter().map(|client| client.wait_in(&mut poll)).collect();
        if let Err(error) = poll.wait(clients.timeout(Instant::now())) {
            tracing::error!(%error, "the metrics server has stopped");
            return;
        }
        if poll.is_ready(stopping) {
            return;
        }
        let now = Instant::now();
        let mut places = places.into_iter();
        clients.all.retain_mut(|client| {
            let is_ready = places.next().flatten().is_some_and(|place| poll.is_ready(place));
            (!is_ready || client.go_on()) && now < client.deadline
        });
        if poll.is_ready(connecting) {
            clients.accept(listener);
        }
        clients.answer(now);
    }
}

impl Clients {
    /// Returns the time until the next deadline or the next poll of the packet loop.
    fn timeout(&self, now: Instant) -> Option<Duration> {
        let deadlines = self.all.iter().map(|client| client.deadline.saturating_duration_since(now));
        deadlines.chain(self.asked.as_ref().map(|_| ANSWER_POLL_INTERVAL)).min()
    }

    fn accept(&mut self, listener: &TcpListener) {
        for _ in 0..ACCEPTS_MAX {
            let Ok((stream, address)) = listener.accept() else { return };
            // The client has usually sent its request by now.
            let client = Client::new(stream, address.ip());
            let Some(client) = client.and_then(|mut client| client.go_on().then_some(client)) else {
                continue;
            };
            if self.all.len() == CLIENTS_MAX {
                let addresses: Vec<_> = self.all.iter().map(|client| client.address).collect();
                self.all.remove(one_too_many(&addresses));
            }
            self.all.push(client);
        }
    }

    /// Requests a snapshot for the waiting clients, and answers them once it has arrived.
    fn answer(&mut self, now: Instant) {
        if self.asked.is_none() && self.all.iter().any(Client::waits_for_page) {
            match self.handle.ask_snapshot() {
                Ok(answer) => self.asked = Some(PendingRequest { answer, deadline: now + ANSWER_TIMEOUT }),
                Err(error) => return self.refuse(&error.to_string()),
            }
        }
        let Some(PendingRequest { answer, deadline }) = &mut self.asked else { return };
        match answer.try_recv() {
            Ok(snapshot) => {
                let usage = self.process.as_ref().and_then(|process| process.usage().ok());
                let page: Arc<str> = render(&snapshot, log::dropped_lines(), usage.as_ref()).into();
                self.hand_out("200 OK", &page);
            }
            Err(TryRecvError::Disconnected) => self.refuse("the packet loop has stopped"),
            Err(TryRecvError::Empty) if *deadline <= now => self.refuse("timed out"),
            Err(TryRecvError::Empty) => {}
        }
    }

    fn refuse(&mut self, why: &str) {
        let text = format!("the switch does not answer: {why}\n");
        self.hand_out("503 Service Unavailable", &text.into());
    }

    /// Starts sending the page to all clients that wait for it.
    fn hand_out(&mut self, status: &str, page: &Arc<str>) {
        self.asked = None;
        self.all.retain_mut(|client| {
            let Turn::Page { has_body } = client.turn else { return true };
            client.turn = Turn::Answer(answer(status, "", page, has_body));
            client.go_on()
        });
    }
}

/// Returns the position of the connection to close: the oldest connection of the address that has the most connections.
fn one_too_many(addresses: &[IpAddr]) -> usize {
    let count = |at: &usize| addresses.iter().filter(|address| **address == addresses[*at]).count();
    // Reversed, because `max_by_key()` returns the last of several equal elements.
    (0..addresses.len()).rev().max_by_key(count).unwrap_or(0)
}

impl Client {
    fn new(stream: TcpStream, address: IpAddr) -> Option<Self> {
        stream.set_nonblocking(true).ok()?;
        let deadline = Instant::now() + CLIENT_TIMEOUT;
        Some(Self { stream, address, deadline, turn: Turn::Request(Vec::new()) })
    }

    fn waits_for_page(&self) -> bool {
        matches!(self.turn, Turn::Page { .. })
    }

    /// Adds the connection to the poll set and returns its position in the set. A connection that waits for the page is
    /// not added; the result is then `None`.
    fn wait_in(&self, poll: &mut PollSet) -> Option<usize> {
        let writes = matches!(self.turn, Turn::Answer(_));
        (!self.waits_for_page()).then(|| poll.push_for(self.stream.as_fd(), !writes, writes))
    }

    /// Reads and writes as much as possible. Returns `false` once the connection is finished.
    fn go_on(&mut self) -> bool {
        for _ in 0..STEPS_MAX {
            if self.waits_for_page() {
                return true;
            }
            match self.step() {
                Ok(true) => {}
                Ok(false) => return false,
                Err(error) => {
                    return matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted);
                }
            }
        }
        true
    }

    fn step(&mut self) -> io::Result<bool> {
        if let Turn::Answer(answer) = &mut self.turn {
            answer.written_bytes += self.stream.write(answer.rest())?;
            if answer.rest().is_empty() {
                self.stream.shutdown(Shutdown::Write)?;
                self.turn = Turn::End;
            }
            return Ok(true);
        }
        let mut buffer = [0; 1024];
        let len = self.stream.read(&mut buffer)?;
        if let Turn::Request(request) = &mut self.turn {
            request.extend_from_slice(&buffer[..len]);
            if let Some(turn) = turn_after(request) {
                self.turn = turn;
            }
        }
        Ok(len > 0)
    }
}

/// Parses a request and returns the next state of its connection, or `None` if the request is incomplete.
fn turn_after(request: &[u8]) -> Option<Turn> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut parsed = httparse::Request::new(&mut fields);
    let refuse = |status, fields, text: &str| Some(Turn::Answer(answer(status, fields, &text.into(), true)));
    match parsed.parse(request) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) if request.len() < HEAD_LEN_MAX_BYTES => return None,
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            return refuse("431 Request Header Fields Too Large", "", "the request is too long\n");
        }
        Err(error) => return refuse("400 Bad Request", "", &format!("invalid HTTP request: {error}\n")),
    }
    let method = parsed.method.unwrap_or_default();
    let has_body = method != "HEAD";
    if !["GET", "HEAD"].contains(&method) {
        let text = format!("method is {method}, expected GET or HEAD\n");
        return refuse("405 Method Not Allowed", "Allow: GET, HEAD\r\n", &text);
    }
    let path = parsed.path.unwrap_or_default().split('?').next().unwrap_or_default();
    Some(match path {
        "/metrics" => Turn::Page { has_body },
        "/" => Turn::Answer(answer("200 OK", "", &WELCOME.into(), has_body)),
        _ => Turn::Answer(answer("404 Not Found", "", &WELCOME.into(), has_body)),
    })
}

fn answer(status: &str, fields: &str, body: &Arc<str>, has_body: bool) -> Answer {
    let len = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {TEXT}\r\nContent-Length: {len}\r\n{fields}Connection: close\r\n\r\n"
    );
    let body = if has_body { body.clone() } else { "".into() };
    Answer { head: head.into_bytes(), body, written_bytes: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iswitch_runtime::runtime::Runtime;
    use iswitch_switch::Config;

    /// Runs a packet loop without ports while `test` talks to its metrics listener.
    fn with_server(test: impl FnOnce(SocketAddr)) {
        let (runtime, handle) = Runtime::new(Config::default(), Vec::new(), Duration::ZERO).unwrap();
        let thread = std::thread::spawn(move || runtime.run().unwrap());
        let listener = MetricsListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = listener.address().unwrap();
        let server = listener.serve(handle.clone()).unwrap();
        test(address);
        drop(server);
        assert!(TcpStream::connect(address).is_err());
        handle.stop();
        thread.join().unwrap();
    }

    fn ask(address: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn the_metrics_page_is_served() {
        with_server(|address| {
            let answer = ask(address, b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains(TEXT), "{head}");
            assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
            assert!(body.contains("iswitch_jobs 0\n"));
            let head = ask(address, b"HEAD /metrics?x=1 HTTP/1.0\r\n\r\n");
            assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"), "{head}");
        });
    }

    #[test]
    fn invalid_requests_get_the_matching_http_status() {
        with_server(|address| {
            let long = [b"GET / HTTP/1.1\r\nA: ".to_vec(), vec![b'x'; HEAD_LEN_MAX_BYTES]].concat();
            for (request, status) in [
                (&b"GET / HTTP/1.1\r\n\r\n"[..], "200 OK"),
                (b"GET /other HTTP/1.1\r\n\r\n", "404 Not Found"),
                (b"DELETE /metrics HTTP/1.1\r\n\r\n", "405 Method Not Allowed"),
                (b"\x16\x03\x01\x00\x00\r\n\r\n", "400 Bad Request"),
                (&long, "431 Request Header Fields Too Large"),
            ] {
                let answer = ask(address, request);
                assert!(answer.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{answer}");
            }
        });
    }

    #[test]
    fn any_number_of_slow_clients_does_not_delay_a_fast_one() {
        with_server(|address| {
            let silent = |_| {
                let mut stream = TcpStream::connect(address).unwrap();
                stream.write_all(b"GET /metr").unwrap();
                stream
            };
            let mut silent: Vec<_> = (0..4 * CLIENTS_MAX).map(silent).collect();
            let answer = ask(address, b"GET /metrics HTTP/1.1\r\n\r\n");
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"));
            // The timeouts have not expired: the latest of the slow clients is still served.
            let mut latest = silent.pop().unwrap();
            latest.write_all(b"ics HTTP/1.1\r\n\r\n").unwrap();
            let mut answer = String::new();
            latest.read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"));
        });
    }

    #[test]
    fn stalled_and_disconnected_clients_delay_no_other_client() {
        with_server(|address| {
            let asking = |_| {
                let mut stream = TcpStream::connect(address).unwrap();
                stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
                stream
            };
            let _deaf: Vec<_> = (0..CLIENTS_MAX).map(asking).collect();
            // These clients disconnect before they are answered.
            (0..CLIENTS_MAX).map(asking).for_each(drop);
            let answer = ask(address, b"GET /metrics HTTP/1.1\r\n\r\n");
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"));
        });
    }

    #[test]
    fn the_oldest_connection_of_the_busiest_address_is_evicted() {
        let addresses = |hosts: &[u8]| -> Vec<IpAddr> {
            hosts.iter().map(|host| IpAddr::from([10, 9, 0, *host])).collect()
        };
        for (hosts, expected) in [(&[1][..], 0), (&[1, 2, 2, 3], 1), (&[1, 2, 1, 2], 0), (&[3, 2, 2, 2], 1)] {
            assert_eq!(one_too_many(&addresses(hosts)), expected, "{hosts:?}");
        }
    }
}
