//! Server on a Unix socket or on standard input. Each request is a line of text, and the server answers it with another
//! line.

use std::io::{BufRead, BufReader, ErrorKind, Read as _, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail};

use crate::signals;

/// Interval between checks of the stop flag.
const POLL: Duration = Duration::from_millis(50);

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
/// Fails if the socket cannot be created, if a connection cannot be accepted, or if the service does not accept the
/// single client or one of its lines cannot be read or answered.
pub fn serve(socket: Option<&Path>, name: &str, service: impl Service) -> anyhow::Result<()> {
    match socket {
        Some(socket) => serve_socket(socket, name, service),
        None => serve_standard_input(name, &service),
    }
}

fn serve_socket(socket: &Path, name: &str, service: impl Service) -> anyhow::Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    signals::stop_on_signal(&stop)?;
    signals::end_well_on_signal();
    let listener = listen(socket)?;
    eprintln!("iswitch: {name} for {} listening at {}", service.describe(), socket.display());
    let outcome = accept(&listener, &Arc::new(service), &stop);
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
        bail!("--socket {}: another process listens there; choose another path", path.display());
    }
    let is_socket = std::fs::symlink_metadata(path)
        .is_ok_and(|found| std::os::unix::fs::FileTypeExt::is_socket(&found.file_type()));
    if is_socket {
        std::fs::remove_file(path).with_context(|| format!("removing {}", path.display()))?;
    }
    let listener = UnixListener::bind(path).with_context(|| format!("--socket {}", path.display()))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

fn accept(listener: &UnixListener, service: &Arc<impl Service>, stop: &AtomicBool) -> anyhow::Result<()> {
    while !stop.load(Ordering::Relaxed) {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false)?;
                let service = Arc::clone(service);
                let answer = move || {
                    if let Err(error) = answer_all(service.as_ref(), BufReader::new(&stream), &stream) {
                        eprintln!(
                            "iswitch: a connection failed: {}",
                            iswitch_manual::describe(error.as_ref())
                        );
                    }
                };
                std::thread::Builder::new().name("connection".to_owned()).spawn(answer)?;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(POLL),
            Err(error) => return Err(error).context("accepting a connection"),
        }
    }
    Ok(())
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
            serde_json::json!({ "error": error }).to_string()
        };
        text.push('\n');
        writer.write_all(text.as_bytes())?;
        writer.flush()?;
    }
}
