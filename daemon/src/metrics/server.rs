//! A listener for Prometheus: HTTP/1.1, one page, no more than a scrape needs.
//!
//! One thread beside the packet path waits for all clients at once, so that a slow one delays nobody. Each has
//! [`CLIENT_TIMEOUT`] to ask and to read the answer, and its connection ends with that.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use iswitch_socket::PollSet;

use super::render;
use crate::runtime::Handle;
use crate::side_thread::SideThread;

/// How long a client may take.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(5);
/// Clients at the same time; more wait in the kernel's queue.
const CLIENTS_MAX: usize = 32;
/// Reads or writes before it is the turn of the other clients.
const STEPS_MAX: usize = 16;
/// Longest head of a request.
const HEAD_LEN_MAX_BYTES: usize = 8192;
/// Header fields of a request, at most.
const FIELDS_MAX: usize = 64;

const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
const WELCOME: &str = "iswitchd: metrics for Prometheus are at /metrics\n";

/// Takes connections, but does not yet answer.
#[derive(Debug)]
pub struct MetricsListener {
    listener: TcpListener,
}

impl MetricsListener {
    /// Listens at `address`.
    ///
    /// # Errors
    /// If the address is in use or not this machine's.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// If the system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers with the state of the loop of `handle`.
    ///
    /// # Errors
    /// If there can be no further thread.
    pub fn serve(self, handle: Handle) -> io::Result<MetricsServer> {
        let thread = SideThread::spawn("metrics", move |stopped| serve(&self.listener, stopped, &handle))?;
        Ok(MetricsServer { _thread: thread })
    }
}

/// A listener that answers. Dropping it ends its thread.
#[derive(Debug)]
pub struct MetricsServer {
    _thread: SideThread,
}

/// A connection.
struct Client {
    stream: TcpStream,
    deadline: Instant,
    turn: Turn,
}

/// Whose turn it is.
enum Turn {
    /// The client's: what of its request there is.
    Request(Vec<u8>),
    /// Ours: what is left of the answer.
    Answer(Vec<u8>),
    /// The client's to close. What it still sends is read and forgotten: with that unread, closing would take back the
    /// answer (RFC 9112, section 9.6).
    End,
}

fn serve(listener: &TcpListener, stopped: &UnixStream, handle: &Handle) {
    let mut poll = PollSet::new();
    let mut clients: Vec<Client> = Vec::new();
    loop {
        poll.clear();
        let stopping = poll.push(stopped.as_fd());
        let places: Vec<_> = clients.iter().map(|client| client.wait_in(&mut poll)).collect();
        let connecting = (clients.len() < CLIENTS_MAX).then(|| poll.push(listener.as_fd()));
        let now = Instant::now();
        let timeout = clients.iter().map(|client| client.deadline.saturating_duration_since(now)).min();
        if let Err(error) = poll.wait(timeout) {
            tracing::error!(%error, "the metrics listener has ended");
            return;
        }
        if poll.is_ready(stopping) {
            return;
        }
        let now = Instant::now();
        let mut places = places.into_iter();
        clients.retain_mut(|client| {
            let is_ready = places.next().is_some_and(|place| poll.is_ready(place));
            (!is_ready || client.go_on(handle)) && now < client.deadline
        });
        if connecting.is_some_and(|place| poll.is_ready(place))
            && let Ok((stream, _)) = listener.accept()
        {
            clients.extend(Client::new(stream));
        }
    }
}

impl Client {
    fn new(stream: TcpStream) -> Option<Self> {
        stream.set_nonblocking(true).ok()?;
        Some(Self { stream, deadline: Instant::now() + CLIENT_TIMEOUT, turn: Turn::Request(Vec::new()) })
    }

    fn wait_in(&self, poll: &mut PollSet) -> usize {
        let writes = matches!(self.turn, Turn::Answer(_));
        poll.push_for(self.stream.as_fd(), !writes, writes)
    }

    /// Reads and writes what there is; `false` once there is nothing more to do.
    fn go_on(&mut self, handle: &Handle) -> bool {
        for _ in 0..STEPS_MAX {
            match self.step(handle) {
                Ok(true) => {}
                Ok(false) => return false,
                Err(error) => {
                    return matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted);
                }
            }
        }
        true
    }

    fn step(&mut self, handle: &Handle) -> io::Result<bool> {
        if let Turn::Answer(left) = &mut self.turn {
            let len = self.stream.write(left)?;
            left.drain(..len);
            if left.is_empty() {
                self.stream.shutdown(Shutdown::Write)?;
                self.turn = Turn::End;
            }
            return Ok(true);
        }
        let mut buffer = [0; 1024];
        let len = self.stream.read(&mut buffer)?;
        if let Turn::Request(request) = &mut self.turn {
            request.extend_from_slice(&buffer[..len]);
            if let Some(answer) = answer_to(request, handle) {
                self.turn = Turn::Answer(answer);
            }
        }
        Ok(len > 0)
    }
}

/// The answer to a request, if that is complete or can be none.
fn answer_to(request: &[u8], handle: &Handle) -> Option<Vec<u8>> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut parsed = httparse::Request::new(&mut fields);
    match parsed.parse(request) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) if request.len() < HEAD_LEN_MAX_BYTES => return None,
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            return Some(answer(
                "431 Request Header Fields Too Large",
                "",
                "the request is too long\n",
                true,
            ));
        }
        Err(error) => return Some(answer("400 Bad Request", "", &format!("not HTTP: {error}\n"), true)),
    }
    let method = parsed.method.unwrap_or_default();
    let has_body = method != "HEAD";
    if !["GET", "HEAD"].contains(&method) {
        let text = format!("method is {method}, expected GET\n");
        return Some(answer("405 Method Not Allowed", "Allow: GET, HEAD\r\n", &text, true));
    }
    let path = parsed.path.unwrap_or_default().split('?').next().unwrap_or_default();
    Some(match path {
        "/metrics" => match handle.snapshot() {
            Ok(snapshot) => answer("200 OK", "", &render(&snapshot), has_body),
            Err(error) => {
                let text = format!("the switch does not answer: {error}\n");
                answer("503 Service Unavailable", "", &text, has_body)
            }
        },
        "/" => answer("200 OK", "", WELCOME, has_body),
        _ => answer("404 Not Found", "", WELCOME, has_body),
    })
}

fn answer(status: &str, fields: &str, body: &str, has_body: bool) -> Vec<u8> {
    let len = body.len();
    let body = if has_body { body } else { "" };
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {TEXT}\r\nContent-Length: {len}\r\n{fields}Connection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::Runtime;
    use crate::switch::Config;

    /// Runs a loop without ports while `test` talks to its listener.
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
    fn the_page_is_served() {
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
    fn what_is_no_request_for_it_is_named() {
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
    fn silent_clients_delay_nobody() {
        with_server(|address| {
            let silent: Vec<_> = (0..CLIENTS_MAX - 1).map(|_| TcpStream::connect(address).unwrap()).collect();
            let mut half = TcpStream::connect(address).unwrap();
            half.write_all(b"GET /metr").unwrap();
            drop(half);
            let answer = ask(address, b"GET /metrics HTTP/1.1\r\n\r\n");
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"));
            drop(silent);
        });
    }
}
