//! Control socket: answers an operator's requests outside the packet path.
//!
//! A client connects, sends one line (a request such as `status`, or a command such as `halt 7`) and receives one line
//! of JSON. A separate thread serves clients one after the other, each within [`CLIENT_TIMEOUT`]; the packet loop only
//! takes a snapshot or carries out the command.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use iswitch_control::{CLIENT_TIMEOUT, Command, Request};
use iswitch_socket::PollSet;
use serde_json::{Value, json};

use crate::flight_file;
use crate::log;
use crate::reload::Reloader;
use crate::side_thread::SideThread;
use iswitch_runtime::runtime::Handle;
use iswitch_runtime::snapshot::Snapshot;
use iswitch_switch::{JobStatus, Order};

/// Maximum length of a request line, in bytes.
const REQUEST_LEN_MAX_BYTES: u64 = 64;
/// Time between two checks for remaining jobs while the switch drains.
const DRAIN_INTERVAL: Duration = Duration::from_millis(100);

/// Reason why the control socket cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum ControlSocketError {
    /// Another daemon is listening on the path.
    #[error(
        "control socket {} is in use by another iswitchd; set --control-socket to another path",
        .0.display()
    )]
    Live(PathBuf),
    /// The path exists and is not a socket.
    #[error(
        "control socket {} exists but is not a socket; remove the file, or set --control-socket to another path",
        .0.display()
    )]
    NotASocket(PathBuf),
    /// A system call failed.
    #[error("cannot use control socket {}: {source}", path.display())]
    System {
        /// Path of the socket.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
}

/// Objects that the clients of the control socket query and control.
#[derive(Clone, Debug)]
pub struct Controlled {
    /// The switch.
    pub handle: Handle,
    /// The configuration in force.
    pub reloader: Arc<Reloader>,
}

impl Controlled {
    /// Carries out a command. `client` describes the client that sent it.
    fn obey(&self, command: Command, client: &str) -> anyhow::Result<Value> {
        let outcome = match command {
            Command::Reload => {
                let changes = self.reloader.reload_and_log();
                changes.map(|changes| json!({ "changed": changes }))
            }
            Command::Drain => self.order(&Order::Drain),
            Command::Halt { job } => self.order(&Order::Halt { job }),
            Command::Resume { job } => self.order(&Order::Resume { job }),
            Command::Reset { job } => self.order(&Order::Reset { job }),
            Command::Remove { job } => self.order(&Order::Remove { job }),
            Command::Expel { job, member } => self.order(&Order::Expel { job, member }),
        };
        if let Err(error) = &outcome {
            let error = iswitch_manual::describe(error.as_ref());
            tracing::warn!(%command, client, error, "operator command refused");
        } else {
            tracing::info!(%command, client, "operator command carried out");
        }
        outcome
    }

    fn order(&self, order: &Order) -> anyhow::Result<Value> {
        self.handle.order(|_, _| order.clone())?;
        Ok(json!({ "done": true }))
    }
}

fn answer_of(request: Request, controlled: &Controlled) -> io::Result<Value> {
    let handle = &controlled.handle;
    Ok(match request {
        Request::Config => json!(controlled.reloader.in_force()),
        Request::Status => status(&*handle.snapshot()?),
        Request::Counters => {
            let snapshot = handle.snapshot()?;
            let ports = snapshot.ports.iter().map(|port| (port.name.clone(), json!(port.counters)));
            let ports: serde_json::Map<_, _> = ports.collect();
            let log = json!({ "dropped_lines": log::dropped_lines() });
            let mut all =
                json!({ "traffic": snapshot.traffic, "drops": snapshot.drops, "ports": ports, "log": log });
            if let Some(card) = &snapshot.card {
                all["card"] = json!(card);
            }
            all
        }
        Request::Jobs => json!(handle.snapshot()?.jobs),
        Request::Snapshot => json!(*handle.snapshot()?),
        Request::Flight => {
            let flights = handle.flights()?;
            json!(flights.iter().flat_map(|flight| flight_file::lines("request", flight)).collect::<Vec<_>>())
        }
    })
}

fn status(snapshot: &Snapshot) -> Value {
    let ports = snapshot.ports.iter().map(|port| {
        json!({
            "name": port.name,
            "mode": port.mode,
            "recv_buffer_bytes": port.recv_buffer_bytes,
            "received_datagrams": port.counters.get("received_datagrams"),
            "sent_datagrams": port.counters.get("sent_datagrams"),
            "receive_buffer_drops": port.counters.get("receive_buffer_drops"),
            "send_lost": port.counters.get("send_full") + port.counters.get("send_errors"),
        })
    });
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "pid": std::process::id(),
        "boot": format!("{:016x}", snapshot.boot),
        "uptime_ms": snapshot.uptime_ms,
        "jobs": snapshot.jobs.len(),
        "members": snapshot.jobs.iter().map(|job| job.members.len()).sum::<usize>(),
        "results": snapshot.traffic.get("results"),
        "dropped": snapshot.drops.total(),
        "ports": ports.collect::<Vec<_>>(),
        "limits": snapshot.limits,
        "parents": snapshot.jobs.iter().filter_map(parent).collect::<Vec<_>>(),
        "waiting": snapshot.jobs.iter().flat_map(waiting).collect::<Vec<_>>(),
    })
}

