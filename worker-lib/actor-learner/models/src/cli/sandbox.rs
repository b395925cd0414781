//! Sandbox of `iswitch-models serve` and `iswitch-models cell`.

use std::net::{IpAddr, ToSocketAddrs as _};
use std::path::Path;

use anyhow::Context as _;
use iswitch_sandbox::{FileRules, ServerSandbox, SystemCalls, server_calls};

use crate::{Endpoint, Listen};

/// Files that glibc reads to resolve names.
const RESOLVER_FILES: [&str; 5] =
    ["/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/host.conf", "/etc/gai.conf"];

/// Files and system calls that a server needs.
pub(super) struct Confinement {
    files: FileRules,
    calls: SystemCalls,
    /// Host names and ports that the server may have to resolve.
    names: Vec<String>,
}

/// Returns the sandbox of a learner, which makes no connections and opens no files.
pub(super) fn of_learner(listens: &[Listen]) -> Confinement {
    let calls = server_calls().refuse(&[libc::SYS_openat], libc::EACCES);
    Confinement { files: sockets(listens), calls, names: Vec::new() }
}

/// Returns the sandbox of a cell, which connects to its upstream servers and resolves their names.
pub(super) fn of_cell(listens: &[Listen], upstream: &[Endpoint]) -> Confinement {
    let names: Vec<_> = upstream.iter().filter_map(name).collect();
    let mut files = sockets(listens);
    let mut calls = connecting(server_calls());
    if upstream.iter().any(|endpoint| !matches!(endpoint, Endpoint::Unix(_))) {
        files = files.connect();
    }
    if names.is_empty() {
        calls = calls.refuse(&[libc::SYS_openat], libc::EACCES);
    } else {
        files = RESOLVER_FILES.iter().fold(files, |files, path| files.read(Path::new(path)));
        calls = resolving(calls);
    }
    Confinement { files, calls, names }
}

fn sockets(listens: &[Listen]) -> FileRules {
    listens.iter().fold(FileRules::default(), |files, listen| match listen {
        Listen::Tcp(_) => files,
        Listen::Unix(path) => files.socket(path),
    })
}

/// Returns the host name and the port of an endpoint, or `None` if the host is a numeric address.
fn name(endpoint: &Endpoint) -> Option<String> {
    let (Endpoint::Tcp(address) | Endpoint::Tls(address)) = endpoint else { return None };
    let host = address.rsplit_once(':').map_or(&**address, |(host, _)| host);
    let is_address = host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    (!is_address).then(|| address.clone())
}

fn connecting(calls: SystemCalls) -> SystemCalls {
    let families = [libc::AF_INET, libc::AF_INET6, libc::AF_UNIX, libc::AF_NETLINK];
    calls.allow(&[libc::SYS_connect, libc::SYS_bind]).allow_values(
        libc::SYS_socket,
        0,
        &families.map(|family| family as u64),
    )
}

/// Adds the system calls that glibc and its modules use to resolve names.
fn resolving(calls: SystemCalls) -> SystemCalls {
    calls
        .allow(&[
            libc::SYS_openat,
            libc::SYS_pread64,
            libc::SYS_lseek,
            libc::SYS_sendmmsg,
            libc::SYS_recvmmsg,
            libc::SYS_uname,
            libc::SYS_sysinfo,
            libc::SYS_getuid,
            libc::SYS_geteuid,
            libc::SYS_getgid,
            libc::SYS_getegid,
        ])
        .allow_requests(&[libc::FIONBIO, libc::FIONREAD])
        // From here on, glibc can use only modules that an earlier lookup has already loaded.
        .refuse_memory_with_code()
}

impl Confinement {
    /// Drops all capabilities, and all access to files other than those that the server needs. The process must have
    /// only one thread.
    pub(super) fn enter(&self) -> anyhow::Result<ServerSandbox> {
        for name in &self.names {
            // Load the modules that resolve names. It does not matter yet whether the name is found.
            let _ = name.to_socket_addrs();
        }
        ServerSandbox::enter("iswitch-models", &self.files)
            .context("cannot enter the sandbox; pass --no-sandbox to run without it")
    }

    /// Installs the system-call filter, and prints the protections in force.
    pub(super) fn filter(&self, sandbox: ServerSandbox) {
        let in_force = sandbox.filter(&self.calls);
        for warning in in_force.warnings() {
            eprintln!("iswitch-models: {warning}");
        }
        eprintln!("iswitch-models: {in_force}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_host_names_are_resolved() {
        let named = |text: &str| name(&text.parse().unwrap());
        assert_eq!(named("learner:7720").as_deref(), Some("learner:7720"));
        assert_eq!(named("https://learner:7720").as_deref(), Some("learner:7720"));
        for address in ["10.0.0.1:7720", "[::1]:7720", "https://10.0.0.1:7720", "unix:/run/models"] {
            assert_eq!(named(address), None, "{address}");
        }
    }
}
