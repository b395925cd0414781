//! Sandbox of `replayd`.

use std::path::Path;

use anyhow::Context as _;
use iswitch_sandbox::{FileRules, ServerSandbox, file_calls, server_calls};
use tokio::runtime::Builder;

use crate::server::Address;

/// Environment variable that overrides the number of tokio's worker threads.
const WORKERS_VARIABLE: &str = "TOKIO_WORKER_THREADS";

/// Returns a builder for a runtime inside the sandbox. The builder sets the number of worker threads explicitly,
/// because tokio would otherwise read the CPU quota of the cgroup from files to which the sandbox denies access.
pub(super) fn runtime() -> Builder {
    let mut builder = Builder::new_multi_thread();
    builder.enable_all();
    if std::env::var_os(WORKERS_VARIABLE).is_none()
        && let Ok(workers) = std::thread::available_parallelism()
    {
        builder.worker_threads(workers.get());
    }
    builder
}

/// Drops all capabilities, and access to all files except the data directory and the Unix sockets to listen on.
/// Creates the data directory first, because a Landlock rule needs an existing directory.
pub(super) fn enter(data_dir: Option<&Path>, addresses: &[Address]) -> anyhow::Result<ServerSandbox> {
    let mut files = FileRules::default();
    if let Some(directory) = data_dir {
        std::fs::create_dir_all(directory)
            .with_context(|| format!("cannot create {}", directory.display()))?;
        files = files.write_directory(directory);
    }
    for address in addresses {
        if let Address::Unix(path) = address {
            files = files.socket(path);
        }
    }
    ServerSandbox::enter("replayd", &files)
        .context("cannot enter the sandbox; pass --no-sandbox to run without it")
}

/// Installs the system-call filter, and logs the protections that are in force.
pub(super) fn filter(sandbox: ServerSandbox) {
    let in_force = sandbox.filter(&file_calls(server_calls()));
    for warning in in_force.warnings() {
        tracing::warn!("{warning}");
    }
    tracing::info!("{in_force}");
}