/// Returns the state of the parent of a job, even while the switch is still trying to join the parent. Returns `None`
/// if the switch has no parent.
fn parent(job: &JobStatus) -> Option<Value> {
    let silent_ms = job.parent_silent_ms?;
    Some(json!({
        "job": job.job,
        "address": job.parent,
        "silent_ms": silent_ms,
        "lost": job.parent_lost,
        "refusal": job.parent_refusal,
    }))
}

/// Returns the members that the oldest unfinished round of a job waits for.
fn waiting(job: &JobStatus) -> impl Iterator<Item = Value> {
    let round = job.waiting.iter();
    let members = round.flat_map(|round| round.members.iter().map(move |member| (round, member)));
    members.map(|(round, member)| {
        json!({
            "job": job.job,
            "name": job.name,
            "round": round.round,
            "member": member.member,
            "rank": member.rank,
            "host": member.host,
            "address": member.address,
            "waited_ms": round.waited_ms,
            "missing_segments": member.missing_segments,
            "segments": round.segments,
        })
    })
}

/// Socket file. Dropping this value removes the file, unless the monitor has taken over the removal.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    is_entrusted: bool,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if !self.is_entrusted
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove the control socket");
        }
    }
}

/// A bound control socket that does not answer yet.
#[derive(Debug)]
pub struct ControlListener {
    listener: UnixListener,
    file: SocketFile,
}

impl ControlListener {
    /// Listens on `path`. Replaces a socket file that a dead daemon left behind.
    pub fn bind(path: &Path) -> Result<Self, ControlSocketError> {
        let system = |source| ControlSocketError::System { path: path.to_owned(), source };
        remove_stale(path)?;
        let listener = UnixListener::bind(path).map_err(system)?;
        let file = SocketFile { path: path.to_owned(), is_entrusted: false };
        // Only the owner may read counters and addresses.
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(system)?;
        listener.set_nonblocking(true).map_err(system)?;
        Ok(Self { listener, file })
    }

    /// Leaves the removal of the file to the monitor.
    pub fn entrust_file(&mut self) {
        self.file.is_entrusted = true;
    }

    /// Starts the thread that answers requests and carries out commands.
    pub fn serve(self, controlled: Controlled) -> io::Result<ControlSocket> {
        let Self { listener, file } = self;
        let thread = SideThread::spawn("control", move |stopped| serve(&listener, stopped, &controlled))?;
        Ok(ControlSocket { _thread: thread, _file: file })
    }
}

/// A control socket that answers clients. Dropping it ends its thread, then removes its file.
#[derive(Debug)]
pub struct ControlSocket {
    // Drop order: the thread must end before the file is removed.
    _thread: SideThread,
    _file: SocketFile,
}

/// Removes the socket file of a daemon that has died. The daemon counts as dead if connections to the socket are
/// refused.
pub(crate) fn remove_stale(path: &Path) -> Result<(), ControlSocketError> {
    let system = |source| ControlSocketError::System { path: path.to_owned(), source };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(system(error)),
        Ok(file) if !file.file_type().is_socket() => {
            return Err(ControlSocketError::NotASocket(path.to_owned()));
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(system)
        }
        Err(error) => Err(system(error)),
        Ok(_) => Err(ControlSocketError::Live(path.to_owned())),
    }
}

fn serve(listener: &UnixListener, stopped: &UnixStream, controlled: &Controlled) {
    let mut poll = PollSet::new();
    let mut is_draining = false;
    loop {
        if is_draining && !controlled.handle.may_have_jobs() {
            tracing::info!("stopping: no job is left");
            controlled.handle.stop();
            is_draining = false;
        }
        poll.clear();
        let connecting = poll.push(listener.as_fd());
        let stopping = poll.push(stopped.as_fd());
        if let Err(error) = poll.wait(is_draining.then_some(DRAIN_INTERVAL)) {
            tracing::error!(%error, "the control socket thread has stopped");
            return;
        }
        if poll.is_ready(stopping) {
            return;
        }
        if poll.is_ready(connecting)
            && let Ok((client, _)) = listener.accept()
        {
            match answer(&client, controlled) {
                Ok(drains) => is_draining |= drains,
                Err(error) => tracing::debug!(%error, "cannot answer a client of the control socket"),
            }
        }
    }
}

