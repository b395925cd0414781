//! Process that the user starts. It remains outside the namespaces.

use std::fs;
use std::process::ExitStatus;

use anyhow::{Context as _, ensure};
use iswitch_lab::LabError;
use iswitch_lab::isolation;
use iswitch_lab::process::find_program;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::os::unix::process::ExitStatusExt as _;

use crate::cli::Cli;
use crate::environment;

/// Starts the process inside the namespaces, waits until it exits, and returns its exit status.
pub(crate) fn run(cli: &Cli) -> anyhow::Result<u8> {
    check(cli)?;
    let mut signals =
        Signals::new([SIGHUP, SIGINT, SIGTERM]).context("cannot install the signal handlers")?;
    let own = std::env::current_exe().context("cannot determine the path of this program")?;
    let mut command = isolation::command_inside(own);
    let mut child =
        command.arg("--inside").args(std::env::args_os().skip(1)).spawn().context("cannot start unshare")?;
    let unshare = child.id();
    std::thread::spawn(move || signals.forever().for_each(|signal| forward(unshare, signal)));
    let status = child.wait().context("cannot wait for unshare")?;
    Ok(code(status))
}

/// Checks the requirements of the network before any process is started.
fn check(cli: &Cli) -> anyhow::Result<()> {
    ensure!(
        cli.shell < cli.workers,
        "--shell is {}, expected a rank below the number of workers ({})",
        cli.shell,
        cli.workers
    );
    isolation::check()?;
    let is_shaped = cli.rate.is_some() || cli.delay.is_some();
    let programs =
        [("ping", "iputils-ping", true), ("nft", "nftables", !cli.udp), ("tc", "iproute2", is_shaped)];
    let missing =
        programs.into_iter().find(|(name, _, is_needed)| *is_needed && find_program(name).is_none());
    if let Some((program, package, _)) = missing {
        return Err(LabError::Program { program, package }.into());
    }
    environment::iswitchd()?;
    cli.command.first().map_or(Ok(()), |command| environment::check_command(command))
}

/// Forwards a signal to the first process in the namespaces.
fn forward(unshare: u32, signal: i32) {
    let children = fs::read_to_string(format!("/proc/{unshare}/task/{unshare}/children")).unwrap_or_default();
    let first = children.split_whitespace().next().and_then(|id| id.parse().ok());
    // If `unshare` has no child process, it has not created the namespaces yet. In that case, signal `unshare` itself.
    let process = first.or_else(|| i32::try_from(unshare).ok()).and_then(Pid::from_raw);
    if let (Some(process), Some(signal)) = (process, Signal::from_named_raw(signal)) {
        // The process may have ended in the meantime.
        let _ = kill_process(process, signal);
    }
}

/// Returns the exit status that a shell would report for `status`.
fn code(status: ExitStatus) -> u8 {
    const SIGNALLED: i32 = 128;
    let code = status.code().or_else(|| status.signal().map(|signal| SIGNALLED + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
