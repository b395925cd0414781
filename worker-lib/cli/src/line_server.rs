//! Server on a Unix socket or on standard input. Each request is a line of text, and the server answers it with another
//! line.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, ErrorKind, Read as _, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::Args;

use crate::signals;

/// Interval between checks of the stop flag.
const POLL: Duration = Duration::from_millis(50);
/// Default maximum number of concurrent connections. Each connection has its own thread and state.
const CONNECTIONS_DEFAULT: u64 = 64;
/// Maximum value of `--connections-max`.
const CONNECTIONS_MAX: u64 = 4096;
/// Time that a refused connection stays open, so that a client that begins by writing a request can still read the
/// error.
const REFUSED_FOR: Duration = Duration::from_secs(1);
/// Maximum number of refused connections that stay open.
const REFUSED_MAX: usize = 64;

/// Limits of a service that listens on a socket.
#[derive(Args, Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of concurrent connections to --socket
    ///
    /// Any further client is sent a one-line error and disconnected.
    #[arg(
        long, value_name = "COUNT", requires = "socket", default_value_t = CONNECTIONS_DEFAULT,
        value_parser = clap::value_parser!(u64).range(1..=CONNECTIONS_MAX)
    )]
    connections_max: u64,
    /// Time after which an idle connection is closed, in seconds
    ///
    /// The client is sent a one-line error. By default, connections may stay idle indefinitely, because closing a
    /// connection discards its state.
    #[arg(
        long, value_name = "SECONDS", requires = "socket",
        value_parser = clap::value_parser!(u64).range(1..=u64::from(u32::MAX))
    )]
    idle_timeout: Option<u64>,
}

impl Limits {
    fn idle(self) -> Option<Duration> {
        self.idle_timeout.map(Duration::from_secs)
    }
}

/// Function that answers the lines of one connection. The lines and the answers do not include the line terminator.
pub type Answer = Box<dyn FnMut(&str) -> String>;

/// Service that answers requests, each of which is a line of text.
pub trait Service: Send + Sync + 'static {
    /// Returns the function that answers the lines of a new connection.
    fn connect(&self) -> anyhow::Result<Answer>;

    /// Maximum length of a line, in bytes.
    fn line_len_max_bytes(&self) -> usize;

    /// Returns a description of the service. The description appears in the startup message and in errors about lines
    /// that are too long.
    fn describe(&self) -> String;
}

/// Serves on a Unix socket until a signal requests a stop. Without a socket, serves a single client, which writes its
/// lines to standard input and reads the answers from standard output, until the input ends or the client closes the
/// output.
///
/// # Errors
/// Fails if the socket cannot be created or a connection cannot be accepted. Without a socket, fails if the service
/// does not accept the client, or if one of its lines cannot be read or answered.
pub fn serve(socket: Option<&Path>, limits: Limits, name: &str, service: impl Service) -> anyhow::Result<()> {
    match socket {
        Some(socket) => serve_socket(socket, limits, name, service),
        None => serve_standard_input(name, &service),
    }
}

fn serve_socket(socket: &Path, limits: Limits, name: &str, service: impl Service) -> anyhow::Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    signals::stop_on_signal(&stop)?;
    signals::end_well_on_signal();
    let listener = listen(socket)?;
    eprintln!("iswitch: {name} for {} listening at {}", service.describe(), socket.display());
    let outcome = accept(&listener, limits, &Arc::new(service), &stop);
    let _ = std::fs::remove_file(socket);
    outcome
}

fn serve_standard_input(name: &str, service: &impl Service) -> anyhow::Result<()> {
    eprintln!("iswitch: {name} for {} reading standard input", service.describe());
    let outcome = answer_all(service, std::io::stdin().lock(), std::io::stdout().lock());
    let is_closed = |error: &anyhow::Error| {
        error.downcast_ref::<std::io::Error>().is_some_and(|it| it.kind() == ErrorKind::BrokenPipe)
    };
    outcome.or_else(|error| if is_closed(&error) { Ok(()) } else { Err(error) })
}

