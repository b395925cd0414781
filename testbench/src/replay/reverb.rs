//! Reverb, from a Python that has it: `pip install dm-reverb==0.14.0 tensorflow-cpu==2.15.1` (Python 3.11 at most).

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use tempfile::TempDir;

use iswitch_harness::process::{Process, command};
use iswitch_harness::scratch;

/// Names the Python.
pub const VARIABLE: &str = "ISWITCH_REVERB_PYTHON";
/// It loads TensorFlow first, on a busy machine eight of them at once.
const START_TIMEOUT: Duration = Duration::from_secs(180);

const SCRIPTS: [(&str, &str); 3] = [
    ("server.py", include_str!("../../peers/reverb_server.py")),
    ("writers.py", include_str!("../../peers/reverb_writers.py")),
    ("check.py", include_str!("../../peers/reverb_check.py")),
];

/// A Python with Reverb, and the scripts for it.
#[derive(Debug)]
pub struct Reverb {
    python: PathBuf,
    scripts: TempDir,
}

/// How a server of Reverb draws.
#[derive(Clone, Copy, Debug)]
pub enum Sampler {
    /// Each item with the same chance.
    Uniform,
    /// With chances in proportion to priorities.
    Prioritized,
}

impl Reverb {
    /// Where [`VARIABLE`] says.
    ///
    /// # Errors
    /// What is missing.
    pub fn find() -> Result<Self, String> {
        static MISSING: OnceLock<Option<String>> = OnceLock::new();
        let python = std::env::var_os(VARIABLE).map(PathBuf::from);
        let wanted = || format!("Reverb in the Python that {VARIABLE} names (pip install dm-reverb==0.14.0)");
        let python = python.ok_or_else(wanted)?;
        let missing = || {
            let import = ["-c", "import reverb"];
            let mut probe = Command::new(&python);
            let output = probe.args(import).env("TF_CPP_MIN_LOG_LEVEL", "3").stdin(Stdio::null()).output();
            let is_there = output.is_ok_and(|output| output.status.success());
            (!is_there).then(wanted)
        };
        match MISSING.get_or_init(missing) {
            Some(missing) => Err(missing.clone()),
            None => Ok(Self::at(python)),
        }
    }

    fn at(python: PathBuf) -> Self {
        let scripts = scratch::directory();
        for (name, text) in SCRIPTS {
            std::fs::write(scripts.path().join(name), text).expect("a file for the script");
        }
        Self { python, scripts }
    }

    /// Starts a server with a table "t" of so many items; `command` makes the command of a program, as in a namespace.
    /// It is ready when [`Self::port`] says so.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start(
        &self,
        port: u16,
        items: usize,
        sampler: Sampler,
        command: impl FnOnce(&Path) -> Command,
    ) -> Process {
        let sampler = match sampler {
            Sampler::Uniform => "uniform",
            Sampler::Prioritized => "prioritized",
        };
        let mut command = command(&self.python);
        command.arg(self.scripts.path().join("server.py"));
        command.args([&port.to_string(), &items.to_string(), sampler]).env("TF_CPP_MIN_LOG_LEVEL", "3");
        Process::spawn("Reverb", &mut command)
    }

    /// Where a server listens.
    ///
    /// # Panics
    /// If it does not become ready.
    pub fn port(server: &mut Process) -> u16 {
        server.wait_for("ready ", START_TIMEOUT);
        let output = server.stdout();
        let port = output.lines().find_map(|line| line.strip_prefix("ready ")?.trim().parse().ok());
        port.expect("a port follows")
    }

    /// A command of one of the scripts: `writers.py` or `check.py`.
    pub fn script(&self, name: &str) -> Command {
        let mut command = command(&self.python);
        command.arg(self.scripts.path().join(name)).env("TF_CPP_MIN_LOG_LEVEL", "3");
        command
    }
}
