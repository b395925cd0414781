//! Network namespaces: hosts inside this one.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use crate::LabError;
use crate::process::{command, feed, run};

/// Where `ip` keeps the names.
pub const DIRECTORY: &str = "/run/netns";

/// A network namespace with a name. Dropping removes it.
#[derive(Debug)]
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// Makes a namespace with its loop-back interface up.
    ///
    /// # Errors
    /// If the process is neither root nor [isolated](crate::isolation), or the name is taken.
    pub fn new(name: impl Into<String>) -> Result<Self, LabError> {
        let name = name.into();
        run(command("ip").args(["netns", "add", &name]))?;
        let namespace = Self { name };
        // Router solicitations and the like would be noise in captures.
        namespace.run(["sh", "-c", "echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6 || true"])?;
        namespace.ip("link set lo up\n")?;
        Ok(namespace)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A command that will run inside.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = command("ip");
        // It becomes the program instead of starting it, so that the child's id is the program's.
        command.args(["netns", "exec", &self.name]).arg(program);
        command
    }

    /// Runs a command inside and returns its standard output.
    ///
    /// # Errors
    /// If it fails.
    pub fn run<const N: usize>(&self, words: [&str; N]) -> Result<String, LabError> {
        run(self.command(words[0]).args(&words[1..]).stdin(Stdio::null()))
    }

    /// Runs `ip` commands inside, one a line.
    ///
    /// # Errors
    /// If one fails.
    pub fn ip(&self, commands: &str) -> Result<(), LabError> {
        feed(command("ip").args(["-n", &self.name, "-batch", "-"]), commands)
    }

    /// Loads an nft script inside.
    ///
    /// # Errors
    /// If nft refuses it.
    pub fn nft(&self, script: &str) -> Result<(), LabError> {
        feed(self.command("nft").args(["-f", "-"]), script)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        remove(&self.name);
    }
}

/// Removes a namespace by its name, if there is one.
pub fn remove(name: &str) {
    // Interfaces inside go with it, and each takes its peer along.
    let _ = command("ip").args(["netns", "del", name]).stderr(Stdio::null()).status();
}
