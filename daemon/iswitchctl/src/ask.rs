//! Requests to the control socket of a daemon.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;

use iswitch_control::{Command, Request, ask, command, default_control_socket};
use serde_json::Value;

/// Options that select the daemon and the output format.
#[derive(Args, Debug)]
pub(crate) struct QueryArgs {
    /// Control socket of the daemon
    ///
    /// The default is /run/iswitchd.sock for root, and iswitchd.sock in XDG_RUNTIME_DIR for other users. If that file
    /// does not exist but /run/iswitchd/control does, the default is /run/iswitchd/control.
    #[arg(long, value_name = "PATH", global = true)]
    socket: Option<PathBuf>,
    /// Print the output as one line of JSON
    #[arg(long, global = true)]
    json: bool,
}

/// Control socket of a daemon that runs as the systemd unit.
const SERVICE_SOCKET: &str = "/run/iswitchd/control";

impl QueryArgs {
    /// Returns whether to print JSON.
    pub(crate) fn json(&self) -> bool {
        self.json
    }

    /// Returns whether a control socket was given on the command line.
    pub(crate) fn is_given(&self) -> bool {
        self.socket.is_some()
    }

    /// Returns the control socket: the given one, otherwise the first default path that exists.
    pub(crate) fn path(&self) -> anyhow::Result<PathBuf> {
        if let Some(path) = &self.socket {
            return Ok(path.clone());
        }
        let usual = default_control_socket()
            .context("XDG_RUNTIME_DIR is not set; specify the control socket with --socket PATH")?;
        let service = PathBuf::from(SERVICE_SOCKET);
        Ok(if !usual.exists() && service.exists() { service } else { usual })
    }

    /// Sends a request to the daemon and returns its answer.
    pub(crate) fn ask(&self, request: Request) -> anyhow::Result<Value> {
        let path = self.path()?;
        ask(&path, request).map_err(|error| failure(error, "cannot query the daemon", &path))
    }

    /// Sends a command to the daemon and returns its answer.
    pub(crate) fn command(&self, order: Command) -> anyhow::Result<Value> {
        let path = self.path()?;
        command(&path, order).map_err(|error| failure(error, "the daemon refused the command", &path))
    }

    /// Sends a request to the daemon and prints its answer.
    pub(crate) fn show(&self, request: Request) -> anyhow::Result<ExitCode> {
        let answer = self.ask(request)?;
        print(&if self.json { format!("{answer}\n") } else { request.text(answer) });
        Ok(ExitCode::SUCCESS)
    }
}

/// Adds context to an error: the operation that failed or, if the socket is unreachable, a suggested fix.
fn failure(error: io::Error, what: &str, path: &Path) -> anyhow::Error {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => anyhow::anyhow!(
            "no daemon is listening on {path}; start iswitchd, or set --socket to the path of its control socket"
        ),
        io::ErrorKind::PermissionDenied => {
            anyhow::anyhow!(
                "access to {path} is denied; run iswitchctl as root, or as the user that runs the daemon"
            )
        }
        io::ErrorKind::Other => anyhow::anyhow!("{what}: {error}"),
        _ => anyhow::Error::new(error).context(format!("cannot query the daemon at {path}")),
    }
}

/// Writes to standard output. Ignores errors, because a reader that closes the pipe needs no more output.
pub(crate) fn print(text: &str) {
    let _ = io::stdout().write_all(text.as_bytes());
}
