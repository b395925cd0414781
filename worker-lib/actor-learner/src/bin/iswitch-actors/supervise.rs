//! Supervision of child processes of several kinds. The module starts, restarts and stops them.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use rustix::process::{Pid, Signal, kill_process};

/// Time after which a process counts as started. Only a failure before this time is a startup failure.
const LONG: Duration = Duration::from_secs(5);
/// Maximum number of consecutive startup failures of a process before the run is aborted.
const SHORT_LIVES_MAX: u32 = 5;
/// Pause before the restart of a process that failed soon after its start.
const PAUSE: Duration = Duration::from_millis(200);
/// Grace period for a process that has been asked to exit. After this time, the process is killed.
const GRACE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(20);

/// Role of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Process that produces the results of the run. It may exit successfully.
    Main,
    /// Process whose output is discarded. It may exit successfully.
    Helper,
    /// Service that must not exit before the run ends.
    Service,
}

/// Supervised child process. A service is restarted whenever it exits; any other process is restarted only if it fails.
pub(super) struct Supervised {
    /// Name of the process in messages.
    name: String,
    arguments: Box<dyn Fn(u32) -> Vec<OsString>>,
    kind: Kind,
    child: Option<Child>,
    started_at: Instant,
    starts: u32,
    short_lives: u32,
}

impl Supervised {
    /// Starts this executable as a child process. `arguments` receives the number of previous starts and returns the
    /// command-line arguments.
    pub(super) fn start(
        name: String,
        kind: Kind,
        arguments: impl Fn(u32) -> Vec<OsString> + 'static,
    ) -> anyhow::Result<Self> {
        let mut own = Self {
            name,
            arguments: Box::new(arguments),
            kind,
            child: None,
            started_at: Instant::now(),
            starts: 0,
            short_lives: 0,
        };
        own.spawn()?;
        Ok(own)
    }

    fn spawn(&mut self) -> anyhow::Result<()> {
        let child = Command::new(std::env::current_exe()?)
            .args((self.arguments)(self.starts))
            .arg("--child")
            // When this process exits, the kernel closes the pipe. The child detects this and exits as well.
            .stdin(Stdio::piped())
            .stdout(if self.kind == Kind::Main { Stdio::inherit() } else { Stdio::null() })
            // In its own process group, the child does not receive Ctrl-C. This process stops it instead.
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start {}", self.name))?;
        self.child = Some(child);
        self.started_at = Instant::now();
        self.starts += 1;
        Ok(())
    }

    /// Checks the process, and restarts it if it has failed. Returns true if the process has exited successfully and is
    /// not a service.
    pub(super) fn look_after(&mut self) -> anyhow::Result<bool> {
        let Some(child) = &mut self.child else {
            if self.short_lives > 0 && self.started_at.elapsed() >= PAUSE * self.short_lives {
                self.spawn()?;
            }
            return Ok(self.short_lives == 0);
        };
        let Some(status) = child.try_wait()? else { return Ok(false) };
        self.child = None;
        if status.success() && self.kind != Kind::Service {
            self.short_lives = 0;
            return Ok(true);
        }
        self.note_failure(status)?;
        Ok(false)
    }

    fn note_failure(&mut self, status: ExitStatus) -> anyhow::Result<()> {
        let lived = self.started_at.elapsed();
        self.short_lives = if lived < LONG { self.short_lives + 1 } else { 1 };
        if self.short_lives > SHORT_LIVES_MAX {
            bail!("{} has failed {} times in a row: {status}", self.name, self.short_lives);
        }
        eprintln!("iswitch: {} has exited ({status}); restarting it", self.name);
        if self.short_lives == 1 {
            self.spawn()?;
        }
        Ok(())
    }

    /// Asks the process to exit.
    pub(super) fn ask_to_end(&self) {
        let id = self.child.as_ref().and_then(|child| Pid::from_raw(i32::try_from(child.id()).ok()?));
        if let Some(id) = id {
            // The process may have ended in the meantime.
            let _ = kill_process(id, Signal::TERM);
        }
    }

    /// Waits for the process to exit, and kills it if it is still running after `patience`. Returns whether it exited
    /// without being killed.
    pub(super) fn wait(&mut self, patience: Duration) -> bool {
        let Some(mut child) = self.child.take() else { return true };
        let end = Instant::now() + patience;
        while Instant::now() < end {
            if matches!(child.try_wait(), Ok(Some(_))) {
                return true;
            }
            std::thread::sleep(POLL);
        }
        // A process that cannot be killed is ignored, because nothing more can be done.
        let _ = child.kill().and_then(|()| child.wait());
        false
    }
}

/// Ends all processes.
pub(super) fn end_all(processes: &mut [Supervised]) {
    processes.iter().for_each(Supervised::ask_to_end);
    for process in processes {
        process.wait(GRACE);
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        self.ask_to_end();
        self.wait(GRACE);
    }
}