/// Serves one client. Returns whether the client has made the switch drain.
fn answer(client: &UnixStream, controlled: &Controlled) -> io::Result<bool> {
    client.set_nonblocking(false)?;
    client.set_read_timeout(Some(CLIENT_TIMEOUT))?;
    client.set_write_timeout(Some(CLIENT_TIMEOUT))?;
    let mut line = String::new();
    BufReader::new(client.take(REQUEST_LEN_MAX_BYTES)).read_line(&mut line)?;
    let line = line.trim();
    let mut drains = false;
    let value = match (Request::parse(line), Command::parse(line)) {
        (Some(request), _) => answer_of(request, controlled)
            .unwrap_or_else(|error| json!({ "error": format!("the switch does not answer: {error}") })),
        (None, Ok(command)) => {
            let outcome = controlled.obey(command, &describe(client));
            drains = command == Command::Drain && outcome.is_ok();
            outcome.unwrap_or_else(|error| json!({ "error": iswitch_manual::describe(error.as_ref()) }))
        }
        (None, Err(error)) => json!({ "error": error }),
    };
    let mut client = client;
    client.write_all(format!("{value}\n").as_bytes())?;
    Ok(drains)
}

/// Describes the process at the other end of a connection, for the log.
fn describe(client: &UnixStream) -> String {
    match rustix::net::sockopt::socket_peercred(client) {
        Ok(peer) => format!("pid {}, user {}", peer.pid.as_raw_nonzero(), peer.uid.as_raw()),
        Err(_) => "unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use iswitch_control::ask;
    use iswitch_runtime::runtime::Runtime;
    use iswitch_switch::Config;

    fn controlled(handle: &Handle) -> Controlled {
        let arguments = ["iswitchd", "--udp", "127.0.0.1:0", "--no-sandbox"];
        let config = <crate::config::Cli as clap::Parser>::parse_from(arguments).resolve().unwrap();
        let source = crate::reload::Source::Files(crate::reload::Arguments::of_this_process().unwrap());
        let reloader = Arc::new(Reloader::new(config, source, handle.clone()));
        Controlled { handle: handle.clone(), reloader }
    }

    /// Runs a packet loop without ports while `test` talks to its control socket.
    fn with_socket(test: impl FnOnce(&Path, &Handle)) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let (runtime, handle) = Runtime::new(Config::default(), Vec::new(), Duration::ZERO).unwrap();
        let thread = std::thread::spawn(move || runtime.run().unwrap());
        let socket = ControlListener::bind(&path).unwrap().serve(controlled(&handle)).unwrap();
        test(&path, &handle);
        drop(socket);
        assert!(!path.exists());
        handle.stop();
        thread.join().unwrap();
    }

    #[test]
    fn control_requests_are_answered() {
        with_socket(|path, _| {
            let status = ask(path, Request::Status).unwrap();
            assert_eq!(status["version"], env!("CARGO_PKG_VERSION"));
            assert_eq!(status["jobs"], 0);
            let counters = ask(path, Request::Counters).unwrap();
            assert_eq!(counters["traffic"]["results"], 0);
            assert_eq!(counters["drops"]["unknown_member"], 0);
            assert_eq!(ask(path, Request::Jobs).unwrap(), json!([]));
            assert_eq!(ask(path, Request::Flight).unwrap(), json!([]));
            assert_eq!(ask(path, Request::Snapshot).unwrap()["traffic"]["results"], 0);
        });
    }

    #[test]
    fn invalid_and_silent_clients_do_not_block_the_control_socket() {
        with_socket(|path, _| {
            let silent = UnixStream::connect(path).unwrap();
            let mut long = UnixStream::connect(path).unwrap();
            // The daemon may answer and close the connection before everything is written.
            let _ = long.write_all(&vec![b'x'; 100_000]);
            let mut odd = UnixStream::connect(path).unwrap();
            odd.write_all(b"reboot\n").unwrap();
            let mut answer = String::new();
            odd.read_to_string(&mut answer).unwrap();
            let expected = r#"{"error":"request is \"reboot\", expected status, counters, jobs,"#;
            assert!(answer.starts_with(expected), "{answer}");
            drop(silent);
        });
    }

    #[test]
    fn a_stale_socket_is_replaced_but_a_live_one_is_not() {
        with_socket(|path, handle| {
            let error = ControlListener::bind(path).unwrap_err();
            assert!(error.to_string().contains("in use by another iswitchd"), "{error}");
            let dead = path.with_file_name("dead");
            drop(UnixListener::bind(&dead).unwrap());
            assert!(dead.exists());
            let socket = ControlListener::bind(&dead).unwrap().serve(controlled(handle)).unwrap();
            ask(&dead, Request::Status).unwrap();
            drop(socket);
            let file = path.with_file_name("file");
            fs::write(&file, "precious").unwrap();
            let error = ControlListener::bind(&file).unwrap_err();
            assert!(error.to_string().contains("is not a socket"), "{error}");
        });
    }
}