/// Listens on a socket path. Replaces a stale socket file, on which no process listens.
fn listen(path: &Path) -> anyhow::Result<UnixListener> {
    if UnixStream::connect(path).is_ok() {
        bail!("--socket {}: another process is already listening there; choose another path", path.display());
    }
    let is_socket = std::fs::symlink_metadata(path)
        .is_ok_and(|found| std::os::unix::fs::FileTypeExt::is_socket(&found.file_type()));
    if is_socket {
        std::fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    let listener = UnixListener::bind(path).with_context(|| format!("--socket {}", path.display()))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

fn accept(
    listener: &UnixListener,
    limits: Limits,
    service: &Arc<impl Service>,
    stop: &AtomicBool,
) -> anyhow::Result<()> {
    // Each connection holds a clone while it is open.
    let open = Arc::new(());
    let mut refused: VecDeque<(Instant, UnixStream)> = VecDeque::new();
    while !stop.load(Ordering::Relaxed) {
        let is_over = |(since, _): &(Instant, UnixStream)| since.elapsed() >= REFUSED_FOR;
        while refused.len() > REFUSED_MAX || refused.front().is_some_and(is_over) {
            refused.pop_front();
        }
        match listener.accept() {
            Ok((stream, _)) if Arc::strong_count(&open) as u64 > limits.connections_max => {
                refuse(&stream, limits.connections_max);
                refused.push_back((Instant::now(), stream));
            }
            Ok((stream, _)) => start(stream, limits, service, Arc::clone(&open))?,
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(POLL),
            Err(error) => return Err(error).context("cannot accept a connection"),
        }
    }
    Ok(())
}

/// Informs a client that the maximum number of connections has been reached. Does not wait for the client.
fn refuse(mut stream: &UnixStream, limit: u64) {
    let error = format!(
        "the service has reached its maximum number of connections, {limit} (--connections-max); close a connection \
         and connect again"
    );
    let _ = stream.set_nonblocking(true).and_then(|()| stream.write_all(error_line(&error).as_bytes()));
    let _ = stream.shutdown(std::net::Shutdown::Write);
}

/// Starts the thread that answers requests from a connection. Drops `open` when the connection is closed.
fn start(
    stream: UnixStream,
    limits: Limits,
    service: &Arc<impl Service>,
    open: Arc<()>,
) -> anyhow::Result<()> {
    stream.set_nonblocking(false)?;
    // A client that does not read its answers also counts as idle.
    stream.set_read_timeout(limits.idle())?;
    stream.set_write_timeout(limits.idle())?;
    let service = Arc::clone(service);
    let answer = move || {
        if let Err(error) = answer_all(service.as_ref(), BufReader::new(&stream), &stream) {
            report_end(&stream, limits, &error);
        }
        drop(open);
    };
    std::thread::Builder::new().name("connection".to_owned()).spawn(answer)?;
    Ok(())
}

/// Reports the error that ended a connection to the client if it was idle, and otherwise to the operator.
fn report_end(mut stream: &UnixStream, limits: Limits, error: &anyhow::Error) {
    let is_idle = |it: &std::io::Error| matches!(it.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
    if let Some(seconds) = limits.idle_timeout.filter(|_| error.downcast_ref().is_some_and(is_idle)) {
        let error = format!("there was no request for {seconds} seconds, the limit set with --idle-timeout");
        let _ = stream.write_all(error_line(&error).as_bytes());
    } else {
        eprintln!("iswitch: a connection failed: {}", iswitch_manual::describe(error.as_ref()));
    }
}

/// Returns the line that reports an error to a client.
fn error_line(error: &str) -> String {
    format!("{}\n", serde_json::json!({ "error": error }))
}

/// Answers the lines of one client until the client closes its connection.
fn answer_all(
    service: &impl Service,
    mut reader: impl BufRead,
    mut writer: impl Write,
) -> anyhow::Result<()> {
    let limit = service.line_len_max_bytes();
    let mut answer = service.connect()?;
    let mut line = Vec::new();
    loop {
        line.clear();
        let len = (&mut reader).take(limit as u64 + 1).read_until(b'\n', &mut line)?;
        if len == 0 {
            return Ok(());
        }
        let is_whole = line.ends_with(b"\n") || len <= limit;
        let mut text = if is_whole {
            answer(String::from_utf8_lossy(&line).trim_end())
        } else {
            // Read the line to its end. Otherwise, the client, which is still writing, would see a broken connection
            // instead of the answer.
            reader.skip_until(b'\n')?;
            let of = service.describe();
            let error = format!("the request is longer than {limit} bytes, the maximum for {of}");
            error_line(&error).trim_end().to_owned()
        };
        text.push('\n');
        writer.write_all(text.as_bytes())?;
        writer.flush()?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Echo;

    impl Service for Echo {
        fn connect(&self) -> anyhow::Result<Answer> {
            let mut count = 0;
            Ok(Box::new(move |line| {
                count += 1;
                format!("{count} {line}")
            }))
        }

        fn line_len_max_bytes(&self) -> usize {
            100
        }

        fn describe(&self) -> String {
            "an echo".to_owned()
        }
    }

    struct Client(UnixStream, BufReader<UnixStream>);

    impl Client {
        fn new(path: &Path) -> Self {
            let stream = UnixStream::connect(path).unwrap();
            let reader = BufReader::new(stream.try_clone().unwrap());
            Self(stream, reader)
        }

        /// Reads a line; empty if the service has closed the connection.
        fn read(&mut self) -> String {
            let mut line = String::new();
            self.1.read_line(&mut line).unwrap();
            line.trim_end().to_owned()
        }

        fn ask(&mut self, line: &str) -> String {
            writeln!(self.0, "{line}").unwrap();
            self.read()
        }
    }

    /// Runs `check` with the path of a service's socket.
    fn with_service(limits: Limits, check: impl FnOnce(&Path)) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let (listener, stop) = (listen(&path).unwrap(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| accept(&listener, limits, &Arc::new(Echo), &stop).unwrap());
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(&path)));
            stop.store(true, Ordering::Relaxed);
            outcome.unwrap();
        });
    }

    #[test]
    fn a_client_above_the_limit_is_refused_until_another_client_leaves() {
        with_service(Limits { connections_max: 2, idle_timeout: None }, |path| {
            let (mut first, mut second) = (Client::new(path), Client::new(path));
            assert_eq!((first.ask("a"), second.ask("b")), ("1 a".to_owned(), "1 b".to_owned()));
            let mut third = Client::new(path);
            let error = third.ask("c");
            assert!(error.contains("number of connections, 2 (--connections-max)"), "{error}");
            assert_eq!(third.read(), "", "the connection is closed");
            assert_eq!(first.ask("d"), "2 d", "the others are not affected");
            drop(second);
            // The thread of the second client ends some time after its connection.
            while Client::new(path).ask("e") != "1 e" {}
        });
    }

    #[test]
    fn only_an_idle_client_is_disconnected() {
        with_service(Limits { connections_max: 2, idle_timeout: Some(1) }, |path| {
            let mut client = Client::new(path);
            assert_eq!(client.ask("a"), "1 a");
            let error = client.read();
            assert!(
                error.contains("no request for 1 seconds") && error.contains("--idle-timeout"),
                "{error}"
            );
            assert_eq!(client.read(), "");
        });
    }
}
