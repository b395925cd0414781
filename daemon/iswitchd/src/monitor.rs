//! The monitor: a process that retains the privileges that the daemon drops, for the few operations that need them.
//!
//! This process is the privileged monitor of privilege separation (Provos, Friedl and Honeyman, "Preventing Privilege
//! Escalation", USENIX Security 2003), reduced to four duties. When the daemon has terminated, normally or not, the
//! monitor removes the ingress rules and the control socket. When an interface is recreated, the monitor reinstalls the
//! ingress rule; for an AF_XDP port, it instead attaches the XDP program, opens the sockets and passes them to the
//! daemon. For a reload, the monitor reads the configuration file and the key files again, and it opens the sockets of
//! raw ports that this configuration adds. The monitor receives the description of all other resources at start-up,
//! before the daemon has received a packet. Afterwards, its only inputs are the number of a rule or an interface, the
//! request to read the configuration, and the name of an interface in the configuration that it last read. When its
//! input ends, the daemon has terminated.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use iswitch_protocol::wire::Classifier;
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};

use crate::config::{Config, Loaded, LogFormat, LogLevel};
use crate::control_socket;
use crate::log;
use crate::port::{PacketOptions, PacketSockets, PortSpec, RuleKeeper, RuleScript, XdpKeeper, XdpScript};
use crate::reload::Arguments;

/// Value of `argv[0]` that makes the program run as the monitor.
const MONITOR_NAME: &str = "iswitchd-monitor";
/// Line that the monitor prints once it has started to ignore the signals that are meant for the daemon.
const READY: &str = "ready\n";
/// Request to read the configuration again. This value is larger than the number of any rule or interface.
const READ_CONFIGURATION: u8 = u8::MAX;
/// Request to open the sockets of an interface. It is followed by one byte with the number of threads, one byte with
/// the length of the interface's name, and the name.
const OPEN_PORT: u8 = u8::MAX - 1;
/// Request to remove the ingress rule of an interface whose port has been closed. It is followed by one byte with the
/// length of the interface's name, and the name.
const CLOSE_PORT: u8 = u8::MAX - 2;
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

/// Handle through which a reload uses the monitor.
#[derive(Debug)]
pub struct ReloadHelper {
    requests: Arc<UnixStream>,
    answers: BufReader<UnixStream>,
}

impl ReloadHelper {
    /// Returns the current configuration from the files and the command line.
    ///
    /// # Errors
    /// Fails if the configuration is invalid, or if the monitor is not running.
    pub(crate) fn read(&mut self) -> anyhow::Result<Loaded> {
        (&*self.requests).write_all(&[READ_CONFIGURATION]).context("the monitor is not running")?;
        let mut line = zeroize::Zeroizing::new(String::new());
        self.answers.read_line(&mut line).context("the monitor is not running")?;
        let answer: Answer = serde_json::from_str(&line).context("the monitor is not running")?;
        answer.map_err(anyhow::Error::msg)
    }

    /// Returns the sockets of an interface of the configuration that was last read.
    ///
    /// # Errors
    /// Fails if the sockets cannot be opened, or if the monitor is not running.
    pub(crate) fn open_port(
        &mut self,
        name: &str,
        classifier: &Classifier,
        threads: u8,
    ) -> anyhow::Result<PacketSockets> {
        self.ask(&[OPEN_PORT, threads], name)?;
        let keeper = |number| RuleKeeper::new(Arc::clone(&self.requests), number);
        // The monitor answers each request before the next, so the buffer of the reader is empty.
        let answers = self.answers.get_ref().as_fd();
        Ok(PacketSockets::receive(name, answers, (classifier, threads.into()), keeper)?)
    }

    /// Removes the ingress rule of an interface, after its port has been closed.
    ///
    /// # Errors
    /// Fails if the monitor is not running.
    pub(crate) fn close_port(&mut self, name: &str) -> anyhow::Result<()> {
        self.ask(&[CLOSE_PORT], name)
    }

