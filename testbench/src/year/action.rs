//! Actions of an operator, and faults in a machine room.

use std::fmt;

use strum::{IntoStaticStr, VariantArray};

/// What happens to the daemon or to one of its jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Action {
    /// Nothing happens for as long as a short action lasts. This row of the table is the baseline: the longest rounds
    /// on the busy machine without an action.
    Nothing,
    /// The operator looks at status, counters, jobs, configuration and flight recorder.
    Inspect,
    /// A reload changes limits and the log level.
    Reload,
    /// A reload is refused, because the file is damaged or changes a setting that cannot change.
    RefuseReload,
    /// A port is added, a job of the worker behind it runs, and the port is removed.
    ChangePorts,
    /// A job's key is replaced, and later the job restarts with the new key.
    RotateKey,
    /// A job is halted and resumed.
    Halt,
    /// A job is reset.
    Reset,
    /// A job is removed, and another job with the same number starts later.
    Remove,
    /// A member is expelled; its job continues without it and restarts later.
    Expel,
    /// The daemon is drained, refuses a new job, and is then restarted.
    Drain,
    /// The daemon is stopped with SIGTERM and started again, as for an upgrade.
    Restart,
    /// The daemon is killed and started again.
    Crash,
    /// The active switch of the job with two switches is killed, and started again once the job uses the other
    /// switch.
    FailOver,
    /// The daemon is stopped with SIGSTOP and continues after up to a second.
    Freeze,
    /// The disk is full while the flight recorder is dumped.
    FillDisk,
    /// The log is not read, and its pipe is full.
    FillLog,
    /// The cable of a worker is unplugged for a moment.
    Unplug,
    /// A worker loses one packet in ten for a moment.
    Loss,
}

impl Action {
    /// Returns the name of the action.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
