//! Reload: the daemon reads the configuration again and applies changed settings without interrupting jobs.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use clap::Parser;
use iswitch_runtime::runtime::Handle;
use iswitch_runtime::threads;
use iswitch_switch::{Limits, Order, SECRET_LEN_BYTES};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config::{Change, Cli, Config, Loaded};
use crate::log;
use crate::monitor::ConfigurationReader;

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
    /// The monitor, which can still open files.
    Monitor(ConfigurationReader),
}

impl Source {
    fn load(&mut self) -> anyhow::Result<Loaded> {
        match self {
            Self::Files(arguments) => arguments.load(),
            Self::Monitor(reader) => reader.read(),
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
        let new = state.source.load()?.resolve()?;
        let changes = state.config.changes_to(&new)?;
        let has = |setting: &str| changes.iter().any(|change| change.setting == setting);
        if has("key_files") {
            // The switch keeps the secret that it drew at start-up.
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
