//! Reload: the daemon reads the configuration again and applies changed settings without interrupting jobs.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use clap::Parser;
use iswitch_protocol::wire::Classifier;
use iswitch_runtime::runtime::{Handle, MakePort};
use iswitch_runtime::threads;
use iswitch_switch::{Limits, Order, SECRET_LEN_BYTES};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config::{Change, Cli, Config, Loaded};
use crate::log;
use crate::monitor::ReloadHelper;
use crate::port::{PacketOptions, PacketPort, PacketSockets, PortSpec};

/// Command line of the daemon, from which the configuration can be read again.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Arguments {
    arguments: Vec<OsString>,
    /// Directory against which relative paths are resolved.
    directory: PathBuf,
}

impl Arguments {
    /// Returns the command line of this process.
    ///
    /// # Errors
    /// Fails if the current directory no longer exists.
    pub fn of_this_process() -> anyhow::Result<Self> {
        Ok(Self { arguments: std::env::args_os().collect(), directory: std::env::current_dir()? })
    }

    /// Reads the configuration file and the key files.
    pub(crate) fn load(&self) -> anyhow::Result<Loaded> {
        let before = std::env::current_dir()?;
        std::env::set_current_dir(&self.directory)?;
        let loaded = Cli::try_parse_from(&self.arguments).map(Cli::load);
        std::env::set_current_dir(before)?;
        Ok(loaded??)
    }
}

/// Source of the configuration.
#[derive(Debug)]
pub enum Source {
    /// The configuration files themselves, for a daemon without the sandbox.
    Files(Arguments),
    /// The monitor, which can still open files and sockets.
    Monitor(ReloadHelper),
}

impl Source {
    fn load(&mut self) -> anyhow::Result<Loaded> {
        match self {
            Self::Files(arguments) => arguments.load(),
            Self::Monitor(helper) => helper.read(),
        }
    }

    /// Opens the sockets of a raw port of the configuration that was last read.
    fn open_port(
        &mut self,
        name: &str,
        classifier: &Classifier,
        options: &PacketOptions,
    ) -> anyhow::Result<PacketSockets> {
        match self {
            Self::Files(_) => Ok(PacketSockets::open(name, *classifier, options)?),
            Self::Monitor(helper) => helper.open_port(name, classifier, options.threads as u8),
        }
    }

    /// Removes what remains of a raw port after its sockets have been closed.
    fn close_port(&mut self, name: &str) -> anyhow::Result<()> {
        match self {
            // The port has removed its rule.
            Self::Files(_) => Ok(()),
            Self::Monitor(helper) => helper.close_port(name),
        }
    }
}

/// The configuration in force, with the means to reload it.
#[derive(Debug)]
pub struct Reloader {
    handle: Handle,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    config: Config,
    source: Source,
}

impl Reloader {
    /// Creates a reloader from the configuration in force, its source, and the handle of the switch to which changes
    /// apply.
    #[must_use]
    pub fn new(config: Config, source: Source, handle: Handle) -> Self {
        Self { handle, state: Mutex::new(State { config, source }) }
    }

    /// Reads the configuration again and applies it. Returns the settings that have changed.
    ///
    /// # Errors
    /// Fails if the configuration is invalid, if a setting that cannot be reloaded has changed, or if the switch does
    /// not answer. The previous configuration then stays in force.
    pub(crate) fn reload(&self) -> anyhow::Result<Vec<Change>> {
        let mut state = self.state();
        let new = state.source.load()?.resolve()?.with_threads_of(&state.config);
        let changes = state.config.changes_to(&new)?;
        let has = |setting: &str| changes.iter().any(|change| change.setting == setting);
        if has("port") {
            // This is the only change that can fail, so it comes first.
            self.change_ports(&mut state, &new)?;
        }
        if has("key_files") {
            // The switch keeps the secret that it generated at start-up.
            let keys = new.keys([0; SECRET_LEN_BYTES]);
            self.handle.order(|_, _| Order::SetKeys(keys.clone()))?;
        }
        self.handle.order(|_, count| Order::SetLimits(Limits::of(&threads::divided(new.switch, count))))?;
        if has("log_level") {
            log::set_level(new.log_level);
        }
        state.config = new;
        Ok(changes)
    }

    /// Opens the ports that only the new configuration has, and closes those that only the former one has.
    ///
    /// # Errors
    /// Fails if a port to close still has members, or if a port cannot be opened. In that case, no port has changed.
    fn change_ports(&self, state: &mut State, new: &Config) -> anyhow::Result<()> {
        let State { config: old, source } = state;
        let missing_in = |other: &Config, port: &&PortSpec| !other.interfaces.contains(port);
        let removed: Vec<_> = old.interfaces.iter().filter(|port| missing_in(new, port)).collect();
        let added: Vec<_> = new.interfaces.iter().filter(|port| missing_in(old, port)).collect();
        for PortSpec { interface, .. } in &removed {
            let members = self.handle.members_on(interface)?;
            anyhow::ensure!(
                members == 0,
                "port {interface:?} has {members} members, expected none: end their jobs or expel them before \
                 removing the port"
            );
        }
        let mut opened = Vec::new();
        for PortSpec { interface, .. } in added {
            match self.open_port(source, interface, new) {
                Ok(ports) => opened.push((interface, ports)),
                Err(error) => {
                    for (interface, ports) in opened {
                        drop(ports);
                        source.close_port(interface)?;
                    }
                    return Err(error);
                }
            }
        }
        for (_, ports) in opened {
            self.handle.add_port(ports.into_iter().map(maker).collect())?;
        }
        for PortSpec { interface, .. } in removed {
            self.handle.remove_port(interface)?;
            source.close_port(interface)?;
        }
        Ok(())
    }

    /// Opens the ports of all threads on an interface.
    fn open_port(&self, source: &mut Source, name: &str, new: &Config) -> anyhow::Result<Vec<PacketPort>> {
        let options = PacketOptions { threads: self.handle.threads() as u16, ..new.packet_options() };
        let sockets = source.open_port(name, &new.classifier, &options)?;
        Ok(sockets.into_ports(new.classifier, &options)?)
    }

    /// Reloads the configuration and logs the outcome.
    pub(crate) fn reload_and_log(&self) -> anyhow::Result<Vec<Change>> {
        let outcome = self.reload();
        match &outcome {
            Ok(changes) if changes.is_empty() => tracing::info!("reloaded: no setting has changed"),
            Ok(changes) => {
                for Change { setting, from, to } in changes {
                    tracing::info!(setting, %from, %to, "setting changed by a reload");
                }
            }
            Err(error) => {
                tracing::error!(
                    error = iswitch_manual::describe(error.as_ref()),
                    "configuration not reloaded; the previous one stays in force"
                );
            }
        }
        outcome
    }

    /// Returns each setting with its value in force and the origin of that value.
    pub(crate) fn in_force(&self) -> Vec<Value> {
        self.state().config.in_force()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the function that a loop calls to take over a port.
fn maker(mut port: PacketPort) -> MakePort {
    Box::new(move |id| {
        port.set_id(id);
        Box::new(port)
    })
}
