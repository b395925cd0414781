//! Network namespaces, which act as the hosts of a network.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use crate::LabError;
use crate::process::{command, feed, run};

/// Directory in which `ip` stores the names of network namespaces.
pub const DIRECTORY: &str = "/run/netns";

/// Named network namespace. Dropping this value removes the namespace.
#[derive(Debug)]
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// Creates a namespace with its loopback interface up.
    ///
    /// # Errors
    /// Fails if the process is neither root nor [isolated](crate::isolation), or if a namespace of this name exists.
    pub fn new(name: impl Into<String>) -> Result<Self, LabError> {
        let name = name.into();
        run(command("ip").args(["netns", "add", &name]))?;
        let namespace = Self { name };
        // Disable IPv6, because router solicitations and similar packets would be noise in captures.
        namespace.run(["sh", "-c", "echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6 || true"])?;
        namespace.ip("link set lo up\n")?;
        Ok(namespace)
    }

    /// Returns the name of the namespace.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns a command that runs a program in the namespace.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = command("ip");
        // `ip` replaces itself with the program, so the process id of the child is that of the program.
        command.args(["netns", "exec", &self.name]).arg(program);
        command
    }

    /// Runs a command in the namespace and returns its standard output.
    ///
    /// # Errors
    /// Fails if the command fails.
    pub fn run<const N: usize>(&self, words: [&str; N]) -> Result<String, LabError> {
        run(self.command(words[0]).args(&words[1..]).stdin(Stdio::null()))
    }

    /// Runs `ip` commands in the namespace, one per line.
    ///
    /// # Errors
    /// Fails if one of the commands fails.
    pub fn ip(&self, commands: &str) -> Result<(), LabError> {
        feed(command("ip").args(["-n", &self.name, "-batch", "-"]), commands)
    }

    /// Loads an nft script in the namespace.
    ///
    /// # Errors
    /// Fails if nft rejects the script.
    pub fn nft(&self, script: &str) -> Result<(), LabError> {
        feed(self.command("nft").args(["-f", "-"]), script)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        remove(&self.name);
    }
}

/// Removes the namespace with this name, if it exists.
pub fn remove(name: &str) {
    // The kernel also removes the interfaces in the namespace and, with each veth interface, its peer.
    let _ = command("ip").args(["netns", "del", name]).stderr(Stdio::null()).status();
}
