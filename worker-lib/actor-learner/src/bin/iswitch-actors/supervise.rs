//! Processes of several kinds that one parent starts, looks after and ends.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use rustix::process::{Pid, Signal, kill_process};

/// One that has lived for so long has not failed because it cannot start.
const LONG: Duration = Duration::from_secs(5);
/// Failures in a row, each after a short life, before the run is given up.
const SHORT_LIVES_MAX: u32 = 5;
/// Before a short life's successor.
const PAUSE: Duration = Duration::from_millis(200);
/// Between the request to end and the end by force.
const GRACE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(20);

/// What a process is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Its results are the run's; it may end well.
    Main,
    /// It may end well; what it prints is of no interest.
    Helper,
    /// It is not to end.
    Service,
}

/// A process that is started again when it ends, unless it may.
pub(super) struct Supervised {
    /// For messages.
    name: String,
    arguments: Box<dyn Fn(u32) -> Vec<OsString>>,
    kind: Kind,
    child: Option<Child>,
    started_at: Instant,
    starts: u32,
    short_lives: u32,
}

impl Supervised {
    /// Starts this executable; `arguments` are told how often it was started before.
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
            // Its end tells the child that the parent is gone.
            .stdin(Stdio::piped())
            .stdout(if self.kind == Kind::Main { Stdio::inherit() } else { Stdio::null() })
            // A Ctrl-C reaches it through the parent only.
            .process_group(0)
            .spawn()
            .with_context(|| format!("starting {}", self.name))?;
        self.child = Some(child);
        self.started_at = Instant::now();
        self.starts += 1;
        Ok(())
    }

    /// Whether it has ended well, as it may. One that has failed is started again.
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
        eprintln!("iswitch: {} has ended ({status}); starting it again", self.name);
        if self.short_lives == 1 {
            self.spawn()?;
        }
        Ok(())
    }

    /// Asks it to end.
    pub(super) fn ask_to_end(&self) {
        let id = self.child.as_ref().and_then(|child| Pid::from_raw(i32::try_from(child.id()).ok()?));
        if let Some(id) = id {
            // It may have ended just now.
            let _ = kill_process(id, Signal::TERM);
        }
    }

    /// Waits for its end, by force after a while; whether it came by itself.
    pub(super) fn wait(&mut self, patience: Duration) -> bool {
        let Some(mut child) = self.child.take() else { return true };
        let end = Instant::now() + patience;
        while Instant::now() < end {
            if matches!(child.try_wait(), Ok(Some(_))) {
                return true;
            }
            std::thread::sleep(POLL);
        }
        // Nothing more can be done about one that cannot be killed.
        let _ = child.kill().and_then(|()| child.wait());
        false
    }
}

/// Ends all of them.
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
