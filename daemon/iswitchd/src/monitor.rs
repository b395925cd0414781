//! The monitor: a process that retains the privileges that the daemon drops, for the few operations that need them.
//!
//! This process is the privileged monitor of privilege separation (Provos, Friedl and Honeyman, "Preventing Privilege
//! Escalation", USENIX Security 2003), reduced to three duties. When the daemon has terminated, normally or not, the
//! monitor removes the ingress rules and the control socket. When an interface is recreated, the monitor reinstalls the
//! ingress rule; for an AF_XDP port, it instead attaches the XDP program, opens the sockets and passes them to the
//! daemon. For a reload, the monitor reads the configuration file and the key files again. The monitor receives the
//! description of these resources at start-up, before the daemon has received a packet. Afterwards the monitor accepts
//! only the number of a rule or an interface, the request to read the configuration, and the end of its input.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};

use crate::config::{Loaded, LogFormat, LogLevel};
use crate::control_socket;
use crate::log;
use crate::port::{RuleKeeper, RuleScript, XdpKeeper, XdpScript};
use crate::reload::Arguments;

/// Value of `argv[0]` that makes the program run as the monitor.
const MONITOR_NAME: &str = "iswitchd-monitor";
/// Line that the monitor prints once it has started to ignore the signals that are meant for the daemon.
const READY: &str = "ready\n";
/// Request to read the configuration again. This value is larger than the number of any rule or interface.
const READ_CONFIGURATION: u8 = u8::MAX;
/// Maximum length of the description of a daemon, in bytes.
const RESOURCES_LEN_MAX_BYTES: u64 = 1 << 20;

/// Resources of a daemon that the monitor removes or recreates.
#[derive(Debug, Deserialize, Serialize)]
struct Resources {
    /// Ingress rules. A request contains the number of a resource; the rules are numbered first, then the AF_XDP ports.
    rules: Vec<RuleScript>,
    xdp: Vec<XdpScript>,
    control_socket: Option<PathBuf>,
    arguments: Arguments,
    log_format: LogFormat,
    log_level: LogLevel,
}

/// Answer of the monitor to [`READ_CONFIGURATION`].
type Answer = Result<Loaded, String>;

/// Handle through which the daemon makes the monitor read the configuration again.
#[derive(Debug)]
pub struct ConfigurationReader {
    requests: UnixStream,
    answers: BufReader<ChildStdout>,
}

impl ConfigurationReader {
    /// Returns the current configuration from the files and the command line.
    ///
    /// # Errors
    /// Fails if the configuration is invalid, or if the monitor is not running.
    pub(crate) fn read(&mut self) -> anyhow::Result<Loaded> {
        self.requests.write_all(&[READ_CONFIGURATION]).context("the monitor is not running")?;
        let mut line = zeroize::Zeroizing::new(String::new());
        self.answers.read_line(&mut line).context("the monitor is not running")?;
        let answer: Answer = serde_json::from_str(&line).context("the monitor is not running")?;
        answer.map_err(anyhow::Error::msg)
    }
}

/// Handle of a running monitor process. Dropping it waits until that process has removed the daemon's resources, which
/// the daemon must have closed beforehand.
#[derive(Debug)]
pub struct Monitor {
    child: Child,
    requests: UnixStream,
    answers: Option<BufReader<ChildStdout>>,
    rule_count: usize,
}

impl Monitor {
    /// Starts the monitor of a daemon with the given ingress rules, AF_XDP ports and control socket.
    pub fn start(
        rules: Vec<RuleScript>,
        xdp: Vec<XdpScript>,
        control_socket: Option<&Path>,
        log_format: LogFormat,
        log_level: LogLevel,
    ) -> anyhow::Result<Self> {
        let control_socket = control_socket.map(std::path::absolute).transpose()?;
        let rule_count = rules.len();
        let arguments = Arguments::of_this_process()?;
        let resources = Resources { rules, xdp, control_socket, arguments, log_format, log_level };
        let (mut requests, input) = UnixStream::pair()?;
        let path = std::env::var_os("PATH").unwrap_or_default();
        // Executes the running program, even if its file has been replaced by another version.
        let mut child = Command::new("/proc/self/exe")
            .arg0(MONITOR_NAME)
            .env_clear()
            .env("PATH", path)
            .current_dir("/")
            .stdin(OwnedFd::from(input))
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the monitor")?;
        requests.write_all(format!("{}\n", serde_json::to_string(&resources)?).as_bytes())?;
        let mut answer = String::new();
        let output = child.stdout.take().context("the monitor has no output")?;
        let mut answers = BufReader::new(output);
        answers.read_line(&mut answer)?;
        anyhow::ensure!(answer == READY, "the monitor did not start; see its error message above");
        Ok(Self { child, requests, answers: Some(answers), rule_count })
    }

