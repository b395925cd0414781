//! First process in the namespaces. It creates the network, and runs the switch and the workers' commands in it.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use iswitch_lab::isolation::{self, Outside};
use iswitch_lab::network::{Network, SWITCH_ADDRESS, port, worker_address};
use iswitch_manual::print_line;
use iswitch_protocol::limits::DEFAULT_PORT;
use serde_json::{Value, json};

use crate::cli::Cli;
use crate::environment::{self, OTHER_LAUNCHERS, RUNTIME_DIRECTORY};
use crate::output::{Copiers, Target};
use crate::supervisor::{Group, SHELL, Stop};

/// Timeout for the start of the switch. It is long enough for a busy machine.
const READY_TIMEOUT: Duration = Duration::from_secs(20);
/// Option of iswitchd that sets its log level.
const LOG_LEVEL: &str = "--log-level";
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Creates the network, runs the commands to completion, and returns the exit status of the first command that failed,
/// or 0.
pub(crate) fn run(cli: &Cli) -> anyhow::Result<u8> {
    let outside = isolation::prepare()?;
    let stop = Stop::on_signals()?;
    fs::create_dir(RUNTIME_DIRECTORY).context(RUNTIME_DIRECTORY)?;
    let network = Network::new(usize::from(cli.workers), cli.mtu, cli.links())?;
    let mut lab = Lab { cli, network, group: Group::default(), copiers: Copiers::default() };
    let code = match lab.start(&outside) {
        Ok(()) => lab.group.supervise(&stop),
        Err(error) => {
            lab.group.end();
            lab.copiers.drain();
            return Err(error);
        }
    };
    lab.copiers.drain();
    Ok(code)
}

/// An emulated network and the processes in it.
struct Lab<'a> {
    cli: &'a Cli,
    network: Network,
    group: Group,
    copiers: Copiers,
}

impl Lab<'_> {
    fn start(&mut self, outside: &Outside) -> anyhow::Result<()> {
        let switch = self.start_switch()?;
        let mut workers = Vec::new();
        if self.cli.command.is_empty() {
            let shell = self.open_shell()?;
            workers.push((self.cli.shell, shell));
        } else {
            for rank in 0..self.cli.workers {
                workers.push((rank, self.start_command(rank)?));
            }
        }
        if self.cli.json {
            print_line!("{}", self.layout(outside, switch, &workers))?;
        }
        Ok(())
    }

    /// Starts the switch, waits until it is ready, and returns its process id.
    fn start_switch(&mut self) -> anyhow::Result<u32> {
        let mut command = self.network.switch.command(environment::iswitchd()?);
        if self.cli.udp {
            command.arg("--udp").arg(format!("{SWITCH_ADDRESS}:{DEFAULT_PORT}"));
        } else {
            (0..usize::from(self.cli.workers)).for_each(|worker| {
                command.arg("--port").arg(port(worker));
            });
        }
        let is_level = |argument: &OsString| argument.as_encoded_bytes().starts_with(LOG_LEVEL.as_bytes());
        if !self.cli.iswitchd_arguments.iter().any(is_level) {
            // Otherwise, a log line for each Join would clutter the output of the commands.
            command.args([LOG_LEVEL, "warn"]);
        }
        command.args(&self.cli.iswitchd_arguments).env("XDG_RUNTIME_DIR", RUNTIME_DIRECTORY);
        let (sender, lines) = channel();
        let mut child = self.spawn("switch", &mut command, false)?;
        let stdout = child.stdout.take().context("iswitchd has no standard output, expected a pipe")?;
        self.copiers.add("switch", stdout, Target::Stderr, Some(sender));
        let begin = Instant::now();
        loop {
            match lines.recv_timeout(POLL_INTERVAL) {
                Ok(line) if line.contains(" ready: ") => return Ok(child.id()),
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) if begin.elapsed() < READY_TIMEOUT => {}
                Err(RecvTimeoutError::Timeout) => {
                    bail!("iswitchd did not become ready within {READY_TIMEOUT:?}")
                }
                Err(RecvTimeoutError::Disconnected) => {
                    bail!("iswitchd has ended; see its error message above")
                }
            }
            if !self.group.is_whole() {
                bail!("iswitchd has ended; see its error message above");
            }
        }
    }

    fn start_command(&mut self, rank: u16) -> anyhow::Result<u32> {
        let (program, arguments) = self.cli.command.split_first().context("no command, expected one")?;
        let mut command = self.network.workers[usize::from(rank)].command(program);
        command.args(arguments);
        set_environment(&mut command, rank, self.cli.workers)?;
        let name = rank.to_string();
        let mut child = self.spawn(&name, &mut command, true)?;
        let stdout = child.stdout.take().context("the command has no standard output, expected a pipe")?;
        self.copiers.add(&name, stdout, Target::Stdout, None);
        Ok(child.id())
    }

    /// Starts a process and copies its output. The process has its own process group, so that it receives Ctrl-C only
    /// if this process forwards it.
    fn spawn(&mut self, name: &str, command: &mut Command, is_worker: bool) -> anyhow::Result<Child> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child =
            command.spawn().with_context(|| format!("cannot start {}", member_name(name, is_worker)))?;
        self.group.add(&member_name(name, is_worker), child.id(), is_worker);
        let stderr = child.stderr.take().context("the command has no standard error, expected a pipe")?;
        self.copiers.add(name, stderr, Target::Stderr, None);
        Ok(child)
    }

    fn open_shell(&mut self) -> anyhow::Result<u32> {
        let Cli { shell: rank, workers, .. } = *self.cli;
        let shell = env::var_os("SHELL").unwrap_or_else(|| OsString::from("/bin/sh"));
        let mut command = self.network.workers[usize::from(rank)].command(&shell);
        set_environment(&mut command, rank, workers)?;
        eprintln!(
            "iswitch-lab: this is the shell of worker {rank} ({}); the switch is at {SWITCH_ADDRESS}:{DEFAULT_PORT}; \
             `ip netns exec worker1 COMMAND` runs a command in worker 1; `exit` ends the lab",
            worker_address(usize::from(rank))
        );
        let child = command.spawn().with_context(|| format!("cannot start {}", shell.display()))?;
        self.group.add(SHELL, child.id(), true);
        Ok(child.id())
    }

    /// Returns a machine-readable description of the network.
    fn layout(&self, outside: &Outside, switch: u32, processes: &[(u16, u32)]) -> Value {
        let workers = (0..self.cli.workers).map(|rank| {
            let index = usize::from(rank);
            let process = processes.iter().find(|(of, _)| *of == rank);
            json!({
                "rank": rank,
                "namespace": self.network.workers[index].name(),
                "address": worker_address(index),
                "bridge_port": port(index),
                "pid": process.and_then(|(_, id)| outside.id_of(*id)),
            })
        });
        json!({
            "switch": {
                "namespace": self.network.switch.name(),
                "address": format!("{SWITCH_ADDRESS}:{DEFAULT_PORT}"),
                "kind": if self.cli.udp { "udp" } else { "raw" },
                "pid": outside.id_of(switch),
            },
            "workers": workers.collect::<Vec<_>>(),
        })
    }
}

fn member_name(name: &str, is_worker: bool) -> String {
    if is_worker { format!("worker {name}") } else { format!("the {name}") }
}

fn set_environment(command: &mut Command, rank: u16, workers: u16) -> anyhow::Result<()> {
    OTHER_LAUNCHERS.iter().for_each(|name| {
        command.env_remove(name);
    });
    command.envs(environment::variables(rank, workers)?).env("XDG_RUNTIME_DIR", RUNTIME_DIRECTORY);
    Ok(())
}