    fn ask(&self, request: &[u8], name: &str) -> anyhow::Result<()> {
        let message = [request, &[u8::try_from(name.len())?], name.as_bytes()].concat();
        (&*self.requests).write_all(&message).context("the monitor is not running")
    }
}

/// Handle of a running monitor process. Dropping it waits until that process has removed the daemon's resources, which
/// the daemon must have closed beforehand.
#[derive(Debug)]
pub struct Monitor {
    child: Child,
    requests: Arc<UnixStream>,
    answers: Option<BufReader<UnixStream>>,
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
        let (requests, input) = UnixStream::pair()?;
        let (answers, output) = UnixStream::pair()?;
        let path = std::env::var_os("PATH").unwrap_or_default();
        // This path refers to the running program, even if its file has been replaced by another version.
        let child = Command::new("/proc/self/exe")
            .arg0(MONITOR_NAME)
            .env_clear()
            .env("PATH", path)
            .current_dir("/")
            .stdin(OwnedFd::from(input))
            .stdout(OwnedFd::from(output))
            .spawn()
            .context("cannot start the monitor")?;
        (&requests).write_all(format!("{}\n", serde_json::to_string(&resources)?).as_bytes())?;
        let mut answer = String::new();
        let mut answers = BufReader::new(answers);
        answers.read_line(&mut answer)?;
        anyhow::ensure!(answer == READY, "the monitor did not start; see its error message above");
        Ok(Self { child, requests: Arc::new(requests), answers: Some(answers), rule_count })
    }

    /// Returns the handle for reloads on the first call, and `None` on later calls.
    pub(crate) fn reload_helper(&mut self) -> Option<ReloadHelper> {
        let answers = self.answers.take()?;
        Some(ReloadHelper { requests: Arc::clone(&self.requests), answers })
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
        Ok(RuleKeeper::new(Arc::clone(&self.requests), u8::try_from(rule).map_err(io::Error::other)?))
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
    let mut warden = Warden::new(resources);
    warden.serve(input);
    warden.clear_up();
    log::flush();
    Ok(())
}

/// Resource that the monitor recreates or removes. Requests contain its number.
enum Resource {
    Rule(RuleScript),
    Xdp(XdpScript),
    /// The rule of a port that has been closed.
    Removed,
}

/// Resources of a running daemon.
struct Warden {
    resources: Vec<Resource>,
    control_socket: Option<PathBuf>,
    arguments: Arguments,
    /// Configuration that was last read.
    config: Option<Config>,
}

impl Warden {
    fn new(resources: Resources) -> Self {
        let Resources { rules, xdp, control_socket, arguments, .. } = resources;
        let rules = rules.into_iter().map(Resource::Rule);
        let resources = rules.chain(xdp.into_iter().map(Resource::Xdp)).collect();
        Self { resources, control_socket, arguments, config: None }
    }

    /// Carries out requests until the daemon closes its end of the stream or terminates.
    fn serve(&mut self, mut requests: impl BufRead) {
        // A read error is treated as the end of the stream.
        while let Some(request) = read_byte(&mut requests) {
            let outcome = match request {
                READ_CONFIGURATION => {
                    self.answer_with_configuration();
                    continue;
                }
                OPEN_PORT => read_byte(&mut requests).and_then(|threads| {
                    let name = read_name(&mut requests)?;
                    Some(self.open_port(&name, threads))
                }),
                CLOSE_PORT => read_name(&mut requests).map(|name| self.close_port(&name)),
                number => Some(self.recreate(number)),
            };
            let Some(outcome) = outcome else { return };
            if let Err(error) = outcome {
                tracing::error!(
                    error = iswitch_manual::describe(error.as_ref()),
                    request,
                    "cannot carry out a request from the daemon"
                );
            }
        }
    }