    /// Returns the reader of the configuration on the first call, and `None` on later calls.
    pub(crate) fn configuration_reader(&mut self) -> io::Result<Option<ConfigurationReader>> {
        let Some(answers) = self.answers.take() else { return Ok(None) };
        Ok(Some(ConfigurationReader { requests: self.requests.try_clone()?, answers }))
    }

    /// Returns a handle that asks the monitor to prepare the interface of an AF_XDP port again, once the interface has
    /// been recreated. `port` is the position of the port in the list that [`Monitor::start`] took.
    pub fn xdp_keeper(&self, port: usize) -> io::Result<XdpKeeper> {
        let number = u8::try_from(self.rule_count + port).map_err(io::Error::other)?;
        XdpKeeper::new(self.requests.try_clone()?, number)
    }

    /// Returns a handle that asks the monitor to reinstall an ingress rule. `rule` is the position of the rule in the
    /// list that [`Monitor::start`] took.
    pub fn keeper(&self, rule: usize) -> io::Result<RuleKeeper> {
        Ok(RuleKeeper::new(self.requests.try_clone()?, u8::try_from(rule).map_err(io::Error::other)?))
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        // Dropping the stream would not close it, because the keepers hold duplicates of it.
        let _ = self.requests.shutdown(std::net::Shutdown::Both);
        match self.child.wait() {
            Ok(status) if status.success() => {}
            outcome => {
                tracing::error!(?outcome, "the monitor failed, and may have left ingress rules behind");
            }
        }
    }
}

/// Returns whether this process was started as a monitor by [`Monitor::start`].
pub fn is_called() -> bool {
    std::env::args_os().next().is_some_and(|name| name == MONITOR_NAME)
}

/// Runs the monitor.
pub fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{MONITOR_NAME}: {}", iswitch_manual::describe(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<()> {
    // A terminal or a service manager sends these signals to the whole process group; only the daemon acts on them.
    for signal in [SIGHUP, SIGINT, SIGTERM, SIGUSR1] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    rustix::thread::set_name(c"iswitch-monitor")?;
    let mut input = BufReader::new(io::stdin().lock());
    let mut line = String::new();
    (&mut input).take(RESOURCES_LEN_MAX_BYTES).read_line(&mut line)?;
    let resources: Resources =
        serde_json::from_str(&line).context("cannot parse the list of resources that the daemon sent")?;
    log::start(resources.log_format, resources.log_level);
    log::detach()?;
    io::stdout().write_all(READY.as_bytes())?;
    resources.serve(input);
    resources.clear_up();
    log::flush();
    Ok(())
}

impl Resources {
    /// Carries out requests until the daemon closes its end of the stream or terminates.
    fn serve(&self, requests: impl BufRead) {
        // A read error is treated as the end of the stream.
        for request in requests.bytes().map_while(Result::ok) {
            if request == READ_CONFIGURATION {
                self.answer_with_configuration();
                continue;
            }
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
                    error = iswitch_manual::describe(error.as_ref()),
                    request,
                    "cannot carry out a request from the daemon"
                );
            }
        }
    }

    fn answer_with_configuration(&self) {
        let answer: Answer = self.arguments.load().map_err(|error| iswitch_manual::describe(error.as_ref()));
        let line = serde_json::to_string(&answer).map(|line| zeroize::Zeroizing::new(line + "\n"));
        // A failed write is ignored: if the daemon has terminated, the input of the monitor ends as well.
        let _ = line.map(|line| io::stdout().write_all(line.as_bytes()));
    }

    fn clear_up(&self) {
        for rule in &self.rules {
            if let Err(error) = rule.remove_orphan() {
                tracing::error!(%error, "cannot remove an ingress rule");
            }
        }
        let Some(path) = &self.control_socket else { return };
        match control_socket::remove_stale(path) {
            // `Live`: another daemon has bound its socket at this path.
            Ok(()) | Err(control_socket::ControlSocketError::Live(_)) => {}
            Err(error) => tracing::error!(%error, "cannot remove the control socket"),
        }
    }
}
