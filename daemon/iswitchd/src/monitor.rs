//! The monitor: a process that keeps the privileges that the daemon gives up, for the little that needs them.
//!
//! It is the privileged monitor of privilege separation (Provos, Friedl and Honeyman, "Preventing Privilege
//! Escalation", USENIX Security 2003) with next to nothing to do: it removes ingress rules and control socket
//! when the daemon has ended, however that ended; and when an interface was made anew it installs its rule again, or
//! attaches its XDP program and opens sockets that it hands over. It learns at its start, before the daemon has
//! received a packet, what that is; all that it accepts afterwards is the number of a rule or of an interface, and the
//! end of its input.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};

use crate::config::{LogFormat, LogLevel};
use crate::control_socket;
use crate::log;
use crate::port::{RuleKeeper, RuleScript, XdpKeeper, XdpScript};

/// The program's name for itself (`argv[0]`) when it is to be the monitor.
const MONITOR_NAME: &str = "iswitchd-monitor";
/// What the monitor prints once no signal can keep it from its work.
const READY: &str = "ready\n";
/// Longest description of a daemon, in bytes.
const ESTATE_LEN_MAX_BYTES: u64 = 1 << 20;

/// What a daemon leaves behind.
#[derive(Debug, Deserialize, Serialize)]
struct Estate {
    /// Requests are numbered: first the rules, then these.
    rules: Vec<RuleScript>,
    xdp: Vec<XdpScript>,
    control_socket: Option<PathBuf>,
    log_format: LogFormat,
    log_level: LogLevel,
}

/// A running monitor. Dropping it, once everything that it removes is closed, waits until it has done so.
#[derive(Debug)]
pub struct Monitor {
    child: Child,
    requests: UnixStream,
    rule_count: usize,
}

impl Monitor {
    /// Starts the monitor of a daemon with these ingress rules, these AF_XDP ports and this control socket.
    pub fn start(
        rules: Vec<RuleScript>,
        xdp: Vec<XdpScript>,
        control_socket: Option<&Path>,
        log_format: LogFormat,
        log_level: LogLevel,
    ) -> anyhow::Result<Self> {
        let control_socket = control_socket.map(std::path::absolute).transpose()?;
        let rule_count = rules.len();
        let estate = Estate { rules, xdp, control_socket, log_format, log_level };
        let (mut requests, input) = UnixStream::pair()?;
        let path = std::env::var_os("PATH").unwrap_or_default();
        // The running program, even if its file was replaced by another version.
        let mut child = Command::new("/proc/self/exe")
            .arg0(MONITOR_NAME)
            .env_clear()
            .env("PATH", path)
            .current_dir("/")
            .stdin(OwnedFd::from(input))
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the monitor")?;
        requests.write_all(format!("{}\n", serde_json::to_string(&estate)?).as_bytes())?;
        let mut answer = String::new();
        let output = child.stdout.take().context("the monitor has no output")?;
        BufReader::new(output).read_line(&mut answer)?;
        anyhow::ensure!(answer == READY, "the monitor did not start, see above");
        Ok(Self { child, requests, rule_count })
    }

    /// What prepares the interface of the AF_XDP port of that position again.
    pub fn xdp_keeper(&self, port: usize) -> io::Result<XdpKeeper> {
        let number = u8::try_from(self.rule_count + port).map_err(io::Error::other)?;
        XdpKeeper::new(self.requests.try_clone()?, number)
    }

    /// What installs the rule of that position again.
    pub fn keeper(&self, rule: usize) -> io::Result<RuleKeeper> {
        Ok(RuleKeeper::new(self.requests.try_clone()?, u8::try_from(rule).map_err(io::Error::other)?))
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        // Closing would not do: the keepers of rules hold it too.
        let _ = self.requests.shutdown(std::net::Shutdown::Both);
        match self.child.wait() {
            Ok(status) if status.success() => {}
            outcome => tracing::error!(?outcome, "the monitor did not end well: rules may be left behind"),
        }
    }
}

/// Whether this process was started by [`Monitor::start`].
pub fn is_called() -> bool {
    std::env::args_os().next().is_some_and(|name| name == MONITOR_NAME)
}

/// The monitor's program.
pub fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{MONITOR_NAME}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<()> {
    // Sent to the whole group by a terminal or a service manager: they are the daemon's to obey.
    for signal in [SIGHUP, SIGINT, SIGTERM, SIGUSR1] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    rustix::thread::set_name(c"iswitch-monitor")?;
    let mut input = BufReader::new(io::stdin().lock());
    let mut line = String::new();
    (&mut input).take(ESTATE_LEN_MAX_BYTES).read_line(&mut line)?;
    let estate: Estate = serde_json::from_str(&line).context("the description of the daemon")?;
    log::start(estate.log_format, estate.log_level);
    log::detach()?;
    io::stdout().write_all(READY.as_bytes())?;
    estate.serve(input);
    estate.clear_up();
    log::flush();
    Ok(())
}

impl Estate {
    /// Carries out requests until the daemon closes its end, or ends.
    fn serve(&self, requests: impl BufRead) {
        // An error is an end like another.
        for request in requests.bytes().map_while(Result::ok) {
            let at = usize::from(request);
            let outcome = match (self.rules.get(at), self.xdp.get(at.wrapping_sub(self.rules.len()))) {
                (Some(rule), _) => rule.install().map_err(anyhow::Error::from),
                (None, Some(xdp)) => {
                    xdp.prepare_for(request, io::stdin().as_fd()).map_err(anyhow::Error::from)
                }
                (None, None) => continue,
            };
            if let Err(error) = outcome {
                tracing::error!(
                    error = format!("{error:#}"),
                    request,
                    "cannot carry out a request of the daemon"
                );
            }
        }
    }

    fn clear_up(&self) {
        for rule in &self.rules {
            if let Err(error) = rule.remove_orphan() {
                tracing::error!(%error, "cannot remove an ingress rule");
            }
        }
        let Some(path) = &self.control_socket else { return };
        match control_socket::remove_stale(path) {
            // Another daemon has its socket there now.
            Ok(()) | Err(control_socket::ControlSocketError::Live(_)) => {}
            Err(error) => tracing::error!(%error, "cannot remove the control socket"),
        }
    }
}