    fn recreate(&self, number: u8) -> anyhow::Result<()> {
        match self.resources.get(usize::from(number)) {
            Some(Resource::Rule(rule)) => Ok(rule.install()?),
            Some(Resource::Xdp(xdp)) => Ok(xdp.prepare_for(number, io::stdin().as_fd())?),
            Some(Resource::Removed) | None => Ok(()),
        }
    }

    /// Opens the sockets of a raw port of the configuration, and passes them to the daemon.
    fn open_port(&mut self, name: &str, threads: u8) -> anyhow::Result<()> {
        let number = self.resources.iter().position(|resource| matches!(resource, Resource::Removed));
        let number = number.unwrap_or(self.resources.len());
        let sockets = match self.sockets(name, threads, number) {
            Ok(sockets) => sockets,
            Err(reason) => return Ok(PacketSockets::refuse(reason, io::stdout().as_fd())?),
        };
        let rule = sockets.rule_script().cloned();
        sockets.pass(rule.is_some().then_some(number as u8), io::stdout().as_fd())?;
        if let Some(rule) = rule {
            if number == self.resources.len() {
                self.resources.push(Resource::Removed);
            }
            self.resources[number] = Resource::Rule(rule);
        }
        Ok(())
    }

    /// Opens the sockets of a raw port and assigns `number` to its rule. If this fails, returns the reason.
    fn sockets(&self, name: &str, threads: u8, number: usize) -> Result<PacketSockets, String> {
        let is_raw = |port: &PortSpec| port.interface == name && port.xdp.is_none();
        let config = self.config.as_ref().filter(|config| config.interfaces.iter().any(is_raw));
        let config = config.ok_or_else(|| format!("the configuration has no raw port {name:?}"))?;
        if number >= usize::from(CLOSE_PORT) {
            return Err(format!(
                "the switch already has {number} raw ports, expected fewer than {CLOSE_PORT}"
            ));
        }
        let options = PacketOptions { threads: threads.into(), ..config.packet_options() };
        PacketSockets::open(name, config.classifier, &options).map_err(|error| error.to_string())
    }

    fn close_port(&mut self, name: &str) -> anyhow::Result<()> {
        for resource in &mut self.resources {
            if let Resource::Rule(rule) = resource
                && rule.interface() == name
            {
                RuleScript::remove_orphans([&*rule])?;
                *resource = Resource::Removed;
            }
        }
        Ok(())
    }

    fn answer_with_configuration(&mut self) {
        let loaded = self.arguments.load();
        let answer: Answer = loaded.map_err(|error| iswitch_manual::describe(error.as_ref()));
        let line = serde_json::to_string(&answer).map(|line| zeroize::Zeroizing::new(line + "\n"));
        // An invalid configuration opens no ports.
        self.config = answer.ok().and_then(|loaded| loaded.resolve().ok());
        // A failed write is ignored: if the daemon has terminated, the input of the monitor ends as well.
        let _ = line.map(|line| io::stdout().write_all(line.as_bytes()));
    }

    fn clear_up(&self) {
        let rules = self.resources.iter().filter_map(|resource| match resource {
            Resource::Rule(rule) => Some(rule),
            Resource::Xdp(_) | Resource::Removed => None,
        });
        if let Err(error) = RuleScript::remove_orphans(rules) {
            tracing::error!(%error, "cannot remove the ingress rules");
        }
        let Some(path) = &self.control_socket else { return };
        match control_socket::remove_stale(path) {
            // `Live`: another daemon has bound its socket at this path.
            Ok(()) | Err(control_socket::ControlSocketError::Live(_)) => {}
            Err(error) => tracing::error!(%error, "cannot remove the control socket"),
        }
    }
}

fn read_byte(input: &mut impl Read) -> Option<u8> {
    let mut byte = [0];
    input.read_exact(&mut byte).ok().map(|()| byte[0])
}

/// Reads the length of a name and the name.
fn read_name(input: &mut impl Read) -> Option<String> {
    let mut name = vec![0; usize::from(read_byte(input)?)];
    input.read_exact(&mut name).ok()?;
    String::from_utf8(name).ok()
}
